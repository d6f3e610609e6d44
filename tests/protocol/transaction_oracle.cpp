// Of the simulation: what must hold, by a sequential replay of what was committed.
#include <algorithm>
#include <utility>

#include "tests/protocol/transaction_sim.hpp"

namespace troupe::sim {
namespace {

const char* const kOpNames[] = {"read", "read_back", "random",  "send",   "recv",    "fold",
                                "both", "pair",      "assign",  "shared", "enqueue", "dequeue",
                                "size", "element",   "publish", "poison", "work"};
}  // namespace

std::string describe(const Program& p, const Trace& t) {
  std::string text = "[R " + std::to_string(t.snapshot);
  for (const auto& ops : p.parts) {
    text += " |";
    for (const Op& op : ops)
      text += " " + std::string(kOpNames[int(op.kind)]) + std::to_string(op.target);
  }
  return text + "]";
}

// How many entries of a trace the next of these ops has made.
u64 elements_seen(const Program& p, std::size_t part, const Op& op, const std::vector<u64>& trace,
                  std::size_t at) {
  const auto dataset = p.shape->partitions[part].datasets[std::size_t(op.target)];
  return p.shape->datasets[dataset].open ? 1 + trace.at(at) : 1;
}

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
  if (const auto& dataset = programs_.at(answer.run).rewinds) {
    if (!answer.status.ok()) return;
    used_[std::size_t(*dataset)].clear();
    ++count.rewound;
    return;
  }
  check_boards(answer);
  std::vector<Trace> traces;
  bool nan = false;
  for (const Fetched& f : answer.fetches) {
    nan |= f.value.has_nan();
    if (f.index == kMaybeNan) continue;
    auto x = f.value.span<u64>();
    const auto taken = x.begin() + 4 + std::ptrdiff_t(x[3]);
    traces.push_back({x[0], x[1], x[2], {taken, x.end()}, {x.begin() + 4, taken}});
  }
  const Program& p = programs_.at(answer.run);
  if (p.resume) ++(answer.status.ok() ? count.restored : count.not_restored);
  if (nan && answer.committed != 0) return fail("a NaN was committed");
  if (nan && p.shape->draws) dropped_ = std::max(dropped_, traces[0].random_index + 1);
  use_elements(answer, traces);
  if (!answer.status.ok()) return;
  count.stale += answer.behind != 0;
  if (answer.behind != 0 && !p.immediate) return fail("a run that is repeated was stale");
  if (nan) {
    ++count.dropped;
  } else if (answer.committed == 0) {
    read_only_.push_back({answer.run, traces});
  } else if (!history_.emplace(answer.committed, Decided{answer.run, traces, answer.behind})
                  .second) {
    fail("a number was decided twice");
  }
}

void Simulation::observe(const Coordinator::StartAttempt& start) {
  const RunId& run = start.attempt.run;
  const Program& p = programs_.at(run);
  auto [holder, fresh] = holders_.try_emplace(run);
  if (fresh)
    for (const auto& share : p.shape->datasets) {
      std::set<u64> taken = used_[std::size_t(share.dataset.name[1] - '0')];
      for (const auto& [other, held] : holders_) {
        if (held.decided) continue;  // it has used them, and the dataset may begin anew
        const auto& theirs = programs_.at(other).shape->datasets;
        for (std::size_t d = 0; d < held.elements.size(); ++d) {
          if (theirs[d].dataset != share.dataset) continue;
          if (theirs[d].open) return fail("a run started while another holds its dataset");
          taken.insert(held.elements[d].begin(), held.elements[d].end());
        }
      }
      const u64 end = taken.empty() ? 0 : *taken.rbegin() + 1;
      std::vector<u64> elements;
      for (u64 e = 0; share.open ? e < end : elements.size() < share.elements; ++e)
        if (taken.count(e) == 0) elements.push_back(e);
      if (share.open) elements.push_back(end);
      holder->second.elements.push_back(std::move(elements));
    }
  if (std::exchange(holder->second.attempt, start.attempt.id) != start.attempt.id) {
    draw_by_rule(start, !fresh && holder->second.snapshot == start.attempt.snapshot);
    holder->second.snapshot = start.attempt.snapshot;
    holder->second.place = place_by_rule(run.session);
  }
  const auto& mine = p.shape->partitions[start.partition].datasets;
  if (start.elements.size() != mine.size()) return fail("a START without elements");
  for (std::size_t i = 0; i < mine.size(); ++i)
    if (start.elements[i] != holder->second.elements[mine[i]])
      return fail("a run was not given the elements that are its own");
}

