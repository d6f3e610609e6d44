#include "graph/print.hpp"

#include <fmt/format.h>

#include <iterator>
#include <map>

namespace troupe {
namespace {

constexpr std::size_t kMostText = 60;  // of one attribute: constants can be long

// Names may have any characters in a graph that somebody sent: none of them is a command to a
// terminal, or begins a line.
void make_printable(std::string& out, std::size_t from) {
  for (; from < out.size(); ++from)
    if (static_cast<unsigned char>(out[from]) < 0x20 || out[from] == 0x7f) out[from] = ' ';
}

// One line, of printable characters, in the double quotes of DOT.
std::string escaped(std::string_view text) {
  std::string out;
  for (char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    out += c;
  }
  make_printable(out, 0);
  return out;
}

std::string shortened(std::string text) {
  make_printable(text, 0);
  if (text.size() <= kMostText) return text;
  std::size_t cut = kMostText;
  while (cut > 0 && (text[cut] & 0xc0) == 0x80) --cut;  // not inside a UTF-8 character
  return text.substr(0, cut) + "...";
}

std::string port_text(const GraphDef& graph, Port port) {
  if (port.node >= graph.nodes.size()) return fmt::format("?{}:{}", port.node, port.index);
  const std::string& name = graph.nodes[port.node].name;
  return port.index == 0 ? name : fmt::format("{}:{}", name, port.index);
}

// "f32[32,?]"; "" for a port that the node has not.
std::string type_text(const NodeDef& node, std::size_t port) {
  if (port >= node.out_types.size()) return {};
  std::string out(dtype_name(node.out_types[port]));
  if (port < node.out_shapes.size()) out += node.out_shapes[port].text();
  return out;
}

std::string attrs_text(const NodeDef& node, std::string_view separator) {
  std::string out;
  for (const auto& [name, value] : node.attrs)
    out += fmt::format("{}{}: {}", out.empty() ? "" : separator, name, shortened(value.text()));
  return out;
}

void print_node(const GraphDef& graph, const NodeDef& node, std::string& out) {
  const std::size_t begin = out.size();
  auto to = std::back_inserter(out);
  fmt::format_to(to, "{} = {}(", node.name, node.op);
  std::string_view comma = "";
  for (Port p : node.inputs) {
    fmt::format_to(to, "{}{}", comma, port_text(graph, p));
    comma = ", ";
  }
  for (NodeId c : node.control) {
    fmt::format_to(to, "{}^{}", comma, port_text(graph, {c, 0}));
    comma = ", ";
  }
  out += ')';
  if (!node.attrs.empty()) fmt::format_to(to, " {{{}}}", attrs_text(node, ", "));
  for (std::size_t i = 0; i < node.out_types.size(); ++i)
    fmt::format_to(to, "{}{}", i == 0 ? " : " : ", ", type_text(node, i));
  if (!node.device.empty()) fmt::format_to(to, " on {}", node.device);
  for (const std::string& other : node.colocate) fmt::format_to(to, " with {}", other);
  if (node.replica >= 0) fmt::format_to(to, " replica {}", node.replica);
  if (node.site.known()) fmt::format_to(to, " # {}", node.site.text());
  make_printable(out, begin);
  out += '\n';
}

// Names with the scope on a line of its own: boxes stay narrow.
// `of` tells nodes of one body from those of another: "n", "f0_n".
std::string dot_node(const GraphDef& graph, NodeId id, std::string_view of) {
  const NodeDef& node = graph.nodes[id];
  std::size_t slash = node.name.rfind('/');
  std::string name = slash == std::string::npos ? escaped(node.name)
                                                : escaped(node.name.substr(0, slash + 1)) + "\\n" +
                                                      escaped(node.name.substr(slash + 1));
  std::string tip = attrs_text(node, "; ");
  if (node.site.known()) tip = node.site.text() + (tip.empty() ? "" : "; ") + tip;
  return fmt::format("{}{} [label=\"{}\\n{}\", tooltip=\"{}\"{}];\n", of, id, name,
                     escaped(node.op), escaped(tip), node.inputs.empty() ? ", shape=ellipse" : "");
}

void dot_edges(const GraphDef& graph, NodeId id, std::string_view of, std::string& out) {
  auto to = std::back_inserter(out);
  const NodeDef& node = graph.nodes[id];
  for (Port p : node.inputs) {
    if (p.node >= graph.nodes.size()) continue;
    fmt::format_to(to, "  {}{} -> {}{} [label=\"{}\"{}];\n", of, p.node, of, id,
                   escaped(type_text(graph.nodes[p.node], p.index)),
                   p.node >= id ? ", style=bold, constraint=false" : "");
  }
  for (NodeId c : node.control)
    if (c < graph.nodes.size())
      fmt::format_to(to, "  {}{} -> {}{} [style=dashed];\n", of, c, of, id);
}

// A function's nodes as a graph of their own.
GraphDef body_of(const FunctionDef& f) {
  GraphDef body;
  body.nodes = f.nodes;
  return body;
}

void print_function(const FunctionDef& f, std::string& out) {
  const GraphDef body = body_of(f);
  auto to = std::back_inserter(out);
  auto list = [&](const auto& ports) {
    std::string_view comma = "";
    for (const auto& port : ports) {
      fmt::format_to(to, "{}{}", comma, port_text(body, Port(port)));
      comma = ", ";
    }
  };
  std::vector<Port> arguments;
  for (NodeId id : f.arguments) arguments.push_back({id, 0});
  out += '\n';
  const std::size_t begin = out.size();
  fmt::format_to(to, "function {}(", f.name);
  list(arguments);
  out += ") returns (";
  list(f.results);
  out += ')';
  if (f.site.known()) fmt::format_to(to, " # {}", f.site.text());
  make_printable(out, begin);
  out += '\n';
  for (const NodeDef& node : body.nodes) {
    out += "  ";
    print_node(body, node, out);
  }
}

void dot_function(const FunctionDef& f, std::size_t number, std::string& out) {
  const GraphDef body = body_of(f);
  const std::string of = fmt::format("f{}_n", number);
  out += fmt::format("  subgraph cluster_f{} {{\n    label=\"function {}\"; style=dashed;\n",
                     number, escaped(f.name));
  for (NodeId id = 0; id < body.nodes.size(); ++id) out += "    " + dot_node(body, id, of);
  out += "  }\n";
  for (NodeId id = 0; id < body.nodes.size(); ++id) dot_edges(body, id, of, out);
}

}  // namespace

std::string to_text(const GraphDef& graph) {
  std::string out;
  for (const NodeDef& node : graph.nodes) print_node(graph, node, out);
  for (const FunctionDef& f : graph.functions) print_function(f, out);
  return out;
}

std::string to_dot(const GraphDef& graph) {
  std::map<std::string, std::vector<NodeId>> devices;
  for (NodeId id = 0; id < graph.nodes.size(); ++id) devices[graph.nodes[id].device].push_back(id);
  std::string out = "digraph troupe {\n  node [shape=box, fontsize=10];\n  edge [fontsize=8];\n";
  std::size_t cluster = 0;
  for (const auto& [device, nodes] : devices) {
    if (!device.empty())
      out +=
          fmt::format("  subgraph cluster_{} {{\n    label=\"{}\";\n", cluster++, escaped(device));
    for (NodeId id : nodes) out += (device.empty() ? "  " : "    ") + dot_node(graph, id, "n");
    if (!device.empty()) out += "  }\n";
  }
  for (NodeId id = 0; id < graph.nodes.size(); ++id) dot_edges(graph, id, "n", out);
  for (std::size_t i = 0; i < graph.functions.size(); ++i) dot_function(graph.functions[i], i, out);
  return out + "}\n";
}

}  // namespace troupe
