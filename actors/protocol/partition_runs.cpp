#include "actors/protocol/partition_runs.hpp"

#include <algorithm>
#include <utility>

namespace troupe {

PartitionRuns::PartitionRuns(PartitionSetup setup, MakeOutbox make_outbox)
    : setup_(std::move(setup)), make_outbox_(std::move(make_outbox)) {}

PartitionRuns::Attempt* PartitionRuns::find(const AttemptId& id) {
  auto it = attempts_.find(id);
  return it == attempts_.end() || it->second.ended ? nullptr : &it->second;
}

// ------------------------------------------------------------------ begin and end of an attempt

void PartitionRuns::start(Start start, Outputs& out) {
  const AttemptId id = start.attempt.id;
  if (live_.over(id) || attempts_.contains(id)) return;
  if (Status status = check_elements(start); !status.ok())
    return refuse(id, start.attempt.run, std::move(status), out);
  std::shared_ptr<StepState> step;
  if (pool_.empty()) {
    step = std::make_shared<StepState>(setup_.program);
  } else {
    step = std::move(pool_.back());
    pool_.pop_back();
  }
  auto outbox = make_outbox_(id);
  StepInput input;
  input.run = run_hash(start.attempt.snapshot, start.random_index);
  input.trace_run = start.attempt.run.n;
  input.feeds = std::move(start.feeds);
  if (Status status = step->start(std::move(input), *outbox); !status.ok())
    return refuse(id, start.attempt.run, std::move(status), out);
  Attempt& attempt = attempts_[id];
  attempt.info = start.attempt;
  attempt.grant = start.grant;
  attempt.elements = std::move(start.elements);
  attempt.step = std::move(step);
  attempt.outbox = std::move(outbox);
  if (auto early = early_.extract(id); !early.empty())
    for (Arrival& a : early.mapped())
      attempt.step->deliver(a.channel, a.tag, std::move(a.tensor), a.dead);
  burst(id, attempt, out);
}

Status PartitionRuns::check_elements(const Start& start) const {
  const bool fit = std::equal(
      setup_.datasets.begin(), setup_.datasets.end(), start.elements.begin(), start.elements.end(),
      [](const DatasetRead& read, const auto& given) { return read.elements == given.size(); });
  if (fit) return ok_status();
  return invalid_argument("the step was not started with the elements that its datasets give");
}

// Answers for an attempt that does not begin. A START of it that comes later is ignored.
void PartitionRuns::refuse(const AttemptId& id, const RunId& run, Status status, Outputs& out) {
  attempts_[id].ended = true;
  PartitionDone done;
  done.attempt = id;
  done.run = run;
  done.partition = setup_.partition;
  done.status = std::move(status);
  out.push_back(std::move(done));
}

void PartitionRuns::abort(const AttemptId& id, const RunId& run, Status cause, Outputs& out) {
  if (live_.over(id)) return;
  auto it = attempts_.find(id);
  if (it == attempts_.end()) {  // never heard of
    early_.erase(id);
    return refuse(id, run, std::move(cause), out);
  }
  // Once its last write is sent it is too late: nothing else can fail, that answer decides.
  Attempt& attempt = it->second;
  if (attempt.ended || attempt.finished || attempt.committing || attempt.committed != 0) return;
  attempt.aborted = true;
  attempt.step->abort(std::move(cause));
  burst(id, attempt, out);
}

// What was held back for the number is logged like other writes.
void PartitionRuns::revoke(const AttemptId& id, const RunId& run, Outputs& out) {
  Attempt* attempt = find(id);
  if (!attempt || attempt->committing || attempt->committed != 0) return;
  attempt->grant = 0;
  attempt->held_nodes = 0;
  for (StepRequest& request : std::exchange(attempt->held, {}))
    ask(*attempt, std::move(request), out);
  out.push_back(GrantReturned{id, run});
}

void PartitionRuns::end_if_over(const AttemptId& id, Attempt& attempt, Outputs& out) {
  // A write with a granted number may have committed: what became of it decides the answer.
  if (!attempt.finished || attempt.committing) return;
  attempt.asked.clear();
  report(id, attempt, attempt.step->result(), out);
}

void PartitionRuns::report(const AttemptId& id, Attempt& attempt, StepResult result, Outputs& out) {
  PartitionDone done;
  done.attempt = id;
  done.run = attempt.info.run;
  done.partition = setup_.partition;
  done.status = std::move(result.status);
  done.fetches = std::move(result.fetches);
  std::map<ResourceId, std::uint32_t> keys;
  for (std::size_t r = 0; r < result.keys.size(); ++r)
    if (result.keys[r] > 0) keys[setup_.resources[r].id] += result.keys[r];
  for (const auto& [resource, count] : keys) done.writes.push_back({resource, count});
  done.uses = std::move(attempt.uses);
  done.fast_committed = attempt.committed;
  attempt.ended = true;
  attempt.outbox.reset();
  pool_.push_back(std::move(attempt.step));
  out.push_back(std::move(done));
}

void PartitionRuns::live(const LiveList& list) {
  if (!list.newer_than(live_)) return;
  live_ = list;
  std::erase_if(early_, [&](const auto& e) { return list.over(e.first); });
  std::erase_if(attempts_, [&](const auto& a) { return a.second.ended && list.over(a.first); });
}

// ------------------------------------------------------------------ bursts

// What is cheap does not wait for a lane; and most bursts before and after the work are that.
void PartitionRuns::burst(const AttemptId& id, Attempt& attempt, Outputs& out) {
  if (attempt.bursting || attempt.finished) return;
  burst_done(id, attempt.step->run_cheap(inline_lanes_), out);
}

void PartitionRuns::burst_on_lanes(const AttemptId& id, Attempt& attempt, Outputs& out) {
  attempt.bursting = true;
  out.push_back(Burst{id, attempt.step, attempt.outbox});
}

void PartitionRuns::burst_done(const AttemptId& id, BurstResult result, Outputs& out) {
  auto it = attempts_.find(id);
  if (it == attempts_.end()) return;
  Attempt& attempt = it->second;
  attempt.bursting = false;
  for (StepRequest& request : result.requests) {
    if (attempt.grant != 0 && request.kind == StepRequest::Kind::write) {
      attempt.held_nodes += std::uint32_t(request.items.size());
      attempt.held.push_back(std::move(request));
    } else {
      ask(attempt, std::move(request), out);
    }
  }
  attempt.waits += std::uint32_t(result.waits.size());
  for (const StepWait& wait : result.waits) out.push_back(Await{id, wait});
  if (result.finished) {
    attempt.finished = true;
    return end_if_over(id, attempt, out);
  }
  if (result.more) return burst_on_lanes(id, attempt, out);
  if (attempt.step->has_arrivals()) return burst(id, attempt, out);
  commit_held(attempt, out);
}

void PartitionRuns::arrived(const AttemptId& id, Arrival arrival, Outputs& out) {
  if (live_.over(id)) return;
  auto it = attempts_.find(id);
  if (it == attempts_.end()) {
    early_[id].push_back(std::move(arrival));
    return;
  }
  if (it->second.ended || it->second.finished) return;
  it->second.step->deliver(arrival.channel, arrival.tag, std::move(arrival.tensor), arrival.dead);
  burst(id, it->second, out);
}

void PartitionRuns::waited(const AttemptId& id, std::uint32_t wait, Status status, Outputs& out) {
  Attempt* attempt = find(id);
  if (!attempt || attempt->finished) return;
  --attempt->waits;
  attempt->step->waited(wait, std::move(status));
  burst(id, *attempt, out);
}

// ------------------------------------------------------------------ answers of resources

const StepRequest* PartitionRuns::asked_of(const AttemptId& id, std::uint32_t request) {
  Attempt* attempt = find(id);
  if (!attempt) return nullptr;
  auto asked = attempt->asked.find(request);
  return asked == attempt->asked.end() ? nullptr : &asked->second;
}

void PartitionRuns::answered(const AttemptId& id, std::uint32_t request,
                             Expected<std::vector<Tensor>> values, Outputs& out) {
  Attempt* attempt = find(id);
  if (!attempt || attempt->finished || attempt->asked.erase(request) == 0) return;
  attempt->step->answer(request, std::move(values));
  burst(id, *attempt, out);
}

void PartitionRuns::read(const AttemptId& id, std::uint32_t request,
                         Expected<std::vector<Tensor>> values,
                         const std::vector<std::string>& also_read, Outputs& out) {
  if (const StepRequest* asked = asked_of(id, request)) {
    const ResourceId container = setup_.resources[asked->resource].id;
    for (const std::string& name : also_read)
      for (const PartitionResource& r : setup_.resources)
        if (r.id == container && r.name == name) find(id)->uses.reads.push_back(r.key);
  }
  answered(id, request, std::move(values), out);
}

void PartitionRuns::queue_answered(const AttemptId& id, std::uint32_t request,
                                   Expected<std::vector<Tensor>> element, bool own, Outputs& out) {
  if (const StepRequest* asked = own ? asked_of(id, request) : nullptr)
    find(id)->uses.own_dequeues.push_back(setup_.resources[asked->resource].key);
  answered(id, request, std::move(element), out);
}

void PartitionRuns::logged(const AttemptId& id, std::uint32_t request, Status status,
                           CommitNumber committed, Outputs& out) {
  Attempt* attempt = find(id);
  if (!attempt) return;
  auto outcome = [&]() -> Expected<std::vector<Tensor>> {
    if (!status.ok()) return status;
    return std::vector<Tensor>{};
  };
  if (!attempt->committing) return answered(id, request, outcome(), out);
  attempt->committing = false;
  if (status.ok()) attempt->committed = committed;
  if (attempt->finished) return end_if_over(id, *attempt, out);
  for (const StepRequest& held : attempt->held) attempt->step->answer(held.id, outcome());
  attempt->held.clear();
  burst(id, *attempt, out);
}

// ------------------------------------------------------------------ requests to resources

void PartitionRuns::ask(Attempt& attempt, StepRequest request, Outputs& out) {
  for (const RequestItem& item : request.items) note_use(attempt, item.node, request.kind);
  const std::uint32_t id = request.id;
  switch (request.kind) {
    case StepRequest::Kind::read:
      out.push_back(read_of(attempt, request));
      break;
    case StepRequest::Kind::write:
      out.push_back(log_of(attempt, {request}, 0));
      break;
    case StepRequest::Kind::enqueue:
    case StepRequest::Kind::dequeue:
    case StepRequest::Kind::queue_close:
    case StepRequest::Kind::queue_size:
      out.push_back(queue_operation_of(attempt, request));
      break;
    case StepRequest::Kind::next_element:
      out.push_back(element_of(attempt, request));
      break;
    case StepRequest::Kind::file:
      out.push_back(FileOperation{id, attempt.info.id, request.items.front().node,
                                  request.items.front().operands});
      break;
  }
  for (RequestItem& item : request.items) item.operands.clear();
  attempt.asked.emplace(id, std::move(request));
}

// With a granted number the writes travel in one message, once nothing else is left to fail: no
// burst, answer or ticket is to come, and nobody has called the attempt off.
void PartitionRuns::commit_held(Attempt& attempt, Outputs& out) {
  if (attempt.held.empty() || attempt.held_nodes < setup_.writes.size()) return;
  if (attempt.committing || attempt.committed != 0 || attempt.aborted) return;
  if (!attempt.asked.empty() || attempt.waits > 0) return;
  for (const StepRequest& r : attempt.held)
    for (const RequestItem& item : r.items) note_use(attempt, item.node, r.kind);
  attempt.committing = true;
  out.push_back(log_of(attempt, attempt.held, attempt.grant));
  for (StepRequest& r : attempt.held)
    for (RequestItem& item : r.items) item.operands.clear();
}

PartitionRuns::Read PartitionRuns::read_of(const Attempt& attempt,
                                           const StepRequest& request) const {
  const Plan& plan = setup_.program->plan();
  Read read{request.resource, {}};
  read.request.id = request.id;
  read.request.attempt = attempt.info;
  for (const RequestItem& item : request.items) {
    const PlanInfo& info = plan.info[item.node];
    read.request.names.push_back(setup_.resources[info.resource].name);
    read.request.initialised_only = info.def.op == "IsVariableInitialized";
    read.request.replica = std::uint32_t(std::max(0, info.replica));
    // Reads of one epoch join: seeing a write that one of them is not ordered after is as good.
    if (auto it = setup_.after.find(item.node); it != setup_.after.end())
      read.request.after.insert(read.request.after.end(), it->second.begin(), it->second.end());
  }
  return read;
}

PartitionRuns::Log PartitionRuns::log_of(const Attempt& attempt,
                                         const std::vector<StepRequest>& requests,
                                         CommitNumber grant) const {
  Log log{requests.front().resource, {}};
  log.request.id = requests.front().id;
  log.request.attempt = attempt.info;
  log.request.commit = grant;
  for (const StepRequest& request : requests)
    for (const RequestItem& item : request.items)
      log.request.writes.push_back(
          {write_key(item), setup_.writes.at(item.node).rule, item.operands});
  return log;
}

PartitionRuns::QueueOperation PartitionRuns::queue_operation_of(const Attempt& attempt,
                                                                const StepRequest& request) const {
  const RequestItem& item = request.items.front();
  const PlanInfo& info = setup_.program->plan().info[item.node];
  QueueOperation operation;
  operation.resource = info.resource;
  operation.kind = request.kind;
  operation.request = {request.id, attempt.info, write_key(item)};
  operation.element = item.operands;
  if (request.kind == StepRequest::Kind::queue_close)
    operation.cancel_pending = *info.def.attrs.find("cancel_pending")->second.get<bool>();
  return operation;
}

PartitionRuns::TakeElement PartitionRuns::element_of(const Attempt& attempt,
                                                     const StepRequest& request) const {
  const PlanInfo& info = setup_.program->plan().info[request.items.front().node];
  auto read = std::find_if(setup_.datasets.begin(), setup_.datasets.end(),
                           [&](const DatasetRead& r) { return r.resource == info.resource; });
  const auto& elements = attempt.elements[std::size_t(read - setup_.datasets.begin())];
  const std::size_t replica = elements.size() > 1 ? std::size_t(info.replica) : 0;
  return {info.resource, request.id, attempt.info.id, elements[replica]};
}

void PartitionRuns::note_use(Attempt& attempt, std::uint32_t node, StepRequest::Kind kind) const {
  const PlanInfo& info = setup_.program->plan().info[node];
  Uses& uses = attempt.uses;
  switch (kind) {
    case StepRequest::Kind::read:
    case StepRequest::Kind::queue_size:
      uses.reads.push_back(setup_.resources[info.resource].key);
      break;
    case StepRequest::Kind::write:
      for (std::uint32_t handle : info.handles)
        (info.def.op == "Assign" ? uses.assigns : uses.updates)
            .push_back(setup_.resources[handle].key);
      break;
    case StepRequest::Kind::enqueue:
    case StepRequest::Kind::queue_close:
      uses.enqueues.push_back(setup_.resources[info.resource].key);
      [[fallthrough]];
    case StepRequest::Kind::dequeue:
      uses.updates.push_back(setup_.resources[info.resource].key);
      break;
    case StepRequest::Kind::next_element:
    case StepRequest::Kind::file:
      break;
  }
}

WriteKey PartitionRuns::write_key(const RequestItem& item) const {
  WriteKey key;
  key.node = item.node;
  key.replica = std::uint32_t(std::max(0, setup_.program->plan().info[item.node].replica));
  if (auto it = setup_.writes.find(item.node); it != setup_.writes.end()) {
    key.node = it->second.key;
    key.replica = it->second.replica;
  }
  key.iterations.assign(item.tag.iterations().begin(), item.tag.iterations().end());
  return key;
}

}  // namespace troupe
