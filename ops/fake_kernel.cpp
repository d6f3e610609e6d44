#include "ops/fake_kernel.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "devices/fake/fake_device.hpp"
#include "graph/known_values.hpp"
#include "ops/detail/stream_side.hpp"
#include "ops/fake_list_kernel.hpp"
#include "ops/op.hpp"

namespace troupe {
namespace {

// Results of a CPU kernel into outputs that are there.
Status run(Kernel& cpu, const DeviceName& device, const RandomState& random,
           const std::vector<Tensor>& inputs, std::vector<Tensor>& outputs) {
  detail::StreamSide side(device);
  TROUPE_TRY(const std::vector<Tensor> results,
             detail::compute_aside(cpu, side, random, inputs, outputs.size()));
  for (std::size_t i = 0; i < results.size(); ++i) {
    const Tensor& made = results[i];
    if (made.dtype() != outputs[i].dtype() || made.shape() != outputs[i].shape())
      return internal_error(fmt::format("output {} is {}{}, inference said {}{}", i,
                                        dtype_name(made.dtype()), made.shape().text(),
                                        dtype_name(outputs[i].dtype()), outputs[i].shape().text()));
    if (made.bytes() != 0) std::memcpy(outputs[i].mutable_raw(), made.raw(), made.bytes());
  }
  return ok_status();
}

// For each flat input or output: does it live in host memory?
std::vector<bool> host_flags(const std::vector<ArgSpec>& args, const AttrMap& attrs) {
  std::vector<bool> host;
  for (const ArgSpec& arg : args) {
    std::size_t n = 1;
    auto at = attrs.find(arg.kind == ArgSpec::Kind::types ? arg.type_attr : "N");
    if (arg.kind == ArgSpec::Kind::list && at != attrs.end())
      n = std::size_t(*at->second.get<std::int64_t>());
    if (arg.kind == ArgSpec::Kind::types) {
      if (at == attrs.end()) at = attrs.find("types");
      n = at->second.get<std::vector<DType>>()->size();
    }
    host.insert(host.end(), n, arg.host);
  }
  return host;
}

class FakeKernel final : public Kernel {
 public:
  FakeKernel(std::unique_ptr<Kernel> cpu, const KernelSpec& spec)
      : cpu_(std::move(cpu)),
        op_(spec.op),
        attrs_(spec.node.attrs),
        name_(spec.node.name),
        out_types_(spec.node.out_types),
        host_in_(host_flags(spec.op.in, attrs_)),
        host_out_(host_flags(spec.op.out, attrs_)) {}

  Status compute(KernelContext& ctx) override {
    const auto all = [](const std::vector<bool>& f) {
      return std::find(f.begin(), f.end(), false) == f.end();
    };
    if (!host_out_.empty() && all(host_out_) && (all(host_in_) || op_.def.cheap))
      return cpu_->compute(ctx);
    TROUPE_TRY(auto outputs, allocate(ctx));
    std::vector<Tensor> inputs;
    for (int i = 0; i < ctx.inputs(); ++i)
      inputs.push_back(device_alias(ctx.device(), ctx.input(i)));
    std::vector<Tensor> results;
    for (std::size_t i = 0; i < outputs.size(); ++i) {
      results.push_back(device_alias(ctx.device(), outputs[i]));
      ctx.set_output(int(i), std::move(outputs[i]));
    }
    host_stream(ctx.device())
        .enqueue([cpu = cpu_, device = ctx.device().name(), random = ctx.random(),
                  what = fmt::format("in node '{}' ({})", name_, op_.def.name),
                  inputs = std::move(inputs), results = std::move(results)]() mutable {
          Status done = run(*cpu, device, random, inputs, results);
          return done.ok() ? done : done.in(what);
        });
    return ok_status();
  }

 private:
  Expected<std::vector<Tensor>> allocate(KernelContext& ctx) const {
    if (op_.is(External::Order::write)) return allocate_values(ctx);
    std::vector<InferenceContext::Input> known(std::size_t(ctx.inputs()));
    std::vector<std::optional<KnownInts>> ints(known.size());
    for (std::size_t i = 0; i < known.size(); ++i) {
      const Tensor& in = ctx.input(int(i));
      known[i] = {in.dtype(), in.shape()};
      if (!host_in_[i]) continue;
      known[i].value = &in;
      if ((ints[i] = known_ints(in))) known[i].ints = &*ints[i];
    }
    InferenceContext inference(op_, attrs_, known, std::size_t(ctx.outputs()));
    TROUPE_TRY(op_.def.shape(inference));
    std::vector<Tensor> outputs;
    for (std::size_t i = 0; i < std::size_t(ctx.outputs()); ++i) {
      const PartialShape& shape = inference.result()[i];
      if (!shape.fully_known())
        return unimplemented(
            fmt::format("the shape {} of output {} depends on values that are not "
                        "there when the work is issued",
                        shape.text(), i));
      Allocator& memory = host_out_[i] ? ctx.host_allocator() : ctx.allocator();
      TROUPE_TRY(Tensor out, Tensor::make(out_types_[i], shape.shape(), memory));
      outputs.push_back(std::move(out));
    }
    return outputs;
  }

  // What an update makes are the new values of its first inputs: alike, but for Assign, whose
  // variable may have no value yet. The shapes were checked when the write was logged.
  Expected<std::vector<Tensor>> allocate_values(KernelContext& ctx) const {
    std::vector<Tensor> outputs;
    for (int i = 0; i < ctx.outputs(); ++i) {
      const Tensor& like = ctx.input(op_.def.name == "Assign" ? 1 : i);
      TROUPE_TRY(Tensor out, ctx.allocate(like.dtype(), like.shape()));
      outputs.push_back(std::move(out));
    }
    return outputs;
  }

  std::shared_ptr<Kernel> cpu_;
  const OpInfo& op_;
  const AttrMap attrs_;
  const std::string name_;
  const std::vector<DType> out_types_;
  const std::vector<bool> host_in_, host_out_;
};

}  // namespace

bool runs_on_fake(const OpInfo& op) {
  for (const ArgSpec& out : op.out)
    if (out.kind == ArgSpec::Kind::fixed && out.dtype == DType::string) return false;
  return op.def.shape != nullptr && (op.def.shape != &unknown_shape || takes_lists(op));
}

std::unique_ptr<Kernel> fake_kernel(std::unique_ptr<Kernel> cpu, const KernelSpec& spec) {
  if (takes_lists(spec.op)) return fake_list_kernel(std::move(cpu), spec);
  return std::make_unique<FakeKernel>(std::move(cpu), spec);
}

}  // namespace troupe
