// VariableStore: reads of a snapshot, with or without the run's own writes.
#include "actors/resources/variable_reads.hpp"

#include <algorithm>
#include <set>

#include "actors/resources/variable_store.hpp"

namespace troupe {

Status uninitialised(const std::string& variable) {
  return failed_precondition("Attempting to use uninitialized value " + variable +
                             ": Session::init() gives variables their first values");
}

void VariableStore::read(ReadRequest request, Outputs& out) {
  if (Status s = refusal(request.attempt); !s.ok()) {
    out.push_back(ReadReply{request.id, s, {}, {}});
    return;
  }
  hear(request.attempt, out);
  if (!try_read(request, out)) waiting_.push_back(std::move(request));
}

void VariableStore::serve_reads(Outputs& out) {
  std::deque<ReadRequest> waiting;
  waiting.swap(waiting_);
  for (ReadRequest& request : waiting) {
    if (Status s = refusal(request.attempt); !s.ok())
      out.push_back(ReadReply{request.id, s, {}, {}});
    else if (!try_read(request, out))
      waiting_.push_back(std::move(request));
  }
}

// The writes of the run that a read sees and that affect its variables, in log order. False if one
// of them is not complete.
bool VariableStore::own_writes(const ReadRequest& request,
                               std::vector<const Write*>& writes) const {
  auto log = logs_.find(request.attempt.id);
  if (request.after.empty() || log == logs_.end()) return true;
  std::set<std::string_view> wanted(request.names.begin(), request.names.end());
  // Backwards: a rule may read all its targets, so earlier writes to them matter, too.
  for (auto w = log->second.writes.rbegin(); w != log->second.writes.rend(); ++w) {
    if (std::find(request.after.begin(), request.after.end(), w->node) == request.after.end())
      continue;
    if (w->contributions.count(request.replica) == 0 && !w->rule->some_replicas) continue;
    const auto& targets = w->rule->targets;
    if (std::none_of(targets.begin(), targets.end(),
                     [&](const std::string& t) { return wanted.count(t) != 0; }))
      continue;
    if (!w->complete() || w->is_joined == Write::Joined::soon) return false;
    wanted.insert(targets.begin(), targets.end());
    writes.insert(writes.begin(), &*w);
  }
  return true;
}

bool VariableStore::applied_up_to(const std::string& name, CommitNumber snapshot) const {
  for (const Record& record : committing_) {
    if (record.s > snapshot) break;
    if (record.metas.count(name) != 0) return false;
  }
  return true;
}

Expected<Tensor> VariableStore::value_at(const std::string& name, CommitNumber snapshot) const {
  const Variable& v = variables_.find(name)->second;
  for (auto version = v.versions.rbegin(); version != v.versions.rend(); ++version)
    if (version->s <= snapshot) {
      if (version->until != 0 && version->until <= snapshot) break;
      return version->value;
    }
  if (!v.initialised || v.since > snapshot) return uninitialised(name);
  // Only an ended attempt can request a dropped value.
  return aborted("snapshot " + std::to_string(snapshot) + " of '" + name + "' is gone");
}

// False if the read must wait.
bool VariableStore::try_read(const ReadRequest& request, Outputs& out) {
  auto reply = [&](Status status, std::vector<Tensor> values = {}) {
    out.push_back(ReadReply{request.id, std::move(status), std::move(values), {}});
    return true;
  };
  for (const std::string& name : request.names)
    if (variables_.count(name) == 0)
      return reply(not_found("no variable '" + name + "' in " + name_));
  std::vector<const Write*> writes;
  if (!own_writes(request, writes)) return false;
  std::set<std::string_view> needed(request.names.begin(), request.names.end());
  for (const Write* w : writes) needed.insert(w->rule->targets.begin(), w->rule->targets.end());
  for (std::string_view name : needed)
    if (!applied_up_to(std::string(name), request.attempt.snapshot)) {
      apply_next(true, out);
      return false;
    }
  if (request.initialised_only) {
    std::vector<Tensor> values;
    for (const std::string& name : request.names) {
      bool mine = std::any_of(writes.begin(), writes.end(), [&](const Write* w) {
        return std::count(w->rule->targets.begin(), w->rule->targets.end(), name) != 0;
      });
      values.push_back(Tensor::scalar<bool>(mine || value_at(name, request.attempt.snapshot).ok()));
    }
    return reply(ok_status(), std::move(values));
  }
  if (!writes.empty()) {
    Status s = start_preview(request, writes, out);
    return s.ok() ? true : reply(s);
  }
  std::vector<Tensor> values;
  for (const std::string& name : request.names) {
    auto value = value_at(name, request.attempt.snapshot);
    if (!value.ok()) return reply(value.status());
    values.push_back(std::move(value).value());
  }
  return reply(ok_status(), std::move(values));
}

// Applies the run's own writes to copies of the snapshot.
Status VariableStore::start_preview(const ReadRequest& request,
                                    const std::vector<const Write*>& writes, Outputs& out) {
  Task task{next_task_, 0, {}, {}};
  Preview preview{request, {}};
  if (const AttemptLog* log = find_log(request.attempt.id)) TROUPE_TRY(log->failed);
  Names names(preview.names);
  for (const Write* w : writes) task.reductions.push_back(reduction_of(*w, names));
  for (const std::string& name : preview.names) {
    auto value = value_at(name, request.attempt.snapshot);
    if (!value.ok() && value.status().code() != Code::failed_precondition) return value.status();
    // May be uninitialised: the first write gives it a value.
    task.variables.push_back({name,
                              variables_.find(name)->second.spec.dtype,
                              value.ok() ? std::move(value).value() : Tensor{},
                              false,
                              {}});
  }
  TROUPE_TRY(check_preview(task));
  ++next_task_;
  previews_.emplace(task.id, std::move(preview));
  out.push_back(std::move(task));
  return ok_status();
}

// Writes were checked against committed state, which may be newer than the snapshot: a variable
// with a value now may have had none then.
Status VariableStore::check_preview(const Task& task) const {
  std::vector<VariableMeta> metas;
  for (const TaskVariable& v : task.variables)
    metas.push_back({v.name, v.dtype, variables_.find(v.name)->second.spec.shape, v.value.defined(),
                     v.value.defined() ? v.value.shape() : Shape{}});
  if (std::all_of(metas.begin(), metas.end(), [](const auto& m) { return m.initialised; }))
    return ok_status();
  for (const WriteReduction& write : task.reductions) {
    std::vector<VariableMeta> targets;
    for (std::uint32_t t : write.targets) targets.push_back(metas[t]);
    TROUPE_TRY(rules_.check({{}, write.rule, write.contributions.front()}, targets));
    for (std::size_t i = 0; i < targets.size(); ++i) metas[write.targets[i]] = targets[i];
  }
  return ok_status();
}

Expected<std::vector<Tensor>> VariableStore::with_own_writes(const Preview& preview,
                                                             std::vector<Tensor> applied) const {
  TROUPE_CHECK(applied.size() == preview.names.size(), "one value for each variable of the task");
  std::vector<Tensor> values;
  for (const std::string& name : preview.request.names) {
    auto at = std::find(preview.names.begin(), preview.names.end(), name);
    if (at != preview.names.end()) {
      values.push_back(applied[std::size_t(at - preview.names.begin())]);
      continue;
    }
    TROUPE_TRY(Tensor value, value_at(name, preview.request.attempt.snapshot));
    values.push_back(std::move(value));
  }
  return values;
}

}  // namespace troupe
