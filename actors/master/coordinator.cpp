#include "actors/master/coordinator.hpp"

#include <algorithm>
#include <utility>

namespace troupe {
namespace {

// Runs without writes use other random numbers than writing runs with the same snapshot.
constexpr std::uint64_t kReadOnlyIndex = std::uint64_t{1} << 32;

// JobPlace::draws holds two counts: read-only draws in the low bits, and above them the first
// random index for runs that may write.
constexpr int kIndexBits = 32;
constexpr std::uint64_t kReads = (std::uint64_t{1} << kIndexBits) - 1;

}  // namespace

Coordinator::Coordinator(Options options, CoordinatorRules rules)
    : options_(options),
      rules_(rules),
      round_({options.resend_first, options.resend_max}),
      live_(options.idle_commit) {}

// ------------------------------------------------------------------ membership and sessions

void Coordinator::add_task(TaskId task, std::string name, bool shard) {
  members_[task] = {std::move(name), shard};
  if (shard) shards_.insert(task);
}

void Coordinator::task_lost(TaskId task, const Status& why, Instant now, Outputs& out) {
  auto at = members_.find(task);
  if (at == members_.end()) return;
  const bool shard = at->second.shard;
  const std::string lost = "worker " + at->second.name + " is lost: " + why.message();
  members_.erase(at);
  blocked_.erase(task);
  if (shard) return stop_job(lost, task, now, out);
  std::vector<std::pair<RunId, Status>> hit;
  for (const auto& [id, run] : runs_) {
    if (run.phase() == Phase::ready || run.phase() == Phase::preparing ||
        run.phase() == Phase::applying)
      continue;
    for (const StepShape::Partition& p : run.step->partitions)
      if (p.task == task) {
        hit.emplace_back(
            id, unavailable(lost + ", in " + step_name(id) + ", which had " + p.device + " there"));
        break;
      }
  }
  for (auto& [id, status] : hit) {
    Run* run = runs_.find(id);  // an earlier answer may have ended it
    if (!run) continue;
    if (run->in_attempt()) send_aborts(*run, status, out);
    answer(*run, std::move(status), 0, now, out);
  }
  settle(now, out);
}

void Coordinator::stop_job(const std::string& lost, TaskId task, Instant now, Outputs& out) {
  auto why = [&](const Run& run) {
    std::string text = lost + ", in " + step_name(run.id);
    for (const StepShape::Partition& p : run.step->partitions)
      if (p.task == task) text += ", which had " + p.device + " there";
    return unavailable(std::move(text));
  };
  const std::vector<RunId> runs = runs_.ids();
  stopped_ = runs.empty() ? unavailable(lost) : why(*runs_.find(runs.back()));
  out.push_back(JobStopped{stopped_});
  if (round_.open(StageOrder::withdraw)) round_.end();
  for (const RunId& id : runs) {
    Run* run = runs_.find(id);
    if (!run) continue;
    const Status status = why(*run);
    if (run->in_attempt()) send_aborts(*run, status, out);
    answer(*run, status, run->phase() == Phase::applying ? decided_ : 0, now, out);
  }
  settle(now, out);
}

void Coordinator::close_session(std::uint64_t session, Instant now, Outputs& out) {
  if (!sessions_.close(session)) {
    out.push_back(SessionClosed{session});
    return;
  }
  for (const RunId& id : runs_.ids())
    if (Run* run = runs_.find(id); run && id.session == session)
      fail(*run, cancelled("the session was closed by its user"), now, out);
  settle(now, out);
}

void Coordinator::end_closed_sessions(Outputs& out) {
  for (std::uint64_t session : sessions_.closing()) {
    if (runs_.of_session(session)) continue;
    out.push_back(SessionClosed{session});
    sessions_.erase(session);
  }
}

// ------------------------------------------------------------------ a run comes in

Status Coordinator::may_run(const RunRequest& request) const {
  if (!stopped_.ok()) return stopped_;
  if (!sessions_.is_open(request.run.session))
    return failed_precondition("session " + std::to_string(request.run.session) + " is closed");
  if (request.resume && (begun_ || decided_ > 0 || !runs_.empty()))
    return failed_precondition("a job resumes before its first run");
  if (!request.with_place && (request.step->may_write || request.note)) TROUPE_TRY(knows_place());
  return workers_present(*request.step);
}

Status Coordinator::knows_place() const {
  if (!journal_.unasked()) return ok_status();
  return failed_precondition(
      "the job goes on from commit " + std::to_string(decided_) +
      ", and the program has not asked where that is: call Session::place() or Session::once() "
      "before anything that writes, or it may do again what is done");
}

Status Coordinator::mark_place(std::uint64_t session, std::string note) {
  TROUPE_TRY(knows_place());
  places_.commit();
  journal_.mark(std::move(note), draws_of(session));
  return ok_status();
}

void Coordinator::done_once(std::uint64_t session, std::string name) {
  journal_.asked();
  places_.commit();
  journal_.done(std::move(name), draws_of(session));
}

Status Coordinator::workers_present(const StepShape& step) const {
  for (const StepShape::Partition& p : step.partitions)
    if (members_.count(p.task) == 0)
      return unavailable("the worker that has " + p.device + " is gone");
  return ok_status();
}

void Coordinator::run(RunRequest request, Instant now, Outputs& out) {
  TROUPE_CHECK(request.step && !request.step->partitions.empty(), "a step has partitions");
  sessions_.acknowledge(request.run.session, request.acknowledged);
  if (sessions_.acknowledged(request.run) || runs_.contains(request.run)) return;
  if (const Answer* known = sessions_.find(request.run)) {
    out.push_back(*known);
    return;
  }
  if (Status s = may_run(request); !s.ok()) {
    return refuse(request.run, std::move(s), out);
  }
  if (runs_.empty()) last_progress_ = now;
  Run& run = runs_.add(request.run);
  run.step = std::move(request.step);
  run.came = run.began = now;
  run.deadline = request.deadline;
  run.note = std::move(request.note);
  run.on_nan = request.on_nan;
  run.commit = request.commit;
  run.with_place = request.with_place;
  run.resume = std::move(request.resume);
  runs_.look_at(run, next_for_deadline(run));
  settle(now, out);
}

// The answer is kept: asked for again, it might run after its client was told that it did not.
void Coordinator::refuse(const RunId& run, Status why, Outputs& out) {
  Answer refused{run, std::move(why), {}, 0, {}};
  refused.seen = decided_;
  sessions_.keep(refused);
  out.push_back(std::move(refused));
}

bool Coordinator::begin_action(const RunId& action, const Acknowledged& acknowledged,
                               Outputs& out) {
  sessions_.acknowledge(action.session, acknowledged);
  if (sessions_.acknowledged(action) || actions_.contains(action)) return false;
  if (const Answer* known = sessions_.find(action)) {
    out.push_back(*known);
    return false;
  }
  if (!sessions_.is_open(action.session)) {
    refuse(action, failed_precondition("session " + std::to_string(action.session) + " is closed"),
           out);
    return false;
  }
  actions_.insert(action);
  return true;
}

void Coordinator::end_action(const RunId& action, Status status, Outputs& out) {
  if (actions_.erase(action) == 0) return;
  Answer answer{action, std::move(status), {}, 0, {}};
  answer.seen = decided_;
  sessions_.keep(answer);
  out.push_back(std::move(answer));
}

void Coordinator::cancel(RunId id, Status cause, Instant now, Outputs& out) {
  Run* run = runs_.find(id);
  if (!run) return;
  fail(*run, std::move(cause), now, out);
  settle(now, out);
}

void Coordinator::admit(Instant now, Outputs& out) {
  std::size_t computing = runs_.computing();
  if (computing >= options_.max_active) return;
  MutexTurns::Line line(mutexes_);
  bool restoring = runs_.restoring();
  runs_.queued(queued_);
  for (const RunId& id : queued_) {
    if (computing >= options_.max_active) return;
    Run& run = *runs_.find(id);
    if (!run.resume && restoring) return;  // it needs the restored state
    if (!places_.free(run.step->datasets) || line.obstacle(run.step->mutexes)) {
      line.waits(id, run.step->mutexes);
      continue;
    }
    ++computing;
    start(run, false, now, out);
    restoring = runs_.restoring();
  }
}

// ------------------------------------------------------------------ attempts

// A program without notes goes on from the current place; one with notes from its last note, and
// repeats what it did since.
JobPlace Coordinator::place(std::uint64_t session) const {
  JobPlace place{decided_};
  journal_.write_to(place);
  place.datasets = journal_.noted() ? places_.committed() : places_.places();
  if (!journal_.noted()) place.draws = draws_of(session);
  return place;
}

// The random index of a run that starts. Read-only draws, and runs whose writes were dropped, count
// from the last commit, so that a program that resumes there draws the same numbers.
std::uint64_t Coordinator::random_index(const Run& run) {
  const std::uint64_t draws = draws_of(run.id.session);
  if (run.may_commit()) return runs_.unused_random_index(run, draws >> kIndexBits);
  if (!run.step->draws) return kReadOnlyIndex;
  ++drawn_[run.id.session];
  return kReadOnlyIndex + (draws & kReads);
}

std::uint64_t Coordinator::draws_of(std::uint64_t session) const {
  const std::uint64_t resumed = journal_.resumed_draws();
  const auto drawn = drawn_.find(session);
  const std::uint64_t reads = (resumed & kReads) + (drawn == drawn_.end() ? 0 : drawn->second);
  return std::max(dropped_, resumed >> kIndexBits) << kIndexBits | (reads & kReads);
}

CommitNumber Coordinator::number_of(const Run& run) const {
  return run.resume ? run.resume->committed : decided_ + 1;
}

void Coordinator::start(Run& run, bool keep_marks, Instant now, Outputs& out) {
  // A run whose partitions were all done outlives their worker, but cannot be repeated.
  if (Status s = workers_present(*run.step); !s.ok()) return answer(run, s, 0, now, out);
  ++counters_.attempts;
  begun_ |= !run.resume;
  const bool again = run.attempt.id.a != 0 && run.attempt.snapshot == decided_;
  run.attempt.id = {options_.view, next_a_++};
  run.attempt.run = run.id;
  if (!keep_marks) run.attempt.marks_from = run.attempt.id.a;
  run.attempt.snapshot = decided_;
  runs_.begin_attempt(run, now, options_.resend_first);
  if (!again || run.may_commit()) run.random_index = random_index(run);
  if (run.with_place) run.place = std::make_shared<const JobPlace>(place(run.id.session));
  if (run.elements.empty()) run.elements = places_.take(run.step->datasets);
  mutexes_.take(run.id, run.step->mutexes);
  run.grant = may_grant(run) ? number_of(run) : 0;
  if (run.grant != 0) granted_ = &run;
  run.revoking = false;
  run.began = now;
  run.done.clear();
  run.attempt.min_live = min_live();
  run.attempt.session_from = runs_.marks_of_session(run.id.session, run.attempt.marks_from);
  send_starts(run, out);
}

bool Coordinator::may_grant(const Run& run) const {
  // Whether it commits depends on its fetches.
  if (run.on_nan != OnNan::commit) return false;
  const std::size_t others = runs_.size() - runs_.count(Phase::queued) - 1;  // the run has begun
  return run.step->fast_path && run.step->may_write && number_is_free() && others == 0;
}

void Coordinator::send_starts(const Run& run, Outputs& out) const {
  const auto& partitions = run.step->partitions;
  for (std::uint32_t p = 0; p < partitions.size(); ++p) {
    if (run.done.count(p) != 0) continue;
    StartAttempt start{partitions[p].task, p, run.attempt, run.random_index, run.grant, {}};
    for (std::uint32_t dataset : partitions[p].datasets)
      start.elements.push_back(run.elements[dataset]);
    out.push_back(std::move(start));
  }
}

void Coordinator::send_aborts(const Run& run, const Status& cause, Outputs& out) const {
  const auto& partitions = run.step->partitions;
  for (std::uint32_t p = 0; p < partitions.size(); ++p)
    if (run.done.count(p) == 0)
      out.push_back(AbortAttempt{partitions[p].task, p, run.attempt.id, run.id, cause});
}

void Coordinator::partition_done(PartitionDone message, Instant now, Outputs& out) {
  Run* run = runs_.find(message.run, message.attempt);
  if (!run || message.partition >= run->step->partitions.size()) return;
  if (run->phase() != Phase::running && run->phase() != Phase::aborting) return;
  auto [at, first] = run->done.try_emplace(message.partition, std::move(message));
  if (!first) return;
  const PartitionDone& done = at->second;
  if (run->phase() == Phase::aborting)
    done_while_aborting(*run, done, now, out);
  else if (!done.status.ok())
    fail(*run, done.status, now, out);
  else if (run->all_done())
    all_done(*run, now, out);
  settle(now, out);
}

void Coordinator::all_done(Run& run, Instant now, Outputs& out) {
  if (granted_ == &run) {
    granted_ = nullptr;
    if (run.done.begin()->second.fast_committed == run.grant) return decide(run, true, now, out);
    run.grant = 0;
  }
  if (ended_by_nan(run, now, out)) return;
  // Random draws need a commit, so that the next run draws other numbers. Otherwise a run that took
  // a branch without a write would draw the same, and take that branch, forever.
  if (run.wrote() || run.note || (run.step->may_write && run.step->draws)) {
    runs_.move(run, Phase::ready);
    return;
  }
  // It may have seen a later commit than its snapshot. After too many conflicts it has the numbers
  // to itself, although it takes none.
  if (run.step->current && conflicts(run)) {
    ++counters_.conflicts;
    runs_.count_conflict(run);
    start(run, true, now, out);
    return live_.soon(now, Instant{0});
  }
  ++counters_.read_only;
  answer(run, ok_status(), 0, now, out);
}

bool Coordinator::ended_by_nan(Run& run, Instant now, Outputs& out) {
  if (run.on_nan == OnNan::commit) return false;
  const std::vector<Fetched> fetches = run.fetches();
  const auto nan = std::find_if(fetches.begin(), fetches.end(),
                                [](const Fetched& each) { return each.value.has_nan(); });
  if (nan == fetches.end()) return false;
  if (run.on_nan == OnNan::fail) {
    fail(run,
         out_of_range("fetch " + std::to_string(nan->index) + " of " + step_name(run.id) +
                      " has a NaN: nothing was committed"),
         now, out);
    return true;
  }
  // Its random index is used up: else the next run would draw the same and be dropped, too.
  if (run.step->draws && run.may_commit()) dropped_ = std::max(dropped_, run.random_index + 1);
  answer(run, ok_status(), 0, now, out);
  live_.soon(now, Instant{0});  // its log can be dropped
  return true;
}

// ------------------------------------------------------------------ numbers

CommitNumber Coordinator::min_live() const {
  return rules_.min_live(decided_, runs_.oldest_snapshot(decided_));
}

bool Coordinator::number_is_free() const {
  std::optional<StageOrder> round;
  if (round_.open()) round = round_.what().order;
  return rules_.number_is_free(round, granted_ != nullptr);
}

bool Coordinator::conflicts(const Run& run) const {
  return std::any_of(run.done.begin(), run.done.end(), [&](const auto& part) {
    return rules_.conflicts(last_writes_, part.second.uses, run.attempt.snapshot);
  });
}

// An immediate run only for a queue: its element may be one that another run has taken.
bool Coordinator::must_repeat(const Run& run) const {
  if (run.commit == Commit::checked) return conflicts(run);
  return std::any_of(run.done.begin(), run.done.end(), [&](const auto& part) {
    const Uses taken{{}, {}, part.second.uses.own_dequeues, {}};
    return rules_.conflicts(last_writes_, taken, run.attempt.snapshot);
  });
}

// The run that has the numbers to itself, if any. While it waits for a queue others must go on,
// since they may enqueue what it waits for.
const Coordinator::Run* Coordinator::alone() const {
  const Run* oldest = nullptr;
  if (runs_.contended() == 0) return oldest;
  for (const Phase phase : {Phase::running, Phase::ready})
    for (const Run* run : runs_.in_phase(phase))
      if (rules_.goes_alone(run->conflicts(), options_.patience) && !run->waiting() &&
          (!oldest || run->order < oldest->order))
        oldest = run;
  return oldest;
}

// Checks for conflicts when the number is available: commits made while the run waited for its turn
// count, too.
void Coordinator::give_numbers(Instant now, Outputs& out) {
  for (;;) {
    Run* ready = runs_.first_in(Phase::ready);
    if (!ready) return;
    if (granted_ && !granted_->revoking) revoke(*granted_, out);
    if (!number_is_free()) return;
    const Run* first = alone();
    if (first && first->phase() != Phase::ready) return;
    Run& run = first ? *runs_.find(first->id) : *ready;
    if (must_repeat(run)) {
      ++counters_.conflicts;
      runs_.count_conflict(run);
      start(run, true, now, out);  // keeps its feeds and marked elements
      live_.soon(now, Instant{0});
    } else {
      const bool stale = run.commit == Commit::immediate && conflicts(run);
      run.behind = stale ? decided_ - run.attempt.snapshot : 0;
      prepare(run, now, out);
    }
  }
}

// A run that is being aborted reports what became of the number anyway.
void Coordinator::revoke(Run& run, Outputs& out) const {
  if (run.phase() != Phase::running) return;
  run.revoking = true;
  out.push_back(RevokeGrant{run.step->partitions.front().task, 0, run.attempt.id, run.id});
}

void Coordinator::grant_returned(const GrantReturned& message, Instant now, Outputs& out) {
  Run* run = runs_.find(message.run, message.attempt);
  if (!run || run != granted_ || !run->revoking) return;
  ++counters_.revoked;
  run->grant = 0;
  granted_ = nullptr;
  settle(now, out);
}

// ------------------------------------------------------------------ rounds of PREPARE

// Begins a round for the run's number. The shards that it wrote to stage and withdraw; those with
// changes outside the job apply. The others learn of the number as of one granted in advance: from
// the snapshots of later runs, and from the next LiveList.
void Coordinator::begin_round(StageOrder order, const Run& run, Instant now, Outputs& out) {
  const std::map<ResourceId, std::uint32_t> outside = run.keys(true);
  StageRound::Keys keys;
  if (order == StageOrder::stage) keys = run.keys(false);
  if (order == StageOrder::apply) keys = outside;
  StageRound::Shards shards;
  if (order == StageOrder::withdraw) shards = round_.asked();
  for (const auto& [resource, n] : keys)
    if (shards_.contains(resource.task)) shards.insert(resource.task);
  const CommitNumber s = order == StageOrder::apply ? decided_ : number_of(run);
  round_.begin({options_.view, s, run.attempt.id, run.id, {}, min_live(), 0, order},
               std::move(keys), std::move(shards),
               outside.empty() ? options_.stage_within : options_.outside_within, now);
  send_prepares(out);
}

void Coordinator::send_prepares(Outputs& out) const {
  for (auto& [shard, prepare] : round_.unanswered())
    out.push_back(SendPrepare{shard, std::move(prepare)});
}

void Coordinator::prepare(Run& run, Instant now, Outputs& out) {
  runs_.move(run, Phase::preparing);
  begin_round(StageOrder::stage, run, now, out);
  end_round_if_complete(now, out);
}

// The run is not decided and can still fail. Shards must drop what they staged before another run
// gets the number.
void Coordinator::take_back(Run& run, Status cause, Instant now, Outputs& out) {
  ++counters_.taken_back;
  begin_round(StageOrder::withdraw, run, now, out);
  answer(run, std::move(cause), 0, now, out);
  end_round_if_complete(now, out);
}

void Coordinator::staged(const Staged& message, Instant now, Outputs& out) {
  if (message.view != options_.view || !round_.expects(message)) return;
  Run* run = round_.open(StageOrder::withdraw) ? nullptr : runs_.find(round_.what().run);
  if (round_.open(StageOrder::stage) && !message.status.ok()) {
    auto member = members_.find(message.shard);
    take_back(*run, message.status.in("on worker " + member->second.name), now, out);
  } else {
    if (round_.open(StageOrder::apply) && run->cause.ok() && !message.status.ok())
      run->cause = message.status.in("after commit " + std::to_string(decided_));
    round_.note(message.shard);
    end_round_if_complete(now, out);
  }
  settle(now, out);
}

void Coordinator::end_round_if_complete(Instant now, Outputs& out) {
  if (!round_.open() || !rules_.complete(round_.asked(), round_.answered())) return;
  const StageOrder order = round_.what().order;
  Run* run = runs_.find(round_.what().run);
  round_.end();
  if (order == StageOrder::stage) decide(*run, false, now, out);
  if (order == StageOrder::apply) answer(*run, run->cause, decided_, now, out);
}

// These shards are alive but do not answer: the job would wait forever. Their time does not run
// while the whole job is stopped (StageRound).
void Coordinator::expel_late_shards(Instant now, Outputs& out) {
  for (TaskId shard : round_.late(now)) {
    if (members_.count(shard) == 0) continue;
    const auto within = std::chrono::duration_cast<std::chrono::seconds>(round_.within());
    const bool applies = round_.open(StageOrder::apply);
    Status why = deadline_exceeded(std::string("did not ") + (applies ? "apply" : "stage") +
                                   " a commit within " + std::to_string(within.count()) + " s");
    out.push_back(Expel{shard, why});
    return task_lost(shard, why, now, out);  // stops the job
  }
}

// The decision point. The run's results may be released only from here on.
void Coordinator::decide(Run& run, bool fast, Instant now, Outputs& out) {
  decided_ = number_of(run);
  ++(fast ? counters_.fast_commits : counters_.commits);
  if (runs_.size() > 1)
    for (const auto& [p, done] : run.done) last_writes_.note(done.uses, decided_);
  note_commit(run);
  if (run.keys(true).empty()) {
    answer(run, ok_status(), decided_, now, out);
  } else {
    runs_.move(run, Phase::applying);
    begin_round(StageOrder::apply, run, now, out);
  }
  live_.soon(now, tell_commit_within());
}

// A run that waits may wait for what was committed. But a list names every attempt, and everybody
// reads it: where there are many, one is sent for several commits.
Instant Coordinator::tell_commit_within() const {
  constexpr std::size_t kFew = 64;
  if (!blocked_.anybody_waits()) return options_.idle_commit;
  const std::size_t attempts = runs_.attempts();
  if (attempts <= kFew) return Instant{0};
  return std::min<Instant>(options_.idle_commit, std::chrono::microseconds(attempts));
}

void Coordinator::note_commit(Run& run) {
  drawn_.clear();
  dropped_ = 0;
  places_.end(run.step->datasets, std::exchange(run.elements, {}), true, run.used_elements());
  if (run.resume) {
    places_.restore(run.resume->datasets);
    return journal_.resume(*run.resume);
  }
  places_.commit();
  std::vector<Tensor> fetches;
  for (Fetched& each : run.fetches()) fetches.push_back(std::move(each.value));
  journal_.commit(run.note, std::move(fetches));
}

// ------------------------------------------------------------------ ends

void Coordinator::fail(Run& run, Status cause, Instant now, Outputs& out) {
  switch (run.phase()) {
    case Phase::aborting:  // the first cause wins
    case Phase::applying:  // it is decided
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
  // A granted number may have been used already.
  if (run.all_done() || run.grant == 0) return answer(run, std::move(cause), 0, now, out);
  runs_.move(run, Phase::aborting);
  run.cause = std::move(cause);
  live_.soon(now, Instant{0});
}

void Coordinator::done_while_aborting(Run& run, const PartitionDone& message, Instant now,
                                      Outputs& out) {
  if (run.grant != 0 && message.fast_committed == run.grant) {
    granted_ = nullptr;
    return decide(run, true, now, out);
  }
  answer(run, run.cause, 0, now, out);
}

// The run leaves the table; its answer is kept until the client acknowledges it.
void Coordinator::answer(Run& run, Status status, CommitNumber committed, Instant now,
                         Outputs& out) {
  Answer reply{run.id, std::move(status), {}, committed, {}};
  // A decided run has no elements here: note_commit used them up.
  places_.end(run.step->datasets, run.elements, reply.status.ok(), run.used_elements());
  reply.seen = decided_;
  reply.snapshot = run.attempt.snapshot;
  if (committed != 0) reply.behind = run.behind;
  if (reply.status.ok()) {
    reply.place = std::move(run.place);
    reply.fetches = run.fetches();
    reply.moved = committed == 0 && (run.step->draws || !run.step->datasets.empty());
  } else {
    ++counters_.failed;
  }
  live_.soon(now, reply.status.ok() ? options_.idle_commit : Instant{0});
  sessions_.keep(reply);
  out.push_back(std::move(reply));
  if (run.phase() == Phase::preparing || run.phase() == Phase::applying)
    if (!round_.open(StageOrder::withdraw)) round_.end();
  if (granted_ == &run) granted_ = nullptr;
  mutexes_.end(run.id, run.step->mutexes);
  runs_.erase(run.id);
  last_progress_ = now;
  if (!last_writes_.empty()) last_writes_.forget_up_to(min_live());
  release_victim(now, out);
}

// ------------------------------------------------------------------ waiting and deadlock

void Coordinator::blocked(const BlockedReport& message, Instant now, Outputs& out) {
  if (message.view != options_.view || members_.count(message.shard) == 0) return;
  BlockedReport report = message;
  std::set<AttemptId> attempts;  // others in the report are ignored
  for (const auto& [id, run] : runs_) attempts.insert(run.attempt.id);
  std::erase_if(report.waiting, [&](const AttemptId& a) { return attempts.count(a) == 0; });
  std::erase_if(report.marked, [&](const RunId& id) { return !runs_.contains(id); });
  if (!blocked_.take(report, now)) return;
  blocked_.expire(now);
  note_waiting();
  settle(now, out);
}

// A step with the fast path uses no queue, whatever a worker reports.
void Coordinator::note_waiting() {
  const std::set<AttemptId> waiting = blocked_.waiting();
  for (Run* run : runs_.in_phase(Phase::running))
    runs_.set_waiting(*run, !run->step->fast_path && waiting.count(run->attempt.id) != 0);
}

// Waiting runs that hold marked elements can wait for each other. All waiting runs except the
// oldest holder are withdrawn and started again one by one: if only the holders were withdrawn, the
// next waiter would get their elements and be stuck in their place.
void Coordinator::break_deadlock(Instant now, Outputs& out) {
  if (now - last_progress_ < options_.deadlock_after || round_.open()) return;
  const std::set<RunId> marked = blocked_.marked();
  const std::vector<RunId> holders = runs_.where([&](const Run& r) {
    return r.phase() == Phase::running && r.waiting() && marked.count(r.id) != 0;
  });
  last_progress_ = now;
  if (holders.size() < 2) return release_victim(now, out);
  for (auto& [id, run] : runs_) {
    if (id == holders.front() || run.phase() != Phase::running || !run.waiting()) continue;
    ++counters_.withdrawn;
    send_aborts(run, aborted("withdrawn: runs wait for each other's queue elements"), out);
    runs_.move(run, Phase::victim);
  }
  live_.soon(now, Instant{0});
}

void Coordinator::release_victim(Instant now, Outputs& out) {
  if (Run* victim = runs_.first_in(Phase::victim)) start(*victim, false, now, out);
}

// ------------------------------------------------------------------ time

void Coordinator::tick(Instant now, Outputs& out) {
  if (blocked_.expire(now)) note_waiting();
  for (const RunId& id : runs_.due(now)) {
    Run* run = runs_.find(id);
    if (!run) continue;
    if (run->may_time_out() && next_for_deadline(*run) <= now)
      deadline_near(*run, now, out);
    else
      resend(*run, now, out);
  }
  if (round_.again(now)) send_prepares(out);
  expel_late_shards(now, out);
  break_deadlock(now, out);
  settle(now, out);
}

bool Coordinator::may_explain(const Run& run) const {
  return options_.explain_within > Instant{} && run.deadline != kNever &&
         run.deadline - run.came >= options_.explain_from;
}

// When the owner is asked, or the run ends.
Instant Coordinator::next_for_deadline(const Run& run) const {
  if (!may_explain(run) || run.waits) return run.deadline;
  return run.asked ? run.deadline + options_.explain_within
                   : run.deadline - options_.explain_before;
}

void Coordinator::deadline_near(Run& run, Instant now, Outputs& out) {
  if (!may_explain(run) || std::exchange(run.asked, true)) return deadline_passed(run, now, out);
  runs_.look_at(run, next_for_deadline(run));
  out.push_back(ExplainDeadline{run.id});
}

void Coordinator::explained(const std::map<RunId, std::string>& waits, Instant now, Outputs& out) {
  for (const auto& [id, text] : waits) {
    Run* run = runs_.find(id);
    if (!run || !run->asked || run->waits || !run->may_time_out()) continue;
    run->waits = text;
    if (run->deadline <= now)
      deadline_passed(*run, now, out);
    else
      runs_.look_at(*run, next_for_deadline(*run));
  }
  settle(now, out);
}

void Coordinator::deadline_passed(Run& run, Instant now, Outputs& out) {
  std::string text = "the deadline of " + step_name(run.id) + " has passed";
  if (run.waits && !run.waits->empty()) text += ": " + *run.waits;
  fail(run, deadline_exceeded(std::move(text)), now, out);
}

void Coordinator::resend(Run& run, Instant now, Outputs& out) {
  if (run.phase() == Phase::running) send_starts(run, out);
  if (run.phase() == Phase::running && run.revoking && granted_ == &run) revoke(run, out);
  if (run.phase() == Phase::aborting) send_aborts(run, run.cause, out);
  runs_.sent_again(run, now, options_.resend_max);
}

// Called after every input: does whatever has become possible.
void Coordinator::settle(Instant now, Outputs& out) {
  end_closed_sessions(out);
  give_numbers(now, out);
  admit(now, out);
  if (runs_.count(Phase::victim) == runs_.size()) release_victim(now, out);
  if (live_.due(now)) send_live(now, out);
}

void Coordinator::send_live(Instant now, Outputs& out) {
  const LiveList list{options_.view, live_.sent(now), decided_, min_live(), next_a_, runs_.live()};
  for (const auto& [task, member] : members_) out.push_back(SendLive{task, list});
}

Instant Coordinator::next_wakeup() const {
  Instant at = std::min(live_.next(), blocked_.next_expiry());
  if (round_.open()) at = std::min(at, round_.next_wakeup());
  at = std::min(at, runs_.next_due());
  const bool watch = runs_.waiting() > 0 || runs_.count(Phase::victim) > 0;
  if (watch && !round_.open()) at = std::min(at, last_progress_ + options_.deadlock_after);
  return at;
}

// ------------------------------------------------------------------ reports

namespace {

RunLook::Part part_look(std::uint32_t index, const StepShape::Partition& part) {
  return {index, part.task, part.device, !part.feeds.empty() || !part.fetches.empty()};
}

}  // namespace

std::vector<RunLook> Coordinator::looks(Instant now) const {
  const Turns turns = this->turns();
  std::vector<RunLook> all;
  for (const RunId& id : runs_.ids()) {
    const Run& run = runs_.at(id);
    RunLook& look = all.emplace_back();
    look.run = id;
    look.attempt = run.attempt.id;
    look.age = now - run.came;
    look.attempt_age = now - run.began;
    if (run.deadline != kNever) look.left = std::max(Instant{}, run.deadline - now);
    look.computes = run.phase() == Phase::running || run.phase() == Phase::aborting;
    look.turn = turn_of(run, turns);
    if (run.phase() == Phase::preparing || run.phase() == Phase::applying)
      look.unanswered = unanswered();
    if (const auto mutex = turns.mutexes.find(id); mutex != turns.mutexes.end()) {
      look.node = mutex->second.use->node;
      look.op = mutex->second.use->op;
      look.site = mutex->second.use->site;
    }
    if (!look.computes) continue;
    for (std::uint32_t p = 0; p < run.step->partitions.size(); ++p)
      if (!run.done.contains(p)) look.parts.push_back(part_look(p, run.step->partitions[p]));
  }
  return all;
}

// Of a mutex with the run before it and the node that acquires it.
Coordinator::Turns Coordinator::turns() const {
  Turns turns{{}, runs_.computing(), alone()};
  MutexTurns::Line line(mutexes_);
  for (const RunId& id : runs_.queued()) {
    const MutexUses& wanted = runs_.at(id).step->mutexes;
    if (const MutexUse* use = line.obstacle(wanted)) {
      const RunId before = *line.before(use->mutex);
      const std::string other =
          before.session == id.session ? "step " + std::to_string(before.n) : step_name(before);
      turns.mutexes[id] = {use,
                           use->mutex.text() + (mutexes_.holder(use->mutex)
                                                    ? ", which " + other + " holds"
                                                    : ", for which " + other + " waits before it")};
    }
    line.waits(id, wanted);
  }
  return turns;
}

// Who has not answered the current round of PREPARE.
std::vector<TaskId> Coordinator::unanswered() const {
  std::vector<TaskId> tasks;
  if (round_.open())
    for (const auto& [task, prepare] : round_.unanswered())
      if (members_.contains(task)) tasks.push_back(task);
  return tasks;
}

// What the run waits for at the master; empty while it computes.
std::string Coordinator::turn_of(const Run& run, const Turns& turns) const {
  switch (run.phase()) {
    case Phase::running:
    case Phase::aborting:
      return {};
    case Phase::queued:
      if (!places_.free(run.step->datasets))
        return "the run whose loops take elements of its dataset";
      if (const auto mutex = turns.mutexes.find(run.id); mutex != turns.mutexes.end())
        return mutex->second.text;
      if (!run.resume && runs_.restoring()) return "the run that restores the job";
      return "one of the " + std::to_string(turns.computing) +
             " runs that compute to end: no more do at one time";
    case Phase::victim:
      return "its turn: it was withdrawn, since runs waited for each other";
    case Phase::ready:
      if (turns.alone && turns.alone != &run)
        return step_name(turns.alone->id) + ", which has the commit numbers to itself";
      if (granted_ && granted_ != &run)
        return step_name(granted_->id) + ", which has the next commit number";
      if (round_.open() && round_.what().run != run.id)
        return step_name(round_.what().run) + ", which is being committed";
      return "a commit number";
    case Phase::preparing:
    case Phase::applying:
      break;
  }
  std::string tasks;
  for (const TaskId task : unanswered())
    tasks += (tasks.empty() ? "worker " : " and worker ") + members_.at(task).name;
  if (tasks.empty()) tasks = "its tasks";
  return tasks +
         (run.phase() == Phase::preparing ? " to stage its writes" : " to apply its writes");
}

void Coordinator::lost_message(const RunId& id, const AttemptId& attempt, std::uint32_t partition,
                               const Status& why, Instant now, Outputs& out) {
  const Run* run = runs_.find(id, attempt);
  if (!run || partition >= run->step->partitions.size() || run->done.contains(partition)) return;
  if (run->phase() != Phase::running && run->phase() != Phase::aborting) return;
  const TaskId task = run->step->partitions[partition].task;
  out.push_back(Expel{task, why});
  task_lost(task, why, now, out);
}

std::string Coordinator::text() const {
  const Turns turns = this->turns();
  std::string text;
  for (const auto& [id, run] : runs_) {
    text += run.text();
    if (run.phase() == Phase::queued && !places_.free(run.step->datasets))
      text += ", waits for the run whose loops take elements of its dataset";
    if (const auto mutex = turns.mutexes.find(id); mutex != turns.mutexes.end())
      text += ", waits for " + mutex->second.text;
    text += "\n";
  }
  if (round_.open(StageOrder::withdraw))
    text += "number " + std::to_string(round_.what().s) + " is taken back from " +
            step_name(round_.what().run) + "\n";
  return text;
}

Coordinator::Tables Coordinator::tables() const {
  Tables t;
  t.runs = runs_.size();
  t.undecided = round_.open() ? 1u : 0u;
  t.last_writers = last_writes_.size();
  t.answers = sessions_.size();
  t.blocked = blocked_.count();
  t.elements = places_.held();
  t.mutexes = mutexes_.held();
  return t;
}

}  // namespace troupe
