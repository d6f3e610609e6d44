#include "ops/kernel_on_host.hpp"

#include <vector>

#include "ops/detail/stream_side.hpp"

namespace troupe {
namespace {

class KernelOnHost final : public Kernel {
 public:
  explicit KernelOnHost(std::unique_ptr<Kernel> cpu) : cpu_(std::move(cpu)) {}

  Status compute(KernelContext& ctx) override {
    std::vector<Tensor> inputs;
    for (int i = 0; i < ctx.inputs(); ++i) inputs.push_back(ctx.input(i));
    detail::StreamSide side(ctx.device().name());
    auto results =
        detail::compute_aside(*cpu_, side, ctx.random(), inputs, std::size_t(ctx.outputs()));
    if (!results.ok()) return results.status();
    for (std::size_t i = 0; i < results->size(); ++i)
      ctx.set_output(int(i), std::move((*results)[i]));
    return ok_status();
  }

 private:
  const std::unique_ptr<Kernel> cpu_;
};

}  // namespace

std::unique_ptr<Kernel> kernel_on_host(std::unique_ptr<Kernel> cpu) {
  return std::make_unique<KernelOnHost>(std::move(cpu));
}

}  // namespace troupe
