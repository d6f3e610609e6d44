// A cluster of the transaction machines on one thread, in virtual time, under a seeded schedule of
// delays, losses, repetitions, cancels and deaths, with an oracle that replays what was committed.
#pragma once

#include <array>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <queue>
#include <set>
#include <string>
#include <vector>

#include "actors/master/coordinator.hpp"
#include "actors/master/run_numbers.hpp"
#include "actors/resources/list_wish.hpp"
#include "actors/resources/queue_state.hpp"
#include "actors/resources/variable_store.hpp"
#include "actors/worker/shard.hpp"
#include "core/hash.hpp"

namespace troupe::sim {

using u64 = std::uint64_t;

inline constexpr int kShards = 3, kProcesses = 4;  // the last process holds no state
inline constexpr u64 kMostUnapplied = 0;  // bytes: nothing more is logged before all is applied
inline constexpr int kVariables = 6, kQueues = 2, kCapacity = 3, kSessions = 3, kDatasets = 2;

// Mistakes put in on purpose, to show that the oracle sees them.
enum class Bug {
  none,
  no_conflict_check,
  decided_by_the_first_shard,
  snapshots_not_pinned,
  attempts_never_over,
  keys_change_when_sent_again,
  key_without_replica,
  reduced_in_any_order,
  own_dequeue_not_a_read,
  deadlocks_stay,
  random_index_fixed,
  read_sees_the_newest,
  own_writes_not_a_read,
  marks_not_kept,
  update_in_place_always,
  elements_by_commit,
  elements_anew_for_a_redo,
  number_given_while_granted,
  number_given_before_it_is_back,
  revoked_grant_used,
  answers_of_other_rounds_count,
  refusal_ignored,
  nobody_is_ever_alone,
  answered_before_it_is_applied,
  published_when_staged,
  listed_snapshots_not_pinned,
  only_the_oldest_snapshot_pinned,
  rewound_as_often_as_asked,
  deaf_while_in_use,
  never_asks_for_lists,
};

enum class OpKind : std::uint8_t {
  read,       // a variable, at the snapshot
  read_back,  // a variable, with the writes of this partition
  random,
  send,  // to the next partition
  recv,
  fold,  // a blind, order-sensitive update of one variable
  both,  // two folds in one message
  pair,  // one update of two variables, each from both
  assign,
  shared,  // an update to which every partition contributes
  enqueue,
  dequeue,
  size,
  element,  // of a dataset, its own one of as many as there are partitions; or some, if it is open
  publish,  // to a board, which is outside of the job
  poison,   // a write that is refused
  work,     // takes `target` ms
};
struct Op {
  OpKind kind;
  int target = 0;  // variable, queue, dataset; for both, pair and publish the shard
};
struct Program {
  std::vector<std::vector<Op>> parts;
  std::shared_ptr<StepShape> shape = std::make_shared<StepShape>();
  std::optional<Code> fails;  // it must, with this code
  bool uses_last_process = false;
  Instant timeout = kNever;
  std::string note;                        // that its runs are given; empty: none
  bool drops = false;                      // its runs with a NaN are not to commit
  bool immediate = false;                  // its runs are not repeated for what they read
  std::shared_ptr<const JobPlace> resume;  // of a job that it restores; null: none
  std::optional<int> rewinds;              // no run: this dataset begins anew

  // Whether its runs write nothing, and so are told where the job stood.
  bool asks() const { return !shape->may_write && note.empty(); }
};

struct Element {
  u64 value = 0, id = 0;
  CommitNumber commit = 0;
};
// The whole state as one sequential program sees it.
struct World {
  std::array<u64, kVariables> vars;
  std::array<u64, kShards> boards{};
  std::set<u64> published{0};  // at any time
  std::array<std::deque<Element>, kQueues> queues;
  World();
};
// What a partition reports beside its value: what it took from queues, in its order. Id 0: its own.
struct Trace {
  u64 acc = 0, snapshot = 0, random_index = 0;
  std::vector<u64> taken;
  std::vector<u64> elements;  // of datasets, in its order; those of an open one behind their number
};

inline constexpr std::uint32_t kSharedNode = 50;
inline constexpr std::uint32_t kMaybeNan = 1000;  // the fetch of a program that drops
inline constexpr int kIndexBits = 32;  // JobPlace::draws: reads, and above them a random index
inline constexpr Instant kUnit = std::chrono::milliseconds(1);
inline constexpr int kTick = 10;

inline u64 mix(u64 a, u64 b) { return hash_combine(a, b); }
inline u64 fold(u64 value, u64 x) { return value * 31 + x; }
inline u64 pair_first(u64 a, u64 b, u64 x) { return a * 31 + x + b; }
inline u64 pair_second(u64 a, u64 b, u64 x) { return mix(b, x) + a; }
inline u64 reduced(u64 so_far, u64 x) { return so_far * 7 + x; }  // order matters
inline u64 initial(int var) { return 1000 + u64(var); }
inline std::string variable_name(int var) { return "v" + std::to_string(var); }
inline Tensor scalar(u64 x) { return Tensor::scalar<u64>(x); }
inline DatasetName dataset_name(int d) { return {"", "d" + std::to_string(d)}; }
inline u64 queue_use(int q) { return 100 + u64(q); }
inline u64 element_id(const RunId& run, int part, int pc) {
  return (run.session + 1) * 1000000 + run.n * 10000 + u64(part) * 1000 + u64(pc) + 1;
}
std::string describe(const Program& p, const Trace& t);

// What anybody outside of the job can look at, at any time. The newest committed value.
class Board final : public Participant<std::map<WriteKey, u64>, u64, Resource::Output> {
 public:
  using Log = std::map<WriteKey, u64>;
  using Outputs = Resource::Outputs;
  explicit Board(Bug bug) : bug_(bug) {}
  void publish(const AttemptInfo& attempt, u64 request, const WriteKey& key, u64 x, Outputs& out) {
    ResourceReply reply{request, {}, {}, false};
    learn(attempt.snapshot, out);
    if (live_.over(attempt.id))
      reply.status = aborted("over");
    else if (!staged_ || staged_->attempt != attempt.id)  // else it is said again
      logs_[attempt.id].emplace(key, x);
    out.push_back(std::move(reply));
    try_stage(out);
  }
  void live(const LiveList& list, Outputs& out) { note(list, out); }
  u64 shown() const { return shown_; }
  using Participant::at_rest;

