// What the state of a job takes: bytes that the allocator of its device has handed out.
#include <doctest/doctest.h>

#include <algorithm>
#include <chrono>
#include <thread>

#include "actors/resources/update_rules.hpp"
#include "devices/arena.hpp"
#include "devices/cpu/cpu_device.hpp"
#include "ops/api.hpp"
#include "tests/actors/support/sessions.hpp"

using namespace troupe;
using namespace troupe::test;

namespace {

constexpr std::int64_t kElements = 1 << 18;
constexpr std::uint64_t kBytes = kElements * 4;  // of a variable: 1 MiB

Tensor filled(Device& device, float x) {
  Tensor t = *Tensor::make(DType::f32, Shape{kElements}, device.allocator());
  std::fill_n(t.mutable_data<float>(), kElements, x);
  return t;
}

std::uint64_t values_at_peak(Session& s) { return (s.memory()[0].peak + kBytes / 2) / kBytes; }

// x as a tensor that the step makes, on its device.
Output made(Graph& g, float x) {
  return fill(constant(g, Tensor::of<std::int64_t>({1}, {kElements})), constant(g, x));
}

}  // namespace

TEST_CASE("contributions of replicas are joined in the memory of the first") {
  auto device = make_inline_device(*DeviceName::parse("/job:worker/task:0/cpu:0"));
  InlineLanes lanes;
  Graph g;
  Variable w = variable(g, "w", Tensor::of<float>({1}, {0}));
  NodeDef node = g.node(assign_add(w, w.value()).node());
  node.attrs.insert_or_assign("replicas", Attr(std::int64_t{3}));
  auto rule = value_or_throw(make_rule(ops::builtin(), node, {"w"}, *device));

  VariableStore::Task task;
  std::vector<WriteReduction> reductions(1);
  reductions[0].rule = rule;
  reductions[0].targets = {0};
  for (float x : {1.f, 10.f, 100.f}) reductions[0].contributions.push_back({filled(*device, x)});
  task.variables.push_back({"w", DType::f32, filled(*device, 1000), true, {}});
  device->reset_peak();
  const std::uint64_t before = device->bytes_in_use();
  auto room = value_or_throw(OpRules(*device).reserve({}, reductions));
  CHECK(room.empty());
  task.reductions = std::move(reductions);
  auto values = value_or_throw(apply_task(std::move(task), *device, lanes));
  REQUIRE(values.size() == 1);
  CHECK(values[0].data<float>()[kElements - 1] == 1111);
  CHECK(device->peak_bytes() == before);
  CHECK(device->bytes_in_use() == Arena::block_size(kBytes));
}

TEST_CASE("a contribution that somebody else holds is not written") {
  auto device = make_inline_device(*DeviceName::parse("/job:worker/task:0/cpu:0"));
  InlineLanes lanes;
  Graph g;
  Variable w = variable(g, "w", Tensor::of<float>({1}, {0}));
  NodeDef node = g.node(assign_add(w, w.value()).node());
  node.attrs.insert_or_assign("replicas", Attr(std::int64_t{2}));
  auto rule = value_or_throw(make_rule(ops::builtin(), node, {"w"}, *device));
  const Tensor held = filled(*device, 1);
  std::vector<WriteReduction> reductions(1);
  reductions[0].rule = rule;
  reductions[0].targets = {0};
  reductions[0].contributions = {{held}, {filled(*device, 10)}};
  (void)value_or_throw(OpRules(*device).reserve({}, reductions));
  VariableStore::Task task;
  task.variables.push_back({"w", DType::f32, filled(*device, 100), true, {}});
  task.reductions = std::move(reductions);
  auto values = value_or_throw(apply_task(std::move(task), *device, lanes));
  CHECK(values[0].data<float>()[0] == 111);
  CHECK(held.data<float>()[0] == 1);
}

TEST_CASE("memory for the rows of replicas is reserved once, however often it is asked for") {
  auto device = make_inline_device(*DeviceName::parse("/job:worker/task:0/cpu:0"));
  InlineLanes lanes;
  Graph g;
  const Variable w = variable(g, "w", *Tensor::zeros(DType::f32, Shape{2, kElements}));
  const Op update = g.add(NodeSpec{
      .op = "ApplySparseGradientDescent",
      .inputs = {w.handle(), constant(g, 1.f), constant(g, Tensor::of<std::int64_t>({1}, {1})),
                 placeholder<float>(g, {1, kElements})}});
  NodeDef node = g.node(update.node());
  node.attrs.insert_or_assign("replicas", Attr(std::int64_t{2}));
  std::vector<WriteReduction> reductions(1);
  reductions[0].rule = value_or_throw(make_rule(ops::builtin(), node, {"w"}, *device));
  reductions[0].targets = {0};
  for (float x : {1.f, 10.f})
    reductions[0].contributions.push_back({Tensor::scalar(1.f), Tensor::of<std::int64_t>({1}, {1}),
                                           filled(*device, x).reshaped({1, kElements})});
  const OpRules rules(*device);
  (void)value_or_throw(rules.reserve({}, reductions));
  const std::uint64_t reserved = device->bytes_in_use();
  for (int i = 0; i < 3; ++i) (void)value_or_throw(rules.reserve({}, reductions));
  CHECK(device->bytes_in_use() == reserved);
  VariableStore::Task task;
  task.variables.push_back(
      {"w", DType::f32, *Tensor::zeros(DType::f32, Shape{2, kElements}), true, {}});
  task.reductions = std::move(reductions);
  const auto values = value_or_throw(apply_task(std::move(task), *device, lanes));
  CHECK(values[0].data<float>()[0] == 0);
  CHECK(values[0].data<float>()[2 * kElements - 1] == -5.5f);  // the mean of both
}

TEST_CASE("a step of training updates its variables in place") {
  Graph g;
  Variable w = variable(g, "w", made(g, 1));
  Op train = optim::Adam{.lr = 0.1}.minimize(mean(square(w.value())));
  Session s(g, one_thread());
  s.init();
  auto step = s.compile({}, {train});
  for (int i = 0; i < 3; ++i) step.run();
  std::uint64_t peak = 0;
  for (int i = 0; i < 5; ++i) {
    // A step is answered before it has given all back, and the next one may begin meanwhile.
    const auto until = std::chrono::steady_clock::now() + std::chrono::minutes(1);
    while (s.memory(true)[0].in_use > 3 * kBytes + kBytes / 2 &&
           std::chrono::steady_clock::now() < until)
      std::this_thread::yield();
    step.run();
    peak = std::max(peak, values_at_peak(s));
  }
  MESSAGE(peak << " values at the peak of a step");
  // The parameter, its two moments, and while it is differentiated its square and its gradient.
  CHECK(peak <= 5);
}

TEST_CASE("a run that waits for a queue costs the version that it reads, whatever is committed") {
  Graph g;
  Variable w = variable(g, "w", made(g, 1));
  Op add = assign_add(w, made(g, 1));
  Gate gate(g, kTask0);
  Output late = mean(read(w, {gate.taken})) + gate.taken;
  Session s(g, one_thread());
  s.init();
  auto step = s.compile({}, {add});
  auto waiting = s.compile({late}).start();
  step.run();
  s.memory(true);
  for (int i = 0; i < 40; ++i) step.run();
  MESSAGE(values_at_peak(s) << " values at the peak, of 41 commits");
  CHECK(values_at_peak(s) <= 8);
  s.run({}, {gate.put}, {{gate.fed, Tensor::scalar(0.5f)}});
  // It takes an element, so it is a commit, and done again: others have changed w since its start.
  CHECK(waiting.get()[0].item<float>() == 42.5f);
}
