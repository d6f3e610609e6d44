// Convolutions: convolutions on one GPU, by cuDNN.
#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "devices/cuda/context.hpp"
#include "devices/cuda/convolution_plan.hpp"

namespace troupe::cuda {

// The library's handle of a GPU, and the plans that were made for it, by convolution. Two runs on
// one GPU have the same bits. Owned by the device; any thread may use it.
class Convolutions {
 public:
  using PlanPtr = std::shared_ptr<const ConvolutionPlan>;

  // `memory`: bytes that tensors of the device may take; a workspace takes an eighth at most.
  // `alone`: a convolution that the library does not know is an error. `tf32`: see precision.hpp.
  static Expected<std::unique_ptr<Convolutions>> make(Cudnn library, ContextPtr context,
                                                      std::size_t memory, bool alone, bool tf32);
  Convolutions(const Convolutions&) = delete;
  Convolutions& operator=(const Convolutions&) = delete;
  ~Convolutions();

  // How the library computes it. Errors name the function of the library that failed;
  // unimplemented: it knows no way, and is not asked again. REQUIRES: not on a stream's mutex.
  Expected<PlanPtr> plan(const DnnConvolution& convolution);
  Status run(const ConvolutionPlan& plan, const DnnOperands& operands, void* workspace,
             StreamHandle stream);
  // Whether Troupe's kernel is to compute what the library answered so; warns the first time.
  bool leaves(const Status& status) const;

 private:
  Convolutions(Cudnn library, ContextPtr context, std::size_t memory, bool alone, bool tf32);

  const Cudnn library_;
  const ContextPtr context_;
  const ConvolutionPlan::Limits limits_;
  const bool alone_;
  mutable std::atomic<bool> warned_{false};
  std::mutex mutex_;  // guards what follows: one thread at a time may use a handle
  DnnHandle handle_ = nullptr;
  std::optional<DnnTarget> target_;
  std::map<DnnConvolution, Expected<PlanPtr>> plans_;
};

// What computes convolutions, and why. TROUPE_CUDA_CONV is "cudnn", "kernels" (Troupe's own), or
// not set: cuDNN where it is installed and made for the driver.
struct ConvolutionsChoice {
  std::optional<Cudnn> library;  // none: own kernels
  bool asked = false;            // for the library, by name
  std::string text;              // one line
};
// invalid_argument for another value; failed_precondition for a library that is broken, or asked
// for and missing.
Expected<ConvolutionsChoice> choose_convolutions(const Search& search, const Driver& driver);

}  // namespace troupe::cuda
