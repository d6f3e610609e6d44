#include "apps/bench/train_networks.hpp"

#include <random>

#include "apps/char_lstm.hpp"
#include "apps/models.hpp"

namespace troupe {
namespace {

Tensor noise(std::mt19937& random, const Shape& shape) {
  std::normal_distribution<float> normal;
  std::vector<float> values(std::size_t(shape.elements()));
  for (float& value : values) value = normal(random);
  return Tensor::of(shape, std::span<const float>(values));
}

Tensor numbers(std::mt19937& random, const Shape& shape, std::uint32_t below) {
  std::vector<std::int64_t> values(std::size_t(shape.elements()));
  for (std::int64_t& value : values) value = std::int64_t(random() % below);
  return Tensor::of(shape, std::span<const std::int64_t>(values));
}

template <class Model>
void keep(TrainStep& step, std::unique_ptr<Model> model) {
  step.model = {model.release(), [](nn::Module* m) { delete static_cast<Model*>(m); }};
}

Status of_pictures(TrainStep& step, std::string_view example, const Shape& many) {
  std::mt19937 random(7);
  const Shape pictures{step.small ? 2 : many[0], many[1], many[2], many[3]};
  const Shape labels{pictures[0]};
  step.feeds = {noise(random, pictures), numbers(random, labels, 10)};
  step.x = placeholder<float>(step.graph, pictures, "images");
  step.y = placeholder<std::int64_t>(step.graph, labels, "labels");
  TROUPE_TRY(auto model, make_model(example, step.graph));
  {
    auto training = model->train();
    step.loss = mean(softmax_cross_entropy((*model)(step.x), step.y));
  }
  keep(step, std::move(model));
  return ok_status();
}

template <nn::OverTime over_time>
Status char_lstm(TrainStep& step) {
  std::mt19937 random(7);
  const Shape text = step.small ? Shape{3, 2} : Shape{50, 32};
  step.feeds = {numbers(random, text, 128), numbers(random, text, 128)};
  step.x = placeholder<std::int64_t>(step.graph, text, "characters");
  step.y = placeholder<std::int64_t>(step.graph, text, "following");
  auto model = std::make_unique<CharLstm>(step.graph.scope("char_lstm"),
                                          CharLstm::Options{.over_time = over_time});
  step.loss = mean(softmax_cross_entropy((*model)(step.x).logits, reshape(step.y, {-1})));
  keep(step, std::move(model));
  return ok_status();
}

const TrainNetwork kNetworks[] = {
    {"mlp", 1e-2,
     [](TrainStep& s) {
       return of_pictures(s, "mnist-mlp", {100, 28, 28, 1});
     }},
    {"lenet", 1e-2,
     [](TrainStep& s) {
       return of_pictures(s, "mnist-conv", {64, 28, 28, 1});
     }},
    {"resnet20", 1e-1,
     [](TrainStep& s) {
       return of_pictures(s, "cifar-resnet20", {64, 32, 32, 3});
     }},
    {"char_lstm", 1e-1, char_lstm<nn::OverTime::fused>},
    {"char_lstm_unrolled", 1e-1, char_lstm<nn::OverTime::unrolled>, false},
    {"char_lstm_loop", 1e-1, char_lstm<nn::OverTime::loop>, false},
};

}  // namespace

std::span<const TrainNetwork> train_networks() { return kNetworks; }

const TrainNetwork* find_train_network(std::string_view name) {
  for (const TrainNetwork& network : kNetworks)
    if (network.name == name) return &network;
  return nullptr;
}

Expected<std::unique_ptr<TrainStep>> make_train_step(const TrainNetwork& network, bool small) {
  auto step = std::make_unique<TrainStep>();
  step->small = small;
  TROUPE_TRY(network.build(*step));
  step->train = optim::Momentum{.lr = network.rate, .momentum = 0.9}.minimize(step->loss);
  return step;
}

}  // namespace troupe
