#include "ops/cuda/host_kernel.hpp"

#include <future>
#include <vector>

#include "ops/cuda/moves.hpp"
#include "ops/detail/stream_side.hpp"
#include "ops/op.hpp"

namespace troupe::cuda {
namespace {

class HostKernel final : public Kernel {
 public:
  HostKernel(std::unique_ptr<Kernel> cpu, std::string op)
      : cpu_(std::move(cpu)), op_(std::move(op)) {}

  Status compute(KernelContext& ctx) override {
    TROUPE_TRY(const std::vector<Tensor> inputs, download(ctx));
    detail::StreamSide side(ctx.device().name());
    auto results =
        detail::compute_aside(*cpu_, side, ctx.random(), inputs, std::size_t(ctx.outputs()));
    if (!results.ok()) return results.status();
    for (std::size_t i = 0; i < results->size(); ++i) {
      TROUPE_TRY(Tensor there, uploaded(ctx, (*results)[i]));
      ctx.set_output(int(i), std::move(there));
    }
    ctx.stream().mark();  // so that the copies are part of what the stream was given
    return ok_status();
  }

 private:
  // One wait for all: copies to the host are done in order.
  Expected<std::vector<Tensor>> download(const KernelContext& ctx) const {
    Device& device = ctx.device();
    std::vector<Tensor> here;
    Ticket last;
    for (int i = 0; i < ctx.inputs(); ++i) {
      here.push_back(ctx.input(i));
      if (ctx.input(i).space() == MemorySpace::host) continue;
      TROUPE_TRY(here.back(), ctx.allocate_host(ctx.input(i).dtype(), ctx.input(i).shape()));
      last = device.copy(ctx.input(i), here.back());
    }
    std::promise<Status> done;
    device.on_complete(last, [&](Status s) { done.set_value(std::move(s)); });
    TROUPE_TRY(done.get_future().get().in("while the host took the inputs of " + op_));
    return here;
  }

  const std::unique_ptr<Kernel> cpu_;
  const std::string op_;
};

}  // namespace

std::unique_ptr<Kernel> host_kernel(std::unique_ptr<Kernel> cpu, const KernelSpec& spec) {
  return std::unique_ptr<Kernel>(new HostKernel(std::move(cpu), spec.op.def.name));
}

}  // namespace troupe::cuda