 private:
  std::string name() const override { return "board"; }
  std::uint32_t keys_of(const Log& log) const override { return std::uint32_t(log.size()); }
  Expected<std::pair<u64, u64>> record_of(CommitNumber, const AttemptId&, Log log) override {
    const u64 last = log.empty() ? shown_ : std::prev(log.end())->second;
    if (bug_ == Bug::published_when_staged) shown_ = last;
    return std::pair<u64, u64>{last, last};
  }
  Status commit(CommitNumber, const AttemptId&, u64 x, Outputs&) override {
    shown_ = x;
    return {};
  }
  const Bug bug_;
  u64 shown_ = 0;
};

class Simulation {
 public:
  explicit Simulation(u64 seed, Bug bug = Bug::none);
  ~Simulation();
  // True if nothing was found; `violation` says what.
  bool run();

  std::string violation;
  struct Counters {
    long events = 0, fast = 0, commits = 0, read_only = 0, conflicts = 0, withdrawn = 0, failed = 0,
         lost_processes = 0, closed_early = 0, gave_up = 0, taken_back = 0, revoked = 0,
         published = 0, held_back = 0, joined = 0, noted = 0, dropped = 0, restored = 0,
         not_restored = 0, rewound = 0, stale = 0;
  } count;

 private:
  struct Process;
  struct Execution;
  struct Client;
  class Rules;
  struct Event {
    Instant at;
    u64 order;
    std::function<void()> what;
    bool operator<(const Event& other) const {
      return std::tie(at, order) > std::tie(other.at, other.order);
    }
  };
  struct Decided {
    RunId run;
    std::vector<Trace> traces;
    CommitNumber behind = 0;
  };

  void fail(const std::string& why);
  bool chance(int permille) { return int(random_.below(1000)) < permille; }
  int pick(int n) { return int(random_.below(u64(n))); }
  void after(int units, std::function<void()> what);
  void net(std::function<void()> what);                     // may lose, double, reorder
  void send(int from, int to, std::function<void()> what);  // local: in order, once

  Program make_program(int session, int n);
  void take_elements(Execution& e, const Op& op);
  void add_dataset(Program& p, int dataset, bool open);
  Program make_race_program(int session);
  Program make_restore_program(u64 hash);
  Program make_rewind_program(int dataset) const;
  void rewind(const RunId& action, const Acknowledged& acknowledged);
  bool waits_for_restore(int session) const;
  void add_queue_program(Program& p, int role, bool first_queue);
  void make_clients();

  void master(Coordinator::Outputs& out);
  void at_process(int id, Coordinator::Output output);
  void store_out(int id, VariableStore::Outputs& out);
  void resource_out(int id, std::uint32_t index, Resource::Outputs& out, bool list = false);
  void tell_live(int id, const Shard::ResourceLive& live);
  void wish_lists(int id, std::uint32_t index, bool list);
  void shard_out(int id, Shard::Outputs& out);
  u64 reduced_of(WriteReduction& r);
  void run_join(int id, VariableStore::Join join);
  void run_task(int id, VariableStore::Task task);
  void start(int id, const Coordinator::StartAttempt& m);
  void abort(int id, const Coordinator::AbortAttempt& m);
  void revoke(int id, const Coordinator::RevokeGrant& m);
  void advance(int id, Execution& e);
  void step_done(int id, Execution& e);
  void request(Execution& e, std::function<void(int)> send);
  void log_write(int id, Execution& e, int shard, std::vector<LoggedWrite> writes);
  void queue_op(int id, Execution& e, const Op& op);
  void publish(int id, Execution& e, const Op& op);
  void work(int id, Execution& e, int units);
  void read_op(int id, Execution& e, const Op& op);
  void read_reply(int id, const VariableStore::ReadReply& reply);
  void log_reply(int id, const VariableStore::LogReply& reply);
  void resource_reply(int id, const ResourceReply& reply);
  Execution* waiting_for(int id, u64 request);
  void report(int id, Execution& e, Status status);
  void executor_tick(int id);