void Simulation::use(const Program& p, std::size_t dataset, const std::vector<u64>& given,
                     u64 count) {
  for (u64 i = 0; i < count; ++i)
    used_[std::size_t(p.shape->datasets[dataset].dataset.name[1] - '0')].insert(
        element_number(given, i));
}

// Those of a run that ended well are used, others are free again. What it used is counted once,
// when its commit is first seen: its datasets may have been rewound since.
void Simulation::use_elements(const Coordinator::Answer& answer, const std::vector<Trace>& traces) {
  auto holder = holders_.extract(answer.run);
  if (holder.empty() || !answer.status.ok()) return;
  const Program& p = programs_.at(answer.run);
  const DatasetPlaces::Elements& held = holder.mapped().elements;
  const bool counted = answer.committed != 0 && answer.committed <= kept_.committed;
  for (std::size_t d = 0; d < held.size(); ++d)
    if (!p.shape->datasets[d].open && !counted) use(p, d, held[d], p.parts.size());
  for (std::size_t i = 0; i < traces.size(); ++i) {
    const auto& mine = p.shape->partitions[i].datasets;
    std::size_t at = 0;
    for (std::uint32_t d : mine) {
      const bool open = p.shape->datasets[d].open;
      const u64 rounds = open ? traces[i].elements.at(at++) : 1;
      for (u64 r = 0; r < rounds; ++r)
        if (traces[i].elements.at(at++) != element_number(held[d], r * p.parts.size() + i))
          return fail("a run used an element that was not its own");
      if (open) use(p, d, held[d], rounds * p.parts.size());
    }
  }
  if (answer.committed != 0)
    commit_by_rule(answer.run, answer.committed);
  else if (p.asks())
    check_place(*answer.place, holder.mapped().place, "a run");
}

// A run that is applied outside before it is answered has been decided, and its elements are used.
void Simulation::observe(const Coordinator::SendPrepare& send) {
  const auto holder = holders_.find(send.prepare.run);
  if (send.prepare.order != StageOrder::apply || holder == holders_.end()) return;
  holder->second.decided = true;
  if (send.prepare.s <= kept_.committed) return;  // sent again
  const Program& p = programs_.at(send.prepare.run);
  for (std::size_t d = 0; d < holder->second.elements.size(); ++d)
    use(p, d, holder->second.elements[d], p.parts.size());
  commit_by_rule(send.prepare.run, send.prepare.s);
}

std::vector<DatasetPlace> Simulation::places_by_rule() const {
  std::vector<DatasetPlace> places;
  for (int d = 0; d < kDatasets; ++d) {
    const auto& used = used_[std::size_t(d)];
    if (used.empty()) continue;
    DatasetPlace known{dataset_name(d), *used.rbegin() + 1, {}};
    for (u64 e = 0; e < known.next; ++e)
      if (used.count(e) == 0) known.left.push_back(e);
    places.push_back(std::move(known));
  }
  return places;
}

u64 Simulation::draws_by_rule(u64 session) const {
  const auto reads = reads_.find(session);
  return dropped_ << kIndexBits | (earlier_reads_ + (reads == reads_.end() ? 0 : reads->second));
}

// If there is a note, as of the last commit, whatever came after; else as of now.
JobPlace Simulation::place_by_rule(u64 session) const {
  JobPlace place = kept_;
  if (place.note.empty()) {
    place.datasets = places_by_rule();
    place.draws = draws_by_rule(session);
  }
  return place;
}

// A commit that is seen twice, when it is decided and when it is answered, counts once.
void Simulation::commit_by_rule(const RunId& run, CommitNumber s) {
  if (s <= kept_.committed) return;
  const Program& p = programs_.at(run);
  reads_.clear();
  if (p.resume) {
    kept_ = *p.resume;
    for (const DatasetPlace& place : kept_.datasets)
      for (u64 e = 0; e < place.next; ++e)
        if (std::count(place.left.begin(), place.left.end(), e) == 0)
          used_[std::size_t(place.dataset.name[1] - '0')].insert(e);
  } else {
    kept_.datasets = places_by_rule();
    kept_.draws = 0;
    if (!p.note.empty()) kept_.note = p.note;
  }
  kept_.committed = s;
  earlier_reads_ = kept_.draws & ((u64{1} << kIndexBits) - 1);
  dropped_ = kept_.draws >> kIndexBits;
}

