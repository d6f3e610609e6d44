#include "graph/passes/variable_homes.hpp"

#include <algorithm>
#include <set>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>

#include "graph/control/functions/ops.hpp"
#include "graph/control/functions/recursion.hpp"
#include "graph/detail/device_over.hpp"
#include "graph/detail/disjoint_sets.hpp"
#include "graph/node_query.hpp"
#include "graph/passes/placement.hpp"

namespace troupe {
std::uint64_t variable_bytes(const NodeDef& variable) {
  auto shape = variable.attrs.find("shape");
  const PartialShape* s =
      shape == variable.attrs.end() ? nullptr : shape->second.get<PartialShape>();
  const auto type = variable.attrs.find("T");
  const DType* dtype = type == variable.attrs.end() ? nullptr : type->second.get<DType>();
  if (!s || !s->fully_known() || !dtype) return 0;
  return std::uint64_t(s->shape().elements()) * dtype_size(*dtype);
}

namespace {

// What is looked at of functions: nodes, once for each combination. Lowering refuses what calls
// functions in more ways, but for those that call each other, which state threading refuses.
constexpr std::size_t kMostLookedAt = std::size_t{1} << 18;
constexpr std::size_t kLookedAtPerGiven = 64;

// Nodes and resources as elements of a union-find; the nodes of a function once for each
// combination of resources and device that it is called with.
class Homes {
 public:
  Homes(const GraphDef& graph, const Target& target, bool spread)
      : graph_(graph),
        target_(target),
        spread_(spread),
        ops_(*target.ops),
        devices_(by_preference(target.devices, target.kernels)) {
    left_ = graph.nodes.size();
    for (const FunctionDef& f : graph.functions) {
      functions_.emplace(f.name, &f);
      left_ += f.nodes.size();
    }
    left_ = kMostLookedAt + kLookedAtPerGiven * left_;
  }

  std::map<std::string, DeviceName> find_all() {
    if (devices_.size() <= 1) return {};
    for (const TargetDevice& d : devices_) load_.try_emplace({*d.name.job, *d.name.task}, 0);
    spread_ = spread_ && load_.size() > 1;
    std::vector<std::string> keys(graph_.nodes.size());
    for (NodeId id = 0; id < graph_.nodes.size(); ++id)
      if (is_handle(role_of(graph_.nodes[id], ops_)))
        keys[id] = resource_key(graph_.nodes[id], ops_);
    visit(graph_.nodes, keys, "");
    gather(keys);
    for (const Group& group : groups_)
      if (has_task(group)) settle(group);
    for (const Group& group : groups_)
      if (!has_task(group)) settle(group);
    return std::move(homes_);
  }

 private:
  using Element = detail::DisjointSets::Element;
  using Task = std::pair<std::string, int>;
  struct Group {
    DeviceName wanted;
    bool contradicts = false;
    std::uint64_t bytes = 0;
    std::vector<std::string> variables;  // their keys
    std::vector<const NodeDef*> others;
  };

  // `keys`: by node, the resource of a handle. `device`: of the call, for a function.
  void visit(const std::vector<NodeDef>& nodes, const std::vector<std::string>& keys,
             const std::string& device) {
    const auto first = Element(sets_.size());
    for (std::size_t i = 0; i < nodes.size(); ++i) sets_.add();
    std::unordered_map<std::string_view, Element> by_name, by_group;
    if (std::any_of(nodes.begin(), nodes.end(), [](const auto& n) { return !n.colocate.empty(); }))
      for (NodeId id = 0; id < nodes.size(); ++id) by_name.emplace(nodes[id].name, first + id);
    for (NodeId id = 0; id < nodes.size(); ++id) {
      const NodeDef& node = nodes[id];
      if (!keys[id].empty()) {
        auto [at, added] = resources_.try_emplace(keys[id], 0);
        if (added) at->second = sets_.add();
        sets_.join(first + id, at->second);
      }
      for (const std::string& other : node.colocate) {
        if (auto at = by_name.find(other); at != by_name.end()) sets_.join(first + id, at->second);
        sets_.join(first + id, by_group.try_emplace(other, first + id).first->second);
      }
      const Role role = role_of(node, ops_);
      if (role == Role::call) {
        call(node, keys, device);
        continue;
      }
      for (Port in : node.inputs) {
        if (in.node >= nodes.size() || keys[in.node].empty()) break;  // handles come first
        sets_.join(first + id, first + in.node);
      }
      const bool alone = node.colocate.empty() && node.device.empty() && keys[id].empty() &&
                         (node.inputs.empty() || node.inputs[0].node >= nodes.size() ||
                          keys[node.inputs[0].node].empty());
      if (alone) continue;
      if (is_handle(role) && &nodes != &graph_.nodes) continue;  // an argument: the caller's counts
      placed_.push_back({first + id, &node, device});
    }
  }

  void call(const NodeDef& node, const std::vector<std::string>& keys, const std::string& device) {
    std::vector<std::string> bound;
    for (std::size_t i = selectors(node); i < node.inputs.size(); ++i)
      bound.push_back(keys[node.inputs[i].node]);
    if (std::all_of(bound.begin(), bound.end(), [](const auto& key) { return key.empty(); }))
      return;  // it reaches no resource
    auto inside = detail::device_over(device, node.device);
    if (!inside.ok()) return;
    for (const std::string& name : functions_of(node)) {
      const auto f = functions_.find(name);
      if (f == functions_.end() || f->second->nodes.size() >= left_ ||
          !visited_.insert({f->second, bound, *inside}).second)
        continue;
      left_ -= 1 + f->second->nodes.size();
      std::vector<std::string> inner(f->second->nodes.size());
      for (std::size_t i = 0; i < f->second->arguments.size() && i < bound.size(); ++i)
        inner[f->second->arguments[i]] = bound[i];
      visit(f->second->nodes, inner, *inside);
    }
  }

