#include "actors/protocol/shard.hpp"

#include <algorithm>

#include "core/hash.hpp"

namespace troupe {
namespace {
constexpr Instant kRepeatReport = std::chrono::milliseconds(50);
}

Shard::Shard(ProcessId process, std::uint64_t view) : process_(process), view_(view) {}

void Shard::prepare(const Prepare& message, Outputs& out) {
  if (message.view != view_) return;
  if (last_ && message.s <= last_->s) {  // sent again; an older number has long been decided
    if (message.s == last_->s) out.push_back(*last_);
    return;
  }
  if (pending_ && message.s <= pending_->prepare.s) return;  // its resources are at it
  Pending next{message, {}, {}};
  for (const ResourceWrites& r : message.resources) next.missing.insert(r.resource);
  pending_ = std::move(next);
  for (const ResourceWrites& r : message.resources)
    out.push_back(
        StageResource{r.resource, {message.s, message.attempt, r.keys, message.min_live}});
  if (pending_->missing.empty()) seal(out);
}

void Shard::staged(ResourceId resource, const ResourceStaged& message, Outputs& out) {
  if (!pending_ || message.s != pending_->prepare.s) return;
  if (pending_->missing.erase(resource) == 0) return;
  pending_->hashes[resource] = message.hash;
  if (pending_->missing.empty()) seal(out);
}

void Shard::seal(Outputs& out) {
  std::uint64_t hash = 0;
  for (const auto& [resource, h] : pending_->hashes)
    hash = hash_combine(hash_combine(hash, resource.index), h);
  last_ = Staged{view_, process_, pending_->prepare.s, hash};
  pending_.reset();
  out.push_back(*last_);
}

void Shard::live(const LiveList& list, Outputs& out) {
  if (list.view != view_ || !list.newer_than(live_)) return;
  live_ = list;
  out.push_back(ResourceLive{list});
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
  BlockedReport report{view_, process_, ++report_sequence_, {}, {}};
  for (const auto& [resource, waits] : blocked_) {
    report.waiting.insert(report.waiting.end(), waits.waiting.begin(), waits.waiting.end());
    report.marked.insert(report.marked.end(), waits.marked.begin(), waits.marked.end());
  }
  next_report_ = blocked_.empty() ? kNever : now + kRepeatReport;
  out.push_back(std::move(report));
}

}  // namespace troupe
