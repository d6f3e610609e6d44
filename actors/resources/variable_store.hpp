// The variables of one (container, device) as transactions see them: snapshots, a log for each
// attempt, one staged record, commits in number order.
#pragma once

#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <variant>
#include <vector>

#include "actors/resources/participant.hpp"
#include "actors/resources/rule_values.hpp"
#include "core/attr.hpp"
#include "core/transaction.hpp"
#include "graph/op_def.hpp"
#include "serialization/resource_state.hpp"

namespace troupe {

// One write node of a compiled step, made once and shared by all its writes.
struct UpdateRule {
  std::string op;    // "Assign", "AssignAdd", "ApplyAdam"
  std::string node;  // its name, for errors
  AttrMap attrs;
  Combine combine = Combine::sum;
  std::uint32_t replicas = 1;        // N: a write is complete when N contributions are there
  bool some_replicas = false;        // of those N some may contribute nothing
  std::vector<std::string> targets;  // the variables it changes, in the op's order, distinct
  std::uint64_t hash = 0;            // rule_hash(); 0: not computed yet
};

inline bool joins_operands(Combine combine) {
  return combine == Combine::sum || combine == Combine::mean;
}

// One contribution: (rule, gradient or rows or value) under its key.
struct LoggedWrite {
  WriteKey key;
  std::shared_ptr<const UpdateRule> rule;
  std::vector<Tensor> operands;
};

struct VariableSpec {
  std::string name;
  DType dtype = DType::invalid;
  PartialShape shape;
};

// What is known of a variable without its value, as the next write of an attempt will find it.
struct VariableMeta {
  std::string name;
  DType dtype = DType::invalid;
  PartialShape declared;
  bool initialised = false;
  Shape shape;            // when initialised
  bool in_place = false;  // reserving: its value is overwritten, and needs no room
};

// One write to apply: reduce contributions[replica order][operand] as rule->combine says, then
// apply the rule to `targets`, which are places among the variables of its task.
struct WriteReduction {
  std::shared_ptr<const UpdateRule> rule;
  std::vector<std::vector<Tensor>> contributions;
  std::vector<std::uint32_t> targets;
  // Memory for the reduced operands; undefined: none was reserved, or the first contribution's is
  // taken.
  std::vector<Tensor> joined;
};

// The rules that can be applied, given by whoever owns the op registry.
class UpdateRules {
 public:
  virtual ~UpdateRules() = default;
  // Memory that applying the reductions may need beside the values that they are applied to: a
  // value for each of `variables`, which are as the reductions will leave them, unless it is
  // overwritten in place, and what each reduction joins, which goes into it. resource_exhausted
  // when there is not as much. Called when the writes are staged, in the actor that does it.
  virtual Expected<std::vector<Tensor>> reserve(std::span<const VariableMeta> variables,
                                                std::vector<WriteReduction>&) const {
    return std::vector<Tensor>(variables.size());
  }
  // Everything that could make applying `write` fail must be found here; `targets` (in the order
  // of rule->targets) become what they are after it. Called when the write is logged.
  virtual Status check(const LoggedWrite& write, std::span<VariableMeta> targets) const = 0;
  // The rule of that value, which may come from anywhere: its op, attributes, name and targets.
  // invalid_argument when there is no such rule.
  virtual Expected<std::shared_ptr<const UpdateRule>> make(const UpdateRule& value) const {
    return unimplemented("the rule of node '" + value.node + "' cannot be made of its value");
  }
};

// What a container is asked, says and keeps.
struct VariableTypes {
  struct ReadRequest {
    std::uint64_t id = 0;  // the caller's, given back in the reply
    AttemptInfo attempt;
    std::vector<std::string> names;
    // Read your writes: the write nodes this read is ordered after. Empty: the snapshot alone.
    // It sees those writes of them to which logical replica `replica` has contributed, and waits
    // until these are complete.
    std::vector<std::uint32_t> after;
    std::uint32_t replica = 0;
    bool initialised_only = false;  // IsVariableInitialized: the values are bool scalars
  };
  struct LogRequest {
    std::uint64_t id = 0;
    AttemptInfo attempt;
    std::vector<LoggedWrite> writes;
    CommitNumber commit = 0;  // the fast path's granted number: log, stage and commit in one
  };

