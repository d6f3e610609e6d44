// Recurrent layers and AdamW beside what PyTorch computed, recorded by record_torch.py.
#include "tests/ops/nn/torch_reference.hpp"

#include <doctest/doctest.h>

#include "ops/nn/nn.hpp"
#include "ops/optim/optim.hpp"
#include "tests/ops/kernels/reference.hpp"

namespace troupe::test {
namespace {

struct ReferenceNet : nn::Module {
  using Module::Module;
};

void check_close(const Tensor& got, const Numbers& want) {
  REQUIRE(got.elements() == std::int64_t(want.size()));
  for (std::size_t i = 0; i < want.size(); ++i)
    CHECK(got.data<double>()[i] == doctest::Approx(want[i]).epsilon(1e-10).scale(1));
}

template <class Layer>
void check_like_torch(const TorchReference& reference, const nn::RecurrentOptions& options) {
  const Shape sequence{kTorchTime, kTorchBatch, kTorchIn},
      states{kTorchTime, kTorchBatch, kTorchHidden};
  Graph g;
  ReferenceNet net{g.scope("net")};
  Layer layer{net, "layer", kTorchIn, kTorchHidden, options};
  const Output y = layer(constant(g, tensor(sequence, reference.x))).h;
  const Output distance = y - constant(g, tensor(states, reference.target));
  const Output loss = mean(distance * distance);
  const auto parameters = layer.parameters();
  REQUIRE(parameters.size() == reference.before.size());
  const optim::Gradients gradients = optim::gradients(loss);
  const Op train =
      optim::AdamW{.lr = 0.05, .beta1 = 0.8, .beta2 = 0.95, .epsilon = 1e-6, .weight_decay = 0.1}
          .apply(gradients);

  Interpreter run(g);
  run.init();
  std::vector<Output> first{y};
  std::vector<Op> begin;
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    const Tensor value = tensor(parameters[i].shape().shape(), reference.before[i]);
    begin.push_back(assign(parameters[i], constant(g, value)));
    first.push_back(gradients[i].value);
  }
  run.run({}, begin);
  const auto values = run.run(first);
  check_close(values[0], reference.output);
  for (std::size_t i = 0; i < parameters.size(); ++i)
    check_close(values[i + 1], reference.gradients[i]);
  for (const double want : reference.losses) check_close(run.run({loss}, {train})[0], {want});
  for (std::size_t i = 0; i < parameters.size(); ++i)
    check_close(run.variable(parameters[i]), reference.after[i]);
}

}  // namespace

TEST_CASE("an LSTM that AdamW trains does as PyTorch's, in one node or unrolled") {
  for (const nn::OverTime over_time : {nn::OverTime::fused, nn::OverTime::unrolled})
    check_like_torch<nn::Lstm>(kTorchLstm, {.over_time = over_time, .dtype = DType::f64});
}

TEST_CASE("a GRU that AdamW trains does as PyTorch's") {
  check_like_torch<nn::Gru>(kTorchGru, {.dtype = DType::f64});
}

}  // namespace troupe::test
