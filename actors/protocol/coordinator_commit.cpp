// Of the coordinator: conflicts, numbers, the decision.
#include <algorithm>

#include "actors/protocol/coordinator.hpp"

namespace troupe {
namespace {

bool any_after(const std::unordered_map<std::uint64_t, CommitNumber>& last,
               const std::vector<std::uint64_t>& used, CommitNumber snapshot) {
  return std::any_of(used.begin(), used.end(), [&](std::uint64_t id) {
    auto at = last.find(id);
    return at != last.end() && at->second > snapshot;
  });
}

}  // namespace

// First committer wins: something the run read, or replaced, was committed after its snapshot.
bool Coordinator::conflicts(const Run& run) const {
  for (const auto& [p, done] : run.done) {
    const CommitNumber snapshot = run.attempt.snapshot;
    if (any_after(last_write_, done.uses.reads, snapshot) ||
        any_after(last_write_, done.uses.assigns, snapshot) ||
        any_after(last_enqueue_, done.uses.own_dequeues, snapshot))
      return true;
  }
  return false;
}

CommitNumber Coordinator::min_live() const {
  CommitNumber least = decided_;
  for (const auto& [id, run] : runs_)
    if (in_attempt(run)) least = std::min(least, run.attempt.snapshot);
  return least;
}

bool Coordinator::all_staged() const { return staged_ == shards_; }

// Conflicts are looked for here, with the number in hand: what was committed while the run waited
// for its turn counts too.
void Coordinator::give_numbers(Instant now, Outputs& out) {
  while (!preparing_ && !granted_) {
    auto ready = runs_where([](const Run& r) { return r.phase == Phase::ready; });
    if (ready.empty()) return;
    Run& run = runs_.at(ready.front());
    if (conflicts(run)) {
      ++counters_.conflicts;
      start(run, true, now, out);  // the same feeds, and the elements it has marked
      live_soon(now, Instant{0});
      continue;
    }
    preparing_ = &run;
    run.phase = Phase::preparing;
    run.resend_after = options_.resend_first;
    run.resend_at = now + run.resend_after;
    staged_.clear();
    send_prepares(run, out);
    if (all_staged()) decide(run, false, now, out);
  }
}

void Coordinator::send_prepares(const Run& run, Outputs& out) const {
  std::map<ResourceId, std::uint32_t> keys;
  for (const auto& [p, done] : run.done)
    for (const ResourceWrites& w : done.writes) keys[w.resource] += w.keys;
  for (ProcessId shard : shards_) {
    if (staged_.count(shard) != 0) continue;
    Prepare prepare{options_.view, decided_ + 1, run.attempt.id, run.id, {}, min_live()};
    for (const auto& [resource, n] : keys)
      if (resource.process == shard && n > 0) prepare.resources.push_back({resource, n});
    out.push_back(SendPrepare{shard, std::move(prepare)});
  }
}

void Coordinator::staged(const Staged& message, Instant now, Outputs& out) {
  if (message.view != options_.view || !preparing_ || message.s != decided_ + 1) return;
  if (shards_.count(message.shard) == 0) return;
  staged_.insert(message.shard);
  if (all_staged()) decide(*preparing_, false, now, out);
  settle(now, out);
}

// The decision point. Only from here on may anybody be told of the run's results.
void Coordinator::decide(Run& run, bool fast, Instant now, Outputs& out) {
  ++decided_;
  ++(fast ? counters_.fast_commits : counters_.commits);
  if (runs_.size() > 1) remember_writes(run);
  answer(run, ok_status(), decided_, now, out);
  const bool somebody_waits = std::any_of(blocked_.begin(), blocked_.end(),
                                          [](const auto& r) { return !r.second.waiting.empty(); });
  live_soon(now, somebody_waits ? Instant{0} : options_.idle_commit);
}

void Coordinator::remember_writes(const Run& run) {
  for (const auto& [p, done] : run.done) {
    for (std::uint64_t id : done.uses.assigns) last_write_[id] = decided_;
    for (std::uint64_t id : done.uses.updates) last_write_[id] = decided_;
    for (std::uint64_t id : done.uses.enqueues) last_enqueue_[id] = decided_;
  }
}

// A commit that every snapshot includes can conflict with nobody.
void Coordinator::forget_writers() {
  if (last_write_.empty() && last_enqueue_.empty()) return;
  const CommitNumber least = min_live();
  auto old = [&](const auto& entry) { return entry.second <= least; };
  std::erase_if(last_write_, old);
  std::erase_if(last_enqueue_, old);
}

}  // namespace troupe
