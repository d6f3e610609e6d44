#include "tests/protocol/transaction_sim.hpp"

#include <algorithm>

namespace troupe::sim {

World::World() {
  for (int v = 0; v < kVariables; ++v) vars[std::size_t(v)] = initial(v);
}

class Simulation::Rules : public UpdateRules {
 public:
  explicit Rules(u64 seed) : random_(mix64(~seed)) {}

  Expected<std::vector<Tensor>> reserve(std::span<const VariableMeta> variables,
                                        std::vector<WriteReduction>&) const override {
    if (random_.below(60) == 0) {
      ++refused;
      return resource_exhausted("no memory, on purpose");
    }
    return std::vector<Tensor>(variables.size());
  }
  mutable long refused = 0;

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

 private:
  mutable Random random_;
};

namespace {

CoordinatorRules rules_with(Bug bug) {
  CoordinatorRules rules;
  if (bug == Bug::no_conflict_check)
    rules.conflicts = [](const LastWrites&, const Uses&, CommitNumber) { return false; };
  if (bug == Bug::snapshots_not_pinned)
    rules.min_live = [](CommitNumber decided, CommitNumber) { return decided; };
  if (bug == Bug::decided_by_the_first_shard)
    rules.complete = [](const std::set<TaskId>&, const std::set<TaskId>& answered) {
      return !answered.empty();
    };
  if (bug == Bug::number_given_while_granted)
    rules.number_is_free = [](std::optional<StageOrder> round, bool) { return !round; };
  if (bug == Bug::number_given_before_it_is_back)
    rules.number_is_free = [](std::optional<StageOrder> round, bool granted) {
      return (!round || *round == StageOrder::withdraw) && !granted;
    };
  if (bug == Bug::nobody_is_ever_alone)
    rules.goes_alone = [](std::uint32_t, std::uint32_t) { return false; };
  return rules;
}

}  // namespace

// ------------------------------------------------------------------ set-up

Simulation::Simulation(u64 seed, Bug bug)
    : seed_(seed),
      bug_(bug),
      random_(mix64(seed)),
      moves_(mix64(seed + 1)),
      rules_(std::make_unique<Rules>(seed)) {
  scenario_ = int(seed % 5);
  loss_ = pick(50);
  Coordinator::Options options;
  options.max_active = std::size_t(1 + pick(4));
  if (bug == Bug::deadlocks_stay) options.deadlock_after = std::chrono::hours(1000);
  coordinator_ = std::make_unique<Coordinator>(options, rules_with(bug));
  for (int id = 0; id < kProcesses; ++id) {
    processes_.push_back(std::make_unique<Process>(id, *rules_, bug_));
    Shard::Outputs none;
    processes_.back()->shard.wish_lists({TaskId(id), 0}, true, none);
    coordinator_->add_task(TaskId(id), "/worker:" + std::to_string(id), id < kShards);
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

bool Simulation::memory_was_short() const { return rules_->refused > 0; }

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
    if (scenario_ == 4) c.total = s == 0 ? 2 : 40;
    c.window = scenario_ == 3 ? 2 : 1;
    for (u64 n = 0; n < c.total; ++n)
      programs_[{u64(s), n}] = scenario_ == 4 ? make_race_program(s) : make_program(s, int(n));
  }
  for (auto& [run, p] : programs_)
    if (const u64 h = mix(mix(seed_, run.session), mix(run.n, 11)); scenario_ != 4 && h % 12 == 0)
      p = make_rewind_program(int(h / 12 % kDatasets));
  const u64 hash = mix(seed_, 17);
  if (scenario_ != 4 && hash % 3 == 0) {
    restores_first_ = hash / 3 % 4 != 0;
    for (u64 n : {0, 1}) programs_[{0, n}] = make_restore_program(mix(hash, n));
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
        {TaskId(process), "/worker:" + std::to_string(process) + "/cpu:0", {}});
  }
  p.shape->fast_path = fast;
  p.shape->may_write = role != 1;
  p.parts.resize(std::size_t(parts));
  for (int d = 0; d < kDatasets; ++d)
    if (chance(250)) add_dataset(p, d, role <= 2 && chance(300));
  for (int i = 0; i < parts; ++i) {
    auto& ops = p.parts[std::size_t(i)];
    auto add = [&](OpKind k, int target = 0) { ops.push_back({k, target}); };
    for (int r = pick(3); r > 0; --r) add(OpKind::read, pick(kVariables));
    if (chance(500)) {
      add(OpKind::random);
      p.shape->draws = true;
    }
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
  if (role == 0 && !fast && chance(200)) p.parts[0].push_back({OpKind::publish, pick(kShards)});
  // Of a run that is decided before it is answered it is to be known at once what it has used.
  if (std::any_of(p.shape->datasets.begin(), p.shape->datasets.end(),
                  [](const auto& share) { return share.open; }))
    std::erase_if(p.parts[0], [](const Op& op) { return op.kind == OpKind::publish; });
  if (role == 0 && !fast && parts > 1 && chance(500))
    for (auto& ops : p.parts) ops.push_back({OpKind::shared, (base + 2) % kShards});
  if (role == 2) p.fails = Code::invalid_argument;
  if (role > 2) add_queue_program(p, role, first_queue);
  if (chance(40)) p.timeout = kUnit * (1 + pick(300));
  if (mix(mix(seed_, u64(session)), u64(n)) % 8 == 0)
    p.note = std::to_string(session) + "." + std::to_string(n);
  p.immediate = role == 0 && mix(mix(mix(seed_, u64(session)), u64(n)), 9) % 4 == 0;
  p.drops = !p.asks() && mix(mix(mix(seed_, u64(session)), u64(n)), 7) % (role > 2 ? 24 : 6) == 0;
  return p;
}

// Some of the partitions use the dataset, each an element of its own; of an open one as many as it
// likes, in this attempt.
void Simulation::add_dataset(Program& p, int dataset, bool open) {
  const auto index = std::uint32_t(p.shape->datasets.size());
  p.shape->datasets.push_back({dataset_name(dataset), std::uint32_t(p.parts.size()), open});
  for (std::size_t i = 0; i < p.parts.size(); ++i) {
    if (chance(300)) continue;
    auto& datasets = p.shape->partitions[i].datasets;
    p.parts[i].push_back({OpKind::element, int(datasets.size())});
    datasets.push_back(index);
  }
}

// Of one session runs that read, work and write; of the others many that write in the meantime.
Program Simulation::make_race_program(int session) {
  Program p;
  p.shape->partitions.push_back({TaskId{0}, "/worker:0/cpu:0", {}});
  p.shape->fast_path = true;
  const int var = kShards * pick(2);
  auto& ops = p.parts.emplace_back();
  if (session == 0 || chance(300)) ops.push_back({OpKind::read, var});
  if (session == 0) ops.push_back({OpKind::read, kShards - var});
  if (session == 0) ops.push_back({OpKind::work, 100 + pick(200)});
  ops.push_back({OpKind::fold, var});
  if (session != 0 && chance(30)) p.timeout = kUnit * (1 + pick(100));
  return p;
}

// Puts the state of a job there that ended in an earlier life, or fails.
Program Simulation::make_restore_program(u64 hash) {
  Program p;
  auto draw = [&](u64 n) {
    hash = mix64(hash);
    return hash % n;
  };
  const int parts = 1 + int(draw(kShards));
  for (int i = 0; i < parts; ++i) {
    p.shape->partitions.push_back({TaskId(i), "/worker:" + std::to_string(i) + "/cpu:0", {}});
    p.parts.push_back({{OpKind::assign, i}, {OpKind::assign, i + kShards}});
  }
  p.shape->fast_path = parts == 1;
  if (draw(2) == 0) {
    p.parts.back().push_back({OpKind::poison, parts - 1});
    p.fails = Code::invalid_argument;
  }
  JobPlace place{2 + draw(40)};
  if (draw(2) == 0) place.note = "restored";
  if (draw(2) == 0) place.once = {"before"};
  if (draw(2) == 0) place.datasets = {{dataset_name(0), 5, {}}};
  if (!place.datasets.empty() && scenario_ != 0) place.datasets[0].left = {1, 3};
  place.draws = draw(3) << kIndexBits | draw(3);
  p.resume = std::make_shared<const JobPlace>(std::move(place));
  return p;
}

Program Simulation::make_rewind_program(int dataset) const {
  Program p;
  p.shape->datasets.push_back({dataset_name(dataset), 1, false});
  p.shape->may_write = false;
  p.rewinds = dataset;
  return p;
}

// Once, as the master does it, however often its request comes.
void Simulation::rewind(const RunId& action, const Acknowledged& acknowledged) {
  const StepShape& shape = *programs_.at(action).shape;
  Coordinator::Outputs out;
  if (coordinator_->begin_action(action, acknowledged, out))
    coordinator_->end_action(action, coordinator_->rewind_datasets(shape), out);
  else if (bug_ == Bug::rewound_as_often_as_asked)
    (void)coordinator_->rewind_datasets(shape);
  master(out);
}

// Of its first two runs one may restore the job: others begin before that, or not.
bool Simulation::waits_for_restore(int session) const {
  if (!restores_first_ || session == 0 || clients_[0].closing) return false;
  const auto first = outcomes_.find({0, 0});
  if (first == outcomes_.end()) return true;
  return !first->second.ok() && outcomes_.count({0, 1}) == 0;
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
        to = int(m->task);
        check_attempts(m->attempt);
        if (bug_ == Bug::random_index_fixed) m->random_index = 0;
        for (auto& elements : m->elements)
          for (u64& element : elements) {
            if (bug_ == Bug::elements_by_commit) element = m->attempt.snapshot;
            if (bug_ == Bug::elements_anew_for_a_redo)
              element += m->attempt.id.a - m->attempt.marks_from;
          }
        observe(*m);
        if (bug_ == Bug::marks_not_kept) m->attempt.marks_from = m->attempt.id.a;
      }
      if (auto* m = std::get_if<Coordinator::AbortAttempt>(&output)) to = int(m->task);
      if (auto* m = std::get_if<Coordinator::SendPrepare>(&output)) {
        to = int(m->shard);
        observe(*m);
        newest_round_ = std::max(newest_round_, m->prepare.round);
      }
      if (auto* m = std::get_if<Coordinator::RevokeGrant>(&output)) to = int(m->task);
      if (auto* m = std::get_if<Coordinator::Expel>(&output))
        return fail("task " + std::to_string(number(m->task)) + " " + m->why.message());
      if (auto* m = std::get_if<Coordinator::SendLive>(&output)) {
        to = int(m->task);
        if (bug_ == Bug::attempts_never_over) m->list.next_a = 0;
        if (bug_ == Bug::marks_not_kept)
          for (LiveAttempt& l : m->list.live) l.marks_from = l.a;
        if (bug_ == Bug::listed_snapshots_not_pinned)
          for (LiveAttempt& l : m->list.live) l.snapshot = m->list.decided;
        if (bug_ == Bug::only_the_oldest_snapshot_pinned)
          for (LiveAttempt& l : m->list.live) l.snapshot = m->list.min_live;
      }
      net([this, to, o = std::move(output)] { at_process(to, o); });
    }
  }
  const u64 session = count.events % kSessions;
  check_place(coordinator_->ask_place(session), place_by_rule(session), "a program");
}

