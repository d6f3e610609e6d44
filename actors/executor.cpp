#include "actors/executor.hpp"

#include <algorithm>
#include <caf/actor_system.hpp>
#include <caf/send.hpp>
#include <caf/typed_event_based_actor.hpp>
#include <map>
#include <set>

#include "actors/inline_send.hpp"
#include "actors/spawn.hpp"
#include "core/log.hpp"

namespace troupe {
namespace {

// Sends what leaves the partition, from the lane that made it. Bursts share it: one may still run
// when its executor is gone.
class Outbox final : public StepOutbox {
 public:
  Outbox(std::shared_ptr<const ChannelRoutes> routes, AttemptId attempt)
      : shared_(std::move(routes)), routes_(*shared_), attempt_(attempt) {}

  void send(ChannelId channel, const Tag& tag, Tensor tensor, bool dead) override {
    const auto& route = routes_.routes.at(channel);
    if (route.local) {
      caf::anon_send(route.local, TensorArrived{routes_.compiled, route.partition, attempt_,
                                                channel, tag, std::move(tensor), dead});
      return;
    }
    TensorTag header;
    header.compiled = routes_.compiled;
    header.partition = route.partition;
    header.attempt = attempt_;
    header.index = channel;
    header.iterations.assign(tag.iterations().begin(), tag.iterations().end());
    header.dtype = tensor.dtype();
    header.shape = tensor.shape();
    header.dead = dead;
    routes_.hub->send_tensor(route.process, header, std::move(tensor));
  }