  void client_tick(int session);
  void answered(int session, const Coordinator::Answer& answer);
  void observe(const Coordinator::Answer& answer);
  void observe(const Coordinator::StartAttempt& start);
  void observe(const Coordinator::SendPrepare& send);
  void use(const Program& p, std::size_t dataset, const std::vector<u64>& given, u64 count);
  void use_elements(const Coordinator::Answer& answer, const std::vector<Trace>& traces);
  std::vector<DatasetPlace> places_by_rule() const;
  u64 draws_by_rule(u64 session) const;
  JobPlace place_by_rule(u64 session) const;
  void commit_by_rule(const RunId& run, CommitNumber s);
  void draw_by_rule(const Coordinator::StartAttempt& start, bool again);
  void move_place();
  void check_place(const JobPlace& told, const JobPlace& rule, const std::string& who);
  void check_first_commit();
  bool clients_done() const;
  bool feasible(const RunId& run);
  void check_progress();
  bool memory_was_short() const;
  void check_attempts(const AttemptInfo& attempt);
  void check_outcome(const RunId& run, const Status& status);
  void check_boards(const Coordinator::Answer& answer);
  void look_at_boards();
  void check_history();
  void check_at_rest();
  u64 replay(const Program& p, const std::vector<Trace>& traces, const World& seen, World& world,
             const RunId& run, CommitNumber commit);
  void tick();

  const u64 seed_;
  const Bug bug_;
  Random random_;
  Random moves_;  // of places; the schedule stays
  Instant now_{};
  u64 order_ = 0, next_request_ = 1;
  std::priority_queue<Event> agenda_;
  std::unique_ptr<Rules> rules_;
  std::unique_ptr<Coordinator> coordinator_;
  std::vector<std::unique_ptr<Process>> processes_;
  std::vector<Client> clients_;
  std::map<RunId, Program> programs_;
  std::map<std::tuple<int, int>, Instant> local_order_;
  int scenario_ = 0, loss_ = 0;
  bool strict_fifo_ = true, lose_last_ = false, last_lost_ = false, all_closed_ = false;
  bool restores_first_ = false;
  std::map<CommitNumber, Decided> history_;
  std::vector<Decided> read_only_;
  // Elements of datasets, by a simple rule: each run takes the lowest that no other has. Of an open
  // one those, and where behind them nobody has any.
  std::array<std::set<u64>, kDatasets> used_;
  struct Holder {
    AttemptId attempt;
    CommitNumber snapshot = 0;
    DatasetPlaces::Elements elements;
    JobPlace place;        // when the attempt started
    bool decided = false;  // but not answered
  };
  std::map<RunId, Holder> holders_;
  // Where the job stands, by a simple rule: as of its last commit, or where its place was moved
  // since; and what was drawn since that commit, or before in an earlier life.
  JobPlace kept_;
  std::map<u64, u64> reads_;  // by session
  u64 earlier_reads_ = 0, dropped_ = 0;
  std::map<RunId, Status> outcomes_;
  std::set<u64> seen_on_boards_;
  std::map<RunId, std::set<u64>> attempts_;  // their numbers
  u64 newest_round_ = 0;                     // of PREPARE
  std::set<RunId> cancelled_;
  Instant progress_at_{};
};

struct Simulation::Execution {
  AttemptInfo attempt;
  std::uint32_t part = 0;
  u64 random_index = 0;
  CommitNumber grant = 0;
  DatasetPlaces::Elements elements;
  std::vector<u64> used;  // of these, how many
  const Program* program = nullptr;
  std::size_t pc = 0;
  Trace trace;
  u64 waiting = 0;  // the id of the request under way
  std::function<void(int)> again;
  Instant resend_at = kNever;
  bool granted_write = false, stop = false;
  std::vector<std::uint32_t> write_nodes;
  std::map<int, u64> arrived;
  int received = 0;
  std::map<ResourceId, std::uint32_t> keys;
  std::set<u64> reads, updates, own_dequeues, enqueues;
  std::optional<PartitionDone> done;
};

struct Simulation::Process {
  Process(int id, const UpdateRules& rules, Bug bug)
      : id(id),
        shard(TaskId(id), 1),
        store("store" + std::to_string(id), rules, kMostUnapplied),
        queue({"q" + std::to_string(id), kCapacity, {DType::u64, DType::u64}, {}}),
        board(bug) {}
  const int id;
  bool dead = false;
  Shard shard;
  VariableStore store;
  QueueState queue;
  Board board;
  std::map<std::uint32_t, ListWish> wishes;
  LiveList live;
  std::map<std::pair<AttemptId, std::uint32_t>, Execution> executions;
  std::map<std::pair<AttemptId, std::uint32_t>, std::map<int, u64>> parked;
};

struct Simulation::Client {
  u64 total = 0, window = 1, begun = 0;
  RunNumbers numbers{0};
  std::map<u64, Instant> outstanding;  // when asked last
  bool closing = false, closed = false;
};

}  // namespace troupe::sim
