#include "graph/control/state/detail/state_threading.hpp"

#include <algorithm>

#include "graph/control/state/detail/body_threading.hpp"
#include "graph/control/state/detail/outside_threading.hpp"
#include "graph/control/state/detail/state_nodes.hpp"
#include "graph/control/state/state_ops.hpp"

namespace troupe::detail {
namespace {

constexpr std::size_t kMostMade = std::size_t{1} << 20;
constexpr std::size_t kMadeFreely = std::size_t{1} << 14;
constexpr std::size_t kMadePerGiven = 64;

}  // namespace

StateThreading::StateThreading(const GraphDef& graph, const OpRegistry& ops)
    : users(graph.functions, ops), ops_(ops) {
  std::size_t given = graph.nodes.size();
  for (const FunctionDef& f : graph.functions) given += 1 + f.nodes.size();
  most_nodes_ = std::min(kMostMade, kMadeFreely + kMadePerGiven * given);
}

Status StateThreading::spend_on(const FunctionDef& f) {
  nodes_ += 1 + f.nodes.size();
  if (nodes_ <= most_nodes_) return ok_status();
  return resource_exhausted("with a copy of '" + f.name +
                            "' for each combination of variables that "
                            "it is called with, functions have more than " +
                            std::to_string(most_nodes_) + " nodes")
      .at(f.site);
}

Expected<const FunctionDef*> StateThreading::function(const std::string& name,
                                                      const NodeDef& call) const {
  if (const FunctionDef* f = users.function(name)) return f;
  return in_node(invalid_argument("there is no function '" + name + "'"), call);
}

Status StateThreading::check_condition(const VariableUses& uses) const {
  if (uses.writes.empty()) return ok_status();
  return in_node(unimplemented("the condition of a loop writes no variables and takes no elements "
                               "of datasets; its body does"),
                 users.writer(*uses.writes.begin()));
}

StateSignature StateThreading::signature_of(const VariableUses& uses) const {
  StateSignature state;
  state.written.assign(uses.writes.begin(), uses.writes.end());
  std::copy_if(state.written.begin(), state.written.end(), std::back_inserter(state.flagged),
               [&](const std::string& key) { return flagged_.contains(key); });
  std::copy_if(uses.reads.begin(), uses.reads.end(), std::back_inserter(state.read),
               [&](const std::string& item) { return !uses.writes.contains(item); });
  return state;
}

std::string StateThreading::fresh_name(const FunctionDef& f) {
  return f.name + "@" + std::to_string(++versions_);
}

Expected<std::string> StateThreading::outside_function(const FunctionDef& f,
                                                       const std::vector<std::string>& bound) {
  const VariableUses uses = users.of(f, bound);
  if (!uses.loops) return f.name;
  std::vector<std::string> what = bound;
  what.push_back(f.name);
  if (const auto at = outside_.find(what); at != outside_.end()) return at->second;
  TROUPE_TRY(spend_on(f));
  NodeCopies out(f.nodes);
  out.reserve_names();
  if (Status s = thread_outside(*this, f.nodes, users.keys_of(f, bound), out); !s.ok())
    return s.in("in function '" + f.name + "'");
  FunctionDef made = f;
  made.name = fresh_name(f);
  for (NodeId& argument : made.arguments) argument = out.node(argument);
  for (Port& result : made.results) result = out.port(result);
  made.nodes = out.take();
  const std::string name = made.name;
  made_.push_back(std::move(made));
  outside_.emplace(std::move(what), name);
  return name;
}

Expected<ThreadedFunction> StateThreading::inside(const FunctionDef& f,
                                                  const std::vector<std::string>& bound,
                                                  const StateInLoop& in) {
  std::vector<std::string> what{f.name, std::to_string(int(in.place)), in.ran ? "ran" : "",
                                std::to_string(in.variables)};
  for (const auto* list : {&bound, &in.state.written, &in.state.flagged, &in.state.read}) {
    what.push_back(std::to_string(list->size()));
    what.insert(what.end(), list->begin(), list->end());
  }
  if (const auto at = inside_.find(what); at != inside_.end()) return at->second;
  TROUPE_TRY(spend_on(f));
  const std::string name = fresh_name(f);
  if (users.calls_itself(f)) {  // its own calls find this entry: all state is used
    const std::set<std::string> all(in.state.written.begin(), in.state.written.end());
    inside_.emplace(what, ThreadedFunction{name, all, all});
  }
  ThreadedFunction out{name, {}, {}};
  auto made = thread_body(*this, f, bound, in, out);
  if (!made.ok()) return made.status().in("in function '" + f.name + "'");
  made_.push_back(std::move(made).value());
  inside_.insert_or_assign(std::move(what), out);
  return out;
}

// A function of (handle, value) pairs that assigns the values, or does nothing.
std::string StateThreading::write_function(const std::vector<std::string>& keys, bool writes) {
  FunctionDef f;
  f.name = std::string(writes ? "write" : "nothing") + "@" + std::to_string(++versions_);
  f.site = users.writer(keys[0]).site;
  std::vector<NodeDef> assigns;
  for (std::size_t k = 0; k < keys.size(); ++k) {
    const NodeDef& writer = users.writer(keys[k]);
    NodeDef handle = handles.at(keys[k]);
    handle.name = "variable_" + std::to_string(k);
    handle.inputs.clear(), handle.control.clear(), handle.colocate.clear();
    NodeDef value;
    value.name = "value_" + std::to_string(k);
    value.op = kArgumentOp;
    value.out_types = {dtype_of_variable(handle)};
    value.out_shapes = handle.out_shapes;
    value.attrs = {{"T", value.out_types[0]}, {"shape", value.out_shapes[0]}};
    value.site = writer.site;
    NodeDef assign;
    assign.name = "assign_" + std::to_string(k);
    assign.op = "Assign";
    assign.inputs = {{NodeId(f.nodes.size()), 0}, {NodeId(f.nodes.size() + 1), 0}};
    assign.attrs = {{"T", value.out_types[0]},
                    {"replicas", std::int64_t{1}},
                    {std::string(kAtVariableAttr), true},
                    {std::string(kBehindLoopAttr), writer.name}};
    assign.site = writer.site;
    for (NodeDef* argument : {&handle, &value}) {
      f.arguments.push_back(NodeId(f.nodes.size()));
      f.nodes.push_back(std::move(*argument));
    }
    assigns.push_back(std::move(assign));
  }
  if (writes) f.nodes.insert(f.nodes.end(), assigns.begin(), assigns.end());
  made_.push_back(f);
  return f.name;
}

}  // namespace troupe::detail
