#include "graph/builder.hpp"

#include <algorithm>

#include "core/name.hpp"
#include "graph/control/functions/body.hpp"
#include "graph/detail/back_edge.hpp"
#include "graph/detail/device_over.hpp"
#include "graph/detail/node_check.hpp"
#include "graph/known_values.hpp"
#include "graph/node_query.hpp"

namespace troupe {
namespace {

std::string typed_shape(DType dtype, const PartialShape& shape) {
  std::string text = shape.text();
  return std::string(dtype_name(dtype)) + (text == "?" ? " of unknown shape" : text);
}

// Of a constant, which a client knows by its value: its node got a name of the builder's. Null for
// other nodes.
const Tensor* written_value(const NodeDef& node) {
  auto value = node.attrs.find("value");
  return node.op == "Const" && value != node.attrs.end() ? value->second.get<Tensor>() : nullptr;
}

}  // namespace

void Output::is_empty(const char* file, int line) {
  throw Error(invalid_argument("the Output is empty").at(Site::here(file, line)));
}

const NodeDef& Output::made_by(const char* file, int line) const {
  const std::vector<NodeDef>& nodes = graph(file, line).def().nodes;
  if (port_.node < nodes.size() && port_.index < nodes[port_.node].out_types.size()) [[likely]]
    return nodes[port_.node];
  const std::string what = "output " + std::to_string(port_.index);
  const std::string why = port_.node < nodes.size()
                              ? "node " + quoted(nodes[port_.node].name) + " has no " + what
                              : what + " is of a node that the graph does not have";
  throw Error(invalid_argument(why).at(Site::here(file, line)));
}

DType Output::dtype(const char* file, int line) const {
  return made_by(file, line).out_types[port_.index];
}

const PartialShape& Output::shape(const char* file, int line) const {
  return made_by(file, line).out_shapes[port_.index];
}

std::string Output::name(const char* file, int line) const {
  return PortName{.node = made_by(file, line).name, .port = int(port_.index)}.text();
}

void Op::is_empty(const char* file, int line) {
  throw Error(invalid_argument("the Op is empty").at(Site::here(file, line)));
}

const std::string& Op::name(const char* file, int line) const {
  return graph(file, line).node(node_).name;
}

std::vector<Output> Op::outputs(const char* file, int line) const {
  std::vector<Output> out;
  for (std::size_t i = 0; i < graph(file, line).node(node_).out_types.size(); ++i)
    out.push_back(output(int(i)));
  return out;
}

void GraphBuilder::no_node(NodeId id) const {
  throw Error(not_found("the graph has " + std::to_string(def_.nodes.size()) +
                        " nodes and no node " + std::to_string(id)));
}

GraphBuilder::GraphBuilder(const OpRegistry& registry, std::uint64_t seed) : registry_(registry) {
  def_.seed = seed;
  frames_.emplace_back();
}

GraphBuilder::~GraphBuilder() = default;

std::shared_ptr<const GraphDef> GraphBuilder::snapshot() const {
  return std::make_shared<const GraphDef>(def_);
}

Op GraphBuilder::find(std::string_view name) {
  auto at = by_name_.find(std::string(name));
  return at == by_name_.end() ? Op() : Op(this, at->second);
}

const Tensor* GraphBuilder::constant(Port port) const {
  auto at = known_.find(key(port));
  return at == known_.end() || !at->second.value ? nullptr : &*at->second.value;
}

// --- adding nodes ---

Expected<Op> GraphBuilder::try_add(NodeSpec spec) {
  return innermost().try_add_here(std::move(spec));
}

Expected<Op> GraphBuilder::try_add_here(NodeSpec spec) {
  const Site site = spec.site.known() ? spec.site : frame().site;
  auto op = registry_.lookup(spec.op);
  if (!op.ok()) return op.status().at(site);
  if (body_ && is_handle((*op)->def.role)) return add_handle(std::move(spec));
  if (body_ && (*op)->def.role == Role::placeholder)
    return invalid_argument("a placeholder in the body of function '" + body_->function +
                            "' cannot be fed; make it outside")
        .at(site);
  if (Status s = bring_inputs(spec); !s.ok()) return s.at(site);
  if (Status s = check_inputs(spec); !s.ok()) return s.at(site);
  if ((*op)->def.role == Role::call)
    if (Status s = complete_call(spec); !s.ok()) return explain(s, spec, site);
  auto node = make_node(**op, spec);
  if (!node.ok()) return explain(node.status(), spec, site);
  if (!(*op)->def.composite) return append(**op, std::move(node).value(), spec.inputs);
  auto expanded = expand(**op, spec, *node);
  if (!expanded.ok()) return explain(expanded.status(), spec, site);
  return expanded;
}

Op GraphBuilder::add(NodeSpec spec) { return value_or_throw(try_add(std::move(spec))); }

Output GraphBuilder::add(std::string_view op, std::initializer_list<Output> inputs, AttrMap attrs,
                         Site site) {
  NodeSpec spec{.op = std::string(op), .inputs = inputs, .attrs = std::move(attrs)};
  spec.site = std::move(site);
  return add(std::move(spec)).output(0);
}

Status GraphBuilder::check_inputs(const NodeSpec& spec) const {
  auto foreign = [&](std::string what) {
    return invalid_argument(spec.op + ": " + what + " of another graph");
  };
  for (std::size_t i = 0; i < spec.inputs.size(); ++i) {
    const Output& input = spec.inputs[i];
    if (input.empty())
      return invalid_argument(spec.op + ": input " + std::to_string(i) + " is empty");
    if (&input.graph() != this) return foreign("input " + std::to_string(i) + " is an output");
    Port p = input.port();
    if (p.node >= def_.nodes.size() || p.index >= node(p.node).out_types.size())
      return invalid_argument(spec.op + ": input " + std::to_string(i) + " is output " +
                              std::to_string(p.index) + " of a node without that output");
  }
  for (const Op& op : spec.control)
    if (!op.empty() && (&op.graph() != this || op.node() >= def_.nodes.size()))
      return foreign("a control input is a node");
  return ok_status();
}

std::vector<InferenceContext::Input> GraphBuilder::known_inputs(
    const std::vector<Output>& inputs) const {
  std::vector<InferenceContext::Input> out;
  for (const Output& input : inputs) {
    auto& known = out.emplace_back(InferenceContext::Input{input.dtype(), input.shape()});
    auto at = known_.find(key(input.port()));
    if (at == known_.end()) continue;
    if (at->second.value) known.value = &*at->second.value;
    if (at->second.ints) known.ints = &*at->second.ints;
  }
  return out;
}

// The node as it will stand in the graph, but for a name that is not unique yet.
Expected<NodeDef> GraphBuilder::make_node(const OpInfo& op, NodeSpec& spec) {
  NodeDef node;
  node.op = spec.op;
  node.name = frame().prefix + (spec.name.empty() ? spec.op : spec.name);
  if (!valid_node_name(node.name))
    return invalid_argument(spec.op + ": " + quoted(node.name) + " is no node name");
  TROUPE_TRY(detail::check_name_of_program(node.name));
  node.attrs = spec.attrs;
  node.site = spec.site.known() ? spec.site : frame().site;
  TROUPE_TRY(node.device, detail::device_over(frame().device, spec.device));
  node.colocate = frame().colocate;
  node.colocate.insert(node.colocate.end(), spec.colocate.begin(), spec.colocate.end());
  for (const Output& input : spec.inputs) node.inputs.push_back(input.port());
  for (const std::vector<Op>& list : {frame().control, spec.control})
    for (const Op& op : list)
      if (!op.empty() && &op.graph() == this) node.control.push_back(op.node());
  std::sort(node.control.begin(), node.control.end());
  node.control.erase(std::unique(node.control.begin(), node.control.end()), node.control.end());
  auto producer = [&](int i) {
    const Output& input = spec.inputs[std::size_t(i)];
    const Tensor* value = written_value(this->node(input.node()));
    return value ? "constant " + value->text() : input.name();
  };
  TROUPE_TRY(detail::check_node(op, node, known_inputs(spec.inputs), producer));
  if (!op.is(External::Order::write)) return node;  // compiling checks the others
  for (std::size_t i = 0; i < spec.inputs.size() && spec.inputs[i].dtype() == DType::resource; ++i)
    TROUPE_TRY(detail::check_handle(op, node, int(i), this->node(node.inputs[i].node)));
  return node;
}

Expected<Op> GraphBuilder::append(const OpInfo& op, NodeDef node,
                                  const std::vector<Output>& inputs) {
  if (def_.nodes.size() >= kNoNode) return resource_exhausted("the graph has too many nodes");
  NodeId id = NodeId(def_.nodes.size());
  node.name = names_.take(node.name);
  auto known = known_values(op, node, known_inputs(inputs));
  for (std::uint32_t i = 0; i < known.size(); ++i)
    known_.emplace(key({id, i}), std::move(known[i]));
  by_name_.emplace(node.name, id);
  def_.nodes.push_back(std::move(node));
  return Op(this, id);
}

// Runs the op's builder under a scope of the node's name, with everything the node was to have.
Expected<Op> GraphBuilder::expand(const OpInfo& op, const NodeSpec& spec, const NodeDef& node) {
  Attempt attempt(*this);
  Frame inner;
  inner.prefix = names_.take(node.name) + "/";
  inner.device = node.device;
  inner.site = node.site;
  inner.colocate = node.colocate;
  for (NodeId id : node.control) inner.control.emplace_back(this, id);
  Guard guard = push(std::move(inner));
  const std::size_t first = def_.nodes.size();
  std::vector<Output> outputs;
  try {  // building throws; this is the one call that lets another author's building code run
    CompositeContext context(*this, spec.inputs, node.attrs);
    outputs = op.def.composite(context);
  } catch (const Error& e) {
    return e.status();
  }
  if (outputs.size() != node.out_types.size())
    return internal_error(spec.op + ": the composite made " + std::to_string(outputs.size()) +
                          " outputs instead of " + std::to_string(node.out_types.size()));
  for (std::size_t i = 0; i < outputs.size(); ++i)
    if (outputs[i].empty() || outputs[i].dtype() != node.out_types[i])
      return internal_error(spec.op + ": the composite's output " + std::to_string(i) +
                            " is not what the op defines");
  // An Op names one node, whose ports are the outputs; where they are not, Identity gathers them.
  Op made;
  if (outputs.empty() && def_.nodes.size() > first) {
    made = Op(this, NodeId(def_.nodes.size() - 1));
  } else if (outputs.size() == 1) {
    made = Op(outputs[0]);
    if (outputs[0].port().index != 0 || outputs[0].node() < first) {
      TROUPE_TRY(made, try_add({.op = "Identity", .inputs = outputs}));
    }
  } else if (!outputs.empty()) {
    TROUPE_TRY(made, try_add({.op = "IdentityN", .inputs = outputs}));
  } else {
    return internal_error(spec.op + ": the composite made nothing");
  }
  attempt.keep();
  return made;
}

// The error as a compiler would say it: what is wrong, then where each input came from.
Status GraphBuilder::explain(const Status& status, const NodeSpec& spec, const Site& site) const {
  constexpr std::size_t kMostNotes = 8;
  std::string message = status.message();
  const std::size_t notes = message.find('\n') == std::string::npos ? spec.inputs.size() : 0;
  for (std::size_t i = 0; i < std::min(notes, kMostNotes); ++i) {
    const Output& input = spec.inputs[i];
    const Site& from = node(input.node()).site;
    const Tensor* value = written_value(node(input.node()));
    message += "\n" + (from.known() ? from.text() + ": " : "") +
               (value ? "note: constant " + value->text()
                      : "note: '" + input.name() +
                            "' created here: " + typed_shape(input.dtype(), input.shape()));
  }
  if (notes > kMostNotes)
    message += "\nnote: and " + std::to_string(notes - kMostNotes) + " more inputs";
  return Status::from_parts(status.code(), std::move(message),
                            status.site().known() ? status.site() : site, status.trail());
}

Status GraphBuilder::close_loop(NodeId merge, int index, Output value) {
  if (GraphBuilder& body = innermost(); &body != this) return body.close_loop(merge, index, value);
  if (merge >= def_.nodes.size()) return invalid_argument("close_loop: there is no such node");
  NodeDef& node = def_.nodes[merge];
  auto refuse = [&](const std::string& why) {
    return invalid_argument("loop variable '" + node.name + "': " + why).at(node.site);
  };
  const OpInfo* op = registry_.find(node.op);
  if (!op || op->def.role != Role::merge) return refuse("only Merge nodes can have back edges");
  if (index < 0 || std::size_t(index) >= node.inputs.size())
    return refuse("there is no input " + std::to_string(index));
  NodeSpec spec{.op = node.op, .inputs = {value}};
  TROUPE_TRY(check_inputs(spec));
  const OpInfo* from = registry_.find(def_.nodes[value.node()].op);
  if (!from || from->def.role != Role::next_iteration)
    return refuse("a back edge comes from a NextIteration, not from '" + value.name() + "'");
  TROUPE_TRY(detail::check_back_edge(node, value.dtype(), value.shape()));
  Port& input = node.inputs[std::size_t(index)];
  if (attempts_ > 0) closed_.push_back({merge, std::size_t(index), input});
  input = value.port();
  return ok_status();
}

// --- names, scopes, attempts ---

GraphBuilder::Attempt::Attempt(GraphBuilder& graph, At)
    : graph_(graph),
      nodes_(graph_.def_.nodes.size()),
      initializers_(graph_.initializers_.size()),
      names_(graph_.names_.begin()),
      function_names_(graph_.function_names_.begin()),
      functions_(graph_.def_.functions.size()),
      arguments_(graph_.body_ ? graph_.body_->arguments.size() : 0),
      waits_(graph_.body_ ? graph_.body_->waits.size() : 0),
      closed_(graph_.closed_.size()) {
  ++graph_.attempts_;
}

GraphBuilder::Attempt::~Attempt() {
  GraphBuilder& g = graph_;
  if (!kept_) {
    for (; g.closed_.size() > closed_; g.closed_.pop_back()) {
      const Closed& closed = g.closed_.back();
      g.def_.nodes[closed.merge].inputs[closed.index] = closed.before;
    }
    for (std::size_t i = nodes_; i < g.def_.nodes.size(); ++i) {
      g.by_name_.erase(g.def_.nodes[i].name);
      for (std::uint32_t port = 0; port < g.def_.nodes[i].out_types.size(); ++port)
        g.known_.erase(key({NodeId(i), port}));
    }
    g.def_.nodes.resize(nodes_);
    g.initializers_.resize(initializers_);
    g.forget_functions(functions_);
    if (g.body_) g.forget_arguments(arguments_, waits_);
  }
  g.names_.end(names_, kept_);
  g.function_names_.end(function_names_, kept_);
  if (--g.attempts_ == 0) g.closed_.clear();
}

GraphBuilder::Guard::~Guard() {
  if (graph_) graph_->frames_.pop_back();
}

GraphBuilder::Guard GraphBuilder::push(Frame frame) {
  frames_.push_back(std::move(frame));
  return Guard(this);
}

GraphBuilder::Guard GraphBuilder::with_scope(std::string_view name, const char* file, int line) {
  if (open_) return open_->with_scope(name, file, line);
  Frame next = frame();
  const bool whole = name.empty() || name.ends_with('/');
  if (whole || next.prefix.empty())
    if (Status s = detail::check_name_of_program(name); !s.ok())
      throw Error(s.at(Site::here(file, line)));
  if (whole) {
    next.prefix = name;
  } else {
    std::string full = next.prefix + std::string(name);
    if (!valid_node_name(full))
      throw Error(invalid_argument(quoted(full) + " is no scope name").at(Site::here(file, line)));
    next.prefix = names_.take(full) + "/";
  }
  return push(std::move(next));
}

GraphBuilder::Guard GraphBuilder::with_device(std::string_view device, const char* file, int line) {
  if (open_) return open_->with_device(device, file, line);
  Frame next = frame();
  auto over = detail::device_over(next.device, device);
  if (!over.ok()) throw Error(over.status().at(Site::here(file, line)));
  next.device = std::move(over).value();
  return push(std::move(next));
}

GraphBuilder::Guard GraphBuilder::with_resource(const Output& handle) {
  if (open_) return open_->with_resource(handle);
  const NodeDef& node = handle.graph().node(handle.node());
  Frame next = frame();
  next.device = node.device;
  next.colocate.clear();
  return push(std::move(next));
}

GraphBuilder::Guard GraphBuilder::with_control(std::vector<Op> control, const char* file,
                                               int line) {
  if (open_) return open_->with_control(std::move(control), file, line);
  for (const Op& op : control)
    if (op.empty())
      throw Error(invalid_argument("with_control: an Op is empty").at(Site::here(file, line)));
  Frame next = frame();
  next.control.insert(next.control.end(), control.begin(), control.end());
  return push(std::move(next));
}

GraphBuilder::Guard GraphBuilder::with_site(Site site) {
  if (open_) return open_->with_site(std::move(site));
  Frame next = frame();
  next.site = std::move(site);
  return push(std::move(next));
}

GraphBuilder::Guard GraphBuilder::with_colocation(std::string_view node) {
  if (open_) return open_->with_colocation(node);
  Frame next = frame();
  next.colocate.emplace_back(node);
  return push(std::move(next));
}

}  // namespace troupe
