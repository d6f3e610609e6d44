// Of the simulation: the executors of partitions.
#include <algorithm>
#include <cmath>

#include "tests/protocol/transaction_sim.hpp"

namespace troupe::sim {

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
  e.elements = m.elements;
  e.used.assign(m.elements.size(), e.program->parts.size());
  e.trace = {11 + m.partition, m.attempt.snapshot, m.random_index, {}, {}};
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
    report(id, e, aborted("stopped"));
}

void Simulation::revoke(int id, const Coordinator::RevokeGrant& m) {
  Process& p = *processes_[std::size_t(id)];
  auto at = p.executions.find({m.attempt, m.partition});
  if (at == p.executions.end() || !at->second.program) return;  // START is still to come
  Execution& e = at->second;
  if (e.granted_write || e.done) return;  // its word is on its way
  if (bug_ != Bug::revoked_grant_used) e.grant = 0;
  net([this, answer = GrantReturned{m.attempt, m.run}] {
    Coordinator::Outputs out;
    coordinator_->grant_returned(answer, now_, out);
    master(out);
  });
}

void Simulation::work(int id, Execution& e, int units) {
  e.waiting = next_request_++ * kProcesses + u64(id);
  e.resend_at = kNever;
  after(units, [this, id, mine = e.waiting] {
    Execution* e = waiting_for(id, mine);
    if (!e) return;
    e->waiting = 0;
    ++e->pc;
    advance(id, *e);
  });
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
      case OpKind::element:
        take_elements(e, op);
        ++e.pc;
        continue;
      case OpKind::send: {
        const auto to_part = std::uint32_t((e.part + 1) % e.program->parts.size());
        const int to = int(e.program->shape->partitions[to_part].task);
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
        e.updates.insert(u64(op.target));
        if (op.kind == OpKind::assign) e.reads.insert(u64(op.target));
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
      case OpKind::publish:
        return publish(id, e, op);
      case OpKind::work:
        return work(id, e, op.target);
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
  e.keys[{TaskId(shard), 0}] += std::uint32_t(r.writes.size());
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
  if (op.kind != OpKind::size) ++e.keys[{TaskId(shard), 1}];
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
        queue.look(
            r,
            [](const QueueView& found) -> std::vector<Tensor> {
              return {Tensor::scalar(found.size)};
            },
            out);
      resource_out(shard, 1, out);
    });
  });
}

void Simulation::publish(int id, Execution& e, const Op& op) {
  const int shard = op.target;
  const u64 request_id = next_request_++ * kProcesses + u64(id);
  const WriteKey key{e.part * 100 + std::uint32_t(e.pc), 0, {}};
  ++e.keys[{TaskId(shard), 2}];
  e.waiting = request_id;
  request(e,
          [this, id, shard, request_id, key, attempt = e.attempt, x = mix(e.trace.acc, 30)](int) {
            send(id, shard, [this, shard, request_id, key, attempt, x] {
              Resource::Outputs out;
              processes_[std::size_t(shard)]->board.publish(attempt, request_id, key, x, out);
              resource_out(shard, 2, out);
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
  report(id, *e, aborted("stopped"));
}

void Simulation::resource_reply(int id, const ResourceReply& reply) {
  Execution* e = waiting_for(id, reply.id);
  if (!e) return;
  e->waiting = 0;
  if (!reply.status.ok()) return report(id, *e, reply.status);
  const Op& op = e->program->parts[e->part][e->pc];
  if (op.kind == OpKind::size)
    e->trace.acc = mix(e->trace.acc, u64(reply.values[0].item<std::int64_t>()));
  if (op.kind == OpKind::dequeue) {
    e->trace.acc = mix(e->trace.acc, reply.values[0].item<u64>());
    e->trace.taken.push_back(reply.own ? 0 : reply.values[1].item<u64>());
    if (reply.own && bug_ != Bug::own_dequeue_not_a_read)
      e->own_dequeues.insert(queue_use(op.target));
  }
  ++e->pc;
  advance(id, *e);
}

void Simulation::take_elements(Execution& e, const Op& op) {
  const auto d = std::size_t(op.target);
  const auto& given = e.elements[d];
  auto see = [&](u64 x) {
    e.trace.elements.push_back(x);
    e.trace.acc = mix(e.trace.acc, x);
  };
  const auto dataset = e.program->shape->partitions[e.part].datasets[d];
  if (!e.program->shape->datasets[dataset].open) return see(given[e.part]);
  const u64 rounds = mix(e.attempt.id.a, e.part) % 4;
  see(rounds);
  for (u64 r = 0; r < rounds; ++r) see(element_number(given, r * e.program->parts.size() + e.part));
  e.used[d] = rounds * e.program->parts.size();
}

void Simulation::report(int id, Execution& e, Status status) {
  PartitionDone done;
  done.attempt = e.attempt.id;
  done.run = e.attempt.run;
  done.partition = e.part;
  done.status = status;
  if (e.granted_write && status.ok()) done.fast_committed = e.grant;
  for (auto& [resource, n] : e.keys) done.writes.push_back({resource, n, resource.hash == 2});
  auto list = [](const std::set<u64>& s) { return std::vector<u64>(s.begin(), s.end()); };
  done.elements = e.used;
  done.uses = {list(e.reads), list(e.updates), list(e.own_dequeues), list(e.enqueues)};
  const auto& elements = e.trace.elements;
  std::vector<u64> fetch{e.trace.acc, e.trace.snapshot, e.trace.random_index, elements.size()};
  fetch.insert(fetch.end(), elements.begin(), elements.end());
  fetch.insert(fetch.end(), e.trace.taken.begin(), e.trace.taken.end());
  done.fetches.push_back(
      {e.part, Tensor::of<u64>(Shape{std::int64_t(fetch.size())}, std::span<const u64>(fetch))});
  if (e.program && e.program->drops && e.part == 0)
    done.fetches.push_back(
        {kMaybeNan, Tensor::scalar(mix(e.trace.acc, 3) % 2 == 0 ? std::nanf("") : 0.f)});
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

}  // namespace troupe::sim
