#include "devices/cuda/convolutions.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "core/hash.hpp"

namespace troupe::cuda {
namespace {

constexpr std::size_t kLargestWorkspace = std::size_t{256} << 20;
constexpr std::size_t kMostConvolutions = 4096;
constexpr std::size_t kMostMeasured = 8;
constexpr int kTimedRuns = 3;

// An event with timing.
class TimedEvent {
 public:
  explicit TimedEvent(const Context& context) : context_(context) {}
  ~TimedEvent() {
    if (event_) context_.driver().cuEventDestroy_v2(event_);
  }
  TimedEvent(const TimedEvent&) = delete;
  TimedEvent& operator=(const TimedEvent&) = delete;

  Status record(StreamHandle stream) {
    const Driver& driver = context_.driver();
    TROUPE_TRY(context_.check(driver.cuEventCreate(&event_, 0), "cuEventCreate"));
    return context_.check(driver.cuEventRecord(event_, stream), "cuEventRecord");
  }
  Expected<double> milliseconds_since(const TimedEvent& other) const {
    const Driver& driver = context_.driver();
    float milliseconds = 0;
    TROUPE_TRY(context_.check(driver.cuEventSynchronize(event_), "cuEventSynchronize"));
    TROUPE_TRY(context_.check(driver.cuEventElapsedTime(&milliseconds, other.event_, event_),
                              "cuEventElapsedTime"));
    return double(milliseconds);
  }

 private:
  const Context& context_;
  EventHandle event_ = nullptr;
};

// "number engine", of which the second guards against another list.
std::string choice_text(std::size_t i, const std::vector<ConvolutionPlan>& plans) {
  return fmt::format("{} {}", i, plans[i].engine());
}
std::optional<std::size_t> choice_of(const std::string& text,
                                     const std::vector<ConvolutionPlan>& plans) {
  for (std::size_t i = 0; i < plans.size(); ++i)
    if (text == choice_text(i, plans)) return i;
  return {};
}

// The plan that took the least, if the library computes any.
Expected<std::optional<std::size_t>> fastest(const std::vector<ConvolutionPlan>& plans,
                                             Convolutions::Trial trial) {
  std::optional<std::size_t> best;
  std::optional<double> least;
  for (std::size_t i = 0; i < plans.size(); ++i) {
    const Expected<double> took = trial(plans[i]);
    if (!took.ok() && took.status().code() != Code::unimplemented) return took.status();
    if (!took.ok() || (least && *took >= *least)) continue;
    least = *took, best = i;
  }
  return best;
}

}  // namespace

Convolutions::Convolutions(Cudnn library, ContextPtr context, Options options)
    : library_(std::move(library)),
      context_(std::move(context)),
      options_(std::move(options)),
      gaps_(options_.alone, "convolutions"),
      limits_{.workspace = std::min(kLargestWorkspace, options_.memory / 8),
              .tf32 = options_.tf32} {}

Expected<std::unique_ptr<Convolutions>> Convolutions::make(Cudnn library, ContextPtr context,
                                                           Options options) {
  std::unique_ptr<Convolutions> made(
      new Convolutions(std::move(library), std::move(context), std::move(options)));
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

Expected<Convolutions::PlanPtr> Convolutions::plan(const DnnConvolution& convolution, Trial trial) {
  if (const auto before = known(convolution)) return *before;
  std::optional<Turn> turn(std::in_place, *this);
  if (const auto meanwhile = known(convolution)) return *meanwhile;
  context_->enter();
  bool for_good = false;
  auto made = ConvolutionPlan::make_several(library_, convolution, *target_, limits_,
                                            options_.measures ? kMostMeasured : 1, &for_good);
  if (!made.ok() && !for_good) return made.status();
  std::size_t best = 0;
  if (made.ok() && made->size() > 1) {
    const std::string key = key_of(convolution);
    const auto text = options_.kept.read(key);
    if (const auto kept = choice_of(text.value_or(""), *made)) {
      best = *kept;
    } else {
      turn.reset();  // a trial runs plans
      TROUPE_TRY(const auto measured, fastest(*made, trial));
      // Whoever was first has chosen, in this process or another.
      if (const auto meanwhile = known(convolution)) return *meanwhile;
      if (measured) {
        best = *measured;
        const auto kept = options_.kept.add(key, choice_text(best, *made));
        best = choice_of(kept, *made).value_or(best);
      }
    }
  }
  std::lock_guard lock(mutex_);
  if (plans_.size() == kMostConvolutions) plans_.clear();
  Expected<PlanPtr> plan =
      made.ok()
          ? Expected<PlanPtr>(std::make_shared<const ConvolutionPlan>(std::move((*made)[best])))
          : Expected<PlanPtr>(made.status());
  return plans_.emplace(convolution, std::move(plan)).first->second;
}

std::optional<Expected<Convolutions::PlanPtr>> Convolutions::known(
    const DnnConvolution& convolution) {
  std::lock_guard lock(mutex_);
  const auto found = plans_.find(convolution);
  if (found == plans_.end()) return {};
  return found->second;
}

// Of all that the list of plans depends on.
std::string Convolutions::key_of(const DnnConvolution& c) const {
  std::string text = fmt::format(
      "{} {} cudnn {} workspace {} tf32 {}: {} {} {} {} {} {}, {} {} {}, {} {}, {} {}, {} {} {}",
      context_->gpu().name, context_->gpu().architecture, library_.version, limits_.workspace,
      limits_.tf32, int(c.of), dtype_name(c.dtype), c.images, c.in_channels, c.out_channels,
      c.groups, fmt::join(c.in, "x"), fmt::join(c.out, "x"), fmt::join(c.filter, "x"),
      fmt::join(c.stride, "x"), fmt::join(c.dilation, "x"), fmt::join(c.pad_before, "x"),
      fmt::join(c.pad_after, "x"), c.align_x, c.align_filter, c.align_y);
  if (c.then != ConvolutionThen::nothing)
    text += fmt::format(", then {} {}", int(c.then), c.align_bias);
  return fmt::format("cudnn-{:016x}{:016x}", hash_text(text), hash_text(text, 1));
}

Status Convolutions::run(const Turn&, const ConvolutionPlan& plan, const DnnOperands& operands,
                         void* workspace, StreamHandle stream) {
  context_->enter();
  TROUPE_TRY(library_.check(library_.cudnnSetStream(handle_, stream), "cudnnSetStream"));
  return plan.run(handle_, operands, workspace);
}

Expected<double> Convolutions::time(const Turn& turn, const ConvolutionPlan& plan,
                                    const DnnOperands& operands, void* workspace,
                                    StreamHandle stream) {
  TROUPE_TRY(run(turn, plan, operands, workspace, stream));  // loads what it needs
  TimedEvent begin(*context_), end(*context_);
  const auto all = [&]() -> Expected<double> {
    TROUPE_TRY(begin.record(stream));
    for (int i = 0; i < kTimedRuns; ++i) TROUPE_TRY(run(turn, plan, operands, workspace, stream));
    TROUPE_TRY(end.record(stream));
    return end.milliseconds_since(begin);
  }();
  if (all.ok()) return *all / kTimedRuns;
  context_->driver().cuStreamSynchronize(stream);
  return all.status();
}

Expected<ConvolutionsChoice> choose_convolutions(const Search& search, const Driver& driver) {
  return choose_table<Cudnn>(
      {.variable = "TROUPE_CUDA_CONV", .word = "cudnn", .library = "cudnn", .what = "convolutions"},
      driver, search, open_cudnn, cudnn_finding);
}

}  // namespace troupe::cuda
