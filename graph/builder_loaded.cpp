// A builder that goes on with a graph that was built before.
#include <algorithm>
#include <string_view>
#include <unordered_set>

#include "core/name.hpp"
#include "graph/builder.hpp"
#include "graph/control/functions/body.hpp"
#include "graph/detail/node_check.hpp"
#include "graph/detail/suggest.hpp"
#include "graph/import.hpp"
#include "graph/known_values.hpp"
#include "graph/node_query.hpp"

namespace troupe {
namespace {

// variable() assigns what a variable begins with in a node of the name NAME/init, or NAME/init_N
// where another node has that.
bool is_initializer(const GraphDef& graph, const NodeDef& node) {
  if (node.op != "Assign") return false;
  const NodeDef& variable = graph.nodes[node.inputs[0].node];
  const std::string init = variable.name + "/init";
  if (variable.op != "Variable" || !node.name.starts_with(init)) return false;
  const std::string_view rest = std::string_view(node.name).substr(init.size());
  return rest.empty() || (rest.size() > 1 && rest[0] == '_' &&
                          rest.find_first_not_of("0123456789", 1) == rest.npos);
}

}  // namespace

GraphBuilder::GraphBuilder(const OpRegistry& registry, GraphDef graph)
    : GraphBuilder(registry, graph.seed) {
  def_ = value_or_throw(import_graph(std::move(graph), registry));
  for (const NodeDef& node : def_.nodes)
    if (Status s = detail::check_name_of_program(node.name); !s.ok()) throw Error(in_node(s, node));
  index_nodes();
  std::unordered_set<NodeId> begun;  // variables: later assignments may have such names, too
  for (NodeId id = 0; id < def_.nodes.size(); ++id)
    if (is_initializer(def_, def_.nodes[id]) && begun.insert(def_.nodes[id].inputs[0].node).second)
      add_initializer(id);
  add_functions_of_graph();
}

// Names, also of the scopes that nodes are in, and values that are known before a run.
void GraphBuilder::index_nodes() {
  for (NodeId id = 0; id < def_.nodes.size(); ++id) {
    const NodeDef& node = def_.nodes[id];
    by_name_.emplace(node.name, id);
    names_.insert(node.name);
    for (std::size_t end = node.name.find('/'); end != std::string::npos;
         end = node.name.find('/', end + 1))
      names_.insert(node.name.substr(0, end));
    std::vector<Output> inputs;
    for (const Port p : node.inputs) inputs.emplace_back(this, p);
    auto known = known_values(op_of(node, registry_), node, known_inputs(inputs));
    for (std::uint32_t i = 0; i < known.size(); ++i)
      known_.emplace(key({id, i}), std::move(known[i]));
  }
}

void GraphBuilder::add_functions_of_graph() {
  for (std::size_t i = 0; i < def_.functions.size(); ++i) {
    const FunctionDef& f = def_.functions[i];
    auto record = std::make_unique<FunctionRecord>();
    record->position = i;
    record->body = std::make_unique<GraphBuilder>(registry_, def_.seed);
    GraphBuilder& body = *record->body;
    body.def_.nodes = f.nodes;
    body.index_nodes();
    body.body_ = std::make_unique<BodyState>();
    body.body_->parent = this;
    body.body_->function = f.name;
    body.body_->site = f.site;
    body.body_->arguments = f.arguments;
    body.body_->declared = f.arguments.size();
    body.body_->finished = true;
    for (const Port p : f.results) record->results.emplace_back(&body, p);
    record->loaded_gradient = std::any_of(f.nodes.begin(), f.nodes.end(), [&](const NodeDef& node) {
      return op_of(node, registry_).def.role == Role::saved;
    });
    function_names_.insert(f.name);
    functions_.emplace(f.name, std::move(record));
  }
}

Output GraphBuilder::output(std::string_view name, const char* file, int line) {
  const auto refuse = [&](const Status& status) {
    return Error(status.at(Site::here(file, line)));
  };
  const auto port = PortName::parse(name);
  if (!port.ok()) throw refuse(port.status());
  if (port->control) throw refuse(invalid_argument(quoted(name) + " names a control edge"));
  const auto at = by_name_.find(port->node);
  if (at == by_name_.end()) {
    std::vector<std::string> known;
    for (const NodeDef& node : def_.nodes) known.push_back(node.name);
    throw refuse(not_found("the graph has no node " + quoted(port->node) +
                           detail::suggest(port->node, known)));
  }
  const std::size_t outputs = def_.nodes[at->second].out_types.size();
  if (std::size_t(port->port) >= outputs)
    throw refuse(
        not_found("node " + quoted(port->node) + " has no output " + std::to_string(port->port)));
  return {this, {at->second, std::uint32_t(port->port)}};
}

}  // namespace troupe
