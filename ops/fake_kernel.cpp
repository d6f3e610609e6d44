#include "troupe/ops/fake_kernel.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <numeric>

#include "troupe/devices/fake/fake_device.hpp"
#include "troupe/graph/known_values.hpp"
#include "troupe/ops/op.hpp"

namespace troupe {
namespace {

// What a CPU kernel sees while it runs on the fake device's stream: heap memory, nothing else.
class StreamSide final : public Device {
 public:
  explicit StreamSide(const DeviceName& name) : name_(name) {}
  const DeviceName& name() const override { return name_; }
  MemorySpace space() const override { return MemorySpace::host; }
  Allocator& allocator() override { return heap_allocator(); }
  Allocator& host_allocator() override { return heap_allocator(); }
  Stream& stream() override { return unused<Stream&>(); }
  void launch(std::function<void(Lanes&)>) override { unused<void>(); }
  Ticket copy(const Tensor&, Tensor) override { return unused<Ticket>(); }
  void on_complete(Ticket, std::function<void(Status)>) override { unused<void>(); }
  std::size_t bytes_in_use() const override { return 0; }
  std::size_t peak_bytes() const override { return 0; }
  void reset_peak() override {}

 private:
  template <class R>
  [[noreturn]] static R unused() {
    TROUPE_CHECK(false, "a CPU kernel on the fake device uses memory and lanes only");
  }
  DeviceName name_;
};

Status run(Kernel& cpu, const DeviceName& device, const RandomState& random,
           const std::vector<Tensor>& inputs, std::vector<Tensor>& outputs) {
  StreamSide side(device);
  InlineLanes lanes;
  std::vector<Slot> in(inputs.size()), out(outputs.size());
  for (std::size_t i = 0; i < in.size(); ++i) in[i].tensor = inputs[i];
  std::vector<std::uint32_t> slots(in.size());
  std::iota(slots.begin(), slots.end(), 0u);
  const KernelPlace place{.device = &side, .lanes = &lanes};
  KernelContext ctx({.slots = in.data(),
                     .input_slots = slots.data(),
                     .outputs = out.data(),
                     .inputs = std::uint16_t(in.size()),
                     .n_outputs = std::uint16_t(out.size()),
                     .place = &place,
                     .random = random});
  TROUPE_TRY(cpu.compute(ctx));
  for (std::size_t i = 0; i < out.size(); ++i) {
    const Tensor& made = out[i].tensor;
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
    ctx.device().stream().enqueue([cpu = cpu_, device = ctx.device().name(), random = ctx.random(),
                                   what = fmt::format("in node '{}' ({})", name_, op_.def.name),
                                   inputs = std::move(inputs),
                                   results = std::move(results)]() mutable {
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
      Allocator& memory = host_out_[i] ? ctx.device().host_allocator() : ctx.device().allocator();
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
  auto is_list = [](const ArgSpec& arg) { return arg.dtype == DType::list; };
  return op.def.shape != nullptr && op.def.shape != &unknown_shape &&
         std::none_of(op.in.begin(), op.in.end(), is_list) &&
         std::none_of(op.out.begin(), op.out.end(), is_list);
}

std::unique_ptr<Kernel> fake_kernel(std::unique_ptr<Kernel> cpu, const KernelSpec& spec) {
  return std::make_unique<FakeKernel>(std::move(cpu), spec);
}

}  // namespace troupe
