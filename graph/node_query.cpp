#include "graph/node_query.hpp"

#include <algorithm>
#include <map>
#include <vector>

#include "core/check.hpp"

namespace troupe {
namespace {

OpInfo made_op(std::string_view name, Role role) {
  OpInfo info;
  info.def.name = std::string(name);
  info.def.role = role;
  info.def.stateful = true;
  info.def.doc = "Made by the compile path.";
  return info;
}

const std::map<std::string, OpInfo, std::less<>>& made_ops() {
  static const std::map<std::string, OpInfo, std::less<>> ops = {
      {std::string(kFeedOp), made_op(kFeedOp, Role::placeholder)},
      {std::string(kSendOp), made_op(kSendOp, Role::send)},
      {std::string(kRecvOp), made_op(kRecvOp, Role::recv)},
      {std::string(kCopyOp), made_op(kCopyOp, Role::copy)},
      {std::string(kLoopBodyOp), made_op(kLoopBodyOp, Role::loop_body)},
      {std::string(kLoopNextOp), made_op(kLoopNextOp, Role::loop_next)},
      {std::string(kLoopCondOp), made_op(kLoopCondOp, Role::loop_cond)},
      {std::string(kFunctionBodyOp), made_op(kFunctionBodyOp, Role::function_body)},
      {std::string(kFunctionReturnOp), made_op(kFunctionReturnOp, Role::function_return)},
      {std::string(kInvokeOp), made_op(kInvokeOp, Role::invoke)},
      {std::string(kKeepOp), made_op(kKeepOp, Role::keep)},
      {std::string(kKeptOp), made_op(kKeptOp, Role::kept)},
  };
  return ops;
}

const ArgSpec& arg_at(const std::vector<ArgSpec>& args, const NodeDef& node, std::size_t flat) {
  for (const ArgSpec& arg : args) {
    std::size_t length = 1;
    if (arg.kind == ArgSpec::Kind::list) {
      auto n = node.attrs.find("N");
      if (n != node.attrs.end() && n->second.get<std::int64_t>())
        length = std::size_t(*n->second.get<std::int64_t>());
    } else if (arg.kind == ArgSpec::Kind::types) {
      auto types = node.attrs.find("types");
      if (types != node.attrs.end() && types->second.get<std::vector<DType>>())
        length = types->second.get<std::vector<DType>>()->size();
    }
    if (flat < length) return arg;
    flat -= length;
  }
  static const ArgSpec none;  // ops made here, whose arguments need no names
  return none;
}

std::string string_attr(const NodeDef& node, std::string_view name) {
  auto at = node.attrs.find(name);
  const std::string* text = at == node.attrs.end() ? nullptr : at->second.get<std::string>();
  return text ? *text : std::string();
}

}  // namespace

const OpInfo& op_of(const NodeDef& node, const OpRegistry& ops) {
  const OpInfo* info = ops.find(node.op);
  if (!info) {
    auto made = made_ops().find(node.op);
    TROUPE_CHECK(made != made_ops().end(), "a step holds known ops only");
    info = &made->second;
  }
  return *info;
}

bool is_loop_role(Role role) {
  return role == Role::enter || role == Role::exit || role == Role::next_iteration ||
         role == Role::loop_cond;
}

std::size_t handle_inputs(const GraphDef& graph, const NodeDef& node) {
  std::size_t n = 0;
  while (n < node.inputs.size()) {
    Port p = node.inputs[n];
    if (graph.nodes[p.node].out_types[p.index] != DType::resource) break;
    ++n;
  }
  return n;
}

const ArgSpec& input_arg(const OpInfo& op, const NodeDef& node, std::size_t flat) {
  return arg_at(op.in, node, flat);
}
const ArgSpec& output_arg(const OpInfo& op, const NodeDef& node, std::size_t flat) {
  return arg_at(op.out, node, flat);
}

std::string resource_name(const NodeDef& handle) {
  std::string shared = string_attr(handle, "shared_name");
  return shared.empty() ? original_name(handle) : shared;
}

std::string resource_container(const NodeDef& handle) { return string_attr(handle, "container"); }

std::string resource_key(const NodeDef& handle, const OpRegistry& ops) {
  // Names have any characters: the length tells where the container ends.
  const std::string container = resource_container(handle);
  return std::to_string(int(role_of(handle, ops))) + " " + std::to_string(container.size()) + " " +
         container + resource_name(handle);
}

std::string replica_name(std::string_view name, std::int32_t replica) {
  return std::string(name) + "/replica_" + std::to_string(replica);
}

std::string original_name(const NodeDef& node) {
  if (node.replica < 0) return node.name;
  const std::string suffix = replica_name("", node.replica);
  if (!node.name.ends_with(suffix)) return node.name;  // of a graph that says so itself
  return node.name.substr(0, node.name.size() - suffix.size());
}

bool is_dataset(const NodeDef& node, const OpRegistry& ops) {
  const OpInfo& op = op_of(node, ops);
  return is_handle(op.def.role) && op.def.external.resource == "dataset";
}

bool is_replicas_dataset(const NodeDef& node, const OpRegistry& ops) {
  return node.replica >= 0 && is_dataset(node, ops);
}

void sort_control(NodeDef& node) {
  std::sort(node.control.begin(), node.control.end());
  node.control.erase(std::unique(node.control.begin(), node.control.end()), node.control.end());
}

Status in_node(const Status& status, const NodeDef& node) {
  return status.at(node.site).in("in node '" + node.name + "' (" + node.op + ")");
}

std::uint32_t epoch_of(const NodeDef& node) {
  auto at = node.attrs.find(kEpochAttr);
  return at == node.attrs.end() ? 0 : std::uint32_t(*at->second.get<std::int64_t>());
}

}  // namespace troupe
