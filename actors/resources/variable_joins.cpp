// VariableStore: joining the contributions of replicas to a write.
#include <algorithm>

#include "actors/resources/variable_store.hpp"

namespace troupe {

// Moves the contributions out of the write, in replica order; only the first if the rule uses that.
std::vector<std::vector<Tensor>> VariableStore::operands_of(Write& write) {
  std::vector<std::vector<Tensor>> all;
  for (auto& [replica, contribution] : write.contributions) {
    all.push_back(std::move(contribution.operands));
    if (write.rule->combine == Combine::first) break;
  }
  return all;
}

// Starts joins for writes with all their contributions. For a write in a branch this is known only
// when the run is done (`all`).
void VariableStore::start_joins(const AttemptId& attempt, AttemptLog& log, bool all, Outputs& out) {
  Join join{next_task_, {}};
  JoinUnderWay under_way{attempt, {}};
  const auto can_join = [&](std::size_t i) {
    return all || log.writes[i].contributions.size() == log.writes[i].rule->replicas;
  };
  const auto rest = std::stable_partition(log.to_join.begin(), log.to_join.end(), can_join);
  const std::vector<std::size_t> now(log.to_join.begin(), rest);
  log.to_join.erase(log.to_join.begin(), rest);
  for (std::size_t i : now) {
    Write& w = log.writes[i];
    w.is_joined = Write::Joined::soon;
    under_way.parts.push_back({i, w.contributions.begin()->second.operands.size()});
    join.writes.push_back({w.rule, operands_of(w), {}, {}});
  }
  if (join.writes.empty()) return;
  ++next_task_;
  ++log.joining;
  joins_.emplace(join.id, std::move(under_way));
  out.push_back(std::move(join));
}

bool VariableStore::ready_to_stage(const AttemptId& attempt, AttemptLog& log, Outputs& out) {
  start_joins(attempt, log, true, out);
  return log.joining == 0;
}

void VariableStore::joined(const JoinUnderWay& join, Expected<std::vector<Tensor>> values,
                           Outputs& out) {
  AttemptLog* log = find_log(join.attempt);
  if (!log) return;  // the attempt is over
  --log->joining;
  if (!values.ok() && log->failed.ok()) log->failed = values.status();
  std::size_t next = 0;
  for (const JoinUnderWay::Part& part : join.parts) {
    Write& w = log->writes[part.write];
    w.is_joined = Write::Joined::yes;
    for (std::size_t o = 0; values.ok() && o < part.operands; ++o)
      w.joined.push_back(std::move((*values)[next++]));
  }
  try_stage(out);
  serve_reads(out);
  serve_writes(out);
}

}  // namespace troupe
