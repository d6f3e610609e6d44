#include "actors/protocol/coordinator.hpp"

#include <algorithm>

namespace troupe {
namespace {

// The idle COMMIT has no answer: it is repeated, ever later, so that a lost one does no harm.
constexpr int kLiveRepeats = 6;
// Reports of blocked attempts are repeated every 50 ms; older ones are no longer believed.
constexpr Instant kReportLife = std::chrono::milliseconds(200);
// Runs without writes draw from other random numbers than the writing runs of their snapshot.
constexpr std::uint64_t kReadOnlyIndex = std::uint64_t{1} << 32;

std::string step_name(const RunId& run) {
  return "step " + std::to_string(run.n) + " of session " + std::to_string(run.session);
}

bool any_after(const std::unordered_map<std::uint64_t, CommitNumber>& last,
               const std::vector<std::uint64_t>& used, CommitNumber snapshot) {
  return std::any_of(used.begin(), used.end(), [&](std::uint64_t id) {
    auto at = last.find(id);
    return at != last.end() && at->second > snapshot;
  });
}

}  // namespace

Coordinator::Coordinator(Options options) : options_(options) {}

// ------------------------------------------------------------------ membership and sessions

void Coordinator::add_process(ProcessId process, std::string name, bool shard) {
  members_[process] = {std::move(name), shard};
  if (shard) shards_.insert(process);
}

void Coordinator::process_lost(ProcessId process, Instant now, Outputs& out) {
  auto at = members_.find(process);
  if (at == members_.end()) return;
  const Member lost = at->second;
  members_.erase(at);
  blocked_.erase(process);
  if (lost.shard) return stop_job(lost, process, now, out);
  std::vector<std::pair<RunId, Status>> hit;
  for (const auto& [id, run] : runs_) {
    if (run.phase == Phase::ready || run.phase == Phase::preparing) continue;
    for (const StepShape::Partition& p : run.step->partitions)
      if (p.process == process) {
        hit.emplace_back(id, unavailable("worker " + lost.name + " was lost in " + step_name(id) +
                                         ", which had " + p.device + " there"));
        break;
      }
  }
  for (auto& [id, why] : hit) {
    auto run = runs_.find(id);  // an answer lets others go on, or end
    if (run == runs_.end()) continue;
    if (in_attempt(run->second)) send_aborts(run->second, why, out);
    answer(run->second, std::move(why), 0, now, out);
  }
  settle(now, out);
}

void Coordinator::stop_job(const Member& lost, ProcessId process, Instant now, Outputs& out) {
  const std::string what = "worker " + lost.name + " was lost with the state it held";
  stopped_ = unavailable(what);
  for (const RunId& id : runs_where([](const Run&) { return true; })) {
    auto at = runs_.find(id);
    if (at == runs_.end()) continue;
    Run& run = at->second;
    std::string text = what + ", in " + step_name(id);
    for (const StepShape::Partition& p : run.step->partitions)
      if (p.process == process) text += ", which had " + p.device + " there";
    Status why = unavailable(std::move(text));
    if (in_attempt(run)) send_aborts(run, why, out);
    answer(run, why, 0, now, out);
    stopped_ = why;
  }
  out.push_back(JobStopped{stopped_});
  settle(now, out);
}

void Coordinator::open_session(std::uint64_t session) { sessions_.try_emplace(session); }

void Coordinator::close_session(std::uint64_t session, Instant now, Outputs& out) {
  auto at = sessions_.find(session);
  if (at == sessions_.end()) {
    out.push_back(SessionClosed{session});
    return;
  }
  at->second.closing = true;
  for (const RunId& id : runs_where([](const Run&) { return true; })) {
    auto run = runs_.find(id);
    if (run != runs_.end() && id.session == session)
      fail(run->second, cancelled("the session was closed by its user"), now, out);
  }
  settle(now, out);
}

void Coordinator::end_closed_sessions(Outputs& out) {
  for (auto at = sessions_.begin(); at != sessions_.end();) {
    auto first = runs_.lower_bound(RunId{at->first, 0});
    const bool busy = first != runs_.end() && first->first.session == at->first;
    if (!at->second.closing || busy) {
      ++at;
      continue;
    }
    out.push_back(SessionClosed{at->first});
    at = sessions_.erase(at);
  }
}

void Coordinator::acknowledge(std::uint64_t session, std::uint64_t below) {
  auto at = sessions_.find(session);
  if (at == sessions_.end() || below <= at->second.acknowledged) return;
  at->second.acknowledged = below;
  auto& answers = at->second.answers;
  answers.erase(answers.begin(), answers.lower_bound(below));
}

// ------------------------------------------------------------------ a run comes in

Status Coordinator::may_run(const RunRequest& request) const {
  if (!stopped_.ok()) return stopped_;
  auto session = sessions_.find(request.run.session);
  if (session == sessions_.end() || session->second.closing)
    return failed_precondition("session " + std::to_string(request.run.session) + " is closed");
  return workers_present(*request.step);
}

Status Coordinator::workers_present(const StepShape& step) const {
  for (const StepShape::Partition& p : step.partitions)
    if (members_.count(p.process) == 0)
      return unavailable("the worker that has " + p.device + " is gone");
  return ok_status();
}

void Coordinator::run(const RunRequest& request, Instant now, Outputs& out) {
  TROUPE_CHECK(request.step && !request.step->partitions.empty(), "a step has partitions");
  acknowledge(request.run.session, request.acknowledged);
  auto session = sessions_.find(request.run.session);
  if (session != sessions_.end()) {
    if (request.run.n < session->second.acknowledged || runs_.count(request.run) != 0) return;
    auto known = session->second.answers.find(request.run.n);
    if (known != session->second.answers.end()) {
      out.push_back(known->second);
      return;
    }
  }
  if (Status s = may_run(request); !s.ok()) {
    out.push_back(Answer{request.run, s, {}, 0});
    return;
  }
  Run run;
  run.id = request.run;
  run.order = next_order_++;
  run.step = request.step;
  run.deadline = request.deadline;
  if (runs_.empty()) last_progress_ = now;
  runs_.emplace(request.run, std::move(run));
  settle(now, out);
}

void Coordinator::cancel(RunId run, Status cause, Instant now, Outputs& out) {
  auto at = runs_.find(run);
  if (at == runs_.end()) return;
  fail(at->second, std::move(cause), now, out);
  settle(now, out);
}

std::vector<RunId> Coordinator::runs_where(bool (*wanted)(const Run&)) const {
  std::vector<const Run*> found;
  for (const auto& [id, run] : runs_)
    if (wanted(run)) found.push_back(&run);
  std::sort(found.begin(), found.end(),
            [](const Run* a, const Run* b) { return a->order < b->order; });
  std::vector<RunId> ids;
  for (const Run* run : found) ids.push_back(run->id);
  return ids;
}

// Computing runs are bounded; those that only wait for a queue have given their place back.
void Coordinator::admit(Instant now, Outputs& out) {
  auto active = std::size_t(std::count_if(runs_.begin(), runs_.end(), [](const auto& entry) {
    return entry.second.phase == Phase::running && !entry.second.waiting;
  }));
  if (active >= options_.max_active) return;
  for (const RunId& id : runs_where([](const Run& r) { return r.phase == Phase::queued; })) {
    if (active++ >= options_.max_active) return;
    start(runs_.at(id), false, now, out);
  }
}

// ------------------------------------------------------------------ attempts

bool Coordinator::in_attempt(const Run& run) {
  return run.phase == Phase::running || run.phase == Phase::ready ||
         run.phase == Phase::preparing || run.phase == Phase::aborting;
}

void Coordinator::start(Run& run, bool keep_marks, Instant now, Outputs& out) {
  // A run whose partitions were all done outlived its worker, but cannot be redone.
  if (Status s = workers_present(*run.step); !s.ok()) return answer(run, s, 0, now, out);
  ++counters_.attempts;
  run.attempt.id = {options_.view, next_a_++};
  run.attempt.run = run.id;
  if (!keep_marks) run.attempt.marks_from = run.attempt.id.a;
  run.attempt.snapshot = decided_;
  run.random_index = pick_random_index(run);
  run.grant = may_grant(run) ? decided_ + 1 : 0;
  if (run.grant != 0) granted_ = &run;
  run.phase = Phase::running;
  run.waiting = false;
  run.done.clear();
  run.attempt.min_live = min_live();
  run.attempt.session_from = run.attempt.marks_from;
  for (const auto& [id, other] : runs_)
    if (id.session == run.id.session && in_attempt(other))
      run.attempt.session_from = std::min(run.attempt.session_from, other.attempt.marks_from);
  run.resend_after = options_.resend_first;
  run.resend_at = now + run.resend_after;
  send_starts(run, out);
}

bool Coordinator::may_grant(const Run& run) const {
  return run.step->fast_path && run.step->may_write && !granted_ &&
         std::none_of(runs_.begin(), runs_.end(), [&](const auto& entry) {
           return &entry.second != &run && entry.second.phase != Phase::queued;
         });
}

std::uint64_t Coordinator::pick_random_index(const Run& run) const {
  if (!run.step->may_write) return kReadOnlyIndex + run.id.n;
  std::set<std::uint64_t> taken;
  for (const auto& [id, other] : runs_)
    if (&other != &run && in_attempt(other) && other.attempt.snapshot == run.attempt.snapshot)
      taken.insert(other.random_index);
  std::uint64_t k = 0;
  while (taken.count(k) != 0) ++k;
  return k;
}

void Coordinator::send_starts(const Run& run, Outputs& out) const {
  const auto& partitions = run.step->partitions;
  for (std::uint32_t p = 0; p < partitions.size(); ++p)
    if (run.done.count(p) == 0)
      out.push_back(
          StartAttempt{partitions[p].process, p, run.attempt, run.random_index, run.grant});
}

void Coordinator::send_aborts(const Run& run, const Status& cause, Outputs& out) const {
  const auto& partitions = run.step->partitions;
  for (std::uint32_t p = 0; p < partitions.size(); ++p)
    if (run.done.count(p) == 0)
      out.push_back(AbortAttempt{partitions[p].process, p, run.attempt.id, run.id, cause});
}

Coordinator::Run* Coordinator::find(const AttemptId& attempt, const RunId& run) {
  auto at = runs_.find(run);
  return at != runs_.end() && at->second.attempt.id == attempt ? &at->second : nullptr;
}

void Coordinator::partition_done(const PartitionDone& message, Instant now, Outputs& out) {
  Run* run = find(message.attempt, message.run);
  if (!run || message.partition >= run->step->partitions.size()) return;
  if (run->phase != Phase::running && run->phase != Phase::aborting) return;
  if (!run->done.emplace(message.partition, message).second) return;
  if (run->phase == Phase::aborting)
    done_while_aborting(*run, message, now, out);
  else if (!message.status.ok())
    fail(*run, message.status, now, out);
  else if (run->done.size() == run->step->partitions.size())
    all_done(*run, now, out);
  settle(now, out);
}

void Coordinator::all_done(Run& run, Instant now, Outputs& out) {
  if (granted_ == &run) {
    granted_ = nullptr;
    if (run.done.begin()->second.fast_committed == run.grant) return decide(run, true, now, out);
    run.grant = 0;
  }
  bool wrote = false;
  for (const auto& [p, done] : run.done)
    for (const ResourceWrites& w : done.writes) wrote |= w.keys > 0;
  if (wrote) {
    run.phase = Phase::ready;
    return;
  }
  ++counters_.read_only;
  answer(run, ok_status(), 0, now, out);
}

// ------------------------------------------------------------------ deciding

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

// ------------------------------------------------------------------ ends

void Coordinator::fail(Run& run, Status cause, Instant now, Outputs& out) {
  switch (run.phase) {
    case Phase::preparing:
      return;  // its number is being decided
    case Phase::aborting:
      return;  // the first cause wins
    case Phase::queued:
    case Phase::victim:
    case Phase::ready:
      return answer(run, std::move(cause), 0, now, out);
    case Phase::running:
      break;
  }
  send_aborts(run, cause, out);
  const bool more_to_come = run.done.size() < run.step->partitions.size();
  // A granted number may have been used already. A consequence waits for its cause.
  if (!more_to_come || (run.grant == 0 && !cause.derived()))
    return answer(run, std::move(cause), 0, now, out);
  run.phase = Phase::aborting;
  run.abort_until = run.grant != 0 ? kNever : now + options_.derived_wait;
  run.cause = std::move(cause);
  live_soon(now, Instant{0});
}

void Coordinator::done_while_aborting(Run& run, const PartitionDone& message, Instant now,
                                      Outputs& out) {
  if (run.grant != 0 && message.fast_committed == run.grant) {
    granted_ = nullptr;
    return decide(run, true, now, out);
  }
  const bool root = !message.status.ok() && !message.status.derived();
  if (root && run.cause.derived()) run.cause = message.status;
  if (!run.cause.derived() || run.done.size() == run.step->partitions.size())
    answer(run, run.cause, 0, now, out);
}

// The run is over: it leaves the table, its answer stays until the client has it.
void Coordinator::answer(Run& run, Status status, CommitNumber committed, Instant now,
                         Outputs& out) {
  Answer reply{run.id, std::move(status), {}, committed};
  if (reply.status.ok()) {
    for (auto& [p, done] : run.done)
      for (Fetched& f : done.fetches) reply.fetches.push_back(std::move(f));
    std::sort(reply.fetches.begin(), reply.fetches.end(),
              [](const Fetched& a, const Fetched& b) { return a.index < b.index; });
  } else {
    ++counters_.failed;
  }
  live_soon(now, reply.status.ok() ? options_.idle_commit : Instant{0});
  auto session = sessions_.find(run.id.session);
  if (session != sessions_.end() && !session->second.closing)
    session->second.answers[run.id.n] = reply;
  out.push_back(std::move(reply));
  if (preparing_ == &run) preparing_ = nullptr;
  if (granted_ == &run) granted_ = nullptr;
  runs_.erase(run.id);
  last_progress_ = now;
  forget_writers();
  release_victim(now, out);
}

// ------------------------------------------------------------------ waiting and deadlock

void Coordinator::blocked(const BlockedReport& message, Instant now, Outputs& out) {
  if (message.view != options_.view || members_.count(message.shard) == 0) return;
  Report& report = blocked_[message.shard];
  if (message.sequence <= report.sequence) return;
  report = {message.sequence, now, message.waiting, message.marked};
  expire_reports(now);
  settle(now, out);
}

void Coordinator::expire_reports(Instant now) {
  std::set<AttemptId> waiting;
  for (auto& [shard, report] : blocked_) {
    if (now - report.at >= kReportLife) {
      report.waiting.clear();
      report.marked.clear();
    }
    waiting.insert(report.waiting.begin(), report.waiting.end());
  }
  for (auto& [id, run] : runs_) run.waiting = waiting.count(run.attempt.id) != 0;
}

// Waiting runs that hold marks can wait for each other. All waiting runs but the oldest holder are
// withdrawn and started again one by one: withdrawing the holders alone would hand their elements
// to the next waiter, which is then stuck in their place.
void Coordinator::break_deadlock(Instant now, Outputs& out) {
  if (now - last_progress_ < options_.deadlock_after || preparing_) return;
  std::set<RunId> marked;
  for (const auto& [shard, report] : blocked_)
    marked.insert(report.marked.begin(), report.marked.end());
  std::vector<RunId> holders;
  for (const RunId& id :
       runs_where([](const Run& r) { return r.phase == Phase::running && r.waiting; }))
    if (marked.count(id) != 0) holders.push_back(id);
  last_progress_ = now;
  if (holders.size() < 2) return release_victim(now, out);
  for (auto& [id, run] : runs_) {
    if (id == holders.front() || run.phase != Phase::running || !run.waiting) continue;
    ++counters_.withdrawn;
    send_aborts(run, aborted("withdrawn: runs wait for each other's queue elements"), out);
    run.phase = Phase::victim;
    run.waiting = false;
  }
  live_soon(now, Instant{0});
}

void Coordinator::release_victim(Instant now, Outputs& out) {
  auto victims = runs_where([](const Run& r) { return r.phase == Phase::victim; });
  if (!victims.empty()) start(runs_.at(victims.front()), false, now, out);
}

// ------------------------------------------------------------------ time

void Coordinator::tick(Instant now, Outputs& out) {
  expire_reports(now);
  for (const RunId& id : runs_where([](const Run&) { return true; })) {
    auto at = runs_.find(id);
    if (at == runs_.end()) continue;
    Run& run = at->second;
    if (run.phase == Phase::aborting && run.abort_until <= now)
      answer(run, run.cause, 0, now, out);
    else if (run.deadline <= now && run.phase != Phase::preparing && run.phase != Phase::aborting)
      fail(run, deadline_exceeded("the deadline of " + step_name(id) + " has passed"), now, out);
    else if (run.resend_at <= now)
      resend(run, now, out);
  }
  break_deadlock(now, out);
  settle(now, out);
}

void Coordinator::resend(Run& run, Instant now, Outputs& out) {
  if (run.phase == Phase::running) send_starts(run, out);
  if (run.phase == Phase::aborting) send_aborts(run, run.cause, out);
  if (run.phase == Phase::preparing) send_prepares(run, out);
  run.resend_after = std::min(run.resend_after * 2, options_.resend_max);
  run.resend_at = now + run.resend_after;
}

// After every input: whatever became possible happens.
void Coordinator::settle(Instant now, Outputs& out) {
  end_closed_sessions(out);
  give_numbers(now, out);
  admit(now, out);
  if (std::none_of(runs_.begin(), runs_.end(),
                   [](const auto& r) { return r.second.phase != Phase::victim; }))
    release_victim(now, out);
  if (live_at_ <= now) send_live(now, out);
}

void Coordinator::live_soon(Instant now, Instant delay) {
  live_at_ = std::min(live_at_, now + delay);
  live_repeats_ = kLiveRepeats;
}

void Coordinator::send_live(Instant now, Outputs& out) {
  LiveList list{options_.view, ++live_sequence_, decided_, min_live(), next_a_, {}};
  for (const auto& [id, run] : runs_)
    if (in_attempt(run)) list.live.push_back({run.attempt.id.a, id, run.attempt.marks_from});
  std::sort(list.live.begin(), list.live.end(),
            [](const LiveAttempt& a, const LiveAttempt& b) { return a.a < b.a; });
  for (const auto& [process, member] : members_) out.push_back(SendLive{process, list});
  live_at_ = live_repeats_ > 0 ? now + options_.idle_commit * (1 << (kLiveRepeats - live_repeats_))
                               : kNever;
  --live_repeats_;
}

Instant Coordinator::next_wakeup() const {
  Instant at = live_at_;
  bool watch = false;
  for (const auto& [id, run] : runs_) {
    if (run.phase == Phase::aborting)
      at = std::min(at, run.abort_until);
    else if (run.phase != Phase::preparing)
      at = std::min(at, run.deadline);
    if (run.phase == Phase::running || run.phase == Phase::preparing ||
        run.phase == Phase::aborting)
      at = std::min(at, run.resend_at);
    watch |= run.waiting || run.phase == Phase::victim;
  }
  for (const auto& [shard, report] : blocked_)
    if (!report.waiting.empty()) at = std::min(at, report.at + kReportLife);
  if (watch) at = std::min(at, last_progress_ + options_.deadlock_after);
  return at;
}

std::string Coordinator::text() const {
  static const char* const kPhases[] = {"queued",    "running",  "ready",
                                        "preparing", "aborting", "withdrawn"};
  std::string text;
  for (const auto& [id, run] : runs_) {
    text += step_name(id) + ": " + kPhases[std::size_t(run.phase)];
    if (in_attempt(run)) text += " in attempt " + run.attempt.id.text();
    if (run.phase == Phase::running)
      text += ", " + std::to_string(run.done.size()) + " of " +
              std::to_string(run.step->partitions.size()) + " partitions done";
    if (run.waiting) text += ", waits for a queue";
    if (run.grant != 0) text += ", holds number " + std::to_string(run.grant);
    text += "\n";
  }
  return text;
}

Coordinator::Tables Coordinator::tables() const {
  Tables t;
  t.runs = runs_.size();
  t.last_writers = last_write_.size() + last_enqueue_.size();
  for (const auto& [id, session] : sessions_) t.answers += session.answers.size();
  for (const auto& [shard, report] : blocked_) t.blocked += report.waiting.size();
  return t;
}

}  // namespace troupe
