// What a program adds to the table beside ops.
#include <doctest/doctest.h>

#include "devices/cpu/cpu_device.hpp"
#include "ops/op.hpp"

namespace troupe {
namespace {

Expected<std::unique_ptr<Kernel>> none(const KernelSpec&) { return unimplemented("for a test"); }
Expected<std::unique_ptr<Kernel>> own(const KernelSpec&) { return unavailable("its own"); }

Expected<std::unique_ptr<Device>> make_host(const DeviceName& name, const DeviceSettings&) {
  return make_inline_device(name);
}

}  // namespace

TEST_CASE("a device type that shares kernels runs them, and its own instead where it has one") {
  OpTable table;
  auto unary = [](const char* name) {
    return OpDef{.name = name, .in = {"x"}, .out = {"y"}, .types = "f32 f64", .shape = same_shape};
  };
  table.add(unary("F")).cpu(none, "f32");
  table.add_device({.name = "NPU", .rank = 0, .kernels_of = "CPU", .make = make_host});
  table.add(unary("G")).cpu(none).on("NPU", own, "f32");
  NodeDef node{.name = "n", .attrs = {{"T", DType::f32}}};
  auto made = [&](const char* op, const char* device) {
    node.op = op;
    return table.kernels.make(node, *table.ops.find(op), device).status();
  };
  CHECK(made("F", "NPU").message() == "for a test");
  CHECK(made("G", "NPU").message() == "its own");
  CHECK(made("G", "CPU").message() == "for a test");
  CHECK(made("F", "TPU").code() == Code::not_found);

  const std::shared_ptr<const KernelIndex> index = table.index();
  CHECK(index->has("F", "NPU", DType::f32));
  CHECK(!index->has("F", "NPU", DType::f64));
  CHECK(!index->has("G", "NPU", DType::f64));  // its own kernel says which it takes
  CHECK(index->rank("NPU") < index->rank("CPU"));
  CHECK(index->rank("CPU") < index->rank("TPU"));
  CHECK(table.index() != index);
  table.finish();
  CHECK(table.index() == table.index());
  CHECK(table.index()->has("F", "NPU", DType::f32));
  table.add(unary("H")).cpu(none);
  CHECK(table.index()->has("H", "CPU", DType::f32));  // what comes later is in it, too
}

TEST_CASE("the table is extended before it is used, not after") {
  ops::builtin();
  CHECK(ops::extend([](OpTable&) {}).code() == Code::failed_precondition);
}

}  // namespace troupe
