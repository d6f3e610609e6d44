#include "devices/cuda/dnn_plans.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "core/hash.hpp"
#include "devices/cuda/attentions.hpp"
#include "devices/cuda/convolutions.hpp"

namespace troupe::cuda {
namespace {

constexpr std::size_t kMostKept = 4096;
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
template <class Plan>
std::string choice_text(std::size_t i, const std::vector<Plan>& plans) {
  return fmt::format("{} {}", i, plans[i].engine());
}
template <class Plan>
std::optional<std::size_t> choice_of(const std::string& text, const std::vector<Plan>& plans) {
  for (std::size_t i = 0; i < plans.size(); ++i)
    if (text == choice_text(i, plans)) return i;
  return {};
}

// The plan that took the least, if the library computes any.
template <class Plan>
Expected<std::optional<std::size_t>> fastest(const std::vector<Plan>& plans,
                                             typename DnnPlans<Plan>::Trial trial) {
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

template <class Plan>
DnnPlans<Plan>::DnnPlans(Cudnn library, ContextPtr context, Options options)
    : library_(std::move(library)),
      context_(std::move(context)),
      options_(std::move(options)),
      gaps_(options_.alone, Plan::kWhat),
      limits_{.workspace = std::min(Plan::kMostWorkspace, options_.memory / 8),
              .tf32 = options_.tf32,
              .architecture = context_->gpu().architecture} {}

template <class Plan>
Expected<std::unique_ptr<DnnPlans<Plan>>> DnnPlans<Plan>::make(Cudnn library, ContextPtr context,
                                                               Options options) {
  std::unique_ptr<DnnPlans> made(
      new DnnPlans(std::move(library), std::move(context), std::move(options)));
  made->context_->enter();
  TROUPE_TRY(made->library_.check(made->library_.cudnnCreate(&made->handle_), "cudnnCreate"));
  made->target_.emplace(made->handle_);
  return made;
}

template <class Plan>
DnnPlans<Plan>::~DnnPlans() {
  if (!handle_) return;
  context_->enter();
  plans_.clear();
  library_.cudnnDestroy(handle_);
}

template <class Plan>
auto DnnPlans<Plan>::plan(const Problem& problem, Trial trial) -> Expected<PlanPtr> {
  if (const auto before = known(problem)) return *before;
  std::optional<Turn> turn(std::in_place, *this);
  if (const auto meanwhile = known(problem)) return *meanwhile;
  context_->enter();
  bool for_good = false;
  auto made = Plan::make_several(library_, problem, *target_, limits_,
                                 options_.measures ? kMostMeasured : 1, &for_good);
  if (!made.ok() && !for_good) return made.status();
  std::size_t best = 0;
  if (made.ok() && made->size() > 1) {
    const std::string key = key_of(problem);
    const auto text = options_.kept.read(key);
    if (const auto kept = choice_of(text.value_or(""), *made)) {
      best = *kept;
    } else {
      turn.reset();  // a trial runs plans
      TROUPE_TRY(const auto measured, fastest(*made, trial));
      // Whoever was first has chosen, in this process or another.
      if (const auto meanwhile = known(problem)) return *meanwhile;
      if (measured) {
        best = *measured;
        const auto kept = options_.kept.add(key, choice_text(best, *made));
        best = choice_of(kept, *made).value_or(best);
      }
    }
  }
  std::lock_guard lock(mutex_);
  if (plans_.size() == kMostKept) plans_.clear();
  Expected<PlanPtr> plan =
      made.ok() ? Expected<PlanPtr>(std::make_shared<const Plan>(std::move((*made)[best])))
                : Expected<PlanPtr>(made.status());
  return plans_.emplace(problem, std::move(plan)).first->second;
}

template <class Plan>
auto DnnPlans<Plan>::known(const Problem& problem) -> std::optional<Expected<PlanPtr>> {
  std::lock_guard lock(mutex_);
  const auto found = plans_.find(problem);
  if (found == plans_.end()) return {};
  return found->second;
}

// Of all that the list of plans depends on.
template <class Plan>
std::string DnnPlans<Plan>::key_of(const Problem& problem) const {
  const std::string text = fmt::format(
      "{} {} cudnn {} workspace {} tf32 {}: {}", context_->gpu().name, context_->gpu().architecture,
      library_.version, limits_.workspace, limits_.tf32, Plan::text_of(problem));
  return fmt::format("cudnn-{:016x}{:016x}", hash_text(text), hash_text(text, 1));
}

template <class Plan>
Status DnnPlans<Plan>::run(const Turn&, const Plan& plan, const Operands& operands, void* workspace,
                           StreamHandle stream) {
  context_->enter();
  TROUPE_TRY(library_.check(library_.cudnnSetStream(handle_, stream), "cudnnSetStream"));
  return plan.run(handle_, operands, workspace);
}

template <class Plan>
Expected<double> DnnPlans<Plan>::time(const Turn& turn, const Plan& plan, const Operands& operands,
                                      void* workspace, StreamHandle stream) {
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

template class DnnPlans<AttentionPlan>;
template class DnnPlans<ConvolutionPlan>;

Expected<AttentionsChoice> choose_attentions(const Search& search, const Driver& driver) {
  return choose_table<Cudnn>({.variable = "TROUPE_CUDA_ATTENTION",
                              .word = "cudnn",
                              .library = "cudnn",
                              .what = "problems of attention"},
                             driver, search, open_cudnn, cudnn_finding);
}

Expected<ConvolutionsChoice> choose_convolutions(const Search& search, const Driver& driver) {
  return choose_table<Cudnn>(
      {.variable = "TROUPE_CUDA_CONV", .word = "cudnn", .library = "cudnn", .what = "convolutions"},
      driver, search, open_cudnn, cudnn_finding);
}

}  // namespace troupe::cuda
