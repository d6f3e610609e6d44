#include "tests/protocol/transaction_sim.hpp"

#include <algorithm>

namespace troupe::sim {
namespace {

constexpr std::uint32_t kSharedNode = 50;
constexpr Instant kUnit = std::chrono::milliseconds(1);
constexpr int kTick = 10;

u64 mix(u64 a, u64 b) { return hash_combine(a, b); }
u64 fold(u64 value, u64 x) { return value * 31 + x; }
u64 pair_first(u64 a, u64 b, u64 x) { return a * 31 + x + b; }
u64 pair_second(u64 a, u64 b, u64 x) { return mix(b, x) + a; }
u64 reduced(u64 so_far, u64 x) { return so_far * 7 + x; }  // order matters
u64 initial(int var) { return 1000 + u64(var); }
std::string variable_name(int var) { return "v" + std::to_string(var); }
Tensor scalar(u64 x) { return Tensor::scalar<u64>(x); }
u64 queue_use(int q) { return 100 + u64(q); }
u64 element_id(const RunId& run, int part, int pc) {
  return (run.session + 1) * 1000000 + run.n * 10000 + u64(part) * 1000 + u64(pc) + 1;
}

const char* const kOpNames[] = {"read",    "read_back", "random", "send",   "recv",
                                "fold",    "both",      "pair",   "assign", "shared",
                                "enqueue", "dequeue",   "size",   "poison"};
std::string describe(const Program& p, const Trace& t) {
  std::string text = "[R " + std::to_string(t.snapshot);
  for (const auto& ops : p.parts) {
    text += " |";
    for (const Op& op : ops)
      text += " " + std::string(kOpNames[int(op.kind)]) + std::to_string(op.target);
  }
  return text + "]";
}

}  // namespace

World::World() {
  for (int v = 0; v < kVariables; ++v) vars[std::size_t(v)] = initial(v);
}

class Simulation::Rules : public UpdateRules {
 public:
  Status check(const LoggedWrite& write, std::span<VariableMeta> targets) const override {
    if (write.rule->op == "Refused") return invalid_argument("refused on purpose");
    if (write.operands.size() != 1) return invalid_argument("one operand");
    for (VariableMeta& t : targets) {
      if (write.rule->op != "Assign" && !t.initialised)
        return failed_precondition("Attempting to use uninitialized value " + t.name);
      t.initialised = true;
    }
    return ok_status();
  }
};

class Simulation::BuggyCoordinator : public Coordinator {
 public:
  BuggyCoordinator(Options options, Bug bug) : Coordinator(options), bug_(bug) {}

 protected:
  bool conflicts(const Run& run) const override {
    return bug_ != Bug::no_conflict_check && Coordinator::conflicts(run);
  }
  CommitNumber min_live() const override {
    return bug_ == Bug::snapshots_not_pinned ? decided_ : Coordinator::min_live();
  }
  bool all_staged() const override {
    return bug_ == Bug::decided_by_the_first_shard ? !staged_.empty() : Coordinator::all_staged();
  }

