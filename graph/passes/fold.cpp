// Constant folding: computes nodes that depend only on constants, once, at compile time.
#include <algorithm>

#include "graph/passes/pass.hpp"

namespace troupe {
namespace {

constexpr std::size_t kMostBytes = std::size_t{10} << 20;
// By how much results of one step's folding may exceed their inputs in total, such as the zeros of
// many variables: every process that compiles holds them, and the step as long as it is loaded.
constexpr std::size_t kMostGrown = kMostBytes;
// Elements read and written by one step's folding in total: a second or two, since the client waits
// for it. A run computes the rest as fast as its devices can.
constexpr double kMostWork = double(std::uint64_t{1} << 31);

const Tensor* constant(const NodeDef& node) {
  if (node.op != "Const") return nullptr;
  auto at = node.attrs.find("value");
  return at == node.attrs.end() ? nullptr : at->second.get<Tensor>();
}

bool foldable(const NodeDef& node, const OpDef& op) {
  const auto& types = node.out_types;
  return op.role == Role::kernel && !op.stateful && !op.random && node.op != "Const" &&
         !node.inputs.empty() && node.control.empty() && !types.empty() &&
         std::find(types.begin(), types.end(), DType::list) == types.end();
}

NodeDef constant_node(const NodeDef& folded, std::size_t output, Tensor value) {
  NodeDef node;
  // The first output keeps the name, so that messages still mean something.
  node.name = output == 0 ? folded.name : folded.name + "/folded_" + std::to_string(output);
  node.op = "Const";
  node.device = folded.device;
  node.colocate = folded.colocate;
  node.site = folded.site;
  node.out_types = {value.dtype()};
  node.out_shapes = {PartialShape(value.shape())};
  node.attrs.emplace("T", Attr(value.dtype()));
  node.attrs.emplace("value", Attr(std::move(value)));
  return node;
}

std::size_t bytes_of(const std::vector<Tensor>& values) {
  std::size_t bytes = 0;
  for (const Tensor& value : values) bytes += value.bytes();
  return bytes;
}

// Whether the values have the declared dtypes and shapes.
bool fits(const NodeDef& node, const std::vector<Tensor>& values) {
  if (values.size() != node.out_types.size()) return false;
  for (std::size_t i = 0; i < values.size(); ++i)
    if (!values[i].defined() || values[i].dtype() != node.out_types[i] ||
        !node.out_shapes[i].accepts(values[i].shape()))
      return false;
  return true;
}

// An upper bound that needs no kernel: each element of an input is read once or, if outputs are
// contractions, at most once for each element of the output. Of two inputs, the smaller one bounds
// the number of products in an element of the output.
double work_of(const NodeDef& node, const OpDef& op, const std::vector<Tensor>& inputs) {
  double read = 0, largest = 0, second = 0, written = 0;
  for (const Tensor& t : inputs) {
    const double n = double(t.elements());
    read += n;
    second = std::max(second, std::min(largest, n));
    largest = std::max(largest, n);
  }
  for (const PartialShape& shape : node.out_shapes)
    if (shape.fully_known()) written += double(shape.shape().elements());
  if (!op.contraction) return 1 + read + written;
  return 1 + read + written * (inputs.size() > 1 ? second : largest);
}

// The bytes that are known before the work is done: a large result is not computed only to be
// discarded.
std::size_t known_bytes(const NodeDef& node) {
  std::size_t bytes = 0;
  for (std::size_t i = 0; i < node.out_types.size(); ++i)
    if (node.out_shapes[i].fully_known())
      bytes += std::size_t(node.out_shapes[i].shape().elements()) * dtype_size(node.out_types[i]);
  return bytes;
}

}  // namespace

Status fold(StepGraph& step, const Target& target) {
  const OpInfo* const_op = target.ops->find("Const");
  if (!target.evaluate || !const_op || !const_op->attr("T") || !const_op->attr("value"))
    return ok_status();
  const auto& nodes = step.graph.nodes;
  std::size_t folded = 0, too_dear = 0, too_large = 0, grown = 0;
  double work = 0;
  std::vector<bool> is_target(nodes.size(), false);
  for (NodeId id : step.targets) is_target[id] = true;
  Rewriter out(step);
  const auto growth = [](std::size_t result, const std::vector<Tensor>& inputs) {
    return result - std::min(result, bytes_of(inputs));
  };
  auto values_of_inputs = [&](const NodeDef& node) {
    std::vector<Tensor> values;
    for (Port in : node.inputs) {
      // The new graph: an input that was folded just now is a constant already.
      const NodeDef& source = out.graph().nodes[out.port(in).node];
      const Tensor* value = constant(source);
      if (!value || !source.control.empty()) return std::vector<Tensor>{};
      values.push_back(*value);
    }
    return values;
  };
  for (NodeId id = 0; id < nodes.size(); ++id) {
    const NodeDef& node = nodes[id];
    const OpDef& op = op_of(node, *target.ops).def;
    std::vector<Tensor> inputs;
    if (foldable(node, op) && !is_target[id] && known_bytes(node) <= kMostBytes)
      inputs = values_of_inputs(node);
    if (!inputs.empty() && grown + growth(known_bytes(node), inputs) > kMostGrown) {
      ++too_large;
      inputs.clear();
    }
    if (!inputs.empty()) {
      const double more = work_of(node, op, inputs);
      if (work + more > kMostWork) {
        ++too_dear;
        inputs.clear();
      } else {
        work += more;
      }
    }
    if (inputs.empty()) {
      out.keep(id);
      continue;
    }
    if (target.stopped && target.stopped()) return cancelled("the compile was stopped");
    auto values = target.evaluate(node, inputs);
    if (!values.ok())
      step.notes.push_back("fold: '" + node.name +
                           "' is left to the run: " + values.status().text());
    if (!values.ok() || !fits(node, *values) || bytes_of(*values) > kMostBytes ||
        grown + growth(bytes_of(*values), inputs) > kMostGrown) {
      out.keep(id);
      continue;
    }
    grown += growth(bytes_of(*values), inputs);
    ++folded;
    for (std::size_t i = 0; i < values->size(); ++i) {
      const NodeId made = out.append(constant_node(node, i, (*values)[i]));
      out.map_port({id, std::uint32_t(i)}, {made, 0});
      if (i == 0) out.map(id, made);
    }
  }
  if (too_dear > 0)
    step.notes.push_back("fold: " + std::to_string(too_dear) +
                         " nodes take long to compute and are left to the run");
  if (too_large > 0)
    step.notes.push_back("fold: " + std::to_string(too_large) +
                         " nodes make much of little and are left to the run");
  if (folded > 0) step.notes.push_back("fold: computed " + std::to_string(folded) + " nodes");
  out.finish();
  return ok_status();
}

}  // namespace troupe
