// Of the coordinator: conflicts, numbers, the decision.
#include <algorithm>

#include "actors/master/coordinator.hpp"

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

bool Coordinator::all_staged() const { return staged_ == asked_; }

bool Coordinator::number_is_free() const { return !in_round() && !granted_; }

// While it waits for a queue others have to go on, or nothing it waits for can come.
const Coordinator::Run* Coordinator::sole() const {
  const Run* oldest = nullptr;
  for (const auto& [id, run] : runs_)
    if (run.conflicts >= options_.patience && !run.waiting &&
        (run.phase == Phase::running || run.phase == Phase::ready) &&
        (!oldest || run.order < oldest->order))
      oldest = &run;
  return oldest;
}

// Conflicts are looked for here, with the number in hand: what was committed while the run waited
// for its turn counts too.
void Coordinator::give_numbers(Instant now, Outputs& out) {
  for (;;) {
    auto ready = runs_where([](const Run& r) { return r.phase == Phase::ready; });
    if (ready.empty()) return;
    if (granted_ && !granted_->revoking) revoke(*granted_, out);
    if (!number_is_free()) return;
    const Run* alone = sole();
    if (alone && alone->phase != Phase::ready) return;
    Run& run = runs_.at(alone ? alone->id : ready.front());
    if (conflicts(run)) {
      ++counters_.conflicts;
      ++run.conflicts;
      start(run, true, now, out);  // the same feeds, and the elements it has marked
      live_soon(now, Instant{0});
    } else {
      prepare(run, now, out);
    }
  }
}

// One that is being aborted says what became of the number anyway.
void Coordinator::revoke(Run& run, Outputs& out) const {
  if (run.phase != Phase::running) return;
  run.revoking = true;
  out.push_back(RevokeGrant{run.step->partitions.front().process, 0, run.attempt.id, run.id});
}

void Coordinator::grant_returned(const GrantReturned& message, Instant now, Outputs& out) {
  Run* run = find(message.attempt, message.run);
  if (!run || run != granted_ || !run->revoking) return;
  ++counters_.revoked;
  run->grant = 0;
  granted_ = nullptr;
  settle(now, out);
}

// ------------------------------------------------------------------ rounds of PREPARE

void Coordinator::start_round(std::set<ProcessId> shards, Instant within, Instant now) {
  ++round_;
  asked_ = std::move(shards);
  staged_.clear();
  round_clock_ = AccumulatingClock(options_.resend_max);
  round_clock_.look(now);
  round_within_ = within;
  round_until_ = now + within;
  round_resend_after_ = options_.resend_first;
  round_resend_at_ = now + round_resend_after_;
}

void Coordinator::prepare(Run& run, Instant now, Outputs& out) {
  preparing_ = &run;
  withdrawing_.reset();
  run.phase = Phase::preparing;
  start_round(shards_, within(run), now);
  send_prepares(out);
  if (all_staged()) round_done(now, out);
}

// Nobody has been told that it is decided, and nobody will be: the run can end as it likes. What
// shards have staged of it must be gone before another run gets the number.
void Coordinator::take_back(Run& run, Status cause, Instant now, Outputs& out) {
  ++counters_.taken_back;
  start_round(shards_, within(run), now);
  withdrawing_ = Prepare{options_.view, decided_ + 1, run.attempt.id,      run.id, {},
                         min_live(),    round_,       StageOrder::withdraw};
  preparing_ = nullptr;
  send_prepares(out);
  answer(run, std::move(cause), 0, now, out);
  if (all_staged()) round_done(now, out);
}

Prepare Coordinator::to_tell() const {
  if (withdrawing_) return *withdrawing_;
  const Run& run = applying_ ? *applying_ : *preparing_;
  return {options_.view,
          applying_ ? decided_ : decided_ + 1,
          run.attempt.id,
          run.id,
          {},
          min_live(),
          round_,
          applying_ ? StageOrder::apply : StageOrder::stage};
}

