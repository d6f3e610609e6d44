#include "graph/control/gradients/detail/recursive_gradient.hpp"

#include <set>

#include "graph/control/functions/ops.hpp"
#include "graph/control/gradients/detail/extraction.hpp"
#include "graph/node_query.hpp"

namespace troupe {
namespace {

const NodeDef& node_of(const Tape& tape, Port p) { return tape.body->node(p.node); }
DType dtype_of(const Tape& tape, Port p) { return node_of(tape, p).out_types[p.index]; }

// The arguments that can have a gradient.
std::vector<std::size_t> differentiable(const Tape& tape) {
  std::vector<std::size_t> out;
  for (std::size_t i = 0; i < tape.inputs.size(); ++i)
    if (carries_gradient(dtype_of(tape, tape.inputs[i]))) out.push_back(i);
  return out;
}

void differentiate(Tape& tape, const std::vector<std::size_t>& of, const std::vector<Output>& ys) {
  std::vector<Output> xs;
  for (std::size_t i : of) xs.push_back(tape.input(i));
  const auto dx = value_or_throw(gradients(ys, xs, tape.dy));
  auto scope = tape.body->with_scope("gradients");
  tape.dx.resize(tape.inputs.size());
  for (std::size_t k = 0; k < of.size(); ++k)
    tape.dx[of[k]] = dx[k].empty() ? zero_gradient(xs[k]) : dx[k];
}

// Sets the name of a function's gradient; clears it again if making the gradient fails.
class Naming {
 public:
  Naming(FunctionRecord& record, const std::string& name) : record_(&record) {
    record.gradient = name;
  }
  Naming(const Naming&) = delete;
  Naming& operator=(const Naming&) = delete;
  ~Naming() {
    if (record_) record_->gradient.clear();
  }
  void keep() { record_ = nullptr; }

 private:
  FunctionRecord* record_;
};

// Callers may know different shapes, so the gradient function declares none.
void make_gradient(GraphBuilder& g, FunctionRecord& record, const std::string& name,
                   const Site& site) {
  Tape tape = tape_of(record);
  std::vector<Output> ys;
  for (Port p : tape.outputs) {
    if (!carries_gradient(dtype_of(tape, p))) continue;
    const PartialShape shape = node_of(tape, p).out_shapes[p.index];
    tape.dy.push_back(add_argument(*tape.body, {dtype_of(tape, p), shape}, "dy"));
    ys.emplace_back(tape.body.get(), p);
  }
  const std::vector<std::size_t> results = differentiable(tape);
  Body body(g, name + "_grad", site, true);
  Extraction extraction(tape, body, 0, true);
  std::vector<ValueType> declared;
  for (std::size_t i : results)
    declared.push_back({dtype_of(tape, tape.inputs[i]), PartialShape::unknown()});
  body.declare(declared);
  Naming named(record, body.name());
  differentiate(tape, results, ys);
  extraction.run(results);
  FunctionRecord& made = *value_or_throw(body.finish());
  remember(tape, results, body.name(), made);
  named.keep();
}

// Declares for dx the shape of x, which the gradient function does not declare. dx has that shape
// already: nothing is summed.
Output in_shape_of(GraphBuilder& g, const Output& x, const Output& dx) {
  if (g.is_tape() || !is_float(x.dtype()) || !x.shape().fully_known()) return dx;
  NodeSpec spec{.op = "SumToShape", .inputs = {dx}, .attrs = {{"shape", x.shape()}}};
  return g.add(std::move(spec)).output();
}

bool is_handle_on_variable(const Output& x) {
  const OpDef& op = op_of(x.graph().node(x.node()), x.graph().registry()).def;
  return is_handle(op.role) && op.external.resource == "variable";
}

Status of_variable(const NodeDef& call, const Output& handle) {
  return unimplemented("gradients: '" + call.name +
                       "' is a call of a function that calls itself and "
                       "reads or writes '" +
                       handle.name() +
                       "'; pass the variable's value as an "
                       "argument")
      .at(call.site);
}

}  // namespace

bool calls_itself(GraphBuilder& g, const std::string& function) {
  const GraphDef& graph = g.root().def();
  std::set<std::string> seen;
  std::vector<std::string> open{function};
  while (!open.empty()) {
    const std::string name = std::move(open.back());
    open.pop_back();
    const FunctionRecord* record = g.function(name);
    if (!record || record->position >= graph.functions.size()) continue;
    for (const NodeDef& node : graph.functions[record->position].nodes) {
      if (g.registry().find(node.op)->def.role != Role::call) continue;
      for (const std::string& called : functions_of(node)) {
        if (called == function) return true;
        if (seen.insert(called).second) open.push_back(called);
      }
    }
  }
  return false;
}

std::vector<Output> recursive_gradient(GradContext& c) {
  const NodeDef node = c.node();
  GraphBuilder& root = c.g.root();
  const std::string function = functions_of(node)[0];
  FunctionRecord& record = *root.function(function);
  std::vector<Output> dx(c.x.size());
  for (std::size_t i = record.handles; i < c.x.size(); ++i)
    if (c.wanted[i] && is_handle_on_variable(c.x[i])) throw Error(of_variable(node, c.x[i]));
  std::vector<std::size_t> results;
  for (std::size_t i = record.handles; i < c.x.size(); ++i)
    if (carries_gradient(c.x[i].dtype())) results.push_back(i);
  if (results.empty()) return dx;
  if (record.gradient.empty()) make_gradient(c.g, record, function, node.site);
  NodeSpec spec{.op = "Call", .attrs = {{"function", record.gradient}}, .name = "grad"};
  const auto first = c.x.begin() + std::ptrdiff_t(record.handles);
  spec.inputs.assign(c.x.begin(), first);
  spec.inputs.push_back(c.y.back());
  spec.inputs.insert(spec.inputs.end(), first, c.x.end());
  for (std::size_t k = 0; k + 1 < c.y.size(); ++k)
    if (carries_gradient(c.y[k].dtype()))
      spec.inputs.push_back(c.dy[k].empty() ? zero_gradient(c.y[k]) : c.dy[k]);
  const Op made = c.g.add(std::move(spec));
  for (std::size_t r = 0; r < results.size(); ++r)
    if (c.wanted[results[r]])
      dx[results[r]] = in_shape_of(c.g, c.x[results[r]], made.output(int(r)));
  return dx;
}

}  // namespace troupe