  struct ReadReply {
    std::uint64_t id = 0;
    Status status;
    std::vector<Tensor> values;  // in the order of names
    // With own writes: variables beside the names whose snapshot the values depend on, because a
    // rule that the read sees changes several. The run has read these too (Uses::reads).
    std::vector<std::string> also_read;
  };
  struct LogReply {
    std::uint64_t id = 0;
    Status status;
    CommitNumber committed = 0;  // the granted number, on the fast path
  };
  struct TaskVariable {
    std::string name;
    DType dtype = DType::invalid;
    Tensor value;  // undefined: not initialised yet
    // The store gave up its reference: the value may be overwritten if value.unique().
    bool in_place = false;
    Tensor room;  // for the new value when it may not; undefined: none was reserved
  };
  // Apply the reductions in order; answer `applied` with the final value of every variable.
  struct Task {
    std::uint64_t id = 0;
    CommitNumber commit = 0;  // 0: for a read of an attempt's own writes
    std::vector<TaskVariable> variables;
    std::vector<WriteReduction> reductions;
  };
  // A committed update could not be applied: the container's state is lost, and everything that
  // asks it for anything gets this status from now on. Its process has to leave the job.
  struct Failed {
    Status status;
  };
  // Make one contribution of those of each write, as its rule's `combine` says, in replica order;
  // answer `applied` with the operands of all, one write after the other.
  struct Join {
    std::uint64_t id = 0;
    std::vector<WriteReduction> writes;
  };
  using Output = std::variant<ReadReply, LogReply, ResourceStaged, Task, Join, Failed>;
  using Outputs = std::vector<Output>;

  struct Contribution {
    std::vector<Tensor> operands;  // none once they are joined with the others'
    std::uint64_t hash = 0;        // of their types and shapes
  };
  // One write with the contributions that have arrived, by replica.
  struct Write {
    enum class Joined : std::uint8_t { no, soon, yes };