void Simulation::at_process(int id, Coordinator::Output output) {
  Process& p = *processes_[std::size_t(id)];
  if (p.dead) return;
  Shard::Outputs out;
  if (auto* m = std::get_if<Coordinator::StartAttempt>(&output)) start(id, *m);
  if (auto* m = std::get_if<Coordinator::AbortAttempt>(&output)) abort(id, *m);
  if (auto* m = std::get_if<Coordinator::SendPrepare>(&output)) p.shard.prepare(m->prepare, out);
  if (auto* m = std::get_if<Coordinator::RevokeGrant>(&output)) revoke(id, *m);
  if (auto* m = std::get_if<Coordinator::SendLive>(&output)) p.shard.live(m->list, out);
  shard_out(id, out);
}

void Simulation::shard_out(int id, Shard::Outputs& out) {
  Process& p = *processes_[std::size_t(id)];
  for (auto& output : out) {
    if (auto* m = std::get_if<Shard::StageResource>(&output)) {
      VariableStore::Outputs store;
      Resource::Outputs more;
      const auto index = std::uint32_t(m->resource.hash);
      if (bug_ == Bug::answered_before_it_is_applied && m->request.order == StageOrder::apply)
        more.push_back(ResourceStaged{m->request.s, m->request.attempt, 0, {}});
      else if (index == 0)
        p.store.stage(m->request, store);
      else if (index == 1)
        p.queue.stage(m->request, more);
      else
        p.board.stage(m->request, more);
      store_out(id, store);
      resource_out(id, index, more);
    } else if (auto* live = std::get_if<Shard::ResourceLive>(&output)) {
      tell_live(id, *live);
    } else if (auto* live = std::get_if<Shard::TaskLive>(&output)) {
      p.live = live->list;
      std::erase_if(p.executions, [&](auto& e) { return p.live.over(e.first.first); });
      std::erase_if(p.parked, [&](auto& e) { return p.live.over(e.first.first); });
    } else if (auto* staged = std::get_if<Staged>(&output)) {
      if (bug_ == Bug::refusal_ignored) staged->status = {};
      net([this, m = *staged]() mutable {
        if (bug_ == Bug::answers_of_other_rounds_count) m.round = newest_round_;
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

void Simulation::tell_live(int id, const Shard::ResourceLive& live) {
  Process& p = *processes_[std::size_t(id)];
  VariableStore::Outputs store;
  Resource::Outputs more;
  const auto index = std::uint32_t(live.resource.hash);
  if (index == 0)
    p.store.live(live.list, store);
  else if (index == 1)
    p.queue.live(live.list, more);
  else
    p.board.live(live.list, more);
  store_out(id, store);
  resource_out(id, index, more, /*list=*/true);
}

// What the actor of a resource asks its shard for, behind what it has said before.
void Simulation::wish_lists(int id, std::uint32_t index, bool list) {
  Process& p = *processes_[std::size_t(id)];
  bool rests = index == 1 ? p.queue.at_rest() : p.board.at_rest();
  if (bug_ == Bug::deaf_while_in_use) rests = list;
  if (bug_ == Bug::never_asks_for_lists) rests = true;
  ListWish& wish = p.wishes[index];
  if (list ? !wish.told(rests) : !wish.used(rests)) return;
  send(id, id, [this, id, index, list] {
    Shard::Outputs out;
    processes_[std::size_t(id)]->shard.wish_lists({TaskId(id), index}, !list, out);
    shard_out(id, out);
  });
}

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
      p.shard.staged({TaskId(id), 0}, *staged, more);
      shard_out(id, more);
    } else if (auto* task = std::get_if<VariableStore::Task>(&output)) {
      auto shared = std::make_shared<VariableStore::Task>(std::move(*task));
      after(1 + pick(8), [this, id, shared] { run_task(id, std::move(*shared)); });
    } else if (auto* join = std::get_if<VariableStore::Join>(&output)) {
      auto shared = std::make_shared<VariableStore::Join>(std::move(*join));
      after(1 + pick(8), [this, id, shared] { run_join(id, std::move(*shared)); });
    } else {
      fail("a commit could not be applied");
    }
  }
}

u64 Simulation::reduced_of(WriteReduction& r) {
  if (bug_ == Bug::reduced_in_any_order && chance(500))
    std::reverse(r.contributions.begin(), r.contributions.end());
  u64 x = r.contributions[0][0].item<u64>();
  for (std::size_t i = 1; i < r.contributions.size(); ++i)
    x = reduced(x, r.contributions[i][0].item<u64>());
  return x;
}

// The device: reduces.
void Simulation::run_join(int id, VariableStore::Join join) {
  std::vector<Tensor> values;
  for (auto& r : join.writes) values.push_back(scalar(reduced_of(r)));
  count.joined += long(join.writes.size());
  VariableStore::Outputs out;
  processes_[std::size_t(id)]->store.applied(join.id, std::move(values), out);
  store_out(id, out);
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
    const u64 x = reduced_of(r);
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

void Simulation::resource_out(int id, std::uint32_t index, Resource::Outputs& out, bool list) {
  if (index != 0) wish_lists(id, index, list);
  Process& p = *processes_[std::size_t(id)];
  for (auto& output : out) {
    Shard::Outputs more;
    if (auto* reply = std::get_if<ResourceReply>(&output)) {
      int to = int(reply->id % kProcesses);
      send(id, to, [this, to, r = *reply] { resource_reply(to, r); });
    } else if (auto* staged = std::get_if<ResourceStaged>(&output)) {
      p.shard.staged({TaskId(id), index}, *staged, more);
    } else if (auto* blocked = std::get_if<ResourceBlocked>(&output)) {
      p.shard.blocked({TaskId(id), index}, blocked->waiting, blocked->marked, now_, more);
    }
    shard_out(id, more);
  }
}

// ------------------------------------------------------------------ clients

void Simulation::client_tick(int s) {
  Client& c = clients_[std::size_t(s)];
  if (c.closed || waits_for_restore(s)) return;
  if (c.closing) {
    if (chance(100))
      net([this, s] {
        Coordinator::Outputs out;
        coordinator_->close_session(u64(s), now_, out);
        master(out);
      });
    return;
  }
  for (; c.outstanding.size() < c.window && c.begun < c.total; ++c.begun)
    c.outstanding[c.numbers.next()] = -kUnit * 1000;
  for (auto& [n, asked] : c.outstanding) {
    if (now_ - asked < kUnit * 150) continue;
    const RunId id{u64(s), n};
    const Program& p = programs_.at(id);
    const bool first = asked < Instant{0};
    asked = now_;
    RunRequest r{id,
                 p.shape,
                 p.timeout == kNever ? kNever : now_ + p.timeout,
                 c.numbers.acknowledged(),
                 p.asks(),
                 p.note.empty() ? nullptr : std::make_shared<const std::string>(p.note),
                 p.drops ? OnNan::drop : OnNan::commit,
                 p.resume,
                 p.immediate ? Commit::immediate : Commit::checked};
    net([this, r, rewinds = p.rewinds.has_value()] {
      if (rewinds) return rewind(r.run, r.acknowledged);
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
  c.numbers.answered(answer.run.n);
}

bool Simulation::clients_done() const {
  for (const Client& c : clients_) {
    if (c.closing && !c.closed) return false;
    if (!c.closing && (c.begun < c.total || !c.outstanding.empty())) return false;
  }
  return true;
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
    count.held_back += long(p.store.tables().waiting_writes);
    Shard::Outputs out;
    if (p.shard.next_wakeup() <= now_) p.shard.tick(now_, out);
    shard_out(id, out);
    executor_tick(id);
  }
  for (int s = 0; s < kSessions; ++s) client_tick(s);
  move_place();
  if (lose_last_ && chance(20)) {
    lose_last_ = false;
    last_lost_ = processes_.back()->dead = true;
    ++count.lost_processes;
    Coordinator::Outputs out;
    coordinator_->task_lost(TaskId(kProcesses - 1), unavailable("killed"), now_, out);
    master(out);
  }
  look_at_boards();
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
  count.taken_back += long(c.taken_back);
  count.revoked += long(c.revoked);
  return violation.empty();
}

}  // namespace troupe::sim
