// Networks of all kinds of layers on the emulated GPU: the CPU's losses within bounds, and the same
// bits twice. Not run on hardware.
#include <doctest/doctest.h>

#include "apps/char_lstm.hpp"
#include "tests/apps/emulated_gpu.hpp"
#include "tests/contains.hpp"
#include "tests/same_bits.hpp"

using namespace troupe;

namespace {

// Losses of a few steps, then the variables.
using Trained = std::vector<Tensor> (*)(bool gpu);

std::vector<Tensor> losses_and_variables(Graph& g, Output loss, Op update, bool gpu) {
  Session session(g, test::with_gpu(gpu));
  session.init();
  auto step = session.compile({loss}, {update});
  std::vector<Tensor> all;
  for (int i = 0; i < 4; ++i) all.push_back(step.run(std::vector<Tensor>{})[0]);
  for (auto& [name, value] : value_or_throw(session.try_variables())) all.push_back(value);
  return test::on_heap(all);
}

void check_trained(Trained train, double apart, bool libraries = false) {
  const std::vector<Tensor> cpu = train(false);
  std::vector<Tensor> once;
  for (const char* fake : {"check=1", "check=1,delay_us=100,seed=3,order=5"}) {
    INFO(fake);
    const test::Emulated emulated(fake, true, libraries);
    const std::vector<Tensor> got = train(true);
    CHECK(test::most_apart(got, cpu) < apart);
    if (once.empty()) once = got;
    CHECK(test::same_bits(got, once));
    CHECK(test::fake_reports().empty());
  }
}

std::vector<Tensor> train_lstm(bool gpu) {
  Graph g(7);
  auto [x, y] = data::tales(2000, {.window = 10, .stride = 5})
                    .shuffle(400, 1)
                    .repeat()
                    .batch(8, data::Remainder::drop)
                    .outputs(g);
  CharLstm model(g.scope("lstm"), {.units = 12, .dropout = 0.2});
  auto training = model.train();
  const Output by_time = transpose(x, {.perm = {1, 0}}), next = transpose(y, {.perm = {1, 0}});
  Output loss = mean(softmax_cross_entropy(model(by_time).logits, reshape(next, {-1})));
  const auto gradients = optim::clip_by_global_norm(optim::gradients(loss), 1);
  return losses_and_variables(g, loss, optim::Adam{.lr = 0.01}.apply(gradients), gpu);
}

struct NetworkPictures : nn::Module {
  using Module::Module;
  nn::Conv2d conv{*this, "conv", 1, 4, 3, {.stride = 2}};
  nn::BatchNorm norm{*this, "norm", 4};
  nn::Dropout drop{*this, "drop", 0.3};
  nn::LayerNorm rows{*this, "rows", 4 * 7 * 7};
  nn::Linear out{*this, "out", 4 * 7 * 7, 10};
  Output operator()(Output images) const {
    Output x = relu(norm(conv(reshape(images, {-1, 28, 28, 1}))));
    x = max_pool(x, {2, 2}, {2, 2});
    return out(rows(drop(reshape(x, {-1, 4 * 7 * 7}))));
  }
};

// By plain gradient descent: rules that divide by the size of a gradient turn rounding into steps.
std::vector<Tensor> train_pictures(bool gpu) {
  Graph g(5);
  auto [images, labels] =
      data::digits(64, data::Split::train).shuffle(64, 1).batch(8).repeat().outputs(g);
  NetworkPictures net(g.scope("net"));
  auto training = net.train();
  Output loss = mean(softmax_cross_entropy(net(images), labels));
  return losses_and_variables(g, loss, optim::Momentum{.lr = 0.05}.minimize(loss), gpu);
}

// A table of which each step reads and changes few rows.
std::vector<Tensor> train_table(bool gpu) {
  Graph g(6);
  auto [images, labels] =
      data::digits(64, data::Split::train).shuffle(64, 1).batch(8).repeat().outputs(g);
  struct Net : nn::Module {
    using Module::Module;
    nn::Embedding table{*this, "table", 10, 16};
    nn::Linear in{*this, "in", 784, 16};
  } net(g.scope("net"));
  Output loss = mean(square(net.in(images)-net.table(labels)));
  return losses_and_variables(g, loss, optim::Adagrad{.lr = 0.01}.minimize(loss), gpu);
}

struct Block : nn::Module {
  Block(Module& parent, std::string_view name) : Module(parent, name) {}
  nn::LayerNorm before{*this, "before", 16};
  nn::MultiHeadAttention attention{*this, "attention", 16, 2};
  nn::LayerNorm between{*this, "between", 16};
  nn::Linear wide{*this, "wide", 16, 64}, narrow{*this, "narrow", 64, 16};
  Output operator()(Output x) const {
    const Output h = before(x);
    x = x + attention(h, h, h, {.causal = true});
    return x + narrow(gelu(wide(between(x))));
  }
};

// Two blocks of a GPT over characters.
std::vector<Tensor> train_blocks(bool gpu) {
  Graph g(8);
  auto [x, y] = data::tales(2000, {.window = 4, .stride = 3})
                    .shuffle(400, 1)
                    .repeat()
                    .batch(2, data::Remainder::drop)
                    .outputs(g);
  struct Net : nn::Module {
    using Module::Module;
    nn::Embedding tokens{*this, "tokens", 128, 16, {.stddev = 0.1}};
    nn::Embedding places{*this, "places", 4, 16, {.stddev = 0.1}};
    Block first{*this, "first"}, second{*this, "second"};
    nn::LayerNorm norm{*this, "norm", 16};
    nn::Linear head{*this, "head", 16, 128};
  } net(g.scope("net"));
  const Output zero = constant(g, std::int64_t{0}), one = constant(g, std::int64_t{1});
  const Output place = range(zero, constant(g, std::int64_t{4}), one);
  const Output h = net.second(net.first(net.tokens(x) + net.places(place)));
  Output loss = mean(softmax_cross_entropy(net.head(net.norm(h)), y));
  const auto gradients = optim::clip_by_global_norm(optim::gradients(loss), 1);
  return losses_and_variables(g, loss, optim::Momentum{.lr = 0.1}.apply(gradients), gpu);
}

// Causal attention in f16, between layers of f32.
std::vector<Tensor> train_half_attention(bool gpu) {
  Graph g(9);
  auto [x, y] = data::tales(2000, {.window = 8, .stride = 3})
                    .shuffle(400, 1)
                    .repeat()
                    .batch(2, data::Remainder::drop)
                    .outputs(g);
  struct Net : nn::Module {
    using Module::Module;
    nn::Embedding tokens{*this, "tokens", 128, 16, {.stddev = 0.1}};
    nn::Linear query{*this, "query", 16, 16}, key{*this, "key", 16, 16},
        value{*this, "value", 16, 16};
    nn::Linear head{*this, "head", 16, 128};
  } net(g.scope("net"));
  const Output in = net.tokens(x);
  const auto heads = [&](const nn::Linear& layer) {
    return cast(transpose(reshape(layer(in), {2, 8, 2, 8}), {.perm = {0, 2, 1, 3}}), DType::f16);
  };
  const Output seen = nn::scaled_dot_product_attention(heads(net.query), heads(net.key),
                                                       heads(net.value), {.causal = true});
  const Output joined =
      reshape(transpose(cast(seen, DType::f32), {.perm = {0, 2, 1, 3}}), {2, 8, 16});
  Output loss = mean(softmax_cross_entropy(net.head(in + joined), y));
  return losses_and_variables(g, loss, optim::Momentum{.lr = 0.1}.minimize(loss), gpu);
}

// A network whose layers are a function that is called, a loop of as many rounds as its input says,
// and a branch.
std::vector<Tensor> train_control(bool gpu) {
  Graph g(4);
  auto [images, labels] =
      data::digits(64, data::Split::train).shuffle(64, 1).batch(8).repeat().outputs(g);
  struct Net : nn::Module {
    using Module::Module;
    nn::Linear in{*this, "in", 784, 12}, again{*this, "again", 12, 12}, out{*this, "out", 12, 10};
  } net(g.scope("net"));
  const ValueType rows{DType::f32, PartialShape{8, 12}};
  const Function layer =
      function(g, "layer", {rows}, {rows}, [&](Function&, Output x) { return tanh(net.again(x)); });
  const Output rounds = max(mod(labels, constant(g, std::int64_t{4})));
  const Output h = std::get<1>(while_loop(
      std::tuple{constant(g, std::int64_t{0}), layer(relu(net.in(images)))},
      [&](Output i, Output) { return i < rounds; },
      [&](Output i, Output x) {
        return std::tuple{i + 1, x + layer(x) * 0.5f};
      }));
  const Output scaled = cond(
      rounds > 2, [&] { return h * 0.5f; }, [&] { return h; });
  Output loss = mean(softmax_cross_entropy(net.out(scaled), labels));
  return losses_and_variables(g, loss, optim::Momentum{.lr = 0.05}.minimize(loss), gpu);
}

// The same step in two replicas, each with numbers of its own.
std::vector<Tensor> train_replicas(bool gpu) {
  Graph g(5);
  auto [images, labels] =
      data::digits(64, data::Split::train).shuffle(64, 1).batch(8).repeat().outputs(g);
  struct Net : nn::Module {
    using Module::Module;
    nn::Linear in{*this, "in", 784, 16};
    nn::Dropout drop{*this, "drop", 0.3};
    nn::Linear out{*this, "out", 16, 10};
  } net(g.scope("net"));
  auto training = net.train();
  Output loss = mean(softmax_cross_entropy(net.out(net.drop(relu(net.in(images)))), labels));
  Op update = optim::Momentum{.lr = 0.05}.minimize(loss);
  Session session(g, test::with_gpu(gpu));
  session.init();
  auto step = session.compile({}, {update}, {}, {.replicas = 2});
  for (int i = 0; i < 3; ++i) step.run();
  std::vector<Tensor> all;
  for (auto& [name, value] : value_or_throw(session.try_variables())) all.push_back(value);
  return test::on_heap(all);
}

}  // namespace