// What only reads draws by its count, what may write by what no dropped run has drawn by.
void Simulation::draw_by_rule(const Coordinator::StartAttempt& start, bool again) {
  const Program& p = programs_.at(start.attempt.run);
  if (!p.shape->draws) return;
  if (!p.asks()) {
    if (start.random_index < dropped_) fail("a run draws what one that was dropped has drawn");
    return;
  }
  if (again) return;
  u64& reads = reads_[start.attempt.run.session];
  if (start.random_index != (u64{1} << kIndexBits) + earlier_reads_ + reads++)
    fail("a run draws other numbers than after a restart");
}

// What a program does beside runs: it comes further without a commit, or has done a thing once.
void Simulation::move_place() {
  if (seed_ % 2 == 0 || moves_.below(80) != 0) return;
  const u64 session = moves_.below(kSessions);
  const std::string name = std::to_string(moves_.below(1000));
  if (moves_.below(2) == 0) {
    coordinator_->done_once(session, name);
    kept_.once.insert(name);
  } else {
    if (!coordinator_->mark_place(session, "m" + name).ok()) fail("a place could not be moved");
    kept_.note = "m" + name;
  }
  kept_.datasets = places_by_rule();
  kept_.draws = draws_by_rule(session);
}

void Simulation::check_place(const JobPlace& told, const JobPlace& rule, const std::string& who) {
  count.noted += !rule.note.empty() && !rule.datasets.empty();
  if (told.committed != rule.committed)
    fail(who + " was told of another commit than the last one");
  else if (told.note != rule.note || told.once != rule.once)
    fail(who + " was told of another note than the last one, or other things done once");
  else if (told.datasets != rule.datasets)
    fail(who + " was told other places of datasets than those of the last commit");
  else if (told.draws != rule.draws)
    fail(who + " was told of other draws than those since the last commit");
}

// A run that need not wait for queues is done again a bounded number of times, whatever others do.
void Simulation::check_attempts(const AttemptInfo& attempt) {
  auto& numbers = attempts_[attempt.run];
  numbers.insert(attempt.id.a);
  for (const auto& part : programs_.at(attempt.run).parts)
    for (const Op& op : part)
      if (op.kind == OpKind::enqueue || op.kind == OpKind::dequeue) return;
  const u64 others = kSessions * (scenario_ == 3 ? 2 : 1) - 1;
  if (numbers.size() > 1 + Coordinator::Options{}.patience + others)
    fail("run " + std::to_string(attempt.run.session) + "." + std::to_string(attempt.run.n) +
         " was begun " + std::to_string(numbers.size()) + " times");
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
      fine = p.fails == Code::failed_precondition || closing ||
             p.rewinds ||  // another run has elements of its dataset
             (p.resume && !(restores_first_ && scenario_ != 3 && run.n == 0));  // others began
      break;
    case Code::invalid_argument:
      fine = p.fails == Code::invalid_argument;
      break;
    case Code::resource_exhausted:
      fine = memory_was_short();
      break;
    case Code::unavailable:
      fine = last_lost_ && p.uses_last_process;
      break;
    default:
      break;
  }
  if (!fine) fail("a run was answered: " + status.text());
}

// Not before it is decided, and nothing of a run that is not.
void Simulation::look_at_boards() {
  for (const auto& p : processes_) {
    if (p->board.committed() > coordinator_->decided())
      return fail("what is not decided can be seen");
    seen_on_boards_.insert(p->board.shown());
  }
}

// What a run that is answered has published can be seen, and of no other run anything.
void Simulation::check_boards(const Coordinator::Answer& answer) {
  for (const auto& part : programs_.at(answer.run).parts)
    for (const Op& op : part) {
      if (op.kind != OpKind::publish || answer.committed == 0) continue;
      ++count.published;
      if (processes_[std::size_t(op.target)]->board.committed() < answer.committed)
        return fail("a run was answered before what it published could be seen");
    }
  look_at_boards();
}

