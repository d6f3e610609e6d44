// Of the coordinator: who waits, who waits for each other, and what happens as time passes.
#include <algorithm>

#include "actors/master/coordinator.hpp"

namespace troupe {
namespace {

// The idle COMMIT has no answer: it is repeated, ever later, so that a lost one does no harm.
constexpr int kLiveRepeats = 6;
// Reports of blocked attempts are repeated every 50 ms; older ones are no longer believed.
constexpr Instant kReportLife = std::chrono::milliseconds(200);

}  // namespace

// ------------------------------------------------------------------ waiting and deadlock

void Coordinator::blocked(const BlockedReport& message, Instant now, Outputs& out) {
  if (message.view != options_.view || members_.count(message.shard) == 0) return;
  Report& report = blocked_[message.shard];
  if (message.sequence <= report.sequence) return;
  report = {message.sequence, now, message.waiting, message.marked};
  std::set<AttemptId> attempts;  // of runs; what else it may name is nobody's
  for (const auto& [id, run] : runs_) attempts.insert(run.attempt.id);
  std::erase_if(report.waiting, [&](const AttemptId& a) { return attempts.count(a) == 0; });
  std::erase_if(report.marked, [&](const RunId& id) { return runs_.count(id) == 0; });
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
  // A step with the fast path asks no queue for anything, whatever a worker says.
  for (auto& [id, run] : runs_)
    run.waiting = !run.step->fast_path && waiting.count(run.attempt.id) != 0;
}

// Waiting runs that hold marks can wait for each other. All waiting runs but the oldest holder are
// withdrawn and started again one by one: withdrawing the holders alone would hand their elements
// to the next waiter, which is then stuck in their place.
void Coordinator::break_deadlock(Instant now, Outputs& out) {
  if (now - last_progress_ < options_.deadlock_after || in_round()) return;
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
    else if (run.deadline <= now && run.phase != Phase::aborting && run.phase != Phase::applying)
      fail(run, deadline_exceeded("the deadline of " + step_name(id) + " has passed"), now, out);
    else if (run.resend_at <= now && run.phase != Phase::preparing)
      resend(run, now, out);
  }
  if (round_resend_at_ <= now) {
    if (in_round()) send_prepares(out);
    round_resend_after_ = std::min(round_resend_after_ * 2, options_.resend_max);
    round_resend_at_ = now + round_resend_after_;
  }
  expel_late_shards(now, out);
  break_deadlock(now, out);
  settle(now, out);
}

void Coordinator::resend(Run& run, Instant now, Outputs& out) {
  if (run.phase == Phase::running) send_starts(run, out);
  if (run.phase == Phase::running && run.revoking && granted_ == &run) revoke(run, out);
  if (run.phase == Phase::aborting) send_aborts(run, run.cause, out);
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
    if (in_attempt(run))
      list.live.push_back({run.attempt.id.a, id, run.attempt.marks_from, run.attempt.snapshot});
  std::sort(list.live.begin(), list.live.end(),
            [](const LiveAttempt& a, const LiveAttempt& b) { return a.a < b.a; });
  for (const auto& [process, member] : members_) out.push_back(SendLive{process, list});
  live_at_ = live_repeats_ > 0 ? now + options_.idle_commit * (1 << (kLiveRepeats - live_repeats_))
                               : kNever;
  --live_repeats_;
}

Instant Coordinator::next_wakeup() const {
  Instant at = live_at_;
  if (in_round()) at = std::min({at, round_resend_at_, round_until_});
  bool watch = false;
  for (const auto& [id, run] : runs_) {
    if (run.phase == Phase::aborting)
      at = std::min(at, run.abort_until);
    else if (run.phase != Phase::applying)
      at = std::min(at, run.deadline);
    if (run.phase == Phase::running || run.phase == Phase::aborting)
      at = std::min(at, run.resend_at);
    watch |= run.waiting || run.phase == Phase::victim;
  }
  for (const auto& [shard, report] : blocked_)
    if (!report.waiting.empty()) at = std::min(at, report.at + kReportLife);
  if (watch && !in_round()) at = std::min(at, last_progress_ + options_.deadlock_after);
  return at;
}

std::string Coordinator::text() const {
  static const char* const kPhases[] = {"queued",   "running",  "ready",    "preparing",
                                        "applying", "aborting", "withdrawn"};
  std::string text;
  for (const auto& [id, run] : runs_) {
    text += step_name(id) + ": " + kPhases[std::size_t(run.phase)];
    if (in_attempt(run)) text += " in attempt " + run.attempt.id.text();
    if (run.phase == Phase::running)
      text += ", " + std::to_string(run.done.size()) + " of " +
              std::to_string(run.step->partitions.size()) + " partitions done";
    if (run.waiting) text += ", waits for a queue";
    if (run.phase == Phase::queued && !places_.free(run.step->datasets))
      text += ", waits for the run whose loops take elements of its dataset";
    if (run.conflicts > 0) text += ", overtaken " + std::to_string(run.conflicts) + " times";
    if (run.grant != 0) text += ", holds number " + std::to_string(run.grant);
    text += "\n";
  }
  if (withdrawing_)
    text += "number " + std::to_string(withdrawing_->s) + " is taken back from " +
            step_name(withdrawing_->run) + "\n";
  return text;
}

Coordinator::Tables Coordinator::tables() const {
  Tables t;
  t.runs = runs_.size();
  t.undecided = in_round() ? 1u : 0u;
  t.last_writers = last_write_.size() + last_enqueue_.size();
  for (const auto& [id, session] : sessions_) t.answers += session.answers.size();
  for (const auto& [shard, report] : blocked_) t.blocked += report.waiting.size();
  t.elements = places_.held();
  return t;
}

}  // namespace troupe
