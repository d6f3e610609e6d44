// Compiler: functions of GPUs as programs of their own, compiled or found on disk.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "devices/cuda/gpu_kernel.hpp"
#include "devices/cuda/image_cache.hpp"
#include "devices/cuda/nvrtc.hpp"

namespace troupe::cuda {

// Each function is a program, so that it is found on disk whoever has compiled it: another plan, or
// `troupe kernels` ahead of time. Any thread may use it.
class Compiler {
 public:
  Compiler(Nvrtc nvrtc, ImageCache cache) : nvrtc_(std::move(nvrtc)), cache_(std::move(cache)) {}

  struct Function {
    const DeviceCode* code;
    std::string_view type;  // GpuFunction::type
  };
  struct Image {
    std::string bytes;
    std::string log;      // of a program that was compiled
    bool cached = false;  // found on disk
    bool kept = false;    // it is there now
  };
  // The images of all `functions`, in their order, compiled by as many threads as there are
  // processors. What was compiled is left on disk.
  std::vector<Expected<Image>> images(std::span<const Function> functions,
                                      const std::string& architecture) const;
  // The same, without looking on disk first; logs tell what the functions take of a GPU.
  std::vector<Expected<Image>> measured(std::span<const Function> functions,
                                        const std::string& architecture) const;

  const Nvrtc& nvrtc() const { return nvrtc_; }
  const ImageCache& cache() const { return cache_; }

 private:
  class Round;
  Nvrtc nvrtc_;
  ImageCache cache_;
};

}  // namespace troupe::cuda
