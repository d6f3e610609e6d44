#include "graph/control/gradients/gradients.hpp"

#include <algorithm>
#include <set>
#include <unordered_map>

#include "graph/control/functions/body.hpp"
#include "graph/control/functions/ops.hpp"
#include "graph/control/gradients/detail/extraction.hpp"
#include "graph/control/gradients/detail/loop_gradient.hpp"
#include "graph/control/gradients/detail/recursive_gradient.hpp"
#include "graph/node_query.hpp"

namespace troupe {
namespace {

// Adds the gradients of a tape to it.
void differentiate(Tape& tape, const GradContext& c, std::size_t first_argument) {
  GraphBuilder& g = *tape.body;
  std::vector<Output> ys, xs;
  std::vector<std::size_t> of;
  for (std::size_t k = 0; k < tape.outputs.size(); ++k) {
    if (c.dy[k].empty()) continue;
    tape.dy.push_back(add_argument(g, {c.dy[k].dtype(), c.dy[k].shape()}, "dy"));
    ys.emplace_back(&g, tape.outputs[k]);
  }
  std::set<std::string> variables;
  for (std::size_t i = 0; i < tape.inputs.size(); ++i)
    if (c.wanted[first_argument + i] && is_first_of_variable(tape.input(i), variables))
      xs.push_back(tape.input(i)), of.push_back(i);
  const auto dx = value_or_throw(gradients(ys, xs, tape.dy));
  tape.dx.resize(tape.inputs.size());
  for (std::size_t k = 0; k < of.size(); ++k) tape.dx[of[k]] = dx[k];
}

// The gradient of an input in a branch that does not use it. `like`: its gradient in another
// branch.
Output zeros(Tape& tape, std::size_t i, const Output& like) {
  GraphBuilder& g = *tape.body;
  const Output x = tape.input(i);
  auto scope = g.with_scope("gradients");
  if (x.dtype() != DType::resource) return zero_gradient(x);
  return zeros_of_variable(g, x, like.dtype());
}

// The inputs with a gradient in some branch; in the other branches they get zeros.
std::vector<std::size_t> flows_to(std::vector<Tape>& tapes) {
  std::vector<std::size_t> out;
  for (std::size_t i = 0; i < tapes[0].inputs.size(); ++i) {
    const Output* some = nullptr;
    for (Tape& tape : tapes)
      if (!tape.dx[i].empty()) some = &tape.dx[i];
    if (!some) continue;
    const Output like = *some;
    for (Tape& tape : tapes)
      if (tape.dx[i].empty()) tape.dx[i] = zeros(tape, i, like);
    out.push_back(i);
  }
  return out;
}

}  // namespace

namespace {

constexpr std::size_t kMostCopied = std::size_t{1} << 17;  // nodes
constexpr std::size_t kDeepestCalls = 500;

// The nodes of functions with a copy of what they call for each call, and how deep these calls are.
// What calls itself is copied once.
class GradientSize {
 public:
  struct Size {
    std::size_t nodes = 0, depth = 0;
    bool done = false;
  };

  explicit GradientSize(GraphBuilder& root) : root_(root) {}

  // Without recursion: functions of a file may call each other as deep as they like.
  Size of(const std::string& first) {
    std::vector<std::string> open{first};
    while (!open.empty()) {
      const std::string name = open.back();
      const FunctionRecord* record = root_.function(name);
      auto [at, fresh] = known_.try_emplace(name);
      if (!record || at->second.done) {
        open.pop_back();
      } else if (fresh) {
        each_called(*record, [&](const std::string& called) {
          if (!known_.contains(called)) open.push_back(called);
        });
      } else {
        open.pop_back();
        Size size{record->body->def().nodes.size(), 1, true};
        each_called(*record, [&](const std::string& called) {
          const Size& inner = known_[called];
          size.nodes = std::min(size.nodes + inner.nodes, kMostCopied + 1);
          size.depth = std::max(size.depth, inner.depth + 1);
        });
        at->second = size;
      }
    }
    return known_[first];
  }

 private:
  template <class F>
  void each_called(const FunctionRecord& record, F f) const {
    for (const NodeDef& node : record.body->def().nodes)
      if (role_of(node, root_.registry()) == Role::call)
        for (const std::string& name : functions_of(node)) f(name);
  }

  GraphBuilder& root_;
  std::unordered_map<std::string, Size> known_;
};

}  // namespace

Status check_gradient_size(GraphBuilder& root, const NodeDef& call) {
  GradientSize sizes(root);
  for (const std::string& name : functions_of(call)) {
    const GradientSize::Size size = sizes.of(name);
    if (size.nodes > kMostCopied)
      return in_node(
          resource_exhausted("the gradient of '" + name + "' would be made of more than " +
                             std::to_string(kMostCopied) +
                             " nodes, with a copy of each function for each call of it"),
          call);
    if (size.depth > kDeepestCalls)
      return in_node(resource_exhausted("the gradient of '" + name +
                                        "': functions call each other "
                                        "more than " +
                                        std::to_string(kDeepestCalls) + " deep"),
                     call);
  }
  return ok_status();
}

std::vector<Output> call_gradient(GradContext& c) {
  const NodeDef node = c.node();
  GraphBuilder& root = c.g.root();
  const std::vector<std::string> functions = functions_of(node);
  if (node.op == "Call" && calls_itself(root, functions[0])) return recursive_gradient(c);
  const std::size_t handles = root.function(functions[0])->handles;
  const std::size_t first = selectors(node) + handles;
  std::vector<Output> dx(c.x.size());

  std::vector<Tape> tapes;
  for (const std::string& name : functions) {
    FunctionRecord& record = *root.function(name);
    Differentiating now(record);
    tapes.push_back(tape_of(record));
    differentiate(tapes.back(), c, first);
  }
  const std::vector<std::size_t> results = flows_to(tapes);
  if (results.empty()) return dx;

  std::vector<std::string> names;
  for (std::size_t b = 0; b < tapes.size(); ++b) {
    Tape& tape = tapes[b];
    Body body(c.g, functions[b] + "_grad", node.site, true);
    Extraction(tape, body, b, c.g.is_tape()).run(results);
    FunctionRecord& made = *value_or_throw(body.finish());
    remember(tape, results, body.name(), made);
    names.push_back(body.name());
  }

  NodeSpec spec{.op = node.op, .name = "grad"};
  set_functions_of(spec.op, spec.attrs, names);
  spec.inputs.assign(c.x.begin(), c.x.begin() + std::ptrdiff_t(first));
  spec.inputs.push_back(c.y.back());
  spec.inputs.insert(spec.inputs.end(), c.x.begin() + std::ptrdiff_t(first), c.x.end());
  std::copy_if(c.dy.begin(), c.dy.end(), std::back_inserter(spec.inputs),
               [](const Output& o) { return !o.empty(); });
  const Op made = c.g.add(std::move(spec));
  for (std::size_t r = 0; r < results.size(); ++r) dx[first + results[r]] = made.output(int(r));
  return dx;
}

std::vector<Output> loop_gradient(GradContext& c) { return detail::LoopGradient(c).run(); }

}  // namespace troupe
