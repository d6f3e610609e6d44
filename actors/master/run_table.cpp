#include "actors/master/run_table.hpp"

namespace troupe {

std::string step_name(const RunId& run) {
  return "step " + std::to_string(run.n) + " of session " + std::to_string(run.session);
}

// ------------------------------------------------------------------ one run

bool RunTable::Run::in_attempt() const {
  return phase == Phase::running || phase == Phase::ready || phase == Phase::preparing ||
         phase == Phase::aborting;
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
  std::string text = step_name(id) + ": " + kPhases[std::size_t(phase)];
  if (in_attempt()) text += " in attempt " + attempt.id.text();
  if (phase == Phase::running)
    text += ", " + std::to_string(done.size()) + " of " + std::to_string(step->partitions.size()) +
            " partitions done";
  if (waiting) text += ", waits for a queue";
  if (conflicts > 0) text += ", overtaken " + std::to_string(conflicts) + " times";
  if (grant != 0) text += ", holds number " + std::to_string(grant);
  return text;
}

// ------------------------------------------------------------------ all of them

RunTable::Run& RunTable::add(RunId id) {
  auto [at, added] = runs_.try_emplace(id);
  TROUPE_CHECK(added, "a run is added once");
  at->second.id = id;
  at->second.order = next_order_++;
  return at->second;
}

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

RunTable::Run* RunTable::first_in(Phase phase) {
  Run* first = nullptr;
  for (auto& [id, run] : runs_)
    if (run.phase == phase && (!first || run.order < first->order)) first = &run;
  return first;
}

bool RunTable::restoring() const {
  return std::any_of(runs_.begin(), runs_.end(),
                     [](const auto& entry) { return entry.second.resume != nullptr; });
}

std::size_t RunTable::computing() const {
  return std::size_t(std::count_if(runs_.begin(), runs_.end(), [](const auto& entry) {
    return entry.second.phase == Phase::running && !entry.second.waiting;
  }));
}

CommitNumber RunTable::oldest_snapshot(CommitNumber decided) const {
  CommitNumber least = decided;
  for (const auto& [id, run] : runs_)
    if (run.in_attempt()) least = std::min(least, run.attempt.snapshot);
  return least;
}

std::uint64_t RunTable::marks_of_session(std::uint64_t session, std::uint64_t from) const {
  for (auto at = runs_.lower_bound(RunId{session, 0});
       at != runs_.end() && at->first.session == session; ++at)
    if (at->second.in_attempt()) from = std::min(from, at->second.attempt.marks_from);
  return from;
}

std::uint64_t RunTable::unused_random_index(const Run& run, std::uint64_t first) const {
  std::set<std::uint64_t> taken;
  for (const auto& [id, other] : runs_)
    if (&other != &run && other.in_attempt() && other.attempt.snapshot == run.attempt.snapshot)
      taken.insert(other.random_index);
  std::uint64_t k = first;
  while (taken.count(k) != 0) ++k;
  return k;
}

std::vector<LiveAttempt> RunTable::live() const {
  std::vector<LiveAttempt> live;
  for (const auto& [id, run] : runs_)
    if (run.in_attempt())
      live.push_back({run.attempt.id.a, id, run.attempt.marks_from, run.attempt.snapshot});
  std::sort(live.begin(), live.end(),
            [](const LiveAttempt& a, const LiveAttempt& b) { return a.a < b.a; });
  return live;
}

}  // namespace troupe
