#include "actors/burst/detail/requests.hpp"

#include <algorithm>
#include <utility>

namespace troupe::burst {

Requests::Requests(const LoadedPlan& program, Progress& progress, const Iterations& iterations,
                   DeviceWork& work, Failure& failure)
    : program_(program),
      nodes_(program.nodes()),
      progress_(progress),
      iterations_(iterations),
      work_(work),
      failure_(failure) {}

void Requests::reset() {
  first_ += std::uint32_t(all_.size());
  all_.clear();
  made_.clear();
  keys_.assign(program_.plan().resources.size(), 0);
}

void Requests::read_first() {
  for (std::uint32_t node : program_.first_reads())
    join(node).items.push_back({.node = node, .outputs = nodes_[node].outputs});
}

void Requests::run_external(std::uint32_t i) {
  const LoadedPlan::Node& node = nodes_[i];
  if (node.flags & LoadedPlan::kFirstRead) return progress_.want(i, false);
  if (work_.park_unless_done(i, 0, false)) return;
  RequestItem item{.node = i, .tag = iterations_.around(node.frame), .outputs = node.outputs};
  for (std::uint32_t k = 0; k < node.inputs; ++k)
    item.operands.push_back(progress_.take(progress_.input_slot(i, k)).tensor);
  progress_.release_inputs(node);
  progress_.mark_wanted(i);
  join(i).items.push_back(std::move(item));
}

bool Requests::may_join(const StepRequest& request, const PlanInfo& info) const {
  const Plan& plan = program_.plan();
  const External& external = *info.external;
  const PlanInfo& other = plan.info[request.items[0].node];
  if (other.external->order != external.order ||
      plan.resources[request.resource].container != plan.resources[info.resource].container)
    return false;
  return external.order == External::Order::write ||
         (other.external == info.external && request.epoch == info.epoch &&
          (info.epoch == 0 || other.replica == info.replica));
}

// The request that the node joins, or a new one.
StepRequest& Requests::join(std::uint32_t i) {
  const PlanInfo& info = program_.plan().info[i];
  if (info.external->order != External::Order::none)
    for (StepRequest& request : made_)
      if (may_join(request, info)) {
        all_[request.id - first_].nodes.push_back(i);
        return request;
      }
  if (nodes_[i].frame != 0) forget_answered();
  StepRequest& made = made_.emplace_back();
  made.id = first_ + std::uint32_t(all_.size());
  made.external = info.external;
  made.resource = info.resource;
  made.epoch = info.epoch;
  all_.push_back({{i}, true});
  return made;
}

// Otherwise the list would grow with the number of iterations.
void Requests::forget_answered() {
  const auto open =
      std::find_if(all_.begin(), all_.end(), [](const Open& request) { return request.open; });
  first_ += std::uint32_t(open - all_.begin());
  all_.erase(all_.begin(), open);
}

std::vector<StepRequest> Requests::take_made() { return std::exchange(made_, {}); }

void Requests::drop_made() {
  for (const StepRequest& request : made_) all_[request.id - first_].open = false;
  made_.clear();
}

void Requests::answered(RequestAnswer& answer) {
  const std::uint32_t index = answer.request - first_;
  if (index >= all_.size() || !all_[index].open) return;  // of an earlier step
  Open& request = all_[index];
  request.open = false;
  if (!answer.status.ok()) return failure_.add(request.nodes[0], answer.status);
  std::size_t next = 0;
  const std::vector<std::uint32_t> nodes = std::move(request.nodes);
  for (std::uint32_t node : nodes) {
    const PlanInfo& info = program_.plan().info[node];
    if (info.external->commits) ++keys_[info.resource];
    if (failure_.failing()) continue;
    Status taken = take_outputs(node, answer.outputs, next);
    if (!taken.ok()) return failure_.add(node, taken);
    progress_.arrive(node);
  }
}

Status Requests::take_outputs(std::uint32_t i, std::vector<Tensor>& outputs, std::size_t& next) {
  for (std::uint32_t k = 0; k < nodes_[i].outputs; ++k) {
    if (next == outputs.size())
      return internal_error("the answer has " + std::to_string(outputs.size()) +
                            " outputs, which are too few");
    TROUPE_TRY(work_.place(i, nodes_[i].first_slot + k, std::move(outputs[next++])));
  }
  return {};
}

std::vector<std::uint32_t> Requests::unanswered() const {
  std::vector<std::uint32_t> ids;
  for (std::size_t i = 0; i < all_.size(); ++i)
    if (all_[i].open) ids.push_back(first_ + std::uint32_t(i));
  return ids;
}

}  // namespace troupe::burst
