// Convolutions: convolutions on one GPU, by cuDNN.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "core/function_ref.hpp"
#include "devices/cuda/context.hpp"
#include "devices/cuda/convolution_plan.hpp"
#include "devices/cuda/image_cache.hpp"
#include "devices/cuda/library_choice.hpp"

namespace troupe::cuda {

// The library's handle of a GPU, and the plans that were made for it, by convolution. Two runs on
// one GPU have the same bits, unless choices are measured anew. Owned by the device; any thread may
// use it.
class Convolutions {
 public:
  using PlanPtr = std::shared_ptr<const ConvolutionPlan>;
  // What a run of a plan takes, in any unit.
  using Trial = FunctionRef<Expected<double>(const ConvolutionPlan&)>;

  struct Options {
    std::size_t memory = 0;  // bytes that tensors may take; a workspace takes an eighth at most
    bool alone = false;      // a convolution that the library does not know is an error
    bool tf32 = false, measures = false;  // see settings.hpp
    ImageCache kept{{}};                  // what was measured
  };
  static Expected<std::unique_ptr<Convolutions>> make(Cudnn library, ContextPtr context,
                                                      Options options);
  Convolutions(const Convolutions&) = delete;
  Convolutions& operator=(const Convolutions&) = delete;
  ~Convolutions();

  // How the library computes it: the first way that it names or, if choices are measured, that of
  // the first eight which took the least when it was first asked for. A trial that is unimplemented
  // does not count; another that fails ends it, and nothing is kept. Errors name the function of
  // the library that failed; unimplemented: it knows no way, and is not asked again unless it gave
  // other reasons, too. REQUIRES: not on a stream's mutex.
  Expected<PlanPtr> plan(const DnnConvolution& convolution, Trial trial);
  // The library's handle, which is one thread's at a time; making a plan takes it for long.
  // REQUIRES: not on a stream's mutex. Taken before that, only those who convolve wait.
  class Turn {
   public:
    explicit Turn(Convolutions& convolutions) : lock_(convolutions.handle_mutex_) {}

   private:
    std::lock_guard<std::mutex> lock_;
  };
  Status run(const Turn& turn, const ConvolutionPlan& plan, const DnnOperands& operands,
             void* workspace, StreamHandle stream);
  // Runs it a few times, and waits, also for what was issued before an error: milliseconds of one
  // run.
  Expected<double> time(const Turn& turn, const ConvolutionPlan& plan, const DnnOperands& operands,
                        void* workspace, StreamHandle stream);
  // Whether Troupe's kernel is to compute what the library answered so; warns the first time.
  bool leaves(const Status& status) const { return gaps_.leaves(status); }

 private:
  Convolutions(Cudnn library, ContextPtr context, Options options);
  std::optional<Expected<PlanPtr>> known(const DnnConvolution& convolution);
  std::string key_of(const DnnConvolution& convolution) const;

  const Cudnn library_;
  const ContextPtr context_;
  const Options options_;
  const LibraryGaps gaps_;
  const ConvolutionPlan::Limits limits_;
  std::mutex handle_mutex_;  // guards what follows: one thread at a time may use a handle
  DnnHandle handle_ = nullptr;
  std::optional<DnnTarget> target_;
  std::mutex mutex_;  // behind handle_mutex_; guards what follows
  std::map<DnnConvolution, Expected<PlanPtr>> plans_;
};

// What computes convolutions, and why. TROUPE_CUDA_CONV is "cudnn", "kernels" (Troupe's own), or
// not set: cuDNN where it is installed and made for the driver.
using ConvolutionsChoice = TableChoice<Cudnn>;
// invalid_argument for another value; failed_precondition for a library that is broken, or asked
// for and missing.
Expected<ConvolutionsChoice> choose_convolutions(const Search& search, const Driver& driver);

}  // namespace troupe::cuda