    std::uint32_t node = 0;
    std::vector<std::int64_t> iterations;
    std::shared_ptr<const UpdateRule> rule;
    std::map<std::uint32_t, Contribution> contributions = {};
    Joined is_joined = Joined::no;
    std::vector<Tensor> joined = {};  // the operands of all contributions as one, if so
    // Of a write in a branch those that come have come before anybody asks.
    bool complete() const { return contributions.size() >= rule->replicas || rule->some_replicas; }
  };
  struct AttemptLog {
    using Place = std::pair<std::uint32_t, std::vector<std::int64_t>>;  // node, iterations
    std::vector<Write> writes;  // in the order their first contributions arrived
    std::map<Place, std::size_t> places;
    std::uint32_t keys = 0;
    std::map<std::string, VariableMeta, std::less<>> metas;  // of what it wrote, after it
    std::vector<std::size_t> to_join;  // writes with contributions that no join has taken yet
    std::uint32_t joining = 0;         // joins under way
    Status failed;                     // of one that could not be done
    const Write* find(const WriteKey& key) const;
  };
  using Metas = std::map<std::string, VariableMeta, std::less<>>;
  struct Record {
    CommitNumber s = 0;
    std::vector<std::string> names;  // of the variables it changes
    std::vector<WriteReduction> reductions;
    std::vector<Tensor> room;  // reserved for their values
    Metas metas;               // of its targets, after it
    bool may_wait = false;     // without memory for all new values, until it is applied in place
    std::uint64_t bytes = 0;   // that it holds
  };
};

// The machine of one variable container.
//
// Owned by one actor; no clock, no thread, no kernels. Every input appends to `out` what has to be
// done: replies (matched by the caller's `id`) and apply tasks, which the caller runs on the
// device, in the order given, and answers with `applied`. At most one task that commits is in
// flight. Requests of attempts that are over are answered `aborted`.
//
// The contributions of replicas to a write are joined once they are all there, so that what is
// staged holds one, and may become a record for others. On the fast path, which stages nothing for
// others, that is left to the application.
//
// What was decided shall not fail for want of memory. Before a write counts as staged, or as
// committed on the fast path, memory for the new values is reserved where somebody holds the old
// ones, or may read values before these. Without such memory an update waits until nobody can ask
// for the values that it replaces, and overwrites them. When it is wanted sooner, it is applied to
// copies if there is memory for them then.
//
// A read sees the snapshot R of its attempt. Whoever can carry R knows that every number up to R is
// decided and was staged here if it touched this container, so a staged s <= R commits first.
//
// Of older values those are kept that an attempt may still ask for: of each listed attempt the one
// that it reads, and all since the list. An update overwrites a value that nobody can ask for.
//
// Updates that nobody reads can be decided faster than they are applied. While more than
// `most_unapplied` bytes wait to be applied, writes are not logged: their answers wait.
class VariableStore final
    : public VariableTypes,
      public Participant<VariableTypes::AttemptLog, VariableTypes::Record, VariableTypes::Output> {
 public:
  static constexpr std::uint64_t kMostUnapplied = std::uint64_t{64} << 20;

  // `name` is the container's, for errors. The rules outlive the store.
  VariableStore(std::string name, const UpdateRules& rules,
                std::uint64_t most_unapplied = kMostUnapplied);

  // Declares a variable; not part of any transaction. Declaring it again with the same dtype and
  // shape is fine; already_exists, naming both, otherwise.
  Status declare(const VariableSpec& spec);

  void read(ReadRequest request, Outputs& out);
  // All writes of a request are logged or none: unknown variable (not_found), uninitialised
  // (failed_precondition), dtype or shape (invalid_argument), what `check` says.
  void log(LogRequest request, Outputs& out);
  void stage(const StageRequest& request, Outputs& out);  // see Participant
  void live(const LiveList& list, Outputs& out);
  // The task's final values, what a Join gave, or why it failed.
  void applied(std::uint64_t task, Expected<std::vector<Tensor>> values, Outputs& out);

  // Resource's (actors/resources/resource.hpp). save() answers `unavailable` while what is decided
  // is being applied, and sees to that: ask again after the next applied(). A state also declares
  // its variables. A record tells the rules that its stream has not told yet. Of values in device
  // memory the state has those: copy them before they leave the process.
  Expected<ResourceState> save(Outputs& out);
  Status load(const ResourceState& state);
  Expected<ResourceState> record(ToldRules& told) const;
  Status stage_record(const ResourceState& state, KnownRules& known, Outputs& out);

  // The values as of `committed`. REQUIRES: nothing logged or staged, every name declared.
  Status restore(CommitNumber committed, const std::vector<std::pair<std::string, Tensor>>& values);

  std::vector<VariableMeta> variables() const;  // in name order, as of the last commit

  // Sizes of what must be empty when nothing runs; `versions` counts values beyond one a variable.
  struct Tables {
    std::size_t logs = 0, waiting_reads = 0, waiting_writes = 0, staged = 0, committing = 0,
                old_versions = 0, tasks = 0;
    bool empty() const {
      return logs + waiting_reads + waiting_writes + staged + committing + old_versions + tasks ==
             0;
    }
  };
  Tables tables() const;
  // Bytes that decided commits hold until they are applied.
  std::uint64_t unapplied_bytes() const { return unapplied_; }

 private:
  struct Version {
    CommitNumber s = 0;
    Tensor value;
    CommitNumber until = 0;  // the commit after it; 0: it is the newest
  };
  struct Variable {
    VariableSpec spec;
    bool initialised = false;  // as of the last commit, applied or not
    Shape shape;
    CommitNumber since = 0;        // the commit that initialised it
    std::deque<Version> versions;  // ascending; the last is the newest applied
  };
  struct Preview {
    ReadRequest request;
    std::vector<std::string> names;  // of the task's variables
  };
  struct JoinUnderWay {
    struct Part {
      std::size_t write = 0;  // of the attempt's log
      std::size_t operands = 0;
    };
    AttemptId attempt;
    std::vector<Part> parts;
  };

  Status refusal(const AttemptInfo& attempt) const;
  void hear(const AttemptInfo& attempt, Outputs& out);
  void raise_min_live(CommitNumber min_live);
  bool may_be_read(CommitNumber from, CommitNumber before) const;
  void prune(Variable& variable) const;
  void prune_all();
  bool hold_back(const LogRequest& request) const;
  void serve_writes(Outputs& out);
  Status check(const LogRequest& request, const AttemptLog* log, Metas& metas) const;
  void log_and_commit(const LogRequest& request, AttemptLog log, Outputs& out);
  Status check_contribution(const LoggedWrite& write, const AttemptLog* log) const;
  static void append(AttemptLog& log, LoggedWrite write);
  void start_joins(const AttemptId& attempt, AttemptLog& log, bool all, Outputs& out);
  void joined(const JoinUnderWay& join, Expected<std::vector<Tensor>> values, Outputs& out);
  Expected<AttemptLog> read_log(StateReader& in, KnownRules& known) const;
  bool ready_to_stage(const AttemptId& attempt, AttemptLog& log, Outputs& out) override;
  VariableMeta meta(const Variable& variable) const;
  static std::vector<std::vector<Tensor>> operands_of(Write& write);
  // The variables of a task: each once, in the order in which they are first named.
  class Names {
   public:
    explicit Names(std::vector<std::string>& names) : names_(names) {}
    std::uint32_t place_of(const std::string& name) {
      auto [at, added] = places_.try_emplace(name, std::uint32_t(names_.size()));
      if (added) names_.push_back(name);
      return at->second;
    }

   private:
    std::vector<std::string>& names_;
    std::unordered_map<std::string, std::uint32_t> places_;
  };
  static WriteReduction reduction_of(Write write, Names& names);
  static std::pair<std::uint64_t, Record> make_record(CommitNumber s, AttemptLog log);
  Status reserve(Record& record, bool all);
  std::vector<bool> may_take_over(const Record& record);
  bool copies_all(const Record& record) const;
  bool overwrites(const Record& record) const;
  static std::uint64_t bytes_of(const Record& record);
  std::string name() const override { return "container " + name_; }
  std::uint32_t keys_of(const AttemptLog& log) const override { return log.keys; }
  Expected<std::pair<std::uint64_t, Record>> record_of(CommitNumber s, const AttemptId& attempt,
                                                       AttemptLog log) override;
  Status commit(CommitNumber s, const AttemptId& attempt, Record record, Outputs& out) override;
  void apply_next(bool wanted, Outputs& out);
  void committed_applied(std::vector<Tensor> values, Outputs& out);
  void fail_all(Status status, Outputs& out);
  bool try_read(const ReadRequest& request, Outputs& out);
  bool own_writes(const ReadRequest& request, std::vector<const Write*>& writes) const;
  bool applied_up_to(const std::string& name, CommitNumber snapshot) const;
  Expected<Tensor> value_at(const std::string& name, CommitNumber snapshot) const;
  Status start_preview(const ReadRequest& request, const std::vector<const Write*>& writes,
                       Outputs& out);
  Status check_preview(const Task& task) const;
  Expected<std::vector<Tensor>> with_own_writes(const Preview& preview,
                                                std::vector<Tensor> applied) const;
  void serve_reads(Outputs& out);

  const std::string name_;
  const UpdateRules& rules_;
  const std::uint64_t most_unapplied_;
  std::map<std::string, Variable, std::less<>> variables_;
  CommitNumber min_live_ = 0;
  std::deque<Record> committing_;  // decided, not applied yet; the first may be in flight
  std::uint64_t unapplied_ = 0;    // bytes that these hold
  std::uint64_t commit_task_ = 0;  // the id of the one in flight, or 0
  std::map<std::uint64_t, Preview> previews_;    // task -> the read it answers
  std::map<std::uint64_t, JoinUnderWay> joins_;  // by task
  AttemptId last_fast_;  // the attempt whose fast path made `committed_`, if it was one
  std::deque<ReadRequest> waiting_;
  std::deque<LogRequest> waiting_writes_;
  std::uint64_t next_task_ = 1;
  Status broken_;
};

}  // namespace troupe
