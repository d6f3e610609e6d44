// What the program adds to the library: an op with its gradient, a pass, a type of device.
#include <troupe/devices/cpu/cpu_device.hpp>
#include <troupe/graph/passes/pass.hpp>
#include <troupe/ops/api/node.hpp>
#include <troupe/ops/op.hpp>

#include "extension.hpp"

using namespace troupe;

namespace {

Status cube(KernelContext& ctx) {
  const Tensor& x = ctx.input(0);
  TROUPE_TRY(Tensor y, ctx.reuse_or_allocate(0, x.dtype(), x.shape()));
  const float* in = x.data<float>();
  float* out = y.mutable_data<float>();
  for (std::int64_t i = 0; i < x.elements(); ++i) out[i] = in[i] * in[i] * in[i];
  ctx.set_output(0, std::move(y));
  return ok_status();
}

// dy * 3 * x^2
std::vector<Output> cube_grad(GradContext& c) {
  Output square = c.g.add("Mul", {c.x[0], c.x[0]});
  Output sum = c.g.add("AddN", {square, square, square});
  return {c.g.add("Mul", {c.dy[0], sum})};
}

// Counts the cubes of a step, so that `notes` shows that it ran.
Status count_cubes(StepGraph& step, const Target&) {
  int cubes = 0;
  for (const NodeDef& node : step.graph.nodes) cubes += node.op == "Cube";
  step.notes.push_back("cubes: " + std::to_string(cubes));
  ++outside::passes_run;
  return ok_status();
}

Expected<std::unique_ptr<Device>> make_npu(const DeviceName& name, const DeviceSettings& settings) {
  CpuOptions options;
  options.threads = settings.threads;
  return make_cpu_device(name, std::move(options));
}

void add(OpTable& table) {
  table
      .add({.name = "Cube",
            .in = {"x"},
            .out = {"y"},
            .types = "f32",
            .shape = same_shape,
            .grad = cube_grad,
            .doc = "y = x^3."})
      .cpu(kernel<cube>);
  table.add_pass({.name = "count_cubes", .run = count_cubes});
  table.add_device({.name = "NPU", .rank = 0, .kernels_of = "CPU", .make = make_npu});
}

}  // namespace

namespace outside {

std::atomic<int> passes_run{0};

void register_all() {
  throw_if_error(ops::extend(add));
  register_stack();
}

Output cube(Output x, Site site) {
  return add_node({.op = "Cube", .inputs = {x}, .site = site}).output(0);
}

}  // namespace outside
