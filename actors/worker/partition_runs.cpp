#include "actors/worker/partition_runs.hpp"

#include <algorithm>
#include <utility>

#include "core/coarse_clock.hpp"

namespace troupe {

PartitionRuns::PartitionRuns(PartitionSetup setup, MakeOutbox make_outbox)
    : setup_(std::move(setup)), make_outbox_(std::move(make_outbox)) {
  if (setup_.trace) line_ = &setup_.trace->track("steps on " + setup_.program->plan().device);
}

PartitionRuns::Attempt* PartitionRuns::find(const AttemptId& id) {
  auto it = attempts_.find(id);
  return it == attempts_.end() ? nullptr : &it->second;
}

bool PartitionRuns::over(const AttemptId& id) const {
  return live_.over(id) || std::binary_search(ended_.begin(), ended_.end(), id);
}

// Invalidates references to the attempt.
void PartitionRuns::end(const AttemptId& id) {
  ended_.insert(std::upper_bound(ended_.begin(), ended_.end(), id), id);
  attempts_.erase(id);
}

// ------------------------------------------------------------------ begin and end of an attempt

void PartitionRuns::start(Start start, Outputs& out) {
  const AttemptId id = start.attempt.id;
  if (over(id) || attempts_.contains(id)) return;
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
  if (active(setup_.trace)) input.trace = setup_.trace;
  input.feeds = std::move(start.feeds);
  if (setup_.memories) input.memory = setup_.memories->of(id);
  if (Status status = step->start(std::move(input), *outbox); !status.ok())
    return refuse(id, start.attempt.run, std::move(status), out);
  Attempt& attempt = attempts_[id];
  attempt.info = start.attempt;
  attempt.grant = start.grant;
  attempt.elements = std::move(start.elements);
  for (const DatasetRead& read : setup_.datasets)
    attempt.used.push_back(read.open ? 0 : read.elements);
  attempt.step = std::move(step);
  attempt.outbox = std::move(outbox);
  if (line()) attempt.began_ns = Trace::now_ns();
  if (early_.empty()) return burst(id, attempt, out);
  if (auto early = early_.extract(id); !early.empty())
    for (Arrival& a : early.mapped())
      attempt.step->deliver(a.channel, a.tag, std::move(a.tensor), a.dead);
  burst(id, attempt, out);
}

Status PartitionRuns::check_elements(const Start& start) const {
  const bool fit = std::equal(setup_.datasets.begin(), setup_.datasets.end(),
                              start.elements.begin(), start.elements.end(),
                              [](const DatasetRead&, const auto& given) { return !given.empty(); });
  if (fit) return ok_status();
  return invalid_argument("the step was not started with the elements that its datasets give");
}

// Answers for an attempt that does not begin. A later START of it is ignored.
void PartitionRuns::refuse(const AttemptId& id, const RunId& run, Status status, Outputs& out) {
  end(id);
  out.push_back(PartitionDone::failed(id, run, setup_.partition, std::move(status)));
}

void PartitionRuns::abort(const AttemptId& id, const RunId& run, Status cause, Outputs& out) {
  if (over(id)) return;
  auto it = attempts_.find(id);
  if (it == attempts_.end()) {  // START has not arrived
    early_.erase(id);
    return refuse(id, run, std::move(cause), out);
  }
  // Too late once the step is finished or its granted write is sent: the write's answer decides.
  Attempt& attempt = it->second;
  if (attempt.finished || attempt.committing || attempt.committed != 0) return;
  attempt.aborted = true;
  waited_for(attempt, "wait until aborted");
  attempt.step->abort(std::move(cause));
  burst(id, attempt, out);
}

// Held writes are now logged like other writes.
void PartitionRuns::revoke(const AttemptId& id, const RunId& run, Outputs& out) {
  Attempt* attempt = find(id);
  if (!attempt || attempt->committing || attempt->committed != 0) return;
  attempt->grant = 0;
  attempt->held_nodes = 0;
  for (StepRequest& request : std::exchange(attempt->held, {}))
    ask_resource(*attempt, std::move(request), out);
  out.push_back(GrantReturned{id, run});
}

namespace {

// What a loop uses in each iteration is told once: what is told in one message has a limit.
void once_each(std::vector<std::uint64_t>& keys) {
  constexpr std::size_t kMany = 1000;
  if (keys.size() <= kMany) return;
  std::sort(keys.begin(), keys.end());
  keys.erase(std::unique(keys.begin(), keys.end()), keys.end());
}

}  // namespace

void PartitionRuns::end_if_over(const AttemptId& id, Attempt& attempt, Outputs& out) {
  // A write with a granted number may have committed: its answer decides.
  if (!attempt.finished || attempt.committing) return;
  attempt.asked.clear();
  report(id, attempt, attempt.step->result(), out);
}

void PartitionRuns::report(const AttemptId& id, Attempt& attempt, StepResult result, Outputs& out) {
  auto& done = std::get<PartitionDone>(out.emplace_back(std::in_place_type<PartitionDone>));
  done.attempt = id;
  done.run = attempt.info.run;
  done.partition = setup_.partition;
  done.status = std::move(result.status);
  done.fetches = std::move(result.fetches);
  std::map<ResourceId, ResourceWrites> writes;
  for (std::size_t r = 0; r < result.keys.size(); ++r) {
    const PartitionResource& resource = setup_.resources[r];
    if (result.keys[r] == 0) continue;
    ResourceWrites& mine = writes[resource.id];
    mine = {resource.id, mine.keys + result.keys[r], resource.outside};
  }
  for (const auto& [id, mine] : writes) done.writes.push_back(mine);
  done.uses = std::move(attempt.uses);
  for (auto* keys :
       {&done.uses.reads, &done.uses.updates, &done.uses.own_dequeues, &done.uses.enqueues})
    once_each(*keys);
  done.fast_committed = attempt.committed;
  done.elements = std::move(attempt.used);
  if (attempt.began_ns != 0 && line())
    line()->record({.kind = Span::Kind::run, .name = "partition", .run = attempt.info.run.n},
                   attempt.began_ns, Trace::now_ns());
  pool_.push_back(std::move(attempt.step));
  end(id);
}

void PartitionRuns::live(const LiveList& list) {
  if (!list.newer_than(live_)) return;
  live_ = list;
  std::erase_if(early_, [&](const auto& e) { return list.over(e.first); });
  std::erase_if(ended_, [&](const AttemptId& id) { return list.over(id); });
}

// ------------------------------------------------------------------ bursts

// Cheap nodes need no lane, and most bursts before and after the real work have only these.
void PartitionRuns::burst(const AttemptId& id, Attempt& attempt, Outputs& out) {
  if (attempt.bursting || attempt.finished) return;
  Trace* trace = active(setup_.trace);
  after_burst(id, attempt, attempt.step->run_cheap(inline_lanes_, trace ? &trace->here() : nullptr),
              out);
}

void PartitionRuns::burst_on_lanes(const AttemptId& id, Attempt& attempt, Outputs& out) {
  attempt.bursting = true;
  attempt.since_ns = coarse_now_ns();
  out.push_back(Burst{id, attempt.info.run, attempt.step, attempt.outbox});
}

void PartitionRuns::burst_done(const AttemptId& id, BurstResult result, Outputs& out) {
  auto it = attempts_.find(id);
  if (it != attempts_.end()) after_burst(id, it->second, std::move(result), out);
}

void PartitionRuns::after_burst(const AttemptId& id, Attempt& attempt, BurstResult result,
                                Outputs& out) {
  attempt.bursting = false;
  for (StepRequest& request : result.requests) {
    if (attempt.grant != 0 && request.external->order == External::Order::write) {
      attempt.held_nodes += std::uint32_t(request.items.size());
      attempt.held.push_back(std::move(request));
    } else {
      ask_resource(attempt, std::move(request), out);
    }
  }
  attempt.waits += std::uint32_t(result.waits.size());
  for (const StepWait& wait : result.waits) out.push_back(Await{id, wait});
  if (result.finished) {
    attempt.finished = true;
    if (attempt.committing) went_idle(attempt);
    return end_if_over(id, attempt, out);
  }
  went_idle(attempt);
  if (result.more) return burst_on_lanes(id, attempt, out);
  if (attempt.step->has_arrivals()) return burst(id, attempt, out);
  commit_held(attempt, out);
}

void PartitionRuns::went_idle(Attempt& attempt) const {
  attempt.idle_ns = line() ? Trace::now_ns() : 0;
  attempt.since_ns = coarse_now_ns();
}

// Records a wait, named after what ended it.
void PartitionRuns::waited_for(Attempt& attempt, std::string_view what) const {
  const std::int64_t since = std::exchange(attempt.idle_ns, 0);
  if (since == 0 || attempt.bursting || !line()) return;
  line()->record({.kind = Span::Kind::wait, .name = what, .run = attempt.info.run.n}, since,
                 Trace::now_ns());
}

void PartitionRuns::arrived(const AttemptId& id, Arrival arrival, Outputs& out) {
  if (over(id)) return;
  auto it = attempts_.find(id);
  if (it == attempts_.end()) {
    early_[id].push_back(std::move(arrival));
    return;
  }
  if (it->second.finished) return;
  waited_for(it->second, "wait for a tensor");
  it->second.step->deliver(arrival.channel, arrival.tag, std::move(arrival.tensor), arrival.dead);
  burst(id, it->second, out);
}

void PartitionRuns::waited(const AttemptId& id, std::uint32_t wait, Status status, Outputs& out) {
  Attempt* attempt = find(id);
  if (!attempt || attempt->finished) return;
  --attempt->waits;
  waited_for(*attempt, "wait for the device");
  attempt->step->waited(wait, std::move(status));
  burst(id, *attempt, out);
}

// ------------------------------------------------------------------ resources

namespace {

// What takes elements declares them as the program says, and other nodes, here and in other
// processes, are made for that. A dataset sees to its elements itself.
Status check_answer(const PlanInfo& info, const std::vector<Tensor>& values) {
  const External& external = *info.external;
  if (external.order != External::Order::none || external.resource == "dataset") return ok_status();
  const NodeDef& node = info.def;
  const std::size_t declared = std::min(node.out_types.size(), node.out_shapes.size());
  for (std::size_t i = 0; i < std::min(values.size(), declared); ++i) {
    const Tensor& value = values[i];
    if (!value.defined() || value.dtype() == DType::list) continue;  // of its elements
    if (value.dtype() == node.out_types[i] && node.out_shapes[i].accepts(value.shape())) continue;
    return invalid_argument("output " + std::to_string(i) + " is declared " +
                            std::string(dtype_name(node.out_types[i])) + node.out_shapes[i].text() +
                            ", and is " + std::string(dtype_name(value.dtype())) +
                            value.shape().text());
  }
  return ok_status();
}

}  // namespace

void PartitionRuns::answered(ResourceAnswer answer, Outputs& out) {
  Attempt* attempt = find(answer.attempt);
  if (!attempt) return;
  waited_for(*attempt, attempt->committing ? "wait for the commit" : "wait for a resource");
  if (attempt->committing) return committed(*attempt, std::move(answer), out);
  const auto id = std::uint32_t(answer.id);
  if (attempt->finished || !attempt->asked.contains(id)) return;
  note_answer(*attempt, answer);
  if (answer.status.ok())
    answer.status =
        check_answer(setup_.program->plan().info[attempt->asked.at(id).node], answer.values);
  attempt->asked.erase(id);
  if (answer.status.ok())
    attempt->step->answer(id, std::move(answer.values));
  else
    attempt->step->answer(id, std::move(answer.status));
  burst(answer.attempt, *attempt, out);
}

void PartitionRuns::committed(Attempt& attempt, ResourceAnswer answer, Outputs& out) {
  attempt.committing = false;
  if (answer.status.ok()) attempt.committed = answer.committed;
  if (attempt.finished) return end_if_over(answer.attempt, attempt, out);
  for (const StepRequest& held : attempt.held) {
    if (answer.status.ok())
      attempt.step->answer(held.id, std::vector<Tensor>{});
    else
      attempt.step->answer(held.id, answer.status);
  }
  attempt.held.clear();
  burst(answer.attempt, attempt, out);
}

void PartitionRuns::ask_resource(Attempt& attempt, StepRequest request, Outputs& out) {
  ResourceRequest asked = request_of(attempt, request.id);
  for (RequestItem& item : request.items) {
    note_use(attempt, item);
    if (auto after = setup_.after.find(item.node); after != setup_.after.end())
      // Reads of one epoch are one request: each sees the writes that any of them comes after.
      asked.after.insert(asked.after.end(), after->second.begin(), after->second.end());
    asked.items.push_back(item_of(attempt, item));
  }
  const std::uint64_t position = asked.items.empty() ? 0 : asked.items.front().position;
  attempt.asked[request.id] = {request.resource, request.items.front().node, position,
                               coarse_now_ns()};
  out.push_back(Ask{request.resource, std::move(asked)});
}

// With a granted number, all writes are sent in one message when nothing else can fail: no burst,
// answer or ticket is outstanding, and the attempt is not aborted.
void PartitionRuns::commit_held(Attempt& attempt, Outputs& out) {
  if (attempt.held.empty() || attempt.held_nodes < setup_.writes.size()) return;
  if (attempt.committing || attempt.committed != 0 || attempt.aborted) return;
  if (!attempt.asked.empty() || attempt.waits > 0) return;
  ResourceRequest asked = request_of(attempt, attempt.held.front().id);
  asked.commit = attempt.grant;
  for (StepRequest& held : attempt.held)
    for (RequestItem& item : held.items) {
      note_use(attempt, item);
      asked.items.push_back(item_of(attempt, item));
    }
  attempt.committing = true;
  attempt.since_ns = coarse_now_ns();
  out.push_back(Ask{attempt.held.front().resource, std::move(asked)});
}

ResourceRequest PartitionRuns::request_of(const Attempt& attempt, std::uint32_t id) const {
  ResourceRequest request;
  request.id = id;
  request.attempt = attempt.info;
  request.plan = setup_.program;
  return request;
}

ResourceRequest::Item PartitionRuns::item_of(Attempt& attempt, RequestItem& item) const {
  const Plan& plan = setup_.program->plan();
  ResourceRequest::Item out;
  out.node = &plan.info[item.node];
  out.resource = &plan.resources[out.node->resource];
  const auto copy = setup_.copies.find(item.node);
  out.key.node = copy == setup_.copies.end() ? item.node : copy->second;
  out.key.replica = out.replica();
  if (auto write = setup_.writes.find(item.node); write != setup_.writes.end()) {
    out.rule = write->second.rule;
    out.key.node = write->second.key;
    out.key.replica = write->second.replica;
  }
  out.key.iterations.assign(item.tag.iterations().begin(), item.tag.iterations().end());
  give_element(attempt, item, out);
  out.operands = std::move(item.operands);
  return out;
}

// Sets the dataset element: that of the node's replica, or in a loop that of the round in its
// input.
void PartitionRuns::give_element(Attempt& attempt, const RequestItem& asked,
                                 ResourceRequest::Item& item) const {
  for (std::size_t d = 0; d < setup_.datasets.size(); ++d) {
    const DatasetRead& read = setup_.datasets[d];
    if (read.resource != item.node->resource) continue;
    const bool in_rounds = !asked.operands.empty();
    const std::uint64_t round =
        in_rounds ? std::uint64_t(asked.operands[0].item<std::int64_t>()) : 0;
    const std::uint64_t replica = read.elements > 1 ? item.replica() : 0;
    item.position = element_number(attempt.elements[d], round * read.elements + replica);
    item.elements = read.elements;
    attempt.used[d] = std::max(attempt.used[d], (round + 1) * read.elements);
  }
}

void PartitionRuns::note_use(Attempt& attempt, const RequestItem& item) const {
  const PlanInfo& info = setup_.program->plan().info[item.node];
  const External& external = *info.external;
  const auto note = [&](std::uint64_t key) {
    if (external.sees) attempt.uses.reads.push_back(key);
    if (external.changes) attempt.uses.updates.push_back(key);
    if (external.fills) attempt.uses.enqueues.push_back(key);
  };
  if (info.handles.empty()) note(setup_.resources[info.resource].key);
  for (std::uint32_t handle : info.handles) note(setup_.resources[handle].key);
}

// Notes uses that only the answer shows.
void PartitionRuns::note_answer(Attempt& attempt, const ResourceAnswer& answer) const {
  const std::uint32_t asked = attempt.asked.at(std::uint32_t(answer.id)).resource;
  const PartitionResource& resource = setup_.resources[asked];
  if (answer.own) attempt.uses.own_dequeues.push_back(resource.key);
  for (const std::string& name : answer.also_seen)
    for (const PartitionResource& other : setup_.resources)
      if (other.id == resource.id && other.name == name) attempt.uses.reads.push_back(other.key);
}

// ------------------------------------------------------------------ what it waits for

namespace {

// Waits reported for one step.
constexpr std::size_t kMostOfOne = 16;

std::string shortened(std::string text) {
  if (text.size() > TaskWaits::kMostText) text.resize(TaskWaits::kMostText);
  return text;
}

// "queue 'q'", "the variables of container 'c'", "element 7 of dataset 'digits'".
std::string words_of(const ResourceRef& ref, std::uint64_t position) {
  const auto named = [&](std::string words) {
    return ref.name.empty() ? words : words + " '" + ref.name + "'";
  };
  if (ref.kind == "dataset")
    return "element " + std::to_string(position) + " of " + named("dataset");
  if (ref.kind == "variable")
    return ref.container.empty() ? "the variables"
                                 : "the variables of container '" + ref.container + "'";
  return named(ref.kind);
}

}  // namespace

void PartitionRuns::waits(std::vector<NodeWait>& out) const {
  for (const auto& [id, attempt] : attempts_) waits_of(id, attempt, out);
}

void PartitionRuns::waits_of(const AttemptId& id, const Attempt& attempt,
                             std::vector<NodeWait>& out) const {
  const Plan& plan = setup_.program->plan();
  const std::int64_t now = coarse_now_ns();
  const std::size_t first = out.size();
  const auto put = [&](Wait::On on, std::uint32_t node, std::int64_t since, std::string what) {
    NodeWait& wait = out.emplace_back();
    wait.run = attempt.info.run;
    wait.attempt = id;
    wait.partition = setup_.partition;
    wait.on = on;
    wait.device = plan.device;
    wait.what = shortened(std::move(what));
    wait.milliseconds = std::uint64_t(std::max<std::int64_t>(now - since, 0) / 1'000'000);
    if (node == kNoNode) return;
    wait.node = shortened(plan.info[node].name);
    wait.op = shortened(plan.info[node].def.op);
    if (const Site& site = plan.info[node].def.site; site.known())
      wait.site = shortened(site.text());
  };
  if (attempt.bursting) {
    const auto at = attempt.step->look();
    return at ? put(Wait::On::node, at->node, at->since_ns, "")
              : put(Wait::On::lane, kNoNode, attempt.since_ns, "a compute thread of the device");
  }
  if (attempt.committing)
    put(Wait::On::commit,
        attempt.held.front().items.empty() ? kNoNode : attempt.held.front().items[0].node,
        attempt.since_ns, "its writes to be applied");
  for (const auto& [request, asked] : attempt.asked) {
    if (out.size() - first >= kMostOfOne) return;
    put(Wait::On::resource, asked.node, asked.since_ns,
        words_of(plan.resources[asked.resource], asked.position));
    out.back().resource = setup_.resources[asked.resource].id.hash;
  }
  if (attempt.waits > 0)
    put(Wait::On::device, kNoNode, attempt.since_ns, "work that the device was given");
  for (std::uint32_t node : attempt.step->awaited()) {
    if (out.size() - first >= kMostOfOne) return;
    const auto inbound = setup_.inbound.find(plan.info[node].channel);
    const bool known = inbound != setup_.inbound.end();
    put(Wait::On::tensor, node, attempt.since_ns,
        known ? "tensor '" + inbound->second.name + "'" : "a tensor");
    out.back().from = known ? inbound->second.from : setup_.partition;
  }
  if (out.size() == first) put(Wait::On::commit, kNoNode, attempt.since_ns, "the rest of the step");
}

}  // namespace troupe