 private:
  std::shared_ptr<const ChannelRoutes> shared_;
  const ChannelRoutes& routes_;
  AttemptId attempt_;
};

// One attempt of one run, from START until a LiveList says that it is over.
struct Attempt {
  AttemptInfo info;
  CommitNumber grant = 0;
  std::vector<std::vector<std::uint64_t>> elements;  // parallel to ExecutorSetup::datasets
  std::shared_ptr<StepState> step;                   // null once it has ended, or never began
  std::shared_ptr<Outbox> outbox;
  bool bursting = false;
  bool ended = false;  // PartitionDone was sent
  // Requests with no answer yet; a held one waits for the rest of the step (fast path).
  std::map<std::uint32_t, StepRequest> asked;
  std::vector<StepRequest> held;
  std::uint32_t held_nodes = 0;
  std::uint32_t waits = 0;  // tickets that are not done yet
  bool aborted = false;
  bool committing = false;  // a write that carries the grant is under way
  bool finished = false;    // the step is over; PartitionDone waits for that write
  CommitNumber committed = 0;
  Uses uses;
};

struct ExecutorState {
  static constexpr const char* name = kExecutor;
  ExecutorSetup setup;
  std::unordered_map<AttemptId, Attempt> attempts;
  std::unordered_map<AttemptId, std::vector<TensorArrived>> early;
  std::vector<std::shared_ptr<StepState>> pool;
  LiveList live;
  InlineLanes inline_lanes;
};

using Self = ExecutorActor::stateful_pointer<ExecutorState>;

void burst(Self self, const AttemptId& id, Attempt& attempt);
void burst_on_lanes(Self self, const AttemptId& id, Attempt& attempt);

Attempt* find(Self self, const AttemptId& id) {
  auto it = self->state.attempts.find(id);
  return it == self->state.attempts.end() || it->second.ended ? nullptr : &it->second;
}

// Requests.

void note_use(Attempt& attempt, const ExecutorSetup& setup, const Plan& plan, std::uint32_t node,
              StepRequest::Kind kind) {
  const PlanInfo& info = plan.info[node];
  switch (kind) {
    case StepRequest::Kind::read:
      attempt.uses.reads.push_back(setup.resources[info.resource].key);
      break;
    case StepRequest::Kind::write:
      for (std::uint32_t handle : info.handles)
        (info.def.op == "Assign" ? attempt.uses.assigns : attempt.uses.updates)
            .push_back(setup.resources[handle].key);
      break;
    case StepRequest::Kind::queue_size:
      attempt.uses.reads.push_back(setup.resources[info.resource].key);
      break;
    case StepRequest::Kind::enqueue:
    case StepRequest::Kind::queue_close:
      attempt.uses.enqueues.push_back(setup.resources[info.resource].key);
      [[fallthrough]];
    case StepRequest::Kind::dequeue:
      attempt.uses.updates.push_back(setup.resources[info.resource].key);
      break;
    case StepRequest::Kind::next_element:
    case StepRequest::Kind::file:
      break;
  }
}

WriteKey write_key(const ExecutorSetup& setup, const Plan& plan, const RequestItem& item) {
  WriteKey key;
  key.node = item.node;
  key.replica = std::uint32_t(std::max(0, plan.info[item.node].replica));
  if (auto it = setup.writes.find(item.node); it != setup.writes.end()) {
    key.node = it->second.key;
    key.replica = it->second.replica;
  }
  key.iterations.assign(item.tag.iterations().begin(), item.tag.iterations().end());
  return key;
}

void ask_read(Self self, const Attempt& attempt, const StepRequest& request) {
  const auto& setup = self->state.setup;
  const Plan& plan = setup.program->plan();
  ReadVariables message;
  message.request.id = request.id;
  message.request.attempt = attempt.info;
  for (const RequestItem& item : request.items) {
    const PlanInfo& info = plan.info[item.node];
    message.request.names.push_back(setup.resources[info.resource].name);
    message.request.initialised_only = info.def.op == "IsVariableInitialized";
    message.request.replica = std::uint32_t(std::max(0, info.replica));
    // Reads of one epoch join: seeing a write that one of them is not ordered after is as good.
    if (auto it = setup.after.find(item.node); it != setup.after.end())
      message.request.after.insert(message.request.after.end(), it->second.begin(),
                                   it->second.end());
  }
  message.reply_to = ExecutorActor(self);
  self->send(setup.resources[request.resource].variables, std::move(message));
}

void ask_write(Self self, Attempt& attempt, std::vector<StepRequest> requests, CommitNumber grant) {
  const auto& setup = self->state.setup;
  const Plan& plan = setup.program->plan();
  ApplyUpdates message;
  message.request.id = requests.front().id;
  message.request.attempt = attempt.info;
  message.request.commit = grant;
  for (const StepRequest& request : requests)
    for (const RequestItem& item : request.items)
      message.request.writes.push_back(
          {write_key(setup, plan, item), setup.writes.at(item.node).rule, item.operands});
  message.reply_to = ExecutorActor(self);
  self->send(setup.resources[requests.front().resource].variables, std::move(message));
}

void ask_queue(Self self, const Attempt& attempt, const StepRequest& request) {
  const auto& setup = self->state.setup;
  const Plan& plan = setup.program->plan();
  const RequestItem& item = request.items.front();
  const PlanInfo& info = plan.info[item.node];
  QueueCall message;
  message.request = {request.id, attempt.info, write_key(setup, plan, item)};
  message.element = item.operands;
  message.reply_to = ExecutorActor(self);
  switch (request.kind) {
    case StepRequest::Kind::dequeue:
      message.kind = QueueCall::Kind::dequeue;
      break;
    case StepRequest::Kind::queue_size:
      message.kind = QueueCall::Kind::size;
      break;
    case StepRequest::Kind::queue_close:
      message.kind = QueueCall::Kind::close;
      message.cancel_pending = *info.def.attrs.find("cancel_pending")->second.get<bool>();
      break;
    default:
      message.kind = QueueCall::Kind::enqueue;
      break;
  }
  self->send(setup.resources[info.resource].queue, std::move(message));
}

void ask_element(Self self, const Attempt& attempt, const StepRequest& request) {
  const auto& setup = self->state.setup;
  const PlanInfo& info = setup.program->plan().info[request.items.front().node];
  auto read = std::find_if(setup.datasets.begin(), setup.datasets.end(),
                           [&](const DatasetRead& r) { return r.resource == info.resource; });
  const auto& elements = attempt.elements[std::size_t(read - setup.datasets.begin())];
  const std::size_t replica = elements.size() > 1 ? std::size_t(info.replica) : 0;
  self->send(setup.resources[info.resource].dataset,
             NextElement{request.id, attempt.info.id, elements[replica], ExecutorActor(self)});
}

void ask(Self self, Attempt& attempt, StepRequest request) {
  const auto& setup = self->state.setup;
  for (const RequestItem& item : request.items)
    note_use(attempt, setup, setup.program->plan(), item.node, request.kind);
  std::uint32_t id = request.id;
  switch (request.kind) {
    case StepRequest::Kind::read:
      ask_read(self, attempt, request);
      break;
    case StepRequest::Kind::write:
      ask_write(self, attempt, {request}, 0);
      break;
    case StepRequest::Kind::enqueue:
    case StepRequest::Kind::dequeue:
    case StepRequest::Kind::queue_close:
    case StepRequest::Kind::queue_size:
      ask_queue(self, attempt, request);
      break;
    case StepRequest::Kind::next_element:
      ask_element(self, attempt, request);
      break;
    case StepRequest::Kind::file: {
      const RequestItem& item = request.items.front();
      self->send(setup.files,
                 FileCall{request.id, attempt.info.id, setup.program->plan().info[item.node].def,
                          item.operands, ExecutorActor(self)});
      break;
    }
  }
  for (RequestItem& item : request.items) item.operands.clear();
  attempt.asked.emplace(id, std::move(request));
}

// With a granted number the writes travel in one message, once nothing else is left to fail: no
// burst, answer or ticket is to come, and nobody has called the attempt off.
void commit_held(Self self, Attempt& attempt) {
  const auto& setup = self->state.setup;
  if (attempt.held.empty() || attempt.held_nodes < setup.write_nodes) return;
  if (attempt.committing || attempt.committed != 0 || attempt.aborted) return;
  if (!attempt.asked.empty() || attempt.waits > 0) return;
  for (const StepRequest& r : attempt.held)
    for (const RequestItem& item : r.items)
      note_use(attempt, setup, setup.program->plan(), item.node, r.kind);
  attempt.committing = true;
  ask_write(self, attempt, attempt.held, attempt.grant);
  for (StepRequest& r : attempt.held)
    for (RequestItem& item : r.items) item.operands.clear();
}

// The end.

void report(Self self, const AttemptId& id, Attempt& attempt, StepResult result) {
  auto& s = self->state;
  const auto& setup = s.setup;
  PartitionDone done;
  done.attempt = id;
  done.run = attempt.info.run;
  done.partition = setup.partition;
  done.status = std::move(result.status);
  done.fetches = std::move(result.fetches);
  std::map<ResourceId, std::uint32_t> keys;
  for (std::size_t r = 0; r < result.keys.size(); ++r)
    if (result.keys[r] > 0) keys[setup.resources[r].id] += result.keys[r];
  for (const auto& [resource, count] : keys) done.writes.push_back({resource, count});
  done.uses = std::move(attempt.uses);
  done.fast_committed = attempt.committed;
  attempt.ended = true;
  attempt.outbox.reset();
  s.pool.push_back(std::move(attempt.step));
  self->send(setup.coordinator, std::move(done));
}

void end_if_over(Self self, const AttemptId& id, Attempt& attempt) {
  // A write with a granted number may have committed: what became of it decides the answer.
  if (!attempt.finished || attempt.committing) return;
  attempt.asked.clear();
  report(self, id, attempt, attempt.step->result());
}

void burst_done(Self self, const AttemptId& id, Attempt& attempt, BurstResult result) {
  attempt.bursting = false;
  for (StepRequest& request : result.requests) {
    if (attempt.grant != 0 && request.kind == StepRequest::Kind::write) {
      attempt.held_nodes += std::uint32_t(request.items.size());
      attempt.held.push_back(std::move(request));
    } else {
      ask(self, attempt, std::move(request));
    }
  }
  attempt.waits += std::uint32_t(result.waits.size());
  for (const StepWait& wait : result.waits)
    self->state.setup.program->device().on_complete(
        wait.ticket, [me = ExecutorActor(self), id, wait = wait.id](Status status) {
          caf::anon_send(me, TicketDone{id, wait, std::move(status)});
        });
  if (result.finished) {
    attempt.finished = true;
    return end_if_over(self, id, attempt);
  }
  if (result.more) return burst_on_lanes(self, id, attempt);
  if (attempt.step->has_arrivals()) return burst(self, id, attempt);
  commit_held(self, attempt);
}

void burst_on_lanes(Self self, const AttemptId& id, Attempt& attempt) {
  auto& s = self->state;
  attempt.bursting = true;
  self->send(s.setup.device,
             RunOnLanes{[step = attempt.step, outbox = attempt.outbox, me = ExecutorActor(self), id,
                         alive = s.setup.alive](Lanes& lanes) {
               caf::anon_send(me, BurstDone{id, std::make_shared<BurstResult>(step->run(lanes))});
             }});
}

void burst(Self self, const AttemptId& id, Attempt& attempt) {
  if (attempt.bursting || attempt.finished) return;
  // What is cheap does not wait for a lane; and most bursts before and after the work are that.
  burst_done(self, id, attempt, attempt.step->run_cheap(self->state.inline_lanes));
}

// Messages.

void refuse(Self self, const StartStep& message, Status status) {
  PartitionDone done;
  done.attempt = message.attempt.id;
  done.run = message.attempt.run;
  done.partition = self->state.setup.partition;
  done.status = std::move(status);
  self->state.attempts[message.attempt.id].ended = true;
  self->send(self->state.setup.coordinator, std::move(done));
}

Status check_elements(const ExecutorSetup& setup, const StartStep& message) {
  const bool fit = std::equal(
      setup.datasets.begin(), setup.datasets.end(), message.elements.begin(),
      message.elements.end(),
      [](const DatasetRead& read, const auto& given) { return read.elements == given.size(); });
  if (fit) return ok_status();
  return invalid_argument("the step was not started with the elements that its datasets give");
}

void start(Self self, StartStep& message) {
  auto& s = self->state;
  AttemptId id = message.attempt.id;
  if (s.live.over(id) || s.attempts.contains(id)) return;
  if (Status status = check_elements(s.setup, message); !status.ok())
    return refuse(self, message, std::move(status));
  std::shared_ptr<StepState> step;
  if (s.pool.empty()) {
    step = std::make_shared<StepState>(s.setup.program);
  } else {
    step = std::move(s.pool.back());
    s.pool.pop_back();
  }
  auto outbox = std::make_shared<Outbox>(s.setup.routes, id);
  StepInput input;
  input.run = run_hash(message.attempt.snapshot, message.random_index);
  input.trace_run = message.attempt.run.n;
  input.feeds = std::move(message.feeds);
  if (Status status = step->start(std::move(input), *outbox); !status.ok())
    return refuse(self, message, std::move(status));
  Attempt& attempt = s.attempts[id];
  attempt.info = message.attempt;
  attempt.grant = message.grant;
  attempt.elements = std::move(message.elements);
  attempt.step = std::move(step);
  attempt.outbox = std::move(outbox);
  if (auto early = s.early.extract(id); !early.empty())
    for (TensorArrived& t : early.mapped())
      attempt.step->deliver(t.channel, t.tag, std::move(t.tensor), t.dead);
  burst(self, id, attempt);
}

void abort(Self self, const AbortPartition& message) {
  auto& s = self->state;
  if (s.live.over(message.attempt)) return;
  auto it = s.attempts.find(message.attempt);
  if (it == s.attempts.end()) {  // never heard of: answer, and ignore a START that comes later
    StartStep start;
    start.attempt.id = message.attempt;
    start.attempt.run = message.run;
    s.early.erase(message.attempt);
    return refuse(self, start, message.cause);
  }
  // Once its last write is sent it is too late: nothing else can fail, that answer decides.
  if (it->second.ended || it->second.finished || it->second.committing || it->second.committed != 0)
    return;
  it->second.aborted = true;
  it->second.step->abort(message.cause);
  burst(self, message.attempt, it->second);
}

// Others want the number that the attempt was granted. What it held back for it is logged like
// other writes.
void revoke(Self self, const RevokeGrant& message) {
  Attempt* attempt = find(self, message.attempt);
  if (!attempt || attempt->committing || attempt->committed != 0) return;
  attempt->grant = 0;
  attempt->held_nodes = 0;
  for (StepRequest& request : std::exchange(attempt->held, {}))
    ask(self, *attempt, std::move(request));
  self->send(self->state.setup.coordinator, GrantReturned{message.attempt, message.run});
}

void answered(Self self, const AttemptId& id, std::uint64_t request, Status status,
              std::vector<Tensor> values) {
  Attempt* attempt = find(self, id);
  if (!attempt || attempt->finished || attempt->asked.erase(std::uint32_t(request)) == 0) return;
  if (status.ok())
    attempt->step->answer(std::uint32_t(request), std::move(values));
  else
    attempt->step->answer(std::uint32_t(request), std::move(status));
  burst(self, id, *attempt);
}

void logged(Self self, const UpdatesLogged& message) {
  Attempt* attempt = find(self, message.attempt);
  if (!attempt) return;
  if (!attempt->committing) return answered(self, message.attempt, message.id, message.status, {});
  attempt->committing = false;
  if (message.status.ok()) attempt->committed = message.committed;
  if (attempt->finished) return end_if_over(self, message.attempt, *attempt);
  for (const StepRequest& request : attempt->held) {
    if (message.status.ok())
      attempt->step->answer(request.id, std::vector<Tensor>{});
    else
      attempt->step->answer(request.id, message.status);
  }
  attempt->held.clear();
  burst(self, message.attempt, *attempt);
}

void live(Self self, const LiveList& list) {
  auto& s = self->state;
  if (!list.newer_than(s.live)) return;
  s.live = list;
  std::erase_if(s.early, [&](const auto& e) { return list.over(e.first); });
  std::erase_if(s.attempts, [&](const auto& a) { return a.second.ended && list.over(a.first); });
}

ExecutorActor::behavior_type executor_behavior(Self self, ExecutorSetup setup) {
  self->state.setup = std::move(setup);
  return {
      [self](StartStep& message) { start(self, message); },
      [self](const AbortPartition& message) { abort(self, message); },
      [self](const RevokeGrant& message) { revoke(self, message); },
      [self](TensorArrived& message) {
        auto& s = self->state;
        if (s.live.over(message.attempt)) return;
        auto it = s.attempts.find(message.attempt);
        if (it == s.attempts.end()) {
          AttemptId id = message.attempt;
          s.early[id].push_back(std::move(message));
          return;
        }
        if (it->second.ended || it->second.finished) return;
        it->second.step->deliver(message.channel, message.tag, std::move(message.tensor),
                                 message.dead);
        burst(self, message.attempt, it->second);
      },
      [self](BurstDone& message) {
        auto it = self->state.attempts.find(message.attempt);
        if (it != self->state.attempts.end())
          burst_done(self, message.attempt, it->second, std::move(*message.result));
      },
      [self](const TicketDone& message) {
        Attempt* attempt = find(self, message.attempt);
        if (!attempt || attempt->finished) return;
        --attempt->waits;
        attempt->step->waited(std::uint32_t(message.wait), message.status);
        burst(self, message.attempt, *attempt);
      },
      [self](VariablesRead& message) {
        if (Attempt* attempt = find(self, message.attempt))
          for (const std::string& name : message.also_read)
            for (const ResourceHandle& r : self->state.setup.resources)
              if (r.name == name && r.variables) attempt->uses.reads.push_back(r.key);
        answered(self, message.attempt, message.id, message.status, std::move(message.values));
      },
      [self](const UpdatesLogged& message) { logged(self, message); },
      [self](QueueAnswer& message) {
        Attempt* attempt = find(self, message.attempt);
        if (attempt && message.own && attempt->asked.contains(std::uint32_t(message.id))) {
          const auto& setup = self->state.setup;
          std::uint32_t node = attempt->asked.at(std::uint32_t(message.id)).items.front().node;
          attempt->uses.own_dequeues.push_back(
              setup.resources[setup.program->plan().info[node].resource].key);
        }
        answered(self, message.attempt, message.id, message.status, std::move(message.element));
      },
      [self](ElementReady& message) {
        answered(self, message.attempt, message.id, message.status, std::move(message.element));
      },
      [self](FileDone& message) {
        answered(self, message.attempt, message.id, message.status, std::move(message.outputs));
      },
      [self](const LiveList& message) { live(self, message); },
  };
}

}  // namespace

ExecutorActor spawn_executor(caf::actor_system& system, ExecutorSetup setup) {
  return spawn_actor<ExecutorActor>(system, kExecutor, executor_behavior, std::move(setup));
}

}  // namespace troupe
