#include "actors/master/coordinator.hpp"

#include <algorithm>

namespace troupe {
namespace {

// Runs without writes draw from other random numbers than the writing runs of their snapshot.
constexpr std::uint64_t kReadOnlyIndex = std::uint64_t{1} << 32;

}  // namespace

std::string step_name(const RunId& run) {
  return "step " + std::to_string(run.n) + " of session " + std::to_string(run.session);
}

Coordinator::Coordinator(Options options) : options_(options) {}

// ------------------------------------------------------------------ membership and sessions

void Coordinator::add_process(ProcessId process, std::string name, bool shard) {
  members_[process] = {std::move(name), shard};
  if (shard) shards_.insert(process);
}

void Coordinator::process_lost(ProcessId process, const Status& why, Instant now, Outputs& out) {
  auto at = members_.find(process);
  if (at == members_.end()) return;
  const bool shard = at->second.shard;
  const std::string lost = "worker " + at->second.name + " is lost: " + why.message();
  members_.erase(at);
  blocked_.erase(process);
  if (shard) return stop_job(lost, process, now, out);
  std::vector<std::pair<RunId, Status>> hit;
  for (const auto& [id, run] : runs_) {
    if (run.phase == Phase::ready || run.phase == Phase::preparing || run.phase == Phase::applying)
      continue;
    for (const StepShape::Partition& p : run.step->partitions)
      if (p.process == process) {
        hit.emplace_back(
            id, unavailable(lost + ", in " + step_name(id) + ", which had " + p.device + " there"));
        break;
      }
  }
  for (auto& [id, status] : hit) {
    auto run = runs_.find(id);  // an answer lets others go on, or end
    if (run == runs_.end()) continue;
    if (in_attempt(run->second)) send_aborts(run->second, status, out);
    answer(run->second, std::move(status), 0, now, out);
  }
  settle(now, out);
}

void Coordinator::stop_job(const std::string& lost, ProcessId process, Instant now, Outputs& out) {
  stopped_ = unavailable(lost);
  withdrawing_.reset();
  for (const RunId& id : runs_where([](const Run&) { return true; })) {
    auto at = runs_.find(id);
    if (at == runs_.end()) continue;
    Run& run = at->second;
    std::string text = lost + ", in " + step_name(id);
    for (const StepShape::Partition& p : run.step->partitions)
      if (p.process == process) text += ", which had " + p.device + " there";
    Status why = unavailable(std::move(text));
    if (in_attempt(run)) send_aborts(run, why, out);
    answer(run, why, &run == applying_ ? decided_ : 0, now, out);
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

void Coordinator::acknowledge(std::uint64_t session, const Acknowledged& arrived) {
  auto at = sessions_.find(session);
  if (at == sessions_.end()) return;
  at->second.acknowledged.merge(arrived);
  std::erase_if(at->second.answers,
                [&](const auto& kept) { return at->second.acknowledged.covers(kept.first); });
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
    if (session->second.acknowledged.covers(request.run.n) || runs_.count(request.run) != 0) return;
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
  run.with_place = request.with_place;
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
    if (active >= options_.max_active) return;
    Run& run = runs_.at(id);
    if (!places_.free(run.step->datasets)) continue;
    ++active;
    start(run, false, now, out);
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
  take_elements(run);
  run.grant = may_grant(run) ? decided_ + 1 : 0;
  if (run.grant != 0) granted_ = &run;
  run.revoking = false;
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
  return run.step->fast_path && run.step->may_write && number_is_free() &&
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

void Coordinator::take_elements(Run& run) {
  if (run.with_place) run.place = {decided_, places_.places()};
  if (run.elements.empty()) run.elements = places_.take(run.step->datasets);
}

// By dataset of the step; partitions that use one together count its elements alike.
std::vector<std::uint64_t> Coordinator::used_elements(const Run& run) {
  std::vector<std::uint64_t> used(run.step->datasets.size(), 0);
  for (const auto& [p, done] : run.done) {
    const std::vector<std::uint32_t>& datasets = run.step->partitions[p].datasets;
    for (std::size_t i = 0; i < datasets.size() && i < done.elements.size(); ++i)
      used[datasets[i]] = std::max(used[datasets[i]], done.elements[i]);
  }
  return used;
}

void Coordinator::send_starts(const Run& run, Outputs& out) const {
  const auto& partitions = run.step->partitions;
  for (std::uint32_t p = 0; p < partitions.size(); ++p) {
    if (run.done.count(p) != 0) continue;
    StartAttempt start{partitions[p].process, p, run.attempt, run.random_index, run.grant, {}};
    for (std::uint32_t dataset : partitions[p].datasets)
      start.elements.push_back(run.elements[dataset]);
    out.push_back(std::move(start));
  }
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

void Coordinator::partition_done(PartitionDone message, Instant now, Outputs& out) {
  Run* run = find(message.attempt, message.run);
  if (!run || message.partition >= run->step->partitions.size()) return;
  if (run->phase != Phase::running && run->phase != Phase::aborting) return;
  auto [at, first] = run->done.try_emplace(message.partition, std::move(message));
  if (!first) return;
  const PartitionDone& done = at->second;
  if (run->phase == Phase::aborting)
    done_while_aborting(*run, done, now, out);
  else if (!done.status.ok())
    fail(*run, done.status, now, out);
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
  // What was drawn belongs to a commit, so that the next run draws anew. One that took a branch
  // without a write would be drawn again, and take it again, for ever.
  if (wrote || (run.step->may_write && run.step->draws)) {
    run.phase = Phase::ready;
    return;
  }
  ++counters_.read_only;
  answer(run, ok_status(), 0, now, out);
}

// ------------------------------------------------------------------ ends

void Coordinator::fail(Run& run, Status cause, Instant now, Outputs& out) {
  switch (run.phase) {
    case Phase::aborting:  // the first cause wins
    case Phase::applying:  // too late
      return;
    case Phase::preparing:
      return take_back(run, std::move(cause), now, out);
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
  Answer reply{run.id, std::move(status), {}, committed, {}};
  places_.end(run.step->datasets, run.elements, reply.status.ok() || committed != 0,
              used_elements(run));
  if (reply.status.ok()) {
    reply.place = std::move(run.place);
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
  if (applying_ == &run) applying_ = nullptr;
  if (granted_ == &run) granted_ = nullptr;
  runs_.erase(run.id);
  last_progress_ = now;
  forget_writers();
  release_victim(now, out);
}

}  // namespace troupe
