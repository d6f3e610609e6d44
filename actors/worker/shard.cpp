#include "actors/worker/shard.hpp"

#include <algorithm>

#include "core/hash.hpp"

namespace troupe {
namespace {
constexpr Instant kRepeatReport = std::chrono::milliseconds(50);

// Some may be named by several resources. The master refuses longer reports.
template <class T>
void shorten(std::vector<T>& named) {
  std::sort(named.begin(), named.end());
  named.erase(std::unique(named.begin(), named.end()), named.end());
  if (named.size() > BlockedReport::kMost) named.resize(BlockedReport::kMost);
}
}  // namespace

Shard::Shard(TaskId task, std::uint64_t view) : task_(task), view_(view) {}

void Shard::prepare(const Prepare& message, Outputs& out) {
  if (message.view != view_ || message.round < round_) return;  // an older round
  if (message.round == round_) {                                // a repetition
    if (last_) out.push_back(*last_);
    return;
  }
  round_ = message.round;
  last_.reset();
  if (message.order == StageOrder::withdraw) return withdraw(message, out);
  if (message.order == StageOrder::stage) staging_ = message;
  waited_for_ = {message.s, message.attempt};
  pending_.emplace();
  for (const ResourceWrites& r : message.resources) {
    pending_->missing.insert(r.resource);
    out.push_back(StageResource{
        r.resource, {message.s, message.attempt, r.keys, message.min_live, message.order}});
  }
  if (message.resources.empty()) answer_prepare(message.s, 0, ok_status(), out);
}

// Also tells resources that could not stage, or have not yet.
void Shard::withdraw(const Prepare& message, Outputs& out) {
  if (staging_ && staging_->attempt == message.attempt)
    for (const ResourceWrites& r : staging_->resources)
      out.push_back(StageResource{
          r.resource, {message.s, message.attempt, 0, message.min_live, StageOrder::withdraw}});
  staging_.reset();
  answer_prepare(message.s, 0, ok_status(), out);
}

void Shard::staged(ResourceId resource, const ResourceStaged& message, Outputs& out) {
  if (!pending_ || std::pair(message.s, message.attempt) != waited_for_) return;
  if (pending_->missing.erase(resource) == 0) return;
  if (!message.status.ok()) return answer_prepare(message.s, 0, message.status, out);
  pending_->hashes[resource] = message.hash;
  if (!pending_->missing.empty()) return;
  std::uint64_t hash = 0;
  for (const auto& [staged, h] : pending_->hashes)
    hash = hash_combine(hash_combine(hash, staged.hash), h);
  answer_prepare(message.s, hash, ok_status(), out);
}

void Shard::answer_prepare(CommitNumber s, std::uint64_t hash, Status status, Outputs& out) {
  pending_.reset();
  last_ = Staged{view_, task_, s, hash, round_, std::move(status)};
  out.push_back(*last_);
}

void Shard::live(const LiveList& list, Outputs& out) {
  if (list.view != view_ || !list.newer_than(live_)) return;
  live_ = list;
  out.push_back(TaskLive{list});
  for (const ResourceId& resource : listening_) out.push_back(ResourceLive{resource, list});
}

void Shard::wish_lists(ResourceId resource, bool on, Outputs& out) {
  if (!on) {
    listening_.erase(resource);
  } else if (listening_.insert(resource).second && live_.view != 0) {
    out.push_back(ResourceLive{resource, live_});
  }
}

void Shard::blocked(ResourceId resource, std::vector<AttemptId> waiting, std::vector<RunId> marked,
                    Instant now, Outputs& out) {
  if (waiting.empty())
    blocked_.erase(resource);
  else
    blocked_[resource] = {std::move(waiting), std::move(marked)};
  report(now, out);
}

void Shard::tick(Instant now, Outputs& out) {
  if (now >= next_report_) report(now, out);
}

void Shard::report(Instant now, Outputs& out) {
  BlockedReport report{view_, task_, ++report_sequence_, {}, {}};
  for (const auto& [resource, waits] : blocked_) {
    report.waiting.insert(report.waiting.end(), waits.waiting.begin(), waits.waiting.end());
    report.marked.insert(report.marked.end(), waits.marked.begin(), waits.marked.end());
  }
  shorten(report.waiting);
  shorten(report.marked);
  next_report_ = blocked_.empty() ? kNever : now + kRepeatReport;
  out.push_back(std::move(report));
}

}  // namespace troupe
