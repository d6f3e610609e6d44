#include "devices/cuda/convolutions.hpp"

#include <algorithm>

#include "core/log.hpp"
#include "devices/cuda/diagnosis.hpp"
#include "devices/cuda/library_choice.hpp"

namespace troupe::cuda {
namespace {

constexpr std::size_t kLargestWorkspace = std::size_t{256} << 20;
constexpr std::size_t kMostConvolutions = 4096;

}  // namespace

Convolutions::Convolutions(Cudnn library, ContextPtr context, std::size_t memory, bool alone,
                           bool tf32)
    : library_(std::move(library)),
      context_(std::move(context)),
      limits_{.workspace = std::min(kLargestWorkspace, memory / 8), .tf32 = tf32},
      alone_(alone) {}

Expected<std::unique_ptr<Convolutions>> Convolutions::make(Cudnn library, ContextPtr context,
                                                           std::size_t memory, bool alone,
                                                           bool tf32) {
  std::unique_ptr<Convolutions> made(
      new Convolutions(std::move(library), std::move(context), memory, alone, tf32));
  made->context_->enter();
  TROUPE_TRY(made->library_.check(made->library_.cudnnCreate(&made->handle_), "cudnnCreate"));
  made->target_.emplace(made->handle_);
  return made;
}

Convolutions::~Convolutions() {
  if (!handle_) return;
  context_->enter();
  plans_.clear();
  library_.cudnnDestroy(handle_);
}

Expected<Convolutions::PlanPtr> Convolutions::plan(const DnnConvolution& convolution) {
  std::lock_guard lock(mutex_);
  if (const auto known = plans_.find(convolution); known != plans_.end()) return known->second;
  context_->enter();
  auto made = ConvolutionPlan::make(library_, convolution, *target_, limits_);
  if (!made.ok() && made.status().code() != Code::unimplemented) return made.status();
  if (plans_.size() == kMostConvolutions) plans_.clear();
  Expected<PlanPtr> plan =
      made.ok() ? Expected<PlanPtr>(std::make_shared<const ConvolutionPlan>(std::move(*made)))
                : Expected<PlanPtr>(made.status());
  return plans_.emplace(convolution, std::move(plan)).first->second;
}

Status Convolutions::run(const ConvolutionPlan& plan, const DnnOperands& operands, void* workspace,
                         StreamHandle stream) {
  std::lock_guard lock(mutex_);
  context_->enter();
  TROUPE_TRY(library_.check(library_.cudnnSetStream(handle_, stream), "cudnnSetStream"));
  return plan.run(handle_, operands, workspace);
}

bool Convolutions::leaves(const Status& status) const {
  if (alone_ || status.code() != Code::unimplemented) return false;
  if (!warned_.exchange(true))
    TROUPE_LOG(warning, "cuda",
               status.message() + ": such convolutions are computed by Troupe's kernels");
  return true;
}

Expected<ConvolutionsChoice> choose_convolutions(const Search& search, const Driver& driver) {
  std::optional<Cudnn> library;
  TROUPE_TRY(LibraryChoice choice,
             choose_library({.variable = "TROUPE_CUDA_CONV",
                             .word = "cudnn",
                             .library = "cudnn",
                             .what = "convolutions"},
                            driver, [&]() -> FoundLibrary {
                              auto opened = open_cudnn(search);
                              if (!opened.ok())
                                return {.status = opened.status(),
                                        .lacks = cudnn_finding(search, driver.version).text};
                              library = std::move(*opened);
                              return {.path = library->path,
                                      .cuda_major = library->cuda_version / 1000,
                                      .fake = library->fake};
                            }));
  if (!choice.library) library.reset();
  return ConvolutionsChoice{std::move(library), choice.asked, std::move(choice.text)};
}

}  // namespace troupe::cuda