  // Groups in the order of their first handles.
  void gather(const std::vector<std::string>& keys) {
    std::unordered_map<Element, std::size_t> group_of;
    std::set<std::string> counted;
    for (NodeId id = 0; id < graph_.nodes.size(); ++id) {
      const NodeDef& node = graph_.nodes[id];
      if (keys[id].empty() || op_of(node, ops_).def.external.resource != "variable") continue;
      auto [at, added] = group_of.try_emplace(sets_.find(resources_.at(keys[id])), groups_.size());
      if (added) groups_.emplace_back();
      Group& group = groups_[at->second];
      if (!counted.insert(keys[id]).second) continue;
      group.variables.push_back(keys[id]);
      group.bytes += variable_bytes(node);
      if (auto fixed = target_.fixed.find(keys[id]); fixed != target_.fixed.end())
        want(group, fixed->second);
    }
    for (const auto& [element, node, around] : placed_) {
      auto at = group_of.find(sets_.find(element));
      if (at == group_of.end()) continue;
      Group& group = groups_[at->second];
      if (!is_handle(role_of(*node, ops_))) group.others.push_back(node);
      auto device = detail::device_over(around, node->device);
      auto wanted = device.ok() ? DeviceName::parse(*device) : device.status();
      if (!wanted.ok())
        group.contradicts = true;
      else if (!wanted->empty())
        want(group, *wanted);
    }
  }

  void want(Group& group, const DeviceName& wanted) const {
    auto both = DeviceName::merge(group.wanted, wanted);
    if (both.ok())
      group.wanted = *std::move(both);
    else
      group.contradicts = true;
  }

  // The task's preferred device among those that the group can have.
  const TargetDevice* device_in(const Task& task, const Group& group) const {
    const auto match = [&](const DeviceName& wanted) {
      auto at = std::find_if(devices_.begin(), devices_.end(), [&](const TargetDevice& d) {
        return Task(*d.name.job, *d.name.task) == task && wanted.matches(d.name) &&
               std::all_of(group.others.begin(), group.others.end(),
                           [&](const NodeDef* node) { return has_kernel(d, *node, target_); });
      });
      return at == devices_.end() ? nullptr : &*at;
    };
    if (const TargetDevice* device = match(group.wanted)) return device;
    // Without spreading, placement decides, and warns if it relaxes a constraint.
    if (!spread_ || !target_.soft_placement) return nullptr;
    DeviceName relaxed = group.wanted;
    relaxed.type.reset(), relaxed.index.reset();
    return match(relaxed);
  }

  static bool has_task(const Group& group) { return group.wanted.job && group.wanted.task; }

  void settle(const Group& group) {
    if (group.contradicts || (!spread_ && group.wanted.empty())) return;
    auto best = load_.end();
    const TargetDevice* device = nullptr;
    for (auto at = load_.begin(); at != load_.end(); ++at) {
      if (best != load_.end() && at->second >= best->second) continue;
      const TargetDevice* here = device_in(at->first, group);
      if (here) best = at, device = here;
    }
    if (!device) return;
    best->second += group.bytes;
    for (const std::string& key : group.variables)
      if (!target_.fixed.contains(key)) homes_.emplace(key, device->name);
  }

  const GraphDef& graph_;
  const Target& target_;
  bool spread_;
  const OpRegistry& ops_;
  const std::vector<TargetDevice> devices_;
  std::unordered_map<std::string_view, const FunctionDef*> functions_;
  std::size_t left_ = 0;  // nodes of functions that may still be looked at
  detail::DisjointSets sets_;
  std::unordered_map<std::string, Element> resources_;  // by key
  std::set<std::tuple<const FunctionDef*, std::vector<std::string>, std::string>> visited_;
  std::vector<std::tuple<Element, const NodeDef*, std::string>>
      placed_;  // and the constraint around it
  std::vector<Group> groups_;
  std::map<Task, std::uint64_t> load_;
  std::map<std::string, DeviceName> homes_;
};

}  // namespace

std::map<std::string, DeviceName> variable_homes(const GraphDef& graph, const Target& target,
                                                 bool spread) {
  // Compiling refuses what calls so deep.
  if (!check_call_depth(graph.functions, *target.ops).ok()) return {};
  return Homes(graph, target, spread).find_all();
}

bool bears_on_homes(const GraphDef& graph, NodeId id, const OpRegistry& ops) {
  const NodeDef& node = graph.nodes[id];
  const Role role = role_of(node, ops);
  if (is_handle(role) || role == Role::call || !node.colocate.empty()) return true;
  const std::size_t handles = handle_inputs(graph, node);
  // A node that requests no device, needs no kernel and uses only one variable is placed with it.
  const bool anywhere = node.device.empty() && role == Role::external &&
                        !op_of(node, ops).def.external.on_host && handles == 1;
  return handles > 0 && !anywhere;
}

}  // namespace troupe
