// The variables of one (container, device), with transactions: snapshots, a log for each attempt,
// one staged record, commits in number order.
#pragma once

#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <set>
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
  bool some_replicas = false;        // some of the N may contribute nothing
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

// The type and state of a variable, as the next write of an attempt will find it.
struct VariableMeta {
  std::string name;
  DType dtype = DType::invalid;
  PartialShape declared;
  bool initialised = false;
  Shape shape;            // if initialised
  bool in_place = false;  // reserving: the value is overwritten and needs no memory
};

// One write to apply: reduce contributions[replica order][operand] by rule->combine, then apply the
// rule to `targets`, indices of the task's variables.
struct WriteReduction {
  std::shared_ptr<const UpdateRule> rule;
  std::vector<std::vector<Tensor>> contributions;
  std::vector<std::uint32_t> targets;
  // Memory for the reduced operands; undefined: none was reserved, or the first contribution's is
  // used.
  std::vector<Tensor> joined;
};

// The rules that can be applied; implemented by the owner of the op registry.
class UpdateRules {
 public:
  virtual ~UpdateRules() = default;
  // Reserves memory for applying the reductions: returns a new value for each of `variables`
  // (described as after the reductions) that is not overwritten in place, and stores memory for
  // joined operands in the reductions. resource_exhausted if there is not enough. Called when the
  // writes are staged, by the actor that stages them.
  virtual Expected<std::vector<Tensor>> reserve(std::span<const VariableMeta> variables,
                                                std::vector<WriteReduction>&) const {
    return std::vector<Tensor>(variables.size());
  }
  // Must find every reason for which applying `write` could fail. Changes `targets` (in the order
  // of rule->targets) to their state after it. Called when the write is logged.
  virtual Status check(const LoggedWrite& write, std::span<VariableMeta> targets) const = 0;
  // The rule of that value, which may come from anywhere: its op, attributes, name and targets.
  // invalid_argument when there is no such rule.
  virtual Expected<std::shared_ptr<const UpdateRule>> make(const UpdateRule& value) const {
    return unimplemented("the rule of node '" + value.node + "' cannot be made of its value");
  }
};

// The requests, outputs and state of a container.
struct VariableTypes {
  struct ReadRequest {
    std::uint64_t id = 0;  // the caller's, returned in the reply
    AttemptInfo attempt;
    std::vector<std::string> names;
    // The write nodes that this read is ordered after. Empty: it reads the snapshot. It sees those
    // of their writes to which logical replica `replica` has contributed, and waits until these are
    // complete.
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
    // With own writes: further variables whose snapshots the values depend on, because a rule that
    // the read sees changes several. The run has read these, too (Uses::reads).
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
    Tensor value;  // undefined: not initialised
    // The store released its reference: the value may be overwritten if value.unique().
    bool in_place = false;
    Tensor room;  // memory for the new value otherwise; undefined: none was reserved
  };
  // Apply the reductions in order; answer `applied` with the final value of every variable.
  struct Task {
    std::uint64_t id = 0;
    CommitNumber commit = 0;  // 0: for a read of an attempt's own writes
    std::vector<TaskVariable> variables;
    std::vector<WriteReduction> reductions;
  };
  // A committed update could not be applied: the container's state is lost, and all requests are
  // answered with this status from now on. Its process must leave the job.
  struct Failed {
    Status status;
  };
  // Join the contributions to each write by its rule's `combine`, in replica order; answer
  // `applied` with the joined operands, one write after the other.
  struct Join {
    std::uint64_t id = 0;
    std::vector<WriteReduction> writes;
  };
  using Output = std::variant<ReadReply, LogReply, ResourceStaged, Task, Join, Failed>;
  using Outputs = std::vector<Output>;

  struct Contribution {
    std::vector<Tensor> operands;  // empty once they are joined
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
    std::vector<Tensor> joined = {};  // the joined operands, if so
    // For a write in a branch (some_replicas), all contributions arrive before this is asked.
    bool complete() const { return contributions.size() >= rule->replicas || rule->some_replicas; }
  };
  struct AttemptLog {
    using Place = std::pair<std::uint32_t, std::vector<std::int64_t>>;  // node, iterations
    std::vector<Write> writes;  // in the order their first contributions arrived
    std::map<Place, std::size_t> places;
    std::uint32_t keys = 0;
    std::map<std::string, VariableMeta, std::less<>> metas;  // of its targets, after its writes
    std::vector<std::size_t> to_join;  // writes whose contributions are not joined yet
    std::uint32_t joining = 0;         // joins under way
    Status failed;                     // of a failed join
    const Write* find(const WriteKey& key) const;
  };
  using Metas = std::map<std::string, VariableMeta, std::less<>>;
  struct Record {
    CommitNumber s = 0;
    std::vector<std::string> names;  // of the variables it changes
    std::vector<WriteReduction> reductions;
    std::vector<Tensor> room;  // memory reserved for their values
    Metas metas;               // of its targets, after it
    bool may_wait = false;     // may lack memory for new values, and wait to be applied in place
    std::uint64_t bytes = 0;   // held by it
  };
};

