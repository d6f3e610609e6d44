// What a convolution node keeps between steps, and the benchmark of single kernels.
#include "apps/bench/kernel_bench.hpp"
#include "tests/ops/nn/nn_kernels.hpp"

using namespace troupe;
using namespace troupe::test;

namespace {

// One call of a kernel that lives on, as the steps of a plan make it.
Tensor call(Kernel& kernel, const std::vector<Tensor>& inputs) {
  std::vector<Slot> in(inputs.size()), out(1);
  std::vector<std::uint32_t> slots;
  for (std::size_t i = 0; i < in.size(); ++i) {
    in[i].tensor = inputs[i];
    slots.push_back(std::uint32_t(i));
  }
  InlineLanes lanes;
  const KernelPlace place{.device = &inline_device(), .lanes = &lanes};
  KernelContext ctx({.slots = in.data(),
                     .input_slots = slots.data(),
                     .outputs = out.data(),
                     .inputs = std::uint16_t(in.size()),
                     .n_outputs = 1,
                     .place = &place});
  Status status = kernel.compute(ctx);
  return status.ok() ? out[0].tensor : Tensor();
}

}  // namespace

TEST_CASE("overlapping steps share one convolution, whatever the batch, and agree") {
  std::mt19937_64 rng(test_seed());
  INFO("seed " << test_seed());
  const Tensor filter = to_f32(random_f64(rng, Shape{3, 3, 16, 16}));
  std::vector<Tensor> x, want;
  // More shapes than a node keeps, so that plans in use are dropped and made again.
  for (std::int64_t batch = 1; batch <= 20; ++batch) {
    x.push_back(to_f32(random_f64(rng, Shape{batch, 6, 6, 16})));
    want.push_back(run("Conv2D", {x.back(), filter})[0]);
  }
  const NodeDef node = make_node("Conv2D", {x[0], filter}, {});
  const OpInfo& op = *ops::builtin().ops.find("Conv2D");
  auto kernel = ops::builtin().kernels.make(node, op, "CPU");
  REQUIRE(kernel.ok());
  std::atomic<int> wrong{0};
  std::vector<std::thread> steps;
  for (std::size_t t = 0; t < 3; ++t)
    steps.emplace_back([&, t] {
      for (std::size_t i = 0; i < 3 * x.size(); ++i) {
        const std::size_t k = (i * (t + 1) + t) % x.size();
        if (!Tensor::same(call(**kernel, {x[k], filter}), want[k])) ++wrong;
      }
    });
  for (std::thread& t : steps) t.join();
  CHECK(wrong == 0);
}

TEST_CASE("the kernel benchmark measures the rows it is asked for") {
  auto rows = bench_kernels({.threads = 2, .rounds = 1, .seconds = 1e-3, .only = "relu"});
  REQUIRE_MESSAGE(rows.ok(), rows.status().text());
  REQUIRE(rows->size() == 2);
  CHECK((*rows)[0].name == "kernels.relu.64x28x28x32.t2");
  for (const KernelRow& row : *rows) CHECK(row.value > 0);
  CHECK(bench_kernels({.rounds = 0}).status().code() == Code::invalid_argument);
}