// Runs one program against the world, with variables as in `seen`; `traces` say what it took from
// queues.
u64 Simulation::replay(const Program& p, const std::vector<Trace>& traces, const World& seen,
                       World& world, const RunId& run, CommitNumber commit) {
  const bool committed = commit != 0;
  const std::size_t parts = p.parts.size();
  if (traces.size() != parts) {
    fail("fetches of some partitions are missing");
    return 0;
  }
  std::vector<u64> acc(parts);
  std::vector<std::size_t> pc(parts), taken(parts), elements(parts);
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
  std::map<std::uint32_t, std::pair<int, u64>> published;  // by node
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
            a = mix(a, seen.vars[std::size_t(op.target)]);
            break;
          case OpKind::read_back: {
            auto vars = seen.vars;
            for (const Write& w : logs[i]) apply(vars, w);
            a = mix(a, vars[std::size_t(op.target)]);
            break;
          }
          case OpKind::random:
            a = mix(a, mix(traces[i].snapshot + 1, traces[i].random_index));
            break;
          case OpKind::element:
            for (u64 n = elements_seen(p, i, op, traces[i].elements, elements[i]); n > 0; --n)
              a = mix(a, traces[i].elements.at(elements[i]++));
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
          case OpKind::publish:
            published[std::uint32_t(node)] = {op.target, mix(a, 30)};
            break;
          case OpKind::work:
            break;
          case OpKind::poison:
            fail("a refused write was passed over");
            return 0;
        }
      }
  }
  for (auto& log : logs)
    for (const Write& w : log) apply(world.vars, w);
  for (const auto& [node, what] : published) {
    world.boards[std::size_t(what.first)] = what.second;
    world.published.insert(what.second);
  }
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

// A job begins at 1, or goes on where an earlier life ended, with what puts its state there.
void Simulation::check_first_commit() {
  for (const auto& [s, d] : history_) {
    const Program& p = programs_.at(d.run);
    const bool first = s == history_.begin()->first;
    if (p.resume ? !first || s != p.resume->committed : first && s != 1)
      return fail("a job was restored at another commit, or in its midst");
  }
}

void Simulation::check_history() {
  check_first_commit();
  World world;
  const CommitNumber before = history_.empty() ? 0 : history_.begin()->first - 1;
  std::vector<World> states{world};
  std::set<RunId> seen;
  std::set<std::pair<u64, u64>> random;
  CommitNumber expected = before + 1;
  for (auto& [s, d] : history_) {
    if (s != expected++) return fail("commit numbers are not dense");
    if (!seen.insert(d.run).second) return fail("a run was committed twice");
    if (!random.insert({d.traces[0].snapshot, d.traces[0].random_index}).second)
      return fail("two committed runs drew the same random numbers");
    for (const Trace& t : d.traces)
      if (t.snapshot != d.traces[0].snapshot)
        return fail("partitions of different attempts were mixed");
    // A stale run has seen an earlier moment; one that says that it is not, none.
    const CommitNumber snapshot = d.traces[0].snapshot;
    if (d.behind != 0 && (d.behind != s - 1 - snapshot || snapshot < before))
      return fail("a run was stale by another number of commits");
    const World seen = d.behind != 0 ? states[snapshot - before] : world;
    replay(programs_.at(d.run), d.traces, seen, world, d.run, s);
    if (!violation.empty()) return;
    states.push_back(world);
  }
  if (coordinator_->decided() != (history_.empty() ? 0 : history_.rbegin()->first))
    return fail("decided and answered differ");
  if (scenario_ == 0)  // one client, one run at a time
    for (const auto& used : used_)
      if (!used.empty() && *used.rbegin() + 1 != used.size()) return fail("an element was skipped");
  for (auto& r : read_only_) {
    const StepShape& step = *programs_.at(r.run).shape;
    if (step.may_write && step.draws)
      return fail("a run that drew and might have written took no number");
    const CommitNumber snapshot = r.traces[0].snapshot;
    if (snapshot < before || snapshot - before >= states.size())
      return fail("a snapshot of nothing");
    World at = states[snapshot - before];
    const World seen = at;
    replay(programs_.at(r.run), r.traces, seen, at, r.run, 0);
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
  for (u64 seen : seen_on_boards_)
    if (world.published.count(seen) == 0) return fail("a run that failed was seen on a board");
  for (int b = 0; b < kShards; ++b)
    if (processes_[std::size_t(b)]->board.shown() != world.boards[std::size_t(b)])
      return fail("a board differs from the serial replay");
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
    if (!p->board.at_rest()) grows("a board");
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

}  // namespace troupe::sim
