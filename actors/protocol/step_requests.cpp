// What a step asks of its executor, and what reaches it from outside.
#include <algorithm>

#include "actors/protocol/detail/step.hpp"

namespace troupe {
namespace {

StepRequest::Kind kind_of(Role role) {
  switch (role) {
    case Role::read_variable:
      return StepRequest::Kind::read;
    case Role::write_variable:
      return StepRequest::Kind::write;
    case Role::enqueue:
      return StepRequest::Kind::enqueue;
    case Role::dequeue:
      return StepRequest::Kind::dequeue;
    case Role::queue_close:
      return StepRequest::Kind::queue_close;
    case Role::queue_size:
      return StepRequest::Kind::queue_size;
    case Role::next_element:
      return StepRequest::Kind::next_element;
    case Role::file:
      return StepRequest::Kind::file;
    default:
      break;
  }
  TROUPE_CHECK(false, "a role that nobody handles");
}

// Leaves a key at its resource (ResourceWrites).
bool leaves_key(StepRequest::Kind kind) {
  return kind == StepRequest::Kind::write || kind == StepRequest::Kind::enqueue ||
         kind == StepRequest::Kind::dequeue || kind == StepRequest::Kind::queue_close;
}

}  // namespace

void StepState::State::request_first_reads() {
  for (std::uint32_t node : program->first_reads())
    request_of(StepRequest::Kind::read, node)
        .items.push_back({.node = node, .outputs = nodes[node].outputs});
}

// A node that the executor carries out is ready: its inputs go along.
void StepState::State::request(std::uint32_t i) {
  const Program::Node& node = nodes[i];
  if (nodes[i].flags & Program::kFirstRead) return want(i, false);
  if (park_unless_done(i, 0, false)) return;
  RequestItem item{.node = i, .outputs = node.outputs};
  for (std::uint32_t k = 0; k < node.inputs; ++k)
    item.operands.push_back(take(program->input_slots()[node.first_input + k]).tensor);
  release_inputs(node);
  external[i] |= kWanted;
  request_of(kind_of(node.role), i).items.push_back(std::move(item));
}

// The request of this burst that the node joins, or a new one.
StepRequest& StepState::State::request_of(StepRequest::Kind kind, std::uint32_t i) {
  const Plan& plan = program->plan();
  const PlanInfo& info = plan.info[i];
  const auto reads_alike = [&](const StepRequest& r) {
    const PlanInfo& other = plan.info[r.items[0].node];
    return r.epoch == info.epoch && other.def.op == info.def.op &&
           (info.epoch == 0 || other.replica == info.replica);
  };
  auto container = [&](std::uint32_t resource) -> std::string_view {
    return resource == ~0u ? std::string_view() : plan.resources[resource].container;
  };
  if (kind == StepRequest::Kind::read || kind == StepRequest::Kind::write)
    for (StepRequest& r : burst->requests)
      if (r.kind == kind && (kind == StepRequest::Kind::write || reads_alike(r)) &&
          container(r.resource) == container(info.resource)) {
        requests[r.id - first_request].nodes.push_back(i);
        return r;
      }
  StepRequest& made = burst->requests.emplace_back();
  made.id = first_request + std::uint32_t(requests.size());
  made.kind = kind;
  made.resource = info.resource;
  made.epoch = info.epoch;
  requests.push_back({kind, {i}, true});
  return made;
}

// The node is ready, its outputs come from outside, or have come already.
void StepState::State::want(std::uint32_t i, bool dead) {
  external[i] |= dead ? kWanted | kIsDead : kWanted;
  release_inputs(nodes[i]);
  if (external[i] & kArrived) arrived(i);
}

void StepState::State::arrived(std::uint32_t i) {
  external[i] |= kArrived;
  if (!(external[i] & kWanted) || failing()) return;
  const bool dead = external[i] & kIsDead;
  if (dead && nodes[i].outputs > 0) slots[nodes[i].first_slot].tensor = {};
  complete(i, dead);
}

void StepState::State::drain() {
  for (Inbox::Node* list = inbox.take(); list;) {
    std::visit([this](auto& arrival) { handle(arrival); }, list->arrival);
    delete std::exchange(list, list->next);
  }
}

void StepState::State::handle(TensorArrival& arrival) {
  if (failing()) return;
  const std::uint32_t node = program->recv(arrival.channel);
  if (node == kNoNode || arrival.tag.depth() != 0)
    return fail(kNoNode,
                invalid_argument("a tensor arrived on channel " + std::to_string(arrival.channel) +
                                 ", which this partition does not receive"));
  if (external[node] & kArrived) return;  // sent again
  if (arrival.dead) {
    external[node] |= kIsDead;
  } else if (nodes[node].outputs > 0) {
    Status placed = place(node, nodes[node].first_slot, std::move(arrival.tensor));
    if (!placed.ok()) return fail(node, placed);
  }
  arrived(node);
}

void StepState::State::handle(RequestAnswer& answer) {
  const std::uint32_t index = answer.request - first_request;
  if (index >= requests.size() || !requests[index].open) return;  // of an earlier step
  OpenRequest& request = requests[index];
  request.open = false;
  if (!answer.status.ok()) return fail(request.nodes[0], answer.status);
  std::size_t next = 0;
  for (std::uint32_t node : request.nodes) {
    if (leaves_key(request.kind) && program->plan().info[node].resource != ~0u)
      ++keys[program->plan().info[node].resource];
    if (failing()) continue;
    Status taken = take_outputs(node, answer.outputs, next);
    if (!taken.ok()) return fail(node, taken);
    arrived(node);
  }
}

Status StepState::State::take_outputs(std::uint32_t i, std::vector<Tensor>& outputs,
                                      std::size_t& next) {
  for (std::uint32_t k = 0; k < nodes[i].outputs; ++k) {
    if (next == outputs.size())
      return internal_error("the answer has " + std::to_string(outputs.size()) +
                            " outputs, which are too few");
    TROUPE_TRY(place(i, nodes[i].first_slot + k, std::move(outputs[next++])));
  }
  return {};
}

void StepState::State::handle(AbortStep& order) {
  aborted = aborted || !failing();
  fail(kNoNode, order.status);
}

}  // namespace troupe
