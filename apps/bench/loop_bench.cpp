#include "apps/bench/loop_bench.hpp"

#include "apps/bench/plan_draft.hpp"

namespace troupe {
namespace {

// Input 0 plus 1.
class Count final : public Kernel {
 public:
  Status compute(KernelContext& ctx) override {
    TROUPE_TRY(Tensor sum, ctx.allocate(DType::i64, Shape{}));
    *sum.mutable_data<std::int64_t>() = *ctx.input(0).data<std::int64_t>() + 1;
    ctx.set_output(0, std::move(sum));
    return {};
  }
};

class Less final : public Kernel {
 public:
  Status compute(KernelContext& ctx) override {
    TROUPE_TRY(Tensor less, ctx.allocate(DType::bool_, Shape{}));
    *less.mutable_data<bool>() =
        *ctx.input(0).data<std::int64_t>() < *ctx.input(1).data<std::int64_t>();
    ctx.set_output(0, std::move(less));
    return {};
  }
};

class HandOn final : public Kernel {
 public:
  Status compute(KernelContext& ctx) override {
    ctx.set_output(0, ctx.input(0));
    return {};
  }
};

class Value final : public Kernel {
 public:
  explicit Value(Tensor value) : value_(std::move(value)) {}
  Status compute(KernelContext& ctx) override {
    ctx.set_output(0, value_);
    return {};
  }

 private:
  Tensor value_;
};

class LoopDraft {
 public:
  std::uint32_t value(std::string name, Tensor value) {
    values_.emplace_back(name, std::move(value));
    return out(draft_.add({.name = std::move(name), .op = "Value"}));
  }
  // `for (i = 0; i < limit; ++i)` around what `inside` adds: from slots of the carried values,
  // whose first one is `carried`, to those of the next ones. Returns the slot of the carried value.
  template <class F>
  std::uint32_t repeat(const std::string& name, std::uint32_t limit, std::uint32_t carried,
                       F inside) {
    const auto zero = value(name + "/zero", Tensor::scalar(std::int64_t{0}));
    const auto enter = kernel(name + "/enter", "Less", {zero, limit});
    const auto loop = draft_.add(
        {.name = name, .role = Role::loop, .inputs = {enter, zero, carried, limit}, .outputs = 2});
    const auto body = draft_.begin_loop(loop);
    const auto next = inside(out(body, 1), out(body, 2));
    const auto i = kernel(name + "/i", "Count", {out(body, 0)});
    const auto again = kernel(name + "/again", "Less", {i, out(body, 2)});
    draft_.end_loop({again, i, next});
    return out(loop, 1);
  }
  std::uint32_t kernel(std::string name, std::string op, std::vector<std::uint32_t> inputs) {
    return out(
        draft_.add({.name = std::move(name), .inputs = std::move(inputs), .op = std::move(op)}));
  }
  void fetch(std::uint32_t slot) { draft_.fetch(slot); }

  Expected<std::shared_ptr<const LoadedPlan>> load(Device& device) {
    return LoadedPlan::make(std::make_shared<const Plan>(draft_.finish()), device,
                            [&](const PlanInfo& node) -> Expected<std::unique_ptr<Kernel>> {
                              if (node.def.op == "Count") return std::unique_ptr<Kernel>(new Count);
                              if (node.def.op == "Less") return std::unique_ptr<Kernel>(new Less);
                              if (node.def.op == "HandOn")
                                return std::unique_ptr<Kernel>(new HandOn);
                              for (const auto& [name, value] : values_)
                                if (name == node.name)
                                  return std::unique_ptr<Kernel>(new Value(value));
                              return internal_error("no kernel");
                            });
  }

 private:
  std::uint32_t out(std::uint32_t node, std::uint32_t k = 0) const { return draft_.out(node, k); }
  PlanDraft draft_;
  std::vector<std::pair<std::string, Tensor>> values_;
};

Tensor bytes(std::int64_t count) {
  return Tensor::of<std::uint8_t>(Shape{count},
                                  std::vector<std::uint8_t>(std::size_t(count), std::uint8_t{1}));
}

constexpr std::int64_t kTrips = 100'000;

LoopDraft counting(std::int64_t carried_bytes) {
  LoopDraft d;
  const auto limit = d.value("limit", Tensor::scalar(kTrips));
  const auto carried = d.value("carried", bytes(carried_bytes));
  d.fetch(d.repeat("loop", limit, carried, [](auto value, auto) { return value; }));
  return d;
}

LoopDraft nested() {
  LoopDraft d;
  const auto limit = d.value("limit", Tensor::scalar(std::int64_t{1000}));
  const auto carried = d.value("carried", bytes(1));
  d.fetch(d.repeat("outer", limit, carried, [&](auto value, auto bound) {
    return d.repeat("inner", bound, value, [](auto inner, auto) { return inner; });
  }));
  return d;
}

LoopDraft long_body(int nodes) {
  LoopDraft d;
  const auto limit = d.value("limit", Tensor::scalar(std::int64_t{kTrips / 50}));
  const auto carried = d.value("carried", bytes(4));
  d.fetch(d.repeat("loop", limit, carried, [&](auto value, auto) {
    for (int i = 0; i < nodes; ++i) value = d.kernel("n" + std::to_string(i), "HandOn", {value});
    return value;
  }));
  return d;
}

}  // namespace

Expected<std::vector<ExecutorRow>> bench_loops(Device& device, const ExecutorBench& options) {
  std::vector<ExecutorRow> rows;
  auto measure = [&](std::string name, std::string unit, double units, auto draft) -> Status {
    if (name.find(options.only) == std::string::npos) return {};
    TROUPE_TRY(auto program, draft().load(device));
    TROUPE_TRY(double ns, ns_per(std::move(program), units, options));
    rows.push_back({std::move(name), ns, std::move(unit)});
    return {};
  };
  const std::string each = "ns/iteration";
  TROUPE_TRY(measure("executor.loop.count", each, kTrips, [] { return counting(1); }));
  TROUPE_TRY(measure("executor.loop.carry_1KiB", each, kTrips, [] { return counting(1 << 10); }));
  TROUPE_TRY(measure("executor.loop.carry_1MiB", each, kTrips, [] { return counting(1 << 20); }));
  TROUPE_TRY(measure("executor.loop.nested", each, 1e6, nested));
  TROUPE_TRY(
      measure("executor.loop.body64", "ns/node", kTrips / 50 * 64.0, [] { return long_body(64); }));
  return rows;
}

}  // namespace troupe
