#include "devices/cuda/gpu_kernel.hpp"

#include "devices/cuda/cuda_device.hpp"

namespace troupe::cuda {
namespace {

bool is_word(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

}  // namespace

std::string function_name(std::string_view type) {
  std::string name, word;
  const auto end_word = [&] {
    if (!word.empty()) name += (name.empty() ? "" : "_") + word;
    word.clear();
  };
  for (std::size_t i = 0; i < type.size(); ++i) {
    if (type.substr(i, 2) == "::")
      word.clear(), ++i;  // a namespace
    else if (is_word(type[i]))
      word += type[i];
    else
      end_word();
  }
  end_word();
  return name;
}

Status launch(const KernelContext& ctx, const GpuFunction& function, Grid grid, void* args) {
  if (!function.handle)
    return internal_error("the device was not prepared for " + function_name(function.type));
  void* arguments[] = {args};
  return static_cast<CudaDevice&>(ctx.device())
      .launch_kernel({.function = function.handle,
                      .grid = {grid.blocks, 1, 1},
                      .block = {grid.threads, 1, 1},
                      .arguments = arguments});
}

}  // namespace troupe::cuda
