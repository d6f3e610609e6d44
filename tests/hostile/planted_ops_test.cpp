// Ops that do what none may do: hostile cases find each of them.
#include <doctest/doctest.h>

#include <atomic>
#include <cstdlib>
#include <stdexcept>
#include <vector>

#include "tests/contains.hpp"
#include "tests/hostile/bombard.hpp"

namespace troupe::test {
namespace {

Status same(KernelContext& c) {
  c.set_output(0, c.input(0));
  return ok_status();
}
Status aborts(KernelContext&) { std::abort(); }
Status hangs(KernelContext& c) {
  for (std::atomic<int> turns{0};; turns.fetch_add(1)) {
  }
  return same(c);
}
Status grows(KernelContext& c) {
  TROUPE_TRY(Tensor y, c.allocate(c.input(0).dtype(), Shape{3, 7, 3}));
  c.set_output(0, std::move(y));
  return ok_status();
}
Status of_other_type(KernelContext& c) {
  c.set_output(0, Tensor::scalar(std::int32_t(1)));
  return ok_status();
}
Status blames_itself(KernelContext&) { return internal_error("this cannot be"); }
Status says_nothing(KernelContext&) { return invalid_argument(""); }
Status allocates(KernelContext& c) {
  static std::vector<char> scratch;  // which the compiler could leave out, were it not seen
  scratch.assign(std::size_t(kHostileMemory) + 1, 'x');
  return same(c);
}
Status counts(KernelContext& c) {
  static float calls = 0;
  TROUPE_TRY(Tensor y, c.allocate(DType::f32, c.input(0).shape()));
  for (std::int64_t i = 0; i < y.elements(); ++i) y.mutable_data<float>()[i] = ++calls;
  c.set_output(0, std::move(y));
  return ok_status();
}
Status writes(KernelContext& c) {
  Tensor x = c.input(0);
  for (std::int64_t i = 0; i < x.elements(); ++i) x.mutable_data<float>()[i] += 1;
  c.set_output(0, std::move(x));
  return ok_status();
}

struct Planted {
  const char* name;
  Status (*kernel)(KernelContext&);
  ShapeFn shape;
  const char* found;  // in a finding
};
const Planted kPlanted[] = {
    {"Aborts", aborts, same_shape, "ends the process"},
    {"Hangs", hangs, same_shape, "takes more than"},
    {"Grows", grows, same_shape, "as inferred"},
    {"OfOtherType", of_other_type, same_shape, "is i32"},
    {"BlamesItself", blames_itself, same_shape, "internal"},
    {"SaysNothing", says_nothing, same_shape, "without a message"},
    {"Allocates", allocates, same_shape, "takes a block"},
    {"Counts", counts, same_shape, "other bits"},
    {"Writes", writes, same_shape, "wrote into a feed"},
    {"Throws", same, [](InferenceContext&) -> Status { throw std::out_of_range("7"); }, "escapes"},
};

struct Call final : Kernel {
  explicit Call(Status (*f)(KernelContext&)) : f(f) {}
  Status compute(KernelContext& c) override { return f(c); }
  Status (*f)(KernelContext&);
};
Expected<std::unique_ptr<Kernel>> make(const KernelSpec& spec) {
  for (const Planted& planted : kPlanted)
    if (spec.node.op == planted.name) return std::unique_ptr<Kernel>(new Call(planted.kernel));
  return not_found(spec.node.op);
}

}  // namespace

TEST_CASE("hostile cases find ops that crash, hang, lie, take too much or say too little") {
  OpTable table = ops::builtin();
  for (const Planted& planted : kPlanted)
    table
        .add({.name = planted.name,
              .in = {"x"},
              .out = {"y"},
              .types = "f32",
              .shape = planted.shape,
              .no_gradient = "for this test",
              .doc = "For this test."})
        .cpu(make);
  table.finish();
  for (const Planted& planted : kPlanted) {
    CAPTURE(std::string(planted.name));
    Bombardment how{.cases = 12};
    if (planted.kernel == hangs) how.most_ms = 50;
    const Bombarded done = bombard(table, {table.ops.find(planted.name)}, how);
    REQUIRE(!done.findings.empty());
    for (const HostileFinding& f : done.findings)
      CHECK_MESSAGE(contains(f.what, planted.found), f.what);
  }
}

TEST_CASE("a hostile case is the same for the same seed") {
  const OpTable& table = ops::builtin();
  for (const char* name : {"Pad", "Conv2D", "StringSplit", "ListSet"})
    for (std::uint64_t seed = 1; seed < 20; ++seed) {
      const OpInfo& op = *table.ops.find(name);
      const std::string text = draw_hostile_case(table, op, seed).text();
      CHECK(text == draw_hostile_case(table, op, seed).text());
      CHECK(text != draw_hostile_case(table, op, seed + 100).text());
    }
}

}  // namespace troupe::test