TEST_CASE("an LSTM over characters trains on a GPU as on the CPU") {
  check_trained(train_lstm, 1e-4);
}

TEST_CASE("convolutions, norms, pools and dropout train on a GPU as on the CPU") {
  check_trained(train_pictures, 1e-4);
}

TEST_CASE("convolutions and products by libraries train on a GPU as on the CPU") {
  const test::EnvironmentVariable matmul("TROUPE_CUDA_MATMUL", "cublaslt");
  const test::EnvironmentVariable conv("TROUPE_CUDA_CONV", "cudnn");
  check_trained(train_pictures, 1e-4, true);
}

TEST_CASE("a table of rows trains on a GPU as on the CPU") { check_trained(train_table, 1e-4); }

TEST_CASE("blocks of a GPT train on a GPU as on the CPU") { check_trained(train_blocks, 1e-4); }

TEST_CASE("attention of f16 trains on a GPU as on the CPU, by a library and in parts") {
  for (const char* by : {"cudnn", "kernels"}) {
    const test::EnvironmentVariable attention("TROUPE_CUDA_ATTENTION", by);
    check_trained(train_half_attention, 1e-3, true);
  }
}

TEST_CASE("loops and functions train on a GPU as on the CPU") {
  check_trained(train_control, 1e-4);
}

TEST_CASE("replicas train on a GPU as on the CPU") { check_trained(train_replicas, 1e-4); }
