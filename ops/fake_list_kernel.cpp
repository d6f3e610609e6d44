#include "ops/fake_list_kernel.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <unordered_map>

#include "core/list.hpp"
#include "devices/fake/fake_device.hpp"
#include "ops/detail/stream_side.hpp"
#include "ops/op.hpp"

namespace troupe {
namespace {

bool has_contents(const Tensor& t) {
  return t.defined() && t.buffer() && t.dtype() != DType::list && t.bytes() != 0;
}

// The tensors in a value: itself, or those of a list, in order.
void for_each_tensor(const Tensor& value, FunctionRef<void(const Tensor&)> f) {
  if (!value.defined() || value.dtype() != DType::list) return f(value);
  list_in(value).for_each([&](const Tensor& element) { for_each_tensor(element, f); });
}

// A value like it, of other tensors.
Expected<Tensor> with_tensors(const Tensor& value, FunctionRef<Expected<Tensor>(const Tensor&)> f) {
  if (!value.defined() || value.dtype() != DType::list) return f(value);
  List list;
  Status status;
  list_in(value).for_each([&](const Tensor& element) {
    auto other = with_tensors(element, f);
    if (!other.ok()) status = other.status();
    if (status.ok()) list.push(std::move(other).value());
  });
  if (!status.ok()) return status;
  return list_tensor(std::move(list));
}

// Tensors in host memory in the place of those of a step. Nobody else has them alone, so that no
// kernel writes into them.
class StandIns {
 public:
  Expected<Tensor> in_place_of(const Tensor& original) {
    if (!has_contents(original)) return original;
    TROUPE_TRY(Tensor made, Tensor::zeros(original.dtype(), original.shape()));
    of_.emplace(made.buffer().data(), Pair{made, original});
    return made;
  }
  // What a result stands for; false where it is new.
  bool find(Tensor& result) const {
    const auto at = of_.find(result.buffer().data());
    if (at == of_.end()) return false;
    const auto& [stand_in, original] = at->second;
    result = Tensor(result.dtype(), result.shape(), original.buffer(),
                    original.offset() + result.offset() - stand_in.offset());
    return true;
  }

 private:
  struct Pair {
    Tensor stand_in, original;
  };
  std::unordered_map<const void*, Pair> of_;
};

class FakeListKernel final : public Kernel {
 public:
  FakeListKernel(std::unique_ptr<Kernel> cpu, const KernelSpec& spec)
      : cpu_(std::move(cpu)),
        cheap_(spec.op.def.cheap),
        what_(fmt::format("in node '{}' ({})", spec.node.name, spec.op.def.name)) {
    for (const ArgSpec& arg : spec.op.out) host_out_.push_back(arg.host);
  }

  Status compute(KernelContext& ctx) override { return cheap_ ? at_once(ctx) : later(ctx); }

 private:
  // A kernel's results, of these inputs.
  Expected<std::vector<Tensor>> results(KernelContext& ctx, const std::vector<Tensor>& inputs) {
    detail::StreamSide side(ctx.device().name());
    return detail::compute_aside(*cpu_, side, ctx.random(), inputs, std::size_t(ctx.outputs()));
  }

  Status at_once(KernelContext& ctx) {
    std::vector<Tensor> inputs;
    for (int i = 0; i < ctx.inputs(); ++i) inputs.push_back(ctx.input(i));
    TROUPE_TRY(std::vector<Tensor> made, results(ctx, inputs));
    for (std::size_t i = 0; i < made.size(); ++i) {
      const bool here =
          host_out_[i] || !has_contents(made[i]) || made[i].space() == MemorySpace::device;
      if (!here) {
        TROUPE_TRY(made[i], brought(ctx, std::move(made[i])));
      }
      ctx.set_output(int(i), std::move(made[i]));
    }
    return ok_status();
  }

  // What the host has, in the device's memory.
  static Expected<Tensor> brought(KernelContext& ctx, Tensor tensor) {
    TROUPE_TRY(Tensor here, ctx.allocate(tensor.dtype(), tensor.shape()));
    host_stream(ctx.device())
        .enqueue([from = std::move(tensor), to = device_alias(ctx.device(), here)]() mutable {
          std::memcpy(to.mutable_raw(), from.raw(), from.bytes());
          return ok_status();
        });
    return here;
  }

  Status later(KernelContext& ctx) {
    StandIns stand_ins;
    std::vector<Tensor> shown, inputs;
    for (int i = 0; i < ctx.inputs(); ++i) {
      const Tensor& in = ctx.input(i);
      const bool host = in.dtype() != DType::list && in.space() == MemorySpace::host;
      TROUPE_TRY(Tensor stand_in, with_tensors(in, [&](const Tensor& t) -> Expected<Tensor> {
                   return host ? t : stand_ins.in_place_of(t);
                 }));
      shown.push_back(std::move(stand_in));
      TROUPE_TRY(Tensor alias, with_tensors(in, [&](const Tensor& t) -> Expected<Tensor> {
                   return device_alias(ctx.device(), t);
                 }));
      inputs.push_back(std::move(alias));
    }
    TROUPE_TRY(const std::vector<Tensor> made, results(ctx, shown));
    std::vector<Tensor> fresh;  // in the order of their places in the results; else not defined
    for (std::size_t i = 0; i < made.size(); ++i) {
      TROUPE_TRY(Tensor out, with_tensors(made[i], [&](const Tensor& t) -> Expected<Tensor> {
                   Tensor result = t;
                   fresh.emplace_back();
                   if (!has_contents(t) || stand_ins.find(result)) return result;
                   TROUPE_TRY(result, host_out_[i] ? ctx.allocate_host(t.dtype(), t.shape())
                                                   : ctx.allocate(t.dtype(), t.shape()));
                   fresh.back() = device_alias(ctx.device(), result);
                   return result;
                 }));
      ctx.set_output(int(i), std::move(out));
    }
    issue(ctx, std::move(inputs), std::move(fresh), made.size());
    return ok_status();
  }

  void issue(KernelContext& ctx, std::vector<Tensor> inputs, std::vector<Tensor> fresh,
             std::size_t outputs) const {
    const auto is_fresh = [](const Tensor& t) { return t.defined(); };
    if (std::none_of(fresh.begin(), fresh.end(), is_fresh)) return;
    host_stream(ctx.device())
        .enqueue([cpu = cpu_, device = ctx.device().name(), random = ctx.random(), what = what_,
                  outputs, inputs = std::move(inputs),
                  fresh = std::move(fresh)]() mutable -> Status {
          detail::StreamSide side(device);
          auto made = detail::compute_aside(*cpu, side, random, inputs, outputs);
          if (!made.ok()) return made.status().in(what);
          auto to = fresh.begin();
          for (const Tensor& result : *made)
            for_each_tensor(result, [&](const Tensor& t) {
              if (to->defined()) std::memcpy(to->mutable_raw(), t.raw(), t.bytes());
              ++to;
            });
          return ok_status();
        });
  }

  const std::shared_ptr<Kernel> cpu_;
  const bool cheap_;
  const std::string what_;
  std::vector<bool> host_out_;
};

}  // namespace

bool takes_lists(const OpInfo& op) {
  const auto is_list = [](const ArgSpec& arg) { return arg.dtype == DType::list; };
  return std::any_of(op.in.begin(), op.in.end(), is_list) ||
         std::any_of(op.out.begin(), op.out.end(), is_list);
}

std::unique_ptr<Kernel> fake_list_kernel(std::unique_ptr<Kernel> cpu, const KernelSpec& spec) {
  return std::make_unique<FakeListKernel>(std::move(cpu), spec);
}

}  // namespace troupe
