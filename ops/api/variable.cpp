#include "ops/api/variable.hpp"

#include <set>

#include "graph/node_query.hpp"
#include "ops/api/constant.hpp"
#include "ops/api/each_variable.hpp"
#include "ops/api/node.hpp"

namespace troupe {

namespace {

void check_ops(const char* what, const std::vector<Op>& ops, const Site& site) {
  for (std::size_t i = 0; i < ops.size(); ++i)
    if (ops[i].empty())
      throw Error(
          invalid_argument(std::string(what) + ": Op " + std::to_string(i) + " is empty").at(site));
}

Output read_node(const Output& handle, DType dtype, NodeSpec node) {
  node.op = "ReadVariable";
  node.inputs = {handle};
  node.attrs.emplace("T", dtype);
  return handle.graph().add(std::move(node)).output();
}

Output declare(GraphBuilder& g, std::string_view name, DType dtype, const PartialShape& shape,
               const VariableOptions& options, const Site& site) {
  NodeSpec node{.op = "Variable", .name = std::string(name), .site = site};
  node.attrs = {{"T", dtype},
                {"shape", shape},
                {"container", options.container},
                {"shared_name", options.shared_name},
                {"trainable", options.trainable && is_trainable(dtype)}};
  return g.add(std::move(node)).output();
}

// Names inside it begin with the variable's own.
GraphBuilder::Guard inner_scope(const Output& handle) {
  GraphBuilder& g = handle.graph();
  return g.with_scope(g.node(handle.node()).name + "/");
}

Variable initialised(const Output& handle, const Output& initial, const Site& site) {
  GraphBuilder& g = handle.graph();
  auto inside = inner_scope(handle);
  const Op init =
      g.add(NodeSpec{.op = "Assign", .inputs = {handle, initial}, .name = "init", .site = site});
  g.add_initializer(init.node());
  return {handle, read_node(handle, initial.dtype(), {.name = "read", .site = site})};
}

Op write_node(const char* op, const Variable& v, const Output& value, Site site) {
  return add_node({.op = op, .inputs = {v.handle(), value}, .site = std::move(site)});
}

Op write_rows(const char* op, const Variable& v, const Output& indices, const Output& rows,
              Site site) {
  return add_node({.op = op, .inputs = {v.handle(), indices, rows}, .site = std::move(site)});
}

}  // namespace

Output Variable::value() const {
  if (empty()) return {};
  GraphBuilder& g = handle_.graph();
  if (!g.root().in_loop()) return value_;
  auto there = g.with_resource(handle_);
  return read(*this, {}, g.node(handle_.node()).site);
}

Output Variable::operator[](std::initializer_list<Index> where) const { return value()[where]; }
Output Variable::operator[](const Index& one) const { return value()[one]; }
Output Variable::operator[](const ComputedIndex& at) const { return value()[at]; }

std::string Variable::name(const char* file, int line) const {
  return Op(handle_).name(file, line);
}

Variable variable(GraphBuilder& here, std::string_view name, Output initial,
                  const VariableOptions& options, Site site) {
  // Made in the body of a function it belongs to the graph all the same.
  GraphBuilder::Outside outside(here);
  GraphBuilder& g = here.root();
  check_given("variable '" + std::string(name) + "': its initial value", initial, site);
  auto whole = g.outside(initial);
  if (!whole.ok()) throw Error(whole.status().at(site));
  initial = *whole;
  const PartialShape shape = initial.shape();
  if (!shape.fully_known())
    throw Error(invalid_argument("variable '" + std::string(name) +
                                 "': its initial value has shape " + shape.text() +
                                 ", which is not fully known")
                    .at(site));
  const Output handle = declare(g, name, initial.dtype(), shape, options, site);
  return initialised(handle, initial, site);
}

Variable variable(GraphBuilder& here, std::string_view name, Tensor initial,
                  const VariableOptions& options, Site site) {
  GraphBuilder::Outside outside(here);
  GraphBuilder& g = here.root();
  if (!initial.defined())
    throw Error(invalid_argument("variable '" + std::string(name) +
                                 "': its initial value is a Tensor of nothing")
                    .at(site));
  const Output handle = declare(g, name, initial.dtype(), initial.shape(), options, site);
  auto inside = inner_scope(handle);
  return initialised(handle, constant(g, std::move(initial), site), site);
}

Output read(const Variable& v, const std::vector<Op>& after, Site site) {
  check_given("read: the variable", v.handle(), site);
  check_ops("read", after, site);
  return read_node(v.handle(), v.dtype(), {.control = after, .site = std::move(site)});
}

Op assign(const Variable& v, Output value, Site site) {
  return write_node("Assign", v, value, std::move(site));
}
Op assign_add(const Variable& v, Output value, Site site) {
  return write_node("AssignAdd", v, value, std::move(site));
}
Op assign_sub(const Variable& v, Output value, Site site) {
  return write_node("AssignSub", v, value, std::move(site));
}

Output detail::filled(const Variable& v, const Operand& number, const Site& site) {
  check_given("assign: the variable", v.handle(), site);
  GraphBuilder& g = v.handle().graph();
  Tensor scalar = number.scalar(v.dtype(), site);
  if (v.shape().rank() == 0) return constant(g, std::move(scalar), site);
  return fill(g, v.shape().dims(), std::move(scalar), site);
}

Op assign(const std::vector<Variable>& to, const std::vector<Variable>& from,
          const std::vector<Op>& after, Site site) {
  return each_variable(
      "assign", to, from, after,
      [&](const Variable& v, const Output& value) { return assign(v, value, site); }, site);
}

Op scatter_add(const Variable& v, Output indices, Output rows, Site site) {
  return write_rows("ScatterAdd", v, indices, rows, std::move(site));
}
Op scatter_sub(const Variable& v, Output indices, Output rows, Site site) {
  return write_rows("ScatterSub", v, indices, rows, std::move(site));
}
Op scatter_update(const Variable& v, Output indices, Output rows, Site site) {
  return write_rows("ScatterUpdate", v, indices, rows, std::move(site));
}

std::vector<Variable> distinct(const std::vector<Variable>& variables, Site site) {
  std::set<std::string> seen;
  std::vector<Variable> out;
  for (const Variable& v : variables) {
    check_given("a variable of the list", v.handle(), site);
    const GraphBuilder& g = v.handle().graph();
    if (seen.insert(resource_key(g.node(v.handle().node()), g.registry())).second) out.push_back(v);
  }
  return out;
}

std::vector<Variable> trainable_variables(GraphBuilder& here) {
  GraphBuilder& g = here.root();
  const std::vector<NodeDef>& nodes = g.def().nodes;
  std::vector<Output> reads(nodes.size());  // the first one of each handle
  for (NodeId id = 0; id < nodes.size(); ++id) {
    if (nodes[id].op != "ReadVariable") continue;
    Output& read = reads[nodes[id].inputs[0].node];
    if (read.empty()) read = Output(&g, {id, 0});
  }
  std::vector<Variable> out;
  for (NodeId id = 0; id < nodes.size(); ++id) {
    if (nodes[id].op != "Variable" || reads[id].empty()) continue;
    const bool* trainable = nodes[id].attrs.at("trainable").get<bool>();
    if (trainable != nullptr && *trainable) out.emplace_back(Output(&g, {id, 0}), reads[id]);
  }
  return distinct(out);
}

Op group(GraphBuilder& g, std::vector<Op> ops, std::string_view name, Site site) {
  check_ops("group", ops, site);
  return g.add(NodeSpec{
      .op = "NoOp", .name = std::string(name), .control = std::move(ops), .site = std::move(site)});
}

}  // namespace troupe
