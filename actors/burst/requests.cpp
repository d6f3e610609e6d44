// What a step asks of its executor, and what reaches it from outside.
#include <algorithm>
#include <array>
#include <span>

#include "actors/burst/detail/step.hpp"

namespace troupe {

void StepState::State::request_first_reads() {
  for (std::uint32_t node : program->first_reads())
    request_of(node).items.push_back({.node = node, .outputs = nodes[node].outputs});
}

// A node that the executor carries out is ready: its inputs go along.
void StepState::State::request(std::uint32_t i) {
  const LoadedPlan::Node& node = nodes[i];
  if (nodes[i].flags & LoadedPlan::kFirstRead) return want(i, false);
  if (park_unless_done(i, 0, false)) return;
  RequestItem item{.node = i, .tag = iterations_of(node.frame), .outputs = node.outputs};
  for (std::uint32_t k = 0; k < node.inputs; ++k)
    item.operands.push_back(take(program->input_slots()[node.first_input + k]).tensor);
  release_inputs(node);
  external[i] |= kWanted;
  request_of(i).items.push_back(std::move(item));
}

// Of the loops around a node, the outermost first.
Tag StepState::State::iterations_of(std::uint32_t frame) const {
  std::array<std::int64_t, Tag::kMaxDepth> inwards{};
  std::size_t first = inwards.size();
  for (std::uint32_t f = frame; f != 0 && first > 0; f = program->plan().frames[f].parent)
    inwards[--first] = iterations[f];
  return Tag(std::span(inwards).subspan(first));
}

// What was answered: else it would grow with the number of iterations.
void StepState::State::forget_requests() {
  const auto open = std::find_if(requests.begin(), requests.end(),
                                 [](const OpenRequest& request) { return request.open; });
  first_request += std::uint32_t(open - requests.begin());
  requests.erase(requests.begin(), open);
}

// The request of this burst that the node joins, or a new one.
StepRequest& StepState::State::request_of(std::uint32_t i) {
  const Plan& plan = program->plan();
  const PlanInfo& info = plan.info[i];
  const External& external = *info.external;
  const auto alike = [&](const StepRequest& r) {
    const PlanInfo& other = plan.info[r.items[0].node];
    if (other.external->order != external.order ||
        plan.resources[r.resource].container != plan.resources[info.resource].container)
      return false;
    return external.order == External::Order::write ||
           (other.external == info.external && r.epoch == info.epoch &&
            (info.epoch == 0 || other.replica == info.replica));
  };
  if (external.order != External::Order::none)
    for (StepRequest& r : burst->requests)
      if (alike(r)) {
        requests[r.id - first_request].nodes.push_back(i);
        return r;
      }
  if (nodes[i].frame != 0) forget_requests();
  StepRequest& made = burst->requests.emplace_back();
  made.id = first_request + std::uint32_t(requests.size());
  made.external = info.external;
  made.resource = info.resource;
  made.epoch = info.epoch;
  requests.push_back({{i}, true});
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
  if (node == kNoNode || arrival.tag.depth() != (nodes[node].frame == 0 ? 0 : 1))
    return fail(kNoNode,
                invalid_argument("a tensor arrived on channel " + std::to_string(arrival.channel) +
                                 ", which this partition does not receive"));
  if (nodes[node].frame != 0) return keep_for_its_turn(node, arrival);
  if (external[node] & kArrived) return;  // sent again
  receive(node, arrival);
}

void StepState::State::receive(std::uint32_t recv, TensorArrival& arrival) {
  if (arrival.dead) {
    external[recv] |= kIsDead;
  } else if (nodes[recv].outputs > 0) {
    Expected<Tensor> tensor = std::move(arrival.tensor);
    if (tensor->dtype() == DType::list) tensor = adopt_elements(std::move(tensor).value());
    if (!tensor.ok()) return fail(recv, tensor.status());
    Status placed = place(recv, nodes[recv].first_slot, std::move(tensor).value());
    if (!placed.ok()) return fail(recv, placed);
  }
  arrived(recv);
}

void StepState::State::handle(RequestAnswer& answer) {
  const std::uint32_t index = answer.request - first_request;
  if (index >= requests.size() || !requests[index].open) return;  // of an earlier step
  OpenRequest& request = requests[index];
  request.open = false;
  if (!answer.status.ok()) return fail(request.nodes[0], answer.status);
  std::size_t next = 0;
  const std::vector<std::uint32_t> answered = std::move(request.nodes);
  for (std::uint32_t node : answered) {
    const PlanInfo& info = program->plan().info[node];
    if (info.external->commits) ++keys[info.resource];
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