// The state machine of one variable container.
//
// Owned by one actor; no clock, no thread, no kernels. Every input appends outputs to `out`:
// replies (matched by the caller's `id`), and tasks, which the caller runs on the device in order
// and answers with `applied`. At most one task that commits is in flight. Requests of attempts that
// are over are answered `aborted`.
//
// The contributions of replicas to a write are joined when all have arrived, so a staged record
// holds only one. The fast path stages nothing and joins them when it applies the write.
//
// A decided update must not fail for lack of memory. Before a write is staged, or committed on the
// fast path, memory for the new values is reserved if the old values are held by others or may
// still be read. Without such memory, an update waits until the values that it replaces can no
// longer be read, and overwrites them. If it is needed sooner, it is applied to copies if there is
// memory.
//
// A read sees the snapshot R of its attempt. R shows that every number up to R is decided, and was
// staged here if it touched this container, so a staged s <= R commits first.
//
// Old values are kept while an attempt may read them: for each listed attempt the one that it
// reads, and all since the list. An update overwrites a value that can no longer be read.
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

  // Declares a variable; not part of any transaction. May be repeated with the same dtype and
  // shape; already_exists, naming both, otherwise.
  Status declare(const VariableSpec& spec);

  void read(ReadRequest request, Outputs& out);
  // Logs all writes of a request or none. not_found for an unknown variable, failed_precondition
  // for an uninitialised one, invalid_argument for dtype or shape, and the errors of `check`.
  void log(LogRequest request, Outputs& out);
  void stage(const StageRequest& request, Outputs& out);  // see Participant
  void live(const LiveList& list, Outputs& out);
  // The final values of a Task, the operands of a Join, or why it failed.
  void applied(std::uint64_t task, Expected<std::vector<Tensor>> values, Outputs& out);

  // As in Resource (actors/resources/resource.hpp). save() is `unavailable` while decided updates
  // are being applied, and starts that: try again after the next applied(). A state also declares
  // its variables. A record includes rules that its stream does not have yet. Values may be in
  // device memory: copy them before they leave the process.
  Expected<ResourceState> save(Outputs& out);
  Status load(const ResourceState& state);
  Expected<ResourceState> record(ToldRules& told) const;
  Status stage_record(const ResourceState& state, KnownRules& known, Outputs& out);

  // The values as of `committed`. REQUIRES: nothing logged or staged, every name declared.
  Status restore(CommitNumber committed, const std::vector<std::pair<std::string, Tensor>>& values);

  std::vector<VariableMeta> variables() const;  // in name order, as of the last commit

  // Sizes of tables that are empty when nothing runs; `old_versions`: values beyond one per
  // variable.
  struct Tables {
    std::size_t logs = 0, waiting_reads = 0, waiting_writes = 0, staged = 0, committing = 0,
                old_versions = 0, tasks = 0;
    bool empty() const {
      return logs + waiting_reads + waiting_writes + staged + committing + old_versions + tasks ==
             0;
    }
  };
  Tables tables() const;
  // Bytes held by decided updates until they are applied.
  std::uint64_t unapplied_bytes() const { return unapplied_; }

 private:
  struct Version {
    CommitNumber s = 0;
    Tensor value;
    CommitNumber until = 0;  // the commit that replaced it; 0: none
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
  Status check_shapes(const Metas& after) const;
  void log_and_commit(const LogRequest& request, AttemptLog log, Outputs& out);
  Status check_contribution(const LoggedWrite& write, const AttemptLog* log) const;
  static void append(AttemptLog& log, LoggedWrite write);
  void start_joins(const AttemptId& attempt, AttemptLog& log, bool all, Outputs& out);
  void joined(const JoinUnderWay& join, Expected<std::vector<Tensor>> values, Outputs& out);
  Expected<AttemptLog> read_log(StateReader& in, KnownRules& known) const;
  bool ready_to_stage(const AttemptId& attempt, AttemptLog& log, Outputs& out) override;
  VariableMeta meta(const Variable& variable) const;
  static std::vector<std::vector<Tensor>> operands_of(Write& write);
  // The variables of a task: each once, in the order of their first use.
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
  std::set<Variable*> with_old_;  // those of which older values are kept
  CommitNumber min_live_ = 0;
  std::deque<Record> committing_;  // decided, not applied yet; the first may be in flight
  std::uint64_t unapplied_ = 0;    // bytes held by these
  std::uint64_t commit_task_ = 0;  // the id of the task in flight, or 0
  std::map<std::uint64_t, Preview> previews_;    // by task: the read that it answers
  std::map<std::uint64_t, JoinUnderWay> joins_;  // by task
  AttemptId last_fast_;                          // the last attempt that committed on the fast path
  std::deque<ReadRequest> waiting_;
  std::deque<LogRequest> waiting_writes_;
  std::uint64_t next_task_ = 1;
  Status broken_;
};

}  // namespace troupe