 private:
  const Bug bug_;
};

struct Simulation::Execution {
  AttemptInfo attempt;
  std::uint32_t part = 0;
  u64 random_index = 0;
  CommitNumber grant = 0;
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
  std::set<u64> reads, assigns, updates, own_dequeues, enqueues;
  std::optional<PartitionDone> done;
};

struct Simulation::Process {
  explicit Process(int id, const UpdateRules& rules)
      : id(id),
        shard(ProcessId(id), 1),
        store("store" + std::to_string(id), rules),
        queue({"q" + std::to_string(id), kCapacity, {DType::u64, DType::u64}, {}}) {}
  const int id;
  bool dead = false;
  Shard shard;
  VariableStore store;
  QueueState queue;
  LiveList live;
  std::map<std::pair<AttemptId, std::uint32_t>, Execution> executions;
  std::map<std::pair<AttemptId, std::uint32_t>, std::map<int, u64>> parked;
};

struct Simulation::Client {
  u64 next = 0, total = 0, window = 1, acked = 0;
  std::map<u64, Instant> outstanding;  // when asked last
  bool closing = false, closed = false;
};

// ------------------------------------------------------------------ set-up

Simulation::Simulation(u64 seed, Bug bug)
    : seed_(seed), bug_(bug), random_(mix64(seed)), rules_(std::make_unique<Rules>()) {
  scenario_ = int(seed % 4);
  loss_ = pick(50);
  Coordinator::Options options;
  options.max_active = std::size_t(1 + pick(4));
  if (bug == Bug::deadlocks_stay) options.deadlock_after = std::chrono::hours(1000);
  coordinator_ = std::make_unique<BuggyCoordinator>(options, bug);
  for (int id = 0; id < kProcesses; ++id) {
    processes_.push_back(std::make_unique<Process>(id, *rules_));
    coordinator_->add_process(ProcessId(id), "/worker:" + std::to_string(id), id < kShards);
  }
  for (int v = 0; v < kVariables; ++v) {
    VariableStore& store = processes_[std::size_t(v % kShards)]->store;
    if (!store.declare({variable_name(v), DType::u64, PartialShape::scalar()}).ok())
      fail("declare");
    if (!store.restore(0, {{variable_name(v), scalar(initial(v))}}).ok()) fail("restore");
  }
  strict_fifo_ = scenario_ != 3;
  lose_last_ = chance(250);
  make_clients();
  after(kTick, [this] { tick(); });
}

Simulation::~Simulation() = default;

void Simulation::fail(const std::string& why) {
  if (violation.empty())
    violation =
        why + " (t=" + std::to_string(now_ / kUnit) + ", seed " + std::to_string(seed_) + ")";
}

void Simulation::make_clients() {
  clients_.resize(kSessions);
  for (int s = 0; s < kSessions; ++s) {
    Client& c = clients_[std::size_t(s)];
    coordinator_->open_session(u64(s));
    c.total = scenario_ == 0 && s != 0 ? 0 : scenario_ == 0 ? 10 : 6;
    c.window = scenario_ == 3 ? 2 : 1;
    for (u64 n = 0; n < c.total; ++n) programs_[{u64(s), n}] = make_program(s, int(n));
  }
  if (chance(120)) {  // a client that closes its session in mid-run
    int s = pick(kSessions);
    after(20 + pick(400), [this, s] { clients_[std::size_t(s)].closing = true; });
  }
}

Program Simulation::make_program(int session, int n) {
  Program p;
  int kind = pick(100);
  // 0: train, 1: read only, 2: poison, 3: produce, 4: consume, 5: move, 6: own element, 7: overfull
  int role = kind < 75 ? 0 : kind < 93 ? 1 : 2;
  bool first_queue = true;
  if (scenario_ == 0 && chance(400)) role = n % 2 == 0 ? 3 : chance(150) ? 7 : chance(300) ? 6 : 4;
  if (scenario_ == 1) role = session == 0 ? role : session == 1 ? (chance(850) ? 3 : role) : 4;
  if (scenario_ == 2) {
    role = session == 0 ? (chance(800) ? 5 : role) : session == 1 ? 3 : 4;
    first_queue = session != 2;
  }
  if (scenario_ == 3) role = session == 1 ? (chance(700) ? 3 : 6) : chance(600) ? 4 : role;
  const int base = pick(kShards);
  const bool fast = role == 0 && chance(350);
  const int parts = fast ? 1 : 1 + pick(3);
  auto var_of = [](int shard) { return [shard](int i) { return shard + kShards * i; }; };
  for (int i = 0; i < parts; ++i) {
    int process = fast ? base : pick(kProcesses);
    p.uses_last_process |= process == kProcesses - 1;
    p.shape->partitions.push_back(
        {ProcessId(process), "/worker:" + std::to_string(process) + "/cpu:0"});
  }
  p.shape->fast_path = fast;
  p.shape->may_write = role != 1;
  p.parts.resize(std::size_t(parts));
  for (int i = 0; i < parts; ++i) {
    auto& ops = p.parts[std::size_t(i)];
    auto add = [&](OpKind k, int target = 0) { ops.push_back({k, target}); };
    for (int r = pick(3); r > 0; --r) add(OpKind::read, pick(kVariables));
    if (chance(500)) add(OpKind::random);
    if (role <= 2 && parts > 1)
      for (int r = 1; r > 0; --r) {
        add(OpKind::send);
        add(OpKind::recv);
      }
    if (role > 2 && i == 0) continue;
    const int own = (base + i) % kShards;
    if (role == 1) {
      add(OpKind::read, pick(kVariables));
      if (chance(300) && scenario_ != 0) add(OpKind::size, pick(kQueues));
    }
    if ((role == 0 || role == 2) && i < 2) {
      for (int w = fast ? 0 : pick(3); w >= 0; --w) {
        int which = pick(fast ? 3 : 4);
        add(which == 0   ? OpKind::both
            : which == 1 ? OpKind::pair
            : which == 2 ? OpKind::fold
                         : OpKind::assign,
            which < 2 ? own : var_of(own)(pick(2)));
        if (!fast && chance(400)) add(OpKind::read_back, var_of(own)(pick(2)));
      }
    }
    if (role == 0 && !fast && i >= 2 && chance(300)) add(OpKind::read, pick(kVariables));
    if (role == 2 && i == 0) add(OpKind::poison, var_of(own)(0));
  }
  if (role == 0 && !fast && parts > 1 && chance(500))
    for (auto& ops : p.parts) ops.push_back({OpKind::shared, (base + 2) % kShards});
  if (role == 2) p.fails = Code::invalid_argument;
  if (role > 2) add_queue_program(p, role, first_queue);
  if (chance(40)) p.timeout = kUnit * (1 + pick(300));
  return p;
}

void Simulation::add_queue_program(Program& p, int role, bool first_queue) {
  auto& ops = p.parts[0];
  const int queue = first_queue ? 0 : 1;
  const int count = role == 5 || role == 6 ? 1 : role == 7 ? kCapacity + 1 : 1 + pick(2);
  if (role == 6) ops.push_back({OpKind::enqueue, 0});
  for (int i = 0; i < count; ++i)
    ops.push_back({role == 3 ? OpKind::enqueue : OpKind::dequeue, role == 4 ? queue : 0});
  if (role == 5) ops.push_back({OpKind::enqueue, 1});
  if (chance(400)) ops.push_back({OpKind::read, pick(kVariables)});
  if (chance(500)) ops.push_back({OpKind::fold, pick(kVariables)});
  if (role == 7) p.fails = Code::failed_precondition;
}

// ------------------------------------------------------------------ the network

void Simulation::after(int units, std::function<void()> what) {
  agenda_.push({now_ + kUnit * units, order_++, std::move(what)});
}

void Simulation::net(std::function<void()> what) {
  if (chance(loss_)) return;
  for (int copies = chance(40) ? 2 : 1; copies > 0; --copies)
    after(1 + pick(12) + (chance(15) ? pick(500) : 0), what);
}

void Simulation::send(int from, int to, std::function<void()> what) {
  if (from != to) return net(std::move(what));
  Instant& last = local_order_[{from, to}];
  last = std::max(last, now_ + kUnit * pick(3));
  agenda_.push({last, order_++, std::move(what)});
}

// ------------------------------------------------------------------ master

void Simulation::master(Coordinator::Outputs& out) {
  Coordinator::Outputs all;
  all.swap(out);
  for (auto& output : all) {
    if (auto* answer = std::get_if<Coordinator::Answer>(&output)) {
      observe(*answer);
      net([this, a = *answer] { answered(int(a.run.session), a); });
    } else if (auto* closed = std::get_if<Coordinator::SessionClosed>(&output)) {
      clients_[std::size_t(closed->session)].closed = true;
    } else if (std::get_if<Coordinator::JobStopped>(&output)) {
      fail("the job stopped");
    } else {
      int to = -1;
      if (auto* m = std::get_if<Coordinator::StartAttempt>(&output)) {
        to = int(m->process);
        if (bug_ == Bug::random_index_fixed) m->random_index = 0;
        if (bug_ == Bug::marks_not_kept) m->attempt.marks_from = m->attempt.id.a;
      }
      if (auto* m = std::get_if<Coordinator::AbortAttempt>(&output)) to = int(m->process);
      if (auto* m = std::get_if<Coordinator::SendPrepare>(&output)) to = int(m->shard);
      if (auto* m = std::get_if<Coordinator::SendLive>(&output)) {
        to = int(m->process);
        if (bug_ == Bug::attempts_never_over) m->list.next_a = 0;
        if (bug_ == Bug::marks_not_kept)
          for (LiveAttempt& l : m->list.live) l.marks_from = l.a;
      }
      net([this, to, o = std::move(output)] { at_process(to, o); });
    }
  }
}

void Simulation::at_process(int id, Coordinator::Output output) {
  Process& p = *processes_[std::size_t(id)];
  if (p.dead) return;
  Shard::Outputs out;
  if (auto* m = std::get_if<Coordinator::StartAttempt>(&output)) start(id, *m);
  if (auto* m = std::get_if<Coordinator::AbortAttempt>(&output)) abort(id, *m);
  if (auto* m = std::get_if<Coordinator::SendPrepare>(&output)) p.shard.prepare(m->prepare, out);
  if (auto* m = std::get_if<Coordinator::SendLive>(&output)) p.shard.live(m->list, out);
  shard_out(id, out);
}

void Simulation::shard_out(int id, Shard::Outputs& out) {
  Process& p = *processes_[std::size_t(id)];
  for (auto& output : out) {
    if (auto* m = std::get_if<Shard::StageResource>(&output)) {
      VariableStore::Outputs store;
      QueueState::Outputs queue;
      if (m->resource.index == 0)
        p.store.stage(m->request, store);
      else
        p.queue.stage(m->request, queue);
      store_out(id, store);
      queue_out(id, queue);
    } else if (auto* live = std::get_if<Shard::ResourceLive>(&output)) {
      p.live = live->list;
      VariableStore::Outputs store;
      QueueState::Outputs queue;
      p.store.live(live->list, store);
      p.queue.live(live->list, queue);
      store_out(id, store);
      queue_out(id, queue);
      std::erase_if(p.executions, [&](auto& e) { return p.live.over(e.first.first); });
      std::erase_if(p.parked, [&](auto& e) { return p.live.over(e.first.first); });
    } else if (auto* staged = std::get_if<Staged>(&output)) {
      net([this, m = *staged] {
        Coordinator::Outputs out;
        coordinator_->staged(m, now_, out);
        master(out);
      });
    } else if (auto* blocked = std::get_if<BlockedReport>(&output)) {
      net([this, m = *blocked] {
        Coordinator::Outputs out;
        coordinator_->blocked(m, now_, out);
        master(out);
      });
    }
  }
}

// ------------------------------------------------------------------ resources

void Simulation::store_out(int id, VariableStore::Outputs& out) {
  Process& p = *processes_[std::size_t(id)];
  for (auto& output : out) {
    if (auto* read = std::get_if<VariableStore::ReadReply>(&output)) {
      int to = int(read->id % kProcesses);
      send(id, to, [this, to, r = *read] { read_reply(to, r); });
    } else if (auto* log = std::get_if<VariableStore::LogReply>(&output)) {
      int to = int(log->id % kProcesses);
      send(id, to, [this, to, r = *log] { log_reply(to, r); });
    } else if (auto* staged = std::get_if<ResourceStaged>(&output)) {
      Shard::Outputs more;
      p.shard.staged({ProcessId(id), 0}, *staged, more);
      shard_out(id, more);
    } else if (auto* task = std::get_if<VariableStore::Task>(&output)) {
      auto shared = std::make_shared<VariableStore::Task>(std::move(*task));
      after(1 + pick(8), [this, id, shared] { run_task(id, std::move(*shared)); });
    } else {
      fail("a commit could not be applied");
    }
  }
}

// The device: reduces and applies, in place where it may.
void Simulation::run_task(int id, VariableStore::Task task) {
  auto get = [&](std::uint32_t i) {
    Tensor& t = task.variables[i].value;
    return t.defined() ? t.item<u64>() : 0;
  };
  auto put = [&](std::uint32_t i, u64 x) {
    auto& v = task.variables[i];
    if (v.value.defined() &&
        ((v.in_place && v.value.unique()) || bug_ == Bug::update_in_place_always))
      *v.value.mutable_data<u64>() = x;
    else
      v.value = scalar(x);
    if (v.in_place == false) v.in_place = bug_ != Bug::update_in_place_always;  // now our own copy
  };
  for (auto& r : task.reductions) {
    if (bug_ == Bug::reduced_in_any_order && chance(500))
      std::reverse(r.contributions.begin(), r.contributions.end());
    u64 x = r.contributions[0][0].item<u64>();
    for (std::size_t i = 1; i < r.contributions.size(); ++i)
      x = reduced(x, r.contributions[i][0].item<u64>());
    if (r.rule->op == "Assign") put(r.targets[0], x);
    if (r.rule->op == "Fold") put(r.targets[0], fold(get(r.targets[0]), x));
    if (r.rule->op == "Pair") {
      u64 a = get(r.targets[0]), b = get(r.targets[1]);
      put(r.targets[0], pair_first(a, b, x));
      put(r.targets[1], pair_second(a, b, x));
    }
  }
  std::vector<Tensor> values;
  for (auto& v : task.variables) values.push_back(std::move(v.value));
  VariableStore::Outputs out;
  processes_[std::size_t(id)]->store.applied(task.id, std::move(values), out);
  store_out(id, out);
}

void Simulation::queue_out(int id, QueueState::Outputs& out) {
  Process& p = *processes_[std::size_t(id)];
  for (auto& output : out) {
    Shard::Outputs more;
    if (auto* reply = std::get_if<QueueState::Reply>(&output)) {
      int to = int(reply->id % kProcesses);
      send(id, to, [this, to, r = *reply] { queue_reply(to, r); });
    } else if (auto* staged = std::get_if<ResourceStaged>(&output)) {
      p.shard.staged({ProcessId(id), 1}, *staged, more);
    } else if (auto* blocked = std::get_if<QueueState::Blocked>(&output)) {
      p.shard.blocked({ProcessId(id), 1}, blocked->waiting, blocked->marked, now_, more);
    }
    shard_out(id, more);
  }
}

// ------------------------------------------------------------------ executors

void Simulation::start(int id, const Coordinator::StartAttempt& m) {
  Process& p = *processes_[std::size_t(id)];
  auto key = std::pair{m.attempt.id, m.partition};
  if (p.live.over(m.attempt.id) || p.executions.count(key) != 0) return;
  Execution& e = p.executions[key];
  e.attempt = m.attempt;
  e.part = m.partition;
  e.random_index = m.random_index;
  e.grant = m.grant;
  e.program = &programs_.at(m.attempt.run);
  e.trace = {11 + m.partition, m.attempt.snapshot, m.random_index, {}};
  if (auto parked = p.parked.find(key); parked != p.parked.end()) {
    e.arrived = std::move(parked->second);
    p.parked.erase(parked);
  }
  advance(id, e);
}

void Simulation::abort(int id, const Coordinator::AbortAttempt& m) {
  Process& p = *processes_[std::size_t(id)];
  if (p.live.over(m.attempt)) return;
  Execution& e = p.executions[{m.attempt, m.partition}];
  e.attempt.id = m.attempt;
  e.attempt.run = m.run;
  e.part = m.partition;
  e.stop = true;
  if (!e.done && !(e.granted_write && e.waiting != 0))
    report(id, e, aborted("stopped").caused_by(1));
}

void Simulation::request(Execution& e, std::function<void(int)> send_it) {
  e.again = std::move(send_it);
  e.resend_at = now_ + kUnit * 50;
  e.again(0);
}

void Simulation::advance(int id, Execution& e) {
  while (!e.done && e.waiting == 0) {
    const auto& ops = e.program->parts[e.part];
    if (e.pc == ops.size()) return report(id, e, ok_status());
    const Op& op = ops[e.pc];
    u64& acc = e.trace.acc;
    const auto node = std::uint32_t(e.part * 100 + e.pc);
    auto rule = [&](const char* name, std::vector<std::string> targets) {
      auto r = std::make_shared<UpdateRule>();
      r->op = name;
      r->node = "n" + std::to_string(node);
      r->targets = std::move(targets);
      return r;
    };
    auto write = [&](const char* name, std::vector<std::string> targets, std::uint32_t at) {
      return LoggedWrite{{at, 0, {0}}, rule(name, std::move(targets)), {scalar(mix(acc, at))}};
    };
    switch (op.kind) {
      case OpKind::read:
      case OpKind::read_back:
        return read_op(id, e, op);
      case OpKind::random:
        acc = mix(acc, mix(e.attempt.snapshot + 1, e.random_index));
        ++e.pc;
        continue;
      case OpKind::send: {
        const auto to_part = std::uint32_t((e.part + 1) % e.program->parts.size());
        const int to = int(e.program->shape->partitions[to_part].process);
        after(1 + pick(40), [this, to, to_part, a = e.attempt.id, x = mix(acc, 5), i = int(e.pc)] {
          Process& p = *processes_[std::size_t(to)];
          if (p.dead || p.live.over(a)) return;
          auto at = p.executions.find({a, to_part});
          if (at == p.executions.end()) {
            p.parked[{a, to_part}][i] = x;
            return;
          }
          at->second.arrived[i] = x;
          if (at->second.program) advance(to, at->second);
        });
        ++e.pc;
        continue;
      }
      case OpKind::recv:
        if (e.arrived.empty()) return;
        acc = mix(acc, e.arrived.begin()->second);
        e.arrived.erase(e.arrived.begin());
        ++e.pc;
        continue;
      case OpKind::fold:
      case OpKind::assign:
      case OpKind::poison: {
        const char* name = op.kind == OpKind::fold     ? "Fold"
                           : op.kind == OpKind::assign ? "Assign"
                                                       : "Refused";
        (op.kind == OpKind::assign ? e.assigns : e.updates).insert(u64(op.target));
        return log_write(id, e, op.target % kShards,
                         {write(name, {variable_name(op.target)}, node)});
      }
      case OpKind::both:
        e.updates.insert({u64(op.target), u64(op.target + kShards)});
        return log_write(id, e, op.target,
                         {write("Fold", {variable_name(op.target)}, node),
                          write("Fold", {variable_name(op.target + kShards)}, node + 1000)});
      case OpKind::pair:
        e.updates.insert({u64(op.target), u64(op.target + kShards)});
        return log_write(
            id, e, op.target,
            {write("Pair", {variable_name(op.target), variable_name(op.target + kShards)}, node)});
      case OpKind::shared: {
        LoggedWrite w = write("Fold", {variable_name(op.target)}, kSharedNode);
        auto r = std::make_shared<UpdateRule>(*w.rule);
        r->replicas = std::uint32_t(e.program->parts.size());
        w.rule = r;
        w.key.replica = bug_ == Bug::key_without_replica ? 0 : e.part;
        e.updates.insert(u64(op.target));
        return log_write(id, e, op.target, {w});
      }
      case OpKind::enqueue:
      case OpKind::dequeue:
      case OpKind::size:
        return queue_op(id, e, op);
    }
  }
}

void Simulation::log_write(int id, Execution& e, int shard, std::vector<LoggedWrite> writes) {
  const u64 request_id = next_request_++ * kProcesses + u64(id);
  VariableStore::LogRequest r{request_id, e.attempt, std::move(writes), 0};
  for (const LoggedWrite& w : r.writes) e.write_nodes.push_back(w.key.node);
  const bool last = e.pc + 1 == e.program->parts[e.part].size();
  if (e.grant != 0 && last && shard == id) {
    r.commit = e.grant;
    e.granted_write = true;
  }
  e.keys[{ProcessId(shard), 0}] += std::uint32_t(r.writes.size());
  e.waiting = request_id;
  request(e, [this, id, shard, r](int tries) {
    VariableStore::LogRequest sent = r;
    if (bug_ == Bug::keys_change_when_sent_again)
      for (LoggedWrite& w : sent.writes) w.key.iterations[0] += tries;
    if (id == shard && tries > 0) return;  // nothing is lost inside a process
    send(id, shard, [this, shard, sent] {
      VariableStore::Outputs out;
      processes_[std::size_t(shard)]->store.log(sent, out);
      store_out(shard, out);
    });
  });
}

void Simulation::read_op(int id, Execution& e, const Op& op) {
  const int shard = op.target % kShards;
  VariableStore::ReadRequest r;
  r.id = next_request_++ * kProcesses + u64(id);
  r.attempt = e.attempt;
  if (bug_ == Bug::read_sees_the_newest)
    r.attempt.snapshot =
        std::max(r.attempt.snapshot, processes_[std::size_t(shard)]->store.committed());
  r.names = {variable_name(op.target)};
  if (op.kind == OpKind::read_back) r.after = e.write_nodes;
  e.reads.insert(u64(op.target));
  e.waiting = r.id;
  request(e, [this, id, shard, r](int) {
    send(id, shard, [this, shard, r] {
      VariableStore::Outputs out;
      processes_[std::size_t(shard)]->store.read(r, out);
      store_out(shard, out);
    });
  });
}

void Simulation::queue_op(int id, Execution& e, const Op& op) {
  const int shard = op.target;
  QueueState::Request r{next_request_++ * kProcesses + u64(id),
                        e.attempt,
                        {e.part * 100 + std::uint32_t(e.pc), 0, {}}};
  if (op.kind != OpKind::size) ++e.keys[{ProcessId(shard), 1}];
  if (op.kind == OpKind::size)
    e.reads.insert(queue_use(op.target));
  else
    e.updates.insert(queue_use(op.target));
  if (op.kind == OpKind::enqueue) e.enqueues.insert(queue_use(op.target));
  std::vector<Tensor> element{scalar(mix(e.trace.acc, 20)),
                              scalar(element_id(e.attempt.run, int(e.part), int(e.pc)))};
  e.waiting = r.id;
  request(e, [this, id, shard, r, element, kind = op.kind](int) {
    send(id, shard, [this, shard, r, element, kind] {
      QueueState::Outputs out;
      QueueState& queue = processes_[std::size_t(shard)]->queue;
      if (kind == OpKind::enqueue)
        queue.enqueue(r, element, out);
      else if (kind == OpKind::dequeue)
        queue.dequeue(r, out);
      else
        queue.size(r, out);
      queue_out(shard, out);
    });
  });
}

Simulation::Execution* Simulation::waiting_for(int id, u64 request) {
  Process& p = *processes_[std::size_t(id)];
  if (p.dead) return nullptr;
  for (auto& [key, e] : p.executions)
    if (e.waiting == request && !e.done) return &e;
  return nullptr;
}

void Simulation::read_reply(int id, const VariableStore::ReadReply& reply) {
  Execution* e = waiting_for(id, reply.id);
  if (!e) return;
  e->waiting = 0;
  if (!reply.status.ok()) return report(id, *e, reply.status);
  e->trace.acc = mix(e->trace.acc, reply.values[0].item<u64>());
  for (const std::string& name : reply.also_read)
    if (bug_ != Bug::own_writes_not_a_read) e->reads.insert(u64(name[1] - '0'));
  ++e->pc;
  advance(id, *e);
}

void Simulation::log_reply(int id, const VariableStore::LogReply& reply) {
  Execution* e = waiting_for(id, reply.id);
  if (!e) return;
  e->waiting = 0;
  if (!reply.status.ok()) return report(id, *e, reply.status);
  ++e->pc;
  if (e->granted_write || !e->stop) return advance(id, *e);
  report(id, *e, aborted("stopped").caused_by(1));
}

void Simulation::queue_reply(int id, const QueueState::Reply& reply) {
  Execution* e = waiting_for(id, reply.id);
  if (!e) return;
  e->waiting = 0;
  if (!reply.status.ok()) return report(id, *e, reply.status);
  const Op& op = e->program->parts[e->part][e->pc];
  if (op.kind == OpKind::size)
    e->trace.acc = mix(e->trace.acc, u64(reply.element[0].item<std::int64_t>()));
  if (op.kind == OpKind::dequeue) {
    e->trace.acc = mix(e->trace.acc, reply.element[0].item<u64>());
    e->trace.taken.push_back(reply.own ? 0 : reply.element[1].item<u64>());
    if (reply.own && bug_ != Bug::own_dequeue_not_a_read)
      e->own_dequeues.insert(queue_use(op.target));
  }
  ++e->pc;
  advance(id, *e);
}

void Simulation::report(int id, Execution& e, Status status) {
  PartitionDone done;
  done.attempt = e.attempt.id;
  done.run = e.attempt.run;
  done.partition = e.part;
  done.status = status;
  if (e.granted_write && status.ok()) done.fast_committed = e.grant;
  for (auto& [resource, n] : e.keys) done.writes.push_back({resource, n});
  auto list = [](const std::set<u64>& s) { return std::vector<u64>(s.begin(), s.end()); };
  done.uses = {list(e.reads), list(e.assigns), list(e.updates), list(e.own_dequeues),
               list(e.enqueues)};
  std::vector<u64> fetch{e.trace.acc, e.trace.snapshot, e.trace.random_index};
  fetch.insert(fetch.end(), e.trace.taken.begin(), e.trace.taken.end());
  done.fetches.push_back(
      {e.part, Tensor::of<u64>(Shape{std::int64_t(fetch.size())}, std::span<const u64>(fetch))});
  e.done = done;
  e.resend_at = now_;
  executor_tick(id);
}

void Simulation::executor_tick(int id) {
  Process& p = *processes_[std::size_t(id)];
  if (p.dead) return;
  for (auto& [key, e] : p.executions) {
    if (e.resend_at > now_) continue;
    e.resend_at = now_ + kUnit * 50;
    if (e.done)
      net([this, m = *e.done] {
        Coordinator::Outputs out;
        coordinator_->partition_done(m, now_, out);
        master(out);
      });
    else if (e.waiting != 0)
      e.again(1);
  }
}

// ------------------------------------------------------------------ clients

void Simulation::client_tick(int s) {
  Client& c = clients_[std::size_t(s)];
  if (c.closed) return;
  if (c.closing) {
    if (chance(100))
      net([this, s] {
        Coordinator::Outputs out;
        coordinator_->close_session(u64(s), now_, out);
        master(out);
      });
    return;
  }
  while (c.outstanding.size() < c.window && c.next < c.total)
    c.outstanding[c.next++] = -kUnit * 1000;
  for (auto& [n, asked] : c.outstanding) {
    if (now_ - asked < kUnit * 150) continue;
    const RunId id{u64(s), n};
    const Program& p = programs_.at(id);
    const bool first = asked < Instant{0};
    asked = now_;
    RunRequest r{id, p.shape, p.timeout == kNever ? kNever : now_ + p.timeout, c.acked};
    net([this, r] {
      Coordinator::Outputs out;
      coordinator_->run(r, now_, out);
      master(out);
    });
    if (first && chance(30)) {
      const int delay = pick(300);
      after(delay, [this, id] {
        cancelled_.insert(id);
        Coordinator::Outputs out;
        coordinator_->cancel(id, cancelled("the client said so"), now_, out);
        master(out);
      });
    }
  }
}

void Simulation::answered(int s, const Coordinator::Answer& answer) {
  Client& c = clients_[std::size_t(s)];
  c.outstanding.erase(answer.run.n);
  c.acked = c.outstanding.empty() ? c.next : c.outstanding.begin()->first;
}

bool Simulation::clients_done() const {
  for (const Client& c : clients_) {
    if (c.closing && !c.closed) return false;
    if (!c.closing && (c.next < c.total || !c.outstanding.empty())) return false;
  }
  return true;
}

// ------------------------------------------------------------------ the oracle

void Simulation::observe(const Coordinator::Answer& answer) {
  auto known = outcomes_.find(answer.run);
  const bool over = known != outcomes_.end();
  if (over && !(known->second == answer.status) &&
      !clients_[std::size_t(answer.run.session)].closing)
    return fail("two answers to one run differ");
  if (over) return;
  outcomes_[answer.run] = answer.status;
  progress_at_ = now_;
  check_outcome(answer.run, answer.status);
  if (!answer.status.ok()) return;
  std::vector<Trace> traces;
  for (const Fetched& f : answer.fetches) {
    auto x = f.value.span<u64>();
    traces.push_back({x[0], x[1], x[2], {x.begin() + 3, x.end()}});
  }
  if (answer.committed == 0) {
    read_only_.push_back({answer.run, traces});
    return;
  }
  if (!history_.emplace(answer.committed, Decided{answer.run, traces}).second)
    fail("a number was decided twice");
}

void Simulation::check_outcome(const RunId& run, const Status& status) {
  const Program& p = programs_.at(run);
  const bool closing = clients_[std::size_t(run.session)].closing;
  bool fine = false;
  switch (status.code()) {
    case Code::ok:
      fine = !p.fails;
      break;
    case Code::cancelled:
      fine = closing || cancelled_.count(run) != 0;
      break;
    case Code::deadline_exceeded:
      fine = p.timeout != kNever;
      break;
    case Code::failed_precondition:
      fine = p.fails == Code::failed_precondition || closing;
      break;
    case Code::invalid_argument:
      fine = p.fails == Code::invalid_argument;
      break;
    case Code::unavailable:
      fine = last_lost_ && p.uses_last_process;
      break;
    default:
      break;
  }
  if (!fine) fail("a run was answered: " + status.text());
}

// Runs one program against the world; `traces` say what it took from queues.
u64 Simulation::replay(const Program& p, const std::vector<Trace>& traces, World& world,
                       const RunId& run, CommitNumber commit) {
  const bool committed = commit != 0;
  const std::size_t parts = p.parts.size();
  if (traces.size() != parts) {
    fail("fetches of some partitions are missing");
    return 0;
  }
  std::vector<u64> acc(parts);
  std::vector<std::size_t> pc(parts), taken(parts);
  std::vector<std::deque<u64>> wire(parts);
  std::vector<std::deque<Element>> own(kQueues);
  std::vector<u64> shared;
  int shared_target = -1;
  struct Write {
    OpKind kind;
    int target;
    u64 x, x2;
  };
  std::vector<std::vector<Write>> logs(parts);
  auto apply = [](std::array<u64, kVariables>& vars, const Write& w) {
    u64& a = vars[std::size_t(w.target)];
    if (w.kind == OpKind::assign) a = w.x;
    if (w.kind == OpKind::fold) a = fold(a, w.x);
    if (w.kind != OpKind::both && w.kind != OpKind::pair) return;
    u64& b = vars[std::size_t(w.target + kShards)];
    const u64 a0 = a, b0 = b;
    a = w.kind == OpKind::both ? fold(a0, w.x) : pair_first(a0, b0, w.x);
    b = w.kind == OpKind::both ? fold(b0, w.x2) : pair_second(a0, b0, w.x);
  };
  for (std::size_t i = 0; i < parts; ++i) acc[i] = 11 + i;
  std::vector<std::pair<std::size_t, u64>> contributions;
  for (bool moved = true; moved;) {
    moved = false;
    for (std::size_t i = 0; i < parts; ++i)
      for (; pc[i] < p.parts[i].size(); ++pc[i], moved = true) {
        const Op& op = p.parts[i][pc[i]];
        u64& a = acc[i];
        const u64 node = i * 100 + pc[i];
        if (op.kind == OpKind::recv && wire[i].empty()) break;
        switch (op.kind) {
          case OpKind::read:
            a = mix(a, world.vars[std::size_t(op.target)]);
            break;
          case OpKind::read_back: {
            auto vars = world.vars;
            for (const Write& w : logs[i]) apply(vars, w);
            a = mix(a, vars[std::size_t(op.target)]);
            break;
          }
          case OpKind::random:
            a = mix(a, mix(traces[i].snapshot + 1, traces[i].random_index));
            break;
          case OpKind::send:
            wire[(i + 1) % parts].push_back(mix(a, 5));
            break;
          case OpKind::recv:
            a = mix(a, wire[i].front());
            wire[i].pop_front();
            break;
          case OpKind::fold:
          case OpKind::assign:
          case OpKind::both:
          case OpKind::pair:
            logs[i].push_back({op.kind, op.target, mix(a, node), mix(a, node + 1000)});
            break;
          case OpKind::shared:
            shared_target = op.target;
            contributions.push_back({i, mix(a, kSharedNode)});
            break;
          case OpKind::enqueue:
            own[std::size_t(op.target)].push_back(
                {mix(a, 20), element_id(run, int(i), int(pc[i])), commit});
            break;
          case OpKind::dequeue: {
            auto& queue = world.queues[std::size_t(op.target)];
            if (taken[i] >= traces[i].taken.size()) {
              fail("a dequeue is missing");
              return 0;
            }
            const u64 want = traces[i].taken[taken[i]++];
            if (want == 0) {
              auto& mine = own[std::size_t(op.target)];
              if (mine.empty()) {
                fail("no element of its own");
                return 0;
              }
              for (const Element& e : queue)
                if (committed && (strict_fifo_ || e.commit > traces[i].snapshot))
                  fail("took its own element past a committed one");
              a = mix(a, mine.front().value);
              mine.pop_front();
              break;
            }
            auto at = std::find_if(queue.begin(), queue.end(),
                                   [&](const Element& e) { return e.id == want; });
            if (at == queue.end()) {
              fail("an element was taken twice, or never committed");
              return 0;
            }
            if (strict_fifo_ && at != queue.begin()) fail("not the oldest element");
            a = mix(a, at->value);
            queue.erase(at);
            break;
          }
          case OpKind::size:
            a = mix(a, world.queues[std::size_t(op.target)].size());
            break;
          case OpKind::poison:
            fail("a refused write was passed over");
            return 0;
        }
      }
  }
  for (auto& log : logs)
    for (const Write& w : log) apply(world.vars, w);
  std::sort(contributions.begin(), contributions.end());
  if (!contributions.empty()) {
    u64 x = contributions[0].second;
    for (std::size_t i = 1; i < contributions.size(); ++i) x = reduced(x, contributions[i].second);
    apply(world.vars, {OpKind::fold, shared_target, x, 0});
  }
  for (std::size_t q = 0; q < kQueues; ++q) {
    for (const Element& e : own[q]) world.queues[q].push_back(e);
    if (world.queues[q].size() > std::size_t(kCapacity)) fail("a queue is above its capacity");
  }
  for (std::size_t i = 0; i < parts; ++i)
    if (acc[i] != traces[i].acc)
      fail((committed ? "a committed run" : "a read-only run") +
           std::string(" saw no single moment: run ") + std::to_string(run.session) + "." +
           std::to_string(run.n) + ", partition " + std::to_string(i) + " of " +
           describe(p, traces[i]));
  return acc[0];
}

void Simulation::check_history() {
  World world;
  std::vector<World> states{world};
  std::set<RunId> seen;
  std::set<std::pair<u64, u64>> random;
  CommitNumber expected = 1;
  for (auto& [s, d] : history_) {
    if (s != expected++) return fail("commit numbers are not dense");
    if (!seen.insert(d.run).second) return fail("a run was committed twice");
    if (!random.insert({d.traces[0].snapshot, d.traces[0].random_index}).second)
      return fail("two committed runs drew the same random numbers");
    for (const Trace& t : d.traces)
      if (t.snapshot != d.traces[0].snapshot)
        return fail("partitions of different attempts were mixed");
    replay(programs_.at(d.run), d.traces, world, d.run, s);
    if (!violation.empty()) return;
    states.push_back(world);
  }
  if (coordinator_->decided() != history_.size()) return fail("decided and answered differ");
  for (auto& r : read_only_) {
    if (r.traces[0].snapshot >= states.size()) return fail("a snapshot of nothing");
    World at = states[r.traces[0].snapshot];
    replay(programs_.at(r.run), r.traces, at, r.run, 0);
  }
  for (int v = 0; v < kVariables; ++v) {
    VariableStore::Outputs out;
    AttemptInfo reader{{1, ~u64{0}}, {}, coordinator_->decided(), 0, 0, 0};
    processes_[std::size_t(v % kShards)]->store.read({1, reader, {variable_name(v)}, {}, 0, false},
                                                     out);
    auto* reply = out.size() == 1 ? std::get_if<VariableStore::ReadReply>(&out[0]) : nullptr;
    if (!reply || !reply->status.ok()) return fail("a variable cannot be read at rest");
    if (reply->values[0].item<u64>() != world.vars[std::size_t(v)])
      return fail("a variable differs from the serial replay");
  }
  for (int q = 0; q < kQueues; ++q) {
    auto elements = processes_[std::size_t(q)]->queue.elements();
    auto& serial = world.queues[std::size_t(q)];
    bool same = elements.size() == serial.size();
    for (std::size_t i = 0; same && i < serial.size(); ++i)
      same = elements[i][1].item<u64>() == serial[i].id &&
             elements[i][0].item<u64>() == serial[i].value;
    if (!same) return fail("a queue differs from the serial replay");
  }
}

void Simulation::check_at_rest() {
  auto grows = [&](const char* what) { fail(std::string("not empty at rest: ") + what); };
  for (auto& p : processes_) {
    if (p->dead) continue;
    if (!p->store.tables().empty()) grows("a variable store");
    if (!p->queue.tables().empty()) grows("a queue");
    if (!p->shard.at_rest()) grows("a shard");
    if (!p->executions.empty()) grows("executions");
    if (!p->parked.empty()) grows("parked tensors");
  }
  if (!coordinator_->tables().empty()) grows("the coordinator");
}

// Could a sequential program run it on the committed state?
bool Simulation::feasible(const RunId& run) {
  const Program& p = programs_.at(run);
  std::array<int, kQueues> length;
  for (std::size_t q = 0; q < kQueues; ++q) length[q] = int(processes_[q]->queue.elements().size());
  int taken = 0;
  for (auto& part : p.parts)
    for (const Op& op : part) {
      auto q = std::size_t(op.target);
      if (op.kind == OpKind::dequeue && ++taken > kCapacity && p.fails) return true;
      if (op.kind == OpKind::dequeue && --length[q] < 0) return false;
      if (op.kind == OpKind::enqueue && ++length[q] > kCapacity) return false;
    }
  return true;
}

void Simulation::check_progress() {
  if (clients_done() || now_ - progress_at_ < kUnit * 12000) return;
  for (int s = 0; s < kSessions; ++s)
    for (auto& [n, asked] : clients_[std::size_t(s)].outstanding) {
      const RunId id{u64(s), n};
      if (clients_[std::size_t(s)].closing || outcomes_.count(id) != 0 || feasible(id)) continue;
      ++count.gave_up;  // it waits rightly; its client does not
      progress_at_ = now_;
      cancelled_.insert(id);
      Coordinator::Outputs out;
      coordinator_->cancel(id, cancelled("waited long enough"), now_, out);
      master(out);
      return;
    }
  std::string who;
  for (int s = 0; s < kSessions; ++s)
    for (auto& [n, asked] : clients_[std::size_t(s)].outstanding)
      who += " " + std::to_string(s) + "." + std::to_string(n) + " " +
             describe(programs_.at({u64(s), n}), {});
  fail("liveness: runs that could finish do not:" + who + " " + coordinator_->text());
}

void Simulation::tick() {
  if (coordinator_->next_wakeup() <= now_) {
    Coordinator::Outputs out;
    coordinator_->tick(now_, out);
    master(out);
  }
  for (int id = 0; id < kProcesses; ++id) {
    Process& p = *processes_[std::size_t(id)];
    if (p.dead) continue;
    Shard::Outputs out;
    if (p.shard.next_wakeup() <= now_) p.shard.tick(now_, out);
    shard_out(id, out);
    executor_tick(id);
  }
  for (int s = 0; s < kSessions; ++s) client_tick(s);
  if (lose_last_ && chance(20)) {
    lose_last_ = false;
    last_lost_ = processes_.back()->dead = true;
    ++count.lost_processes;
    Coordinator::Outputs out;
    coordinator_->process_lost(kProcesses - 1, now_, out);
    master(out);
  }
  check_progress();
  after(kTick, [this] { tick(); });
}

bool Simulation::run() {
  Instant finished = kNever;
  while (violation.empty()) {
    Event event = agenda_.top();
    agenda_.pop();
    now_ = event.at;
    event.what();
    if (++count.events > 3000000) fail("runaway");
    if (!clients_done()) continue;
    if (!all_closed_) {
      all_closed_ = true;
      finished = now_;
      for (int s = 0; s < kSessions; ++s) {
        clients_[std::size_t(s)].closing = true;
        Coordinator::Outputs out;
        coordinator_->close_session(u64(s), now_, out);
        master(out);
      }
    }
    if (now_ - finished < kUnit * 2500) continue;
    check_history();
    if (violation.empty()) check_at_rest();
    break;
  }
  const auto& c = coordinator_->counters();
  count.fast += long(c.fast_commits);
  count.commits += long(c.commits);
  count.read_only += long(c.read_only);
  count.conflicts += long(c.conflicts);
  count.withdrawn += long(c.withdrawn);
  count.failed += long(c.failed);
  return violation.empty();
}

}  // namespace troupe::sim
