// DnnPlans: what cuDNN computes on one GPU, of one kind.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "core/function_ref.hpp"
#include "devices/cuda/context.hpp"
#include "devices/cuda/dnn_plan.hpp"
#include "devices/cuda/image_cache.hpp"
#include "devices/cuda/library_choice.hpp"

namespace troupe::cuda {

// The library's handle of a GPU, and the plans that were made for it, by what they compute: a
// Plan's Problem. Two runs on one GPU have the same bits, unless choices are measured anew. Owned
// by the device; any thread may use it.
template <class Plan>
class DnnPlans {
 public:
  using Problem = typename Plan::Problem;
  using Operands = typename Plan::Operands;
  using PlanPtr = std::shared_ptr<const Plan>;
  // What a run of a plan takes, in any unit.
  using Trial = FunctionRef<Expected<double>(const Plan&)>;

  struct Options {
    std::size_t memory = 0;  // bytes that tensors may take; a workspace takes an eighth at most
    bool alone = false;      // what the library does not know is an error
    bool tf32 = false, measures = false;  // see settings.hpp
    ImageCache kept{{}};                  // what was measured
  };
  static Expected<std::unique_ptr<DnnPlans>> make(Cudnn library, ContextPtr context,
                                                  Options options);
  DnnPlans(const DnnPlans&) = delete;
  DnnPlans& operator=(const DnnPlans&) = delete;
  ~DnnPlans();

  // How the library computes it: the first way that it names or, if choices are measured, that of
  // the first eight which took the least when it was first asked for. A trial that is unimplemented
  // does not count; another that fails ends it, and nothing is kept. Errors name the function of
  // the library that failed; unimplemented: it knows no way, and is not asked again unless it gave
  // other reasons, too. REQUIRES: not on a stream's mutex.
  Expected<PlanPtr> plan(const Problem& problem, Trial trial);
  // The library's handle, which is one thread's at a time; making a plan takes it for long.
  // REQUIRES: not on a stream's mutex. Taken before that, only those wait who use it, too.
  class Turn {
   public:
    explicit Turn(DnnPlans& plans) : lock_(plans.handle_mutex_) {}

   private:
    std::lock_guard<std::mutex> lock_;
  };
  Status run(const Turn& turn, const Plan& plan, const Operands& operands, void* workspace,
             StreamHandle stream);
  // Runs it a few times, and waits, also for what was issued before an error: milliseconds of one
  // run.
  Expected<double> time(const Turn& turn, const Plan& plan, const Operands& operands,
                        void* workspace, StreamHandle stream);
  // Whether Troupe's kernel is to compute what the library answered so; warns the first time.
  bool leaves(const Status& status) const { return gaps_.leaves(status); }

 private:
  DnnPlans(Cudnn library, ContextPtr context, Options options);
  std::optional<Expected<PlanPtr>> known(const Problem& problem);
  std::string key_of(const Problem& problem) const;

  const Cudnn library_;
  const ContextPtr context_;
  const Options options_;
  const LibraryGaps gaps_;
  const typename Plan::Limits limits_;
  std::mutex handle_mutex_;  // guards what follows: one thread at a time may use a handle
  DnnHandle handle_ = nullptr;
  std::optional<DnnTarget> target_;
  std::mutex mutex_;  // behind handle_mutex_; guards what follows
  std::map<Problem, Expected<PlanPtr>> plans_;
};

}  // namespace troupe::cuda
