#include "serialization/detail/graph.hpp"

#include "serialization/detail/values.hpp"

namespace troupe::detail {
namespace {

void write_node(schema::Node::Builder out, const NodeDef& node) {
  out.setName(text(node.name));
  out.setOp(text(node.op));
  auto inputs = out.initInputs(unsigned(node.inputs.size()));
  for (unsigned i = 0; i < inputs.size(); ++i) {
    inputs[i].setNode(node.inputs[i].node);
    inputs[i].setIndex(node.inputs[i].index);
  }
  write_numbers(out.initControl(unsigned(node.control.size())), node.control);
  auto attrs = out.initAttrs(unsigned(node.attrs.size()));
  unsigned n = 0;
  for (const auto& [name, attr] : node.attrs) write(attrs[n++], name, attr);
  if (!node.device.empty()) out.setDevice(text(node.device));
  if (!node.colocate.empty())
    write_texts(out.initColocate(unsigned(node.colocate.size())), node.colocate);
  out.setReplica(node.replica);
  if (node.site.known()) write(out.initSite(), node.site);
  auto types = out.initOutTypes(unsigned(node.out_types.size()));
  for (unsigned i = 0; i < types.size(); ++i) types.set(i, std::uint8_t(node.out_types[i]));
  auto shapes = out.initOutShapes(unsigned(node.out_shapes.size()));
  for (unsigned i = 0; i < shapes.size(); ++i) write(shapes[i], node.out_shapes[i]);
}

Expected<AttrMap> read_attrs(capnp::List<schema::Attr>::Reader in) {
  AttrMap out;
  for (auto item : in) {
    std::string name = text(item.getName());
    if (name.empty()) return invalid_argument("an attribute has no name");
    if (!out.empty() && out.rbegin()->first >= name)
      return invalid_argument("attribute '" + name + "' is out of order");
    TROUPE_TRY(Attr attr, read(item));
    out.emplace_hint(out.end(), std::move(name), std::move(attr));
  }
  return out;
}

Expected<NodeDef> read_node(schema::Node::Reader in) {
  NodeDef node;
  node.name = text(in.getName());
  node.op = text(in.getOp());
  if (node.name.empty() || node.op.empty()) return invalid_argument("a node has no name or no op");
  for (auto port : in.getInputs()) node.inputs.push_back({port.getNode(), port.getIndex()});
  node.control = read_numbers(in.getControl());
  TROUPE_TRY(node.attrs, read_attrs(in.getAttrs()));
  node.device = text(in.getDevice());
  node.colocate = read_texts(in.getColocate());
  node.replica = in.getReplica();
  node.site = read(in.getSite());
  for (std::uint8_t value : in.getOutTypes()) {
    TROUPE_TRY(DType type, read_dtype(value));
    node.out_types.push_back(type);
  }
  for (auto item : in.getOutShapes()) {
    TROUPE_TRY(PartialShape shape, read(item));
    node.out_shapes.push_back(std::move(shape));
  }
  return node;
}

void write_function(schema::Function::Builder out, const FunctionDef& f) {
  out.setName(text(f.name));
  auto nodes = out.initNodes(unsigned(f.nodes.size()));
  for (unsigned i = 0; i < nodes.size(); ++i) write_node(nodes[i], f.nodes[i]);
  write_numbers(out.initArguments(unsigned(f.arguments.size())), f.arguments);
  auto results = out.initResults(unsigned(f.results.size()));
  for (unsigned i = 0; i < results.size(); ++i) {
    results[i].setNode(f.results[i].node);
    results[i].setIndex(f.results[i].index);
  }
  auto types = out.initResultTypes(unsigned(f.result_types.size()));
  for (unsigned i = 0; i < types.size(); ++i) types.set(i, std::uint8_t(f.result_types[i]));
  auto shapes = out.initResultShapes(unsigned(f.result_shapes.size()));
  for (unsigned i = 0; i < shapes.size(); ++i) write(shapes[i], f.result_shapes[i]);
  if (f.site.known()) write(out.initSite(), f.site);
}

Expected<FunctionDef> read_function(schema::Function::Reader in) {
  FunctionDef f;
  f.name = text(in.getName());
  if (f.name.empty()) return invalid_argument("a function has no name");
  for (auto item : in.getNodes()) {
    TROUPE_TRY(NodeDef node, read_node(item));
    f.nodes.push_back(std::move(node));
  }
  f.arguments = read_numbers(in.getArguments());
  for (auto port : in.getResults()) f.results.push_back({port.getNode(), port.getIndex()});
  for (std::uint8_t value : in.getResultTypes()) {
    TROUPE_TRY(DType type, read_dtype(value));
    f.result_types.push_back(type);
  }
  for (auto item : in.getResultShapes()) {
    TROUPE_TRY(PartialShape shape, read(item));
    f.result_shapes.push_back(std::move(shape));
  }
  f.site = read(in.getSite());
  return f;
}

}  // namespace

void write(schema::Graph::Builder out, const GraphDef& graph) {
  auto nodes = out.initNodes(unsigned(graph.nodes.size()));
  for (unsigned i = 0; i < nodes.size(); ++i) write_node(nodes[i], graph.nodes[i]);
  out.setSeed(graph.seed);
  if (graph.functions.empty()) return;
  auto functions = out.initFunctions(unsigned(graph.functions.size()));
  for (unsigned i = 0; i < functions.size(); ++i) write_function(functions[i], graph.functions[i]);
}

Expected<GraphDef> read(schema::Graph::Reader in) {
  GraphDef graph;
  for (auto item : in.getNodes()) {
    auto node = read_node(item);
    if (!node.ok())
      return node.status().in("in node " + std::to_string(graph.nodes.size()) + " of a graph");
    graph.nodes.push_back(std::move(node).value());
  }
  graph.seed = in.getSeed();
  for (auto item : in.getFunctions()) {
    auto function = read_function(item);
    if (!function.ok())
      return function.status().in("in function " + std::to_string(graph.functions.size()) +
                                  " of a graph");
    graph.functions.push_back(std::move(function).value());
  }
  return graph;
}

}  // namespace troupe::detail
