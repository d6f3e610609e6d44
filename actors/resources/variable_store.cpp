#include "actors/resources/variable_store.hpp"

#include <algorithm>
#include <set>

#include "core/hash.hpp"

namespace troupe {
namespace {

Status over_status(const AttemptInfo& attempt) {
  return aborted("attempt " + attempt.id.text() + " is over");
}

std::uint64_t hash_shape(std::uint64_t h, const Tensor& t) {
  h = hash_combine(h, std::uint64_t(t.dtype()));
  for (std::int64_t d : t.shape().dims()) h = hash_combine(h, std::uint64_t(d));
  return hash_combine(h, std::uint64_t(t.rank()));
}

// "variable 'w'", or "variable 'w' and 3 more".
std::string variables_of(const std::vector<std::string>& names) {
  if (names.empty()) return "no variable";
  const std::size_t more = names.size() - 1;
  return "variable '" + names.front() + "'" +
         (more > 0 ? " and " + std::to_string(more) + " more" : "");
}

}  // namespace

const VariableTypes::Write* VariableTypes::AttemptLog::find(const WriteKey& key) const {
  const auto at = places.find({key.node, key.iterations});
  return at == places.end() ? nullptr : &writes[at->second];
}

VariableStore::VariableStore(std::string name, const UpdateRules& rules,
                             std::uint64_t most_unapplied)
    : name_(std::move(name)), rules_(rules), most_unapplied_(most_unapplied) {}

Status VariableStore::declare(const VariableSpec& spec) {
  auto [at, inserted] = variables_.try_emplace(spec.name);
  if (inserted) {
    at->second.spec = spec;
    return ok_status();
  }
  const VariableSpec& known = at->second.spec;
  if (known.dtype == spec.dtype && known.shape == spec.shape) return ok_status();
  return already_exists("variable '" + spec.name + "' exists as " +
                        std::string(dtype_name(known.dtype)) + known.shape.text() +
                        " and is declared as " + std::string(dtype_name(spec.dtype)) +
                        spec.shape.text());
}

Status VariableStore::restore(CommitNumber committed,
                              const std::vector<std::pair<std::string, Tensor>>& values) {
  TROUPE_CHECK(tables().empty(), "restore needs a container at rest");
  for (const auto& [name, value] : values) {
    auto at = variables_.find(name);
    if (at == variables_.end()) return not_found("no variable '" + name + "' in " + name_);
    const VariableSpec& spec = at->second.spec;
    if (spec.dtype != value.dtype() || !spec.shape.accepts(value.shape()))
      return invalid_argument("variable '" + name + "' is " + std::string(dtype_name(spec.dtype)) +
                              spec.shape.text() + " and cannot hold " +
                              std::string(dtype_name(value.dtype())) + value.shape().text());
  }
  for (const auto& [name, value] : values) {
    Variable& v = variables_.find(name)->second;
    v.initialised = true;
    v.shape = value.shape();
    v.since = committed;
    v.versions.assign(1, Version{committed, value, 0});
  }
  committed_ = std::max(committed_, committed);
  return ok_status();
}

// ------------------------------------------------------------------ what every request brings

Status VariableStore::refusal(const AttemptInfo& attempt) const {
  if (!broken_.ok()) return broken_;
  return live_.over(attempt.id) ? over_status(attempt) : ok_status();
}

void VariableStore::hear(const AttemptInfo& attempt, Outputs& out) {
  raise_min_live(attempt.min_live);
  learn(attempt.snapshot, out);
  apply_next(false, out);
}

void VariableStore::raise_min_live(CommitNumber min_live) {
  if (min_live <= min_live_) return;
  min_live_ = min_live;
  prune_all();
}

// Whether the value of commit `from`, replaced by commit `before`, may still be read.
bool VariableStore::may_be_read(CommitNumber from, CommitNumber before) const {
  return live_.may_read(std::max(from, min_live_), before);
}

void VariableStore::prune(Variable& v) const {
  if (v.versions.size() < 2) return;
  std::erase_if(v.versions, [&](const Version& version) {
    return version.until != 0 && !may_be_read(version.s, version.until);
  });
}

void VariableStore::prune_all() {
  std::erase_if(with_old_, [&](Variable* v) {
    prune(*v);
    return v->versions.size() < 2;
  });
}

// ------------------------------------------------------------------ writes

VariableMeta VariableStore::meta(const Variable& v) const {
  return {v.spec.name, v.spec.dtype, v.spec.shape, v.initialised, v.shape};
}

Status VariableStore::check_contribution(const LoggedWrite& write, const AttemptLog* log) const {
  if (!write.rule) return internal_error("a write without a rule");
  if (write.key.replica >= write.rule->replicas)
    return invalid_argument("replica " + std::to_string(write.key.replica) + " of " +
                            std::to_string(write.rule->replicas));
  const Write* known = log ? log->find(write.key) : nullptr;
  if (!known) return ok_status();
  if (known->is_joined != Write::Joined::no)
    return failed_precondition("a contribution came after the others were joined");
  const std::vector<Tensor>& first = known->contributions.begin()->second.operands;
  bool same = first.size() == write.operands.size();
  for (std::size_t i = 0; same && i < first.size(); ++i)
    same = first[i].dtype() == write.operands[i].dtype() &&
           (!joins_operands(write.rule->combine) || first[i].shape() == write.operands[i].shape());
  return same ? ok_status()
              : invalid_argument("the replicas' contributions differ in type or shape");
}

// Fills `metas` with the state of the targets after the writes of the request.
Status VariableStore::check(const LogRequest& request, const AttemptLog* log, Metas& metas) const {
  for (const LoggedWrite& write : request.writes) {
    std::string where = write.rule ? "in node '" + write.rule->node + "'" : name_;
    if (Status s = check_contribution(write, log); !s.ok()) return s.in(where);
    std::vector<VariableMeta> targets;
    for (const std::string& name : write.rule->targets) {
      auto at = variables_.find(name);
      if (at == variables_.end())
        return not_found("no variable '" + name + "' in " + name_).in(where);
      auto mine = metas.find(name);
      targets.push_back(mine != metas.end() ? mine->second : meta(at->second));
    }
    const std::vector<VariableMeta> before = targets;
    if (Status s = rules_.check(write, targets); !s.ok()) return s.in(where);
    for (std::size_t i = 0; i < targets.size(); ++i) {
      // Otherwise an update that was checked before could fail when it is applied.
      if (before[i].initialised && !(targets[i].shape == before[i].shape))
        return failed_precondition("variable '" + before[i].name + "' has shape " +
                                   before[i].shape.text() + " and cannot become " +
                                   targets[i].shape.text())
            .in(where);
      if (targets[i].initialised && !before[i].declared.accepts(targets[i].shape))
        return invalid_argument("variable '" + before[i].name + "' is declared " +
                                before[i].declared.text() + " and cannot hold " +
                                targets[i].shape.text())
            .in(where);
      metas.insert_or_assign(before[i].name, targets[i]);
    }
  }
  return ok_status();
}

// Writes were checked when they were logged. Another run, which this one did not see, may have
// given the variable its first value since, and so its shape.
Status VariableStore::check_shapes(const Metas& after) const {
  for (const auto& [name, wanted] : after) {
    const auto now = variables_.find(name);
    if (now == variables_.end() || !now->second.initialised || !wanted.initialised ||
        now->second.shape == wanted.shape)
      continue;
    return failed_precondition("variable '" + wanted.name + "' has shape " +
                               now->second.shape.text() + " by now and cannot become " +
                               wanted.shape.text());
  }
  return ok_status();
}

void VariableStore::append(AttemptLog& log, LoggedWrite write) {
  auto [at, added] =
      log.places.try_emplace({write.key.node, write.key.iterations}, log.writes.size());
  if (added) log.writes.push_back({write.key.node, write.key.iterations, write.rule});
  Write& known = log.writes[at->second];
  std::uint64_t hash = 0;
  for (const Tensor& t : write.operands) hash = hash_shape(hash, t);
  Contribution contribution{std::move(write.operands), hash};
  if (!known.contributions.emplace(write.key.replica, std::move(contribution)).second) return;
  ++log.keys;
  if (known.contributions.size() == 2 && joins_operands(known.rule->combine))
    log.to_join.push_back(at->second);
}

void VariableStore::log(LogRequest request, Outputs& out) {
  if (Status s = refusal(request.attempt); !s.ok()) {
    out.push_back(LogReply{request.id, s, 0});
    return;
  }
  hear(request.attempt, out);
  const AttemptId attempt = request.attempt.id;
  if (request.commit != 0 && request.commit == committed_ && last_fast_ == attempt) {
    out.push_back(LogReply{request.id, ok_status(), request.commit});
    return;
  }
  if (staged_ && staged_->attempt == attempt) {  // a repetition: all its keys were there
    out.push_back(LogReply{request.id, ok_status(), 0});
    return;
  }
  AttemptLog* log = find_log(attempt);
  const bool joining = request.commit != 0 && log && log->joining > 0;
  if (joining || hold_back(request)) {
    waiting_writes_.push_back(std::move(request));
    return apply_next(true, out);
  }
  std::erase_if(request.writes, [&](const LoggedWrite& write) {
    const Write* known = log ? log->find(write.key) : nullptr;
    return known && known->contributions.contains(write.key.replica);
  });
  Metas metas = log ? log->metas : Metas{};
  if (Status s = check(request, log, metas); !s.ok()) {
    out.push_back(LogReply{request.id, s, 0});
    return;
  }
  if (!log) log = &logs_[attempt];
  log->metas = std::move(metas);
  for (LoggedWrite& write : request.writes) append(*log, std::move(write));
  if (request.commit != 0) {
    log_and_commit(request, std::move(*log), out);
  } else {
    out.push_back(LogReply{request.id, ok_status(), 0});
    start_joins(attempt, *log, false, out);
    try_stage(out);
  }
  serve_reads(out);
}

// Otherwise commits that nobody reads could use up all memory.
bool VariableStore::hold_back(const LogRequest& request) const {
  return !request.writes.empty() && unapplied_ > most_unapplied_;
}

void VariableStore::serve_writes(Outputs& out) {
  std::deque<LogRequest> waiting;
  waiting.swap(waiting_writes_);
  for (LogRequest& request : waiting) log(std::move(request), out);
}

// The fast path. The number is taken last: after an earlier failure another run can use it.
void VariableStore::log_and_commit(const LogRequest& request, AttemptLog log, Outputs& out) {
  const AttemptId attempt = request.attempt.id;
  Status status = log.failed;
  Record record = make_record(request.commit, std::move(log)).second;
  record.may_wait = true;
  logs_.erase(attempt);
  if (status.ok()) status = check_shapes(record.metas);
  if (status.ok()) status = reserve(record, copies_all(record));
  if (status.ok()) status = take_number(request.commit);
  if (!status.ok()) {
    out.push_back(LogReply{request.id, std::move(status), 0});
    return;
  }
  out.push_back(LogReply{request.id, ok_status(), request.commit});
  last_fast_ = attempt;
  (void)commit(request.commit, attempt, std::move(record), out);
}

// ------------------------------------------------------------------ staging and committing

// Returns the hash and the record.
std::pair<std::uint64_t, VariableStore::Record> VariableStore::make_record(CommitNumber s,
                                                                           AttemptLog log) {
  std::uint64_t h = 0;
  for (const Write& w : log.writes) {
    h = hash_combine(hash_text(w.rule->op, h), w.node);
    for (std::int64_t i : w.iterations) h = hash_combine(h, std::uint64_t(i));
    for (const std::string& target : w.rule->targets) h = hash_text(target, h);
    for (const auto& [replica, contribution] : w.contributions)
      h = hash_combine(hash_combine(h, replica), contribution.hash);
  }
  Record record{s, {}, {}, {}, std::move(log.metas), false, 0};
  Names names(record.names);
  for (Write& w : log.writes) record.reductions.push_back(reduction_of(std::move(w), names));
  return {h, std::move(record)};
}

// Reserves memory for joined contributions, and for new values without reserved memory: of all
// variables, or of those whose old value cannot be overwritten.
Status VariableStore::reserve(Record& record, bool all) {
  record.room.resize(record.names.size());
  const std::vector<bool> own = all ? std::vector<bool>() : may_take_over(record);
  std::vector<VariableMeta> after;
  for (std::size_t i = 0; i < record.names.size(); ++i) {
    after.push_back(record.metas.find(record.names[i])->second);
    after.back().in_place = record.room[i].defined() || (!all && own[i]);
  }
  auto room = rules_.reserve(after, record.reductions);
  if (!room.ok()) return room.status().in("in container " + name_);
  for (std::size_t i = 0; i < record.room.size(); ++i)
    if (Tensor& reserved = (*room)[i]; reserved.defined()) record.room[i] = std::move(reserved);
  return ok_status();
}

// Which variables an update can change in place: nobody else holds their value. If several of its
// variables share one value, they are changed in the order of `names`, so only the last one can.
std::vector<bool> VariableStore::may_take_over(const Record& record) {
  std::vector<bool> own(record.names.size(), true);
  const auto by_block = [](const Buffer* a, const Buffer* b) { return *a < *b; };
  std::map<const Buffer*, std::vector<std::size_t>, decltype(by_block)> shared;
  for (std::size_t i = 0; i < record.names.size(); ++i) {
    const Variable& v = variables_.find(record.names[i])->second;
    if (v.versions.empty()) continue;
    const Tensor& value = v.versions.back().value;
    own[i] = value.unique();
    if (!own[i]) shared[&value.buffer()].push_back(i);
  }
  for (const auto& [buffer, sharers] : shared)
    own[sharers.back()] = buffer->held_by(sharers.size());
  return own;
}

std::uint64_t VariableStore::bytes_of(const Record& record) {
  std::uint64_t bytes = 0;
  for (const WriteReduction& reduction : record.reductions) {
    for (const auto& operands : reduction.contributions)
      for (const Tensor& t : operands) bytes += t.bytes();
    for (const Tensor& t : reduction.joined) bytes += t.bytes();
  }
  for (const Tensor& t : record.room) bytes += t.bytes();
  return bytes;
}

// Whether no value that it replaces can still be read.
bool VariableStore::overwrites(const Record& record) const {
  return std::none_of(record.names.begin(), record.names.end(), [&](const std::string& name) {
    const Variable& v = variables_.find(name)->second;
    return !v.versions.empty() && may_be_read(v.versions.back().s, record.s);
  });
}

// Whether values that it replaces may still be read.
bool VariableStore::copies_all(const Record& record) const {
  return min_live_ + 1 < record.s || !committing_.empty();
}

void VariableStore::stage(const StageRequest& request, Outputs& out) {
  if (!broken_.ok() && request.order != StageOrder::withdraw) {
    out.push_back(ResourceStaged{request.s, request.attempt, 0, broken_});
    return;
  }
  raise_min_live(request.min_live);
  Participant::stage(request, out);
}

Expected<std::pair<std::uint64_t, VariableStore::Record>> VariableStore::record_of(CommitNumber s,
                                                                                   const AttemptId&,
                                                                                   AttemptLog log) {
  TROUPE_TRY(log.failed);
  auto staged = make_record(s, std::move(log));
  Record& record = staged.second;
  TROUPE_TRY(check_shapes(record.metas));
  record.may_wait = !copies_all(record);
  TROUPE_TRY(reserve(record, !record.may_wait));
  return staged;
}

Status VariableStore::commit(CommitNumber s, const AttemptId&, Record record, Outputs& out) {
  for (const auto& [name, after] : record.metas) {
    Variable& v = variables_.find(name)->second;
    if (!v.initialised) v.since = s;
    v.initialised = after.initialised;
    v.shape = after.shape;
  }
  record.bytes = bytes_of(record);
  unapplied_ += record.bytes;
  committing_.push_back(std::move(record));
  apply_next(false, out);
  return ok_status();
}

// What the caller needs to apply this write, except the variables' values.
WriteReduction VariableStore::reduction_of(Write write, Names& names) {
  WriteReduction reduction{write.rule, {}, {}, {}};
  if (write.is_joined == Write::Joined::yes)
    reduction.contributions.push_back(std::move(write.joined));
  else
    reduction.contributions = operands_of(write);
  for (const std::string& target : write.rule->targets)
    reduction.targets.push_back(names.place_of(target));
  return reduction;
}

// Applies one commit at a time. A commit without memory for new values may wait until the old
// values can no longer be read, and are overwritten. If it is needed sooner (`wanted`), it gets
// memory now, or waits for their readers to be over.
void VariableStore::apply_next(bool wanted, Outputs& out) {
  if (commit_task_ != 0 || committing_.empty()) return;
  Record& record = committing_.front();
  if (record.may_wait && !overwrites(record)) {
    if (!wanted && committing_.size() == 1) return;
    if (!reserve(record, true).ok()) return;
    unapplied_ -= std::exchange(record.bytes, bytes_of(record));
    unapplied_ += record.bytes;
    record.may_wait = false;
  }
  Task task{next_task_++, record.s, {}, std::move(record.reductions)};
  record.room.resize(record.names.size());
  for (std::size_t i = 0; i < record.names.size(); ++i) {
    Variable& v = variables_.find(record.names[i])->second;
    Tensor value;
    bool in_place = true;
    if (!v.versions.empty()) {
      Version& newest = v.versions.back();
      in_place = !may_be_read(newest.s, record.s);
      value = newest.value;
      if (in_place) v.versions.pop_back();
    }
    task.variables.push_back(
        {record.names[i], v.spec.dtype, std::move(value), in_place, std::move(record.room[i])});
  }
  commit_task_ = task.id;
  out.push_back(std::move(task));
}

void VariableStore::applied(std::uint64_t task, Expected<std::vector<Tensor>> values,
                            Outputs& out) {
  if (task == commit_task_) {
    commit_task_ = 0;
    if (values.ok())
      committed_applied(std::move(values).value(), out);
    else
      fail_all(data_loss("container " + name_ + " could not apply commit " +
                         std::to_string(committing_.front().s) + ", which writes " +
                         variables_of(committing_.front().names) + ": " + values.status().text()),
               out);
    return;
  }
  if (auto join = joins_.extract(task); !join.empty())
    return joined(join.mapped(), std::move(values), out);
  auto at = previews_.find(task);
  if (at == previews_.end()) return;
  Preview preview = std::move(at->second);
  previews_.erase(at);
  ReadReply reply{preview.request.id, refusal(preview.request.attempt), {}, {}};
  if (reply.status.ok()) reply.status = values.status();
  if (reply.status.ok()) {
    auto all = with_own_writes(preview, std::move(values).value());
    reply.status = all.status();
    if (all.ok()) reply.values = std::move(all).value();
    for (const std::string& name : preview.names)
      if (std::count(preview.request.names.begin(), preview.request.names.end(), name) == 0)
        reply.also_read.push_back(name);
  }
  out.push_back(std::move(reply));
}

void VariableStore::committed_applied(std::vector<Tensor> values, Outputs& out) {
  Record record = std::move(committing_.front());
  committing_.pop_front();
  unapplied_ -= record.bytes;
  TROUPE_CHECK(values.size() == record.names.size(), "one value for each variable of the task");
  for (std::size_t i = 0; i < record.names.size(); ++i) {
    Variable& v = variables_.find(record.names[i])->second;
    if (!v.versions.empty() && v.versions.back().until == 0) v.versions.back().until = record.s;
    v.versions.push_back({record.s, std::move(values[i]), 0});
    prune(v);
    if (v.versions.size() > 1) with_old_.insert(&v);
  }
  apply_next(false, out);
  serve_reads(out);
  serve_writes(out);
}

void VariableStore::fail_all(Status status, Outputs& out) {
  broken_ = status;
  forget_all();
  committing_.clear();
  joins_.clear();
  unapplied_ = 0;
  commit_task_ = 0;  // its values will be ignored
  out.push_back(Failed{status});
  serve_reads(out);
  serve_writes(out);
}

void VariableStore::live(const LiveList& list, Outputs& out) {
  if (list.newer_than(live_)) raise_min_live(list.min_live);  // a commit may now overwrite values
  if (!note(list, out)) return;
  prune_all();
  // Not wanted sooner: such a list may still name the run that has just committed. What waits for
  // the update asks for it below.
  apply_next(false, out);
  serve_reads(out);
  serve_writes(out);
}

// ------------------------------------------------------------------ looking at it

std::vector<VariableMeta> VariableStore::variables() const {
  std::vector<VariableMeta> all;
  for (const auto& [name, v] : variables_) all.push_back(meta(v));
  return all;
}

VariableStore::Tables VariableStore::tables() const {
  Tables t;
  t.logs = logs_.size();
  t.waiting_reads = waiting_.size();
  t.waiting_writes = waiting_writes_.size();
  t.staged = staged_count();
  t.committing = committing_.size();
  t.tasks = previews_.size() + joins_.size() + (commit_task_ != 0 ? 1u : 0u);
  for (const auto& [name, v] : variables_)
    if (v.versions.size() > 1) t.old_versions += v.versions.size() - 1;
  return t;
}

}  // namespace troupe
