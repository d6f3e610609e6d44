#include "ops/cuda/strided.hpp"

#include <vector>

#include "devices/cuda/cuda_device.hpp"
#include "ops/cuda/device_kernel.hpp"
#include "ops/cuda/element_types.hpp"
#include "ops/cuda/launch.hpp"
#include "ops/device/arguments.hpp"

namespace troupe::cuda {
namespace {

std::string move_of(DType dtype) { return device_type("Move", {moved_type(dtype)}); }
std::string add_of(DType dtype) { return device_type("AddTo", {element_type(dtype)}); }
std::string fill_of(DType dtype) { return device_type("FillWith", {element_type(dtype)}); }

class Moving final : public DeviceKernel {
 public:
  Moving(std::unique_ptr<Kernel> kernel, DType dtype) : kernel_(std::move(kernel)) {
    functions_.push_back({move_of(dtype)});
    if (is_float(dtype)) functions_.push_back({add_of(dtype)});
    if (!is_complex(dtype)) functions_.push_back({fill_of(dtype)});
  }
  std::span<GpuFunction> functions() override { return functions_; }
  Status compute(KernelContext& ctx) override { return kernel_->compute(ctx); }

 private:
  const std::unique_ptr<Kernel> kernel_;
  std::vector<GpuFunction> functions_;
};

Status launch_on(const KernelContext& ctx, const std::string& type, std::int64_t n, void* args) {
  const auto& device = static_cast<const CudaDevice&>(ctx.device());
  return launch(ctx, {.type = type, .handle = device.prepared(type)}, grid_for(n), args);
}

Status strided(const KernelContext& ctx, const std::string& type, const Shape& dims,
               const void* from, const std::int64_t* a, void* to, const std::int64_t* b) {
  device::MoveArgs args{from, to, dims.elements(), {}};
  if (args.n == 0) return ok_status();
  for (int d = 0; d < dims.rank(); ++d) {
    if (dims.dim(d) == 1) continue;
    args.walk.dims[args.walk.rank] = dims.dim(d);
    args.walk.strides[0][args.walk.rank] = a[d];
    args.walk.strides[1][args.walk.rank++] = b[d];
  }
  return launch_on(ctx, type, args.n, &args);
}

}  // namespace

Status copy_strided(const KernelContext& ctx, DType dtype, const Shape& dims, const void* from,
                    const std::int64_t* a, void* to, const std::int64_t* b) {
  return strided(ctx, move_of(dtype), dims, from, a, to, b);
}

Status add_strided(const KernelContext& ctx, DType dtype, const Shape& dims, const void* from,
                   const std::int64_t* a, void* to, const std::int64_t* b) {
  return strided(ctx, add_of(dtype), dims, from, a, to, b);
}

Status fill_with(const KernelContext& ctx, double value, Tensor& y) {
  device::FillArgs args{y.mutable_raw(), y.elements(), value};
  if (args.n == 0) return ok_status();
  return launch_on(ctx, fill_of(y.dtype()), args.n, &args);
}

GpuFunction copy_strided_function(DType dtype) { return {move_of(dtype)}; }

std::unique_ptr<Kernel> moving_kernel(std::unique_ptr<Kernel> kernel, DType dtype) {
  return std::unique_ptr<Kernel>(new Moving(std::move(kernel), dtype));
}

}  // namespace troupe::cuda