void Coordinator::send_prepares(Outputs& out) const {
  std::map<ResourceId, std::uint32_t> keys;
  if (const Run* run = applying_ ? applying_ : preparing_)
    for (const auto& [p, done] : run->done)
      for (const ResourceWrites& w : done.writes)
        if (!applying_ || w.outside) keys[w.resource] += w.keys;
  for (ProcessId shard : asked_) {
    if (staged_.count(shard) != 0) continue;
    Prepare prepare = to_tell();
    for (const auto& [resource, n] : keys)
      if (resource.process == shard && n > 0) prepare.resources.push_back({resource, n});
    out.push_back(SendPrepare{shard, std::move(prepare)});
  }
}

void Coordinator::staged(const Staged& message, Instant now, Outputs& out) {
  if (message.view != options_.view || message.round != round_) return;
  if (!in_round() || asked_.count(message.shard) == 0) return;
  if (preparing_ && !message.status.ok()) {
    auto member = members_.find(message.shard);
    take_back(*preparing_, message.status.in("on worker " + member->second.name), now, out);
  } else {
    if (applying_ && applying_->cause.ok() && !message.status.ok())
      applying_->cause = message.status.in("after commit " + std::to_string(decided_));
    staged_.insert(message.shard);
    if (all_staged()) round_done(now, out);
  }
  settle(now, out);
}

void Coordinator::round_done(Instant now, Outputs& out) {
  round_until_ = round_resend_at_ = kNever;
  if (preparing_) return decide(*preparing_, false, now, out);
  withdrawing_.reset();
  if (applying_) answer(*applying_, applying_->cause, decided_, now, out);
}

// They live, but they do not do their part: the job would wait for them for ever. A job that was
// stopped as a whole goes on: there, nobody was asked for longer than between two repetitions.
void Coordinator::expel_late_shards(Instant now, Outputs& out) {
  if (!in_round()) return;
  round_clock_.look(now);
  round_until_ = now + round_within_ - round_clock_.reading();
  if (now < round_until_) return;
  for (ProcessId shard : asked_) {
    if (staged_.count(shard) != 0 || members_.count(shard) == 0) continue;
    const auto within = std::chrono::duration_cast<std::chrono::seconds>(round_within_);
    Status why = deadline_exceeded(std::string("did not ") + (applying_ ? "apply" : "stage") +
                                   " a commit within " + std::to_string(within.count()) + " s");
    out.push_back(Expel{shard, why});
    return process_lost(shard, why, now, out);  // stops the job
  }
}

// The decision point. Only from here on may anybody be told of the run's results.
void Coordinator::decide(Run& run, bool fast, Instant now, Outputs& out) {
  ++decided_;
  ++(fast ? counters_.fast_commits : counters_.commits);
  if (runs_.size() > 1) remember_writes(run);
  std::set<ProcessId> outside = changed_outside(run);
  if (outside.empty())
    answer(run, ok_status(), decided_, now, out);
  else
    apply_outside(run, std::move(outside), now, out);
  const bool somebody_waits = std::any_of(blocked_.begin(), blocked_.end(),
                                          [](const auto& r) { return !r.second.waiting.empty(); });
  live_soon(now, somebody_waits ? Instant{0} : options_.idle_commit);
}

// The shards that host it.
std::set<ProcessId> Coordinator::changed_outside(const Run& run) {
  std::set<ProcessId> shards;
  for (const auto& [p, done] : run.done)
    for (const ResourceWrites& w : done.writes)
      if (w.outside && w.keys > 0) shards.insert(w.resource.process);
  return shards;
}

Instant Coordinator::within(const Run& run) const {
  return changed_outside(run).empty() ? options_.stage_within : options_.outside_within;
}

void Coordinator::apply_outside(Run& run, std::set<ProcessId> shards, Instant now, Outputs& out) {
  preparing_ = nullptr;
  applying_ = &run;
  run.phase = Phase::applying;
  start_round(std::move(shards), options_.outside_within, now);
  send_prepares(out);
  live_soon(now, options_.idle_commit);
}

void Coordinator::remember_writes(const Run& run) {
  for (const auto& [p, done] : run.done) {
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
