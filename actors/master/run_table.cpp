#include "actors/master/run_table.hpp"

namespace troupe {

std::string step_name(const RunId& run) {
  return "step " + std::to_string(run.n) + " of session " + std::to_string(run.session);
}

// ------------------------------------------------------------------ one run

bool RunTable::Run::in_attempt() const {
  return phase_ == Phase::running || phase_ == Phase::ready || phase_ == Phase::preparing ||
         phase_ == Phase::aborting;
}

bool RunTable::Run::wrote() const {
  return std::any_of(done.begin(), done.end(), [](const auto& part) {
    const std::vector<ResourceWrites>& writes = part.second.writes;
    return std::any_of(writes.begin(), writes.end(), [](const auto& w) { return w.keys > 0; });
  });
}

std::vector<Fetched> RunTable::Run::fetches() const {
  std::vector<Fetched> all;
  for (const auto& [p, part] : done)
    all.insert(all.end(), part.fetches.begin(), part.fetches.end());
  std::sort(all.begin(), all.end(),
            [](const Fetched& a, const Fetched& b) { return a.index < b.index; });
  return all;
}

std::map<ResourceId, std::uint32_t> RunTable::Run::keys(bool outside) const {
  std::map<ResourceId, std::uint32_t> keys;
  for (const auto& [p, part] : done)
    for (const ResourceWrites& w : part.writes)
      if (w.keys > 0 && (!outside || w.outside)) keys[w.resource] += w.keys;
  return keys;
}

std::vector<std::uint64_t> RunTable::Run::used_elements() const {
  std::vector<std::uint64_t> used(step->datasets.size(), 0);
  for (const auto& [p, part] : done) {
    const std::vector<std::uint32_t>& datasets = step->partitions[p].datasets;
    for (std::size_t i = 0; i < datasets.size() && i < part.elements.size(); ++i)
      used[datasets[i]] = std::max(used[datasets[i]], part.elements[i]);
  }
  return used;
}

std::string RunTable::Run::text() const {
  static const char* const kPhases[] = {"queued",   "running",  "ready",    "preparing",
                                        "applying", "aborting", "withdrawn"};
  std::string text = step_name(id) + ": " + kPhases[std::size_t(phase_)];
  if (in_attempt()) text += " in attempt " + attempt.id.text();
  if (phase_ == Phase::running)
    text += ", " + std::to_string(done.size()) + " of " + std::to_string(step->partitions.size()) +
            " partitions done";
  if (waiting_) text += ", waits for a queue";
  if (conflicts_ > 0) text += ", overtaken " + std::to_string(conflicts_) + " times";
  if (grant != 0) text += ", holds number " + std::to_string(grant);
  return text;
}

// ------------------------------------------------------------------ changes

RunTable::Run& RunTable::add(RunId id) {
  auto [at, added] = runs_.try_emplace(id);
  TROUPE_CHECK(added, "a run is added once");
  Run& run = at->second;
  run.id = id;
  run.order = next_order_++;
  run.in_phase_ = append(phases_[std::size_t(run.phase_)], run);
  return run;
}

void RunTable::erase(const RunId& id) {
  const auto at = runs_.find(id);
  if (at == runs_.end()) return;
  Run& run = at->second;
  leave_attempt(run);
  stop_resends(run);
  look_at(run, kNever);
  set_waiting(run, false);
  if (run.conflicts_ > 0) --contended_;
  drop(phases_[std::size_t(run.phase_)], run.in_phase_);
  runs_.erase(at);
}

void RunTable::move(Run& run, Phase phase) {
  TROUPE_CHECK(phase != Phase::queued && phase != Phase::running, "these two begin otherwise");
  if (phase == Phase::applying || phase == Phase::victim) leave_attempt(run);
  if (phase != Phase::aborting) stop_resends(run);
  set_waiting(run, false);
  enter(run, phase);
  if (!run.may_time_out()) look_at(run, kNever);
}

void RunTable::begin_attempt(Run& run, Instant now, Instant resend_after) {
  leave_attempt(run);
  stop_resends(run);
  set_waiting(run, false);
  TROUPE_CHECK(attempts_.empty() || (attempts_.back()->attempt.id.a < run.attempt.id.a &&
                                     attempts_.back()->attempt.snapshot <= run.attempt.snapshot),
               "a new attempt is of the newest state");
  run.in_attempts_ = append(attempts_, run);
  run.keeps_marks_ = run.attempt.marks_from != run.attempt.id.a;
  if (run.keeps_marks_) ++keeping_marks_;
  enter(run, Phase::running);
  send_again(run, now, resend_after);
}

void RunTable::sent_again(Run& run, Instant now, Instant most) {
  if (!run.resent()) return;
  stop_resends(run);
  send_again(run, now, std::min(run.resend_after_ * 2, most));
}

void RunTable::look_at(Run& run, Instant deadline) {
  TROUPE_CHECK(deadline == kNever || run.may_time_out(), "a run that ends has no deadline");
  if (run.deadline_at_ == deadline) return;
  if (run.deadline_at_ != kNever) deadlines_.erase({run.deadline_at_, run.id});
  run.deadline_at_ = deadline;
  if (deadline != kNever) deadlines_.emplace(deadline, run.id);
}

void RunTable::set_waiting(Run& run, bool waiting) {
  if (run.waiting_ == waiting) return;
  TROUPE_CHECK(!waiting || run.phase_ == Phase::running, "runs that wait run");
  run.waiting_ = waiting;
  waiting ? ++waiting_ : --waiting_;
}

void RunTable::count_conflict(Run& run) {
  if (run.conflicts_++ == 0) ++contended_;
}

RunTable::Runs::iterator RunTable::append(Runs& to, Run& run) {
  if (spare_.empty()) return to.insert(to.end(), &run);
  spare_.front() = &run;
  to.splice(to.end(), spare_, spare_.begin());
  return std::prev(to.end());
}

void RunTable::enter(Run& run, Phase phase) {
  Runs& to = phases_[std::size_t(phase)];
  to.splice(to.end(), phases_[std::size_t(run.phase_)], run.in_phase_);
  run.phase_ = phase;
}

void RunTable::send_again(Run& run, Instant now, Instant after) {
  run.resend_after_ = after;
  run.resend_at_ = now + after;
  run.in_resends_ = append(resends(after), run);
}

RunTable::Runs& RunTable::resends(Instant after) {
  for (Resends& each : resends_)
    if (each.after == after) return each.runs;
  resends_.push_back({after, {}});
  return resends_.back().runs;
}

void RunTable::leave_attempt(Run& run) {
  if (!run.in_attempt()) return;
  drop(attempts_, run.in_attempts_);
  if (run.keeps_marks_) --keeping_marks_;
}

void RunTable::stop_resends(Run& run) {
  if (!run.resent()) return;
  drop(resends(run.resend_after_), run.in_resends_);
}

// ------------------------------------------------------------------ all of them

RunTable::Run* RunTable::find(const RunId& id) {
  auto at = runs_.find(id);
  return at == runs_.end() ? nullptr : &at->second;
}

RunTable::Run* RunTable::find(const RunId& id, const AttemptId& attempt) {
  Run* run = find(id);
  return run && run->attempt.id == attempt ? run : nullptr;
}

bool RunTable::of_session(std::uint64_t session) const {
  auto first = runs_.lower_bound(RunId{session, 0});
  return first != runs_.end() && first->first.session == session;
}

std::vector<RunId> RunTable::by_arrival(std::vector<const Run*>& runs) {
  std::sort(runs.begin(), runs.end(),
            [](const Run* a, const Run* b) { return a->order < b->order; });
  std::vector<RunId> ids;
  for (const Run* run : runs) ids.push_back(run->id);
  return ids;
}

std::vector<RunId> RunTable::due(Instant now) const {
  std::vector<const Run*> due;
  for (auto at = deadlines_.begin(); at != deadlines_.end() && at->first <= now; ++at)
    due.push_back(&runs_.at(at->second));
  for (const Resends& each : resends_)
    for (auto at = each.runs.begin(); at != each.runs.end() && (*at)->resend_at_ <= now; ++at)
      if ((*at)->deadline_at_ > now) due.push_back(*at);
  return by_arrival(due);
}

Instant RunTable::next_due() const {
  Instant at = deadlines_.empty() ? kNever : deadlines_.begin()->first;
  for (const Resends& each : resends_)
    if (!each.runs.empty()) at = std::min(at, each.runs.front()->resend_at_);
  return at;
}

void RunTable::queued(std::vector<RunId>& ids) const {
  ids.clear();
  for (const Run* run : in_phase(Phase::queued)) ids.push_back(run->id);
}

RunTable::Run* RunTable::first_in(Phase phase) {
  Run* first = nullptr;
  for (Run* run : in_phase(phase))
    if (!first || run->order < first->order) first = run;
  return first;
}

// A job is restored before anything else runs.
bool RunTable::restoring() const {
  return runs_.size() > 0 && std::any_of(phases_.begin(), phases_.end(), [](const Runs& runs) {
           return !runs.empty() && runs.front()->resume != nullptr;
         });
}

CommitNumber RunTable::oldest_snapshot(CommitNumber decided) const {
  return attempts_.empty() ? decided : std::min(decided, attempts_.front()->attempt.snapshot);
}

// Attempts are in order, and so are their marks, but for those that kept older ones.
std::uint64_t RunTable::marks_of_session(std::uint64_t session, std::uint64_t from) const {
  for (const Run* run : attempts_) {
    if (run->id.session != session) continue;
    from = std::min(from, run->attempt.marks_from);
    if (keeping_marks_ == 0) break;
  }
  return from;
}

std::uint64_t RunTable::unused_random_index(const Run& run, std::uint64_t first) const {
  std::set<std::uint64_t> taken;
  for (auto at = attempts_.rbegin(); at != attempts_.rend(); ++at) {
    if ((*at)->attempt.snapshot != run.attempt.snapshot) break;
    if (*at != &run) taken.insert((*at)->random_index);
  }
  std::uint64_t k = first;
  while (taken.count(k) != 0) ++k;
  return k;
}

std::vector<LiveAttempt> RunTable::live() const {
  std::vector<LiveAttempt> live;
  live.reserve(attempts_.size());
  for (const Run* run : attempts_)
    live.push_back({run->attempt.id.a, run->id, run->attempt.marks_from, run->attempt.snapshot});
  return live;
}

}  // namespace troupe
