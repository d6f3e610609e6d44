#include "tests/protocol/hostile_programs.hpp"

#include <limits>
#include <optional>

#include "graph/control/functions/ops.hpp"
#include "ops/api.hpp"
#include "serialization/wire.hpp"
#include "tests/graph/paper_loop.hpp"

namespace troupe::test {
namespace {

// --- valid programs ---

// Branches, loops, calls, writes, queues and lists around each other, as a seed says.
class Author {
 public:
  explicit Author(std::uint64_t seed) : random_(seed), g_(seed) {}

  GraphDef write() {
    p_ = placeholder<bool>(g_, PartialShape::scalar(), "p");
    n_ = placeholder<std::int32_t>(g_, PartialShape::scalar(), "n");
    v_.emplace(variable(g_, "v", Tensor::scalar(1.0)));
    w_.emplace(variable(g_, "w", Tensor::scalar(2.0)));
    queue_ = fifo_queue(g_, {DType::f64}, {.shapes = {PartialShape::scalar()}});
    values_.push_back(placeholder<double>(g_, PartialShape::scalar(), "x"));
    values_.push_back(constant(g_, 0.5));
    halve_.emplace(g_.function("halve", {f64_scalar}, {f64_scalar},
                               [&](Function&, Output x) { return x * 0.5; }));
    if (random_.below(2))
      count_.emplace(
          g_.function("count", {f64_scalar}, {f64_scalar}, [&](Function& self, Output x) {
            return cond(
                x < 1.0, [&] { return x; }, [&] { return self(x - 1.0); });
          }));
    for (int k = 0; k < 4; ++k) values_.push_back(statement(pick(), 3));
    Output y = values_.back();
    for (const Output& value : values_) y = y + value;
    if (random_.below(3) == 0) {
      auto dx = gradients(std::vector{y}, std::vector{values_[0]});
      if (dx.ok() && !(*dx)[0].empty()) y = y + (*dx)[0];
    }
    identity(y);
    return g_.def();
  }

 private:
  const Output& pick() { return values_[random_.below(values_.size())]; }

  Output statement(const Output& x, int depth) {
    switch (random_.below(depth > 0 ? 11 : 4)) {
      case 0:
        return x * x;
      case 1:
        return sin(x) + *v_;
      case 2:
        return (*halve_)(x);
      case 3: {
        Op added = assign_add(*w_, constant(g_, 1.0));
        return read(*w_, {added}) + x;
      }
      case 4:
        return cond(
            p_, [&] { return statement(x, depth - 1); }, [&] { return statement(-x, depth - 1); });
      case 5:
        return switch_case(n_, {[&] { return statement(x, depth - 1); }, [&] { return x; }});
      case 6:
        return std::get<1>(while_loop(
            std::tuple{constant(g_, 0), x}, [&](Output i, Output) { return i < n_; },
            [&](Output i, Output u) {
              return std::tuple{i + 1, statement(u, depth - 1)};
            }));
      case 7:
        return paper_loop(x, depth);
      case 8: {
        Op sides = g_.add(NodeSpec{.op = "Switch", .inputs = {x, p_}});
        return g_.add("Merge", {statement(sides.output(0), 0) * 2.0, -sides.output(1)});
      }
      case 9:
        return list_get(list_push(list_push(list_empty(g_, DType::f64), x), -x), constant(g_, 1),
                        DType::f64, {.shape = PartialShape::scalar()});
      default: {
        if (depth == 3 && count_) return (*count_)(x);
        Op put = enqueue(queue_, {x});
        return g_.add(NodeSpec{.op = "Identity", .inputs = {x}, .control = {put}}).output();
      }
    }
  }

  Output paper_loop(const Output& x, int depth) {
    PaperLoop loop(g_, "loop" + std::to_string(loops_++));
    const Output most = loop.constant(n_);
    const Output i = loop.variable(constant(g_, 0)), u = loop.variable(x);
    const Output made = u * 0.5;
    loop.again(i < most);
    Op through = loop.let_through(made);
    loop.next(0, loop.passed(0) + 1);
    Output next = loop.passed(1) + through.output(1);
    if (depth > 1 && random_.below(2)) next = paper_loop_in(loop, next);
    loop.next(1, next);
    return loop.last(1) + g_.add("Exit", {through.output(0)});
  }
  // One in another: all that it takes is of the outer one.
  Output paper_loop_in(PaperLoop& outer, const Output& x) {
    PaperLoop inner(g_, "inner");
    Output u = inner.variable(x);
    inner.again(u < 1.0);
    inner.next(0, inner.passed(0) + inner.constant(outer.merge(1)));
    return inner.last(0);
  }

  Random random_;
  Graph g_;
  Output p_, n_, queue_;
  std::optional<Variable> v_, w_;
  std::optional<Function> halve_, count_;
  std::vector<Output> values_;
  int loops_ = 0;
};

// --- programs that were never valid ---

// Functions that call the next one several times.
GraphDef doubling(Random& random) {
  GraphDef graph;
  const std::uint64_t levels = 1 + random.below(60), calls = 1 + random.below(3);
  for (std::uint64_t level = 0; level < levels; ++level) {
    FunctionDef f{.name = "f" + std::to_string(level)};
    NodeDef argument{.name = "x", .op = "Argument"};
    argument.attrs = {{"T", DType::f64}, {"shape", PartialShape::scalar()}};
    f.nodes.push_back(argument);
    f.arguments = {0};
    for (std::uint64_t c = 0; c < calls; ++c) {
      NodeDef call{.name = "c" + std::to_string(c), .op = "Call", .inputs = {{NodeId(c), 0}}};
      // The last one calls nothing, or another one again.
      const std::uint64_t next = level + 1 < levels ? level + 1 : random.below(levels + 1);
      call.attrs = {{"function", "f" + std::to_string(next)}};
      if (level + 1 == levels && random.below(4)) call.op = "Neg", call.attrs.clear();
      f.nodes.push_back(std::move(call));
    }
    f.results = {{NodeId(calls), 0}};
    f.result_types = {DType::f64};
    f.result_shapes = {PartialShape::scalar()};
    graph.functions.push_back(std::move(f));
  }
  NodeDef x{.name = "x", .op = "Placeholder"};
  x.attrs = {{"T", DType::f64}, {"shape", PartialShape::scalar()}};
  NodeDef call{.name = "y", .op = "Call", .inputs = {{0, 0}}};
  call.attrs = {{"function", "f0"}};
  graph.nodes = {x, call};
  return graph;
}

std::int64_t odd_number(Random& random) {
  constexpr std::int64_t kOdd[] = {0,
                                   1,
                                   2,
                                   -1,
                                   63,
                                   1024,
                                   1 << 16,
                                   1 << 24,
                                   std::int64_t{1} << 31,
                                   std::int64_t{1} << 40,
                                   std::numeric_limits<std::int64_t>::max(),
                                   std::numeric_limits<std::int64_t>::min()};
  return kOdd[random.below(std::size(kOdd))];
}

PartialShape odd_shape(Random& random) {
  if (random.below(4) == 0) return PartialShape::unknown();
  PartialShape shape = PartialShape::unknown_of_rank(int(random.below(kMaxRank + 1)));
  for (int d = 0; d < shape.rank(); ++d)
    shape.set_dim(d, random.below(2) ? std::int64_t(random.below(4)) : odd_number(random));
  return shape;
}

std::string odd_text(Random& random) {
  const char* kOdd[] = {"", "a\nb", "f@1", "/", "x/../y", "loop0", "count", "\xff", "%s", "0"};
  if (random.below(8) == 0) return std::string(random.below(1 << 12), 'x');
  return kOdd[random.below(std::size(kOdd))];
}

DType odd_type(Random& random) { return DType(random.below(20)); }

Attr odd_attr(Random& random) {
  switch (random.below(8)) {
    case 0:
      return odd_number(random);
    case 1:
      return random.below(2) == 0;
    case 2:
      return odd_text(random);
    case 3:
      return odd_type(random);
    case 4:
      return odd_shape(random);
    case 5:
      return std::vector<std::int64_t>(random.below(5), odd_number(random));
    case 6:
      return std::vector<DType>(random.below(5), odd_type(random));
    default:
      return std::vector<std::string>(random.below(5), odd_text(random));
  }
}

// Any op, with whatever it is given.
GraphDef nonsense(Random& random) {
  const auto ops = ops::builtin().ops.all();
  GraphDef graph;
  for (std::uint64_t n = 1 + random.below(12); n > 0; --n) {
    const OpInfo& op = *ops[random.below(ops.size())];
    NodeDef node{.name = "n" + std::to_string(n), .op = op.def.name};
    for (std::uint64_t k = random.below(op.in.size() + 2); k > 0; --k)
      node.inputs.push_back({NodeId(random.below(graph.nodes.size() + 2)), 0});
    for (const AttrSpec& spec : op.attrs)
      if (random.below(4)) node.attrs[spec.name] = odd_attr(random);
    graph.nodes.push_back(std::move(node));
  }
  return graph;
}

// --- changes ---

class Harm {
 public:
  Harm(Random& random, GraphDef& graph) : random_(random), graph_(graph) {}

  void once() {
    if (graph_.functions.empty() || random_.below(3) == 0) return node(graph_.nodes);
    FunctionDef& f = graph_.functions[random_.below(graph_.functions.size())];
    if (random_.below(3) == 0) return function(f);
    node(f.nodes);
  }

 private:
  std::uint32_t odd(std::size_t size) {
    return random_.below(16) == 0 ? std::uint32_t(random_())
                                  : std::uint32_t(random_.below(size + 1));
  }

  void function(FunctionDef& f) {
    switch (random_.below(10)) {
      case 0:
        f.name = random_.below(2) ? odd_text(random_) : graph_.functions.front().name;
        return;
      case 1:
        f.nodes.clear();
        return;
      case 2:
        if (!f.arguments.empty())
          f.arguments[random_.below(f.arguments.size())] = odd(f.nodes.size());
        return;
      case 3:
        if (!f.arguments.empty()) f.arguments.pop_back();
        return;
      case 4:
        f.arguments.push_back(odd(f.nodes.size()));
        return;
      case 5:
        f.results.push_back({odd(f.nodes.size()), odd(2)});
        return;
      case 6:
        if (!f.result_types.empty()) f.result_types[0] = odd_type(random_);
        return;
      case 7:
        if (!f.result_shapes.empty()) f.result_shapes[0] = odd_shape(random_);
        return;
      case 8:
        if (!f.results.empty()) f.results[0] = {odd(f.nodes.size()), odd(2)};
        return;
      default:
        graph_.functions.erase(graph_.functions.begin() + (&f - graph_.functions.data()));
    }
  }

  void node(std::vector<NodeDef>& nodes) {
    if (nodes.empty()) return;
    NodeDef& node = nodes[random_.below(nodes.size())];
    const NodeDef other = nodes[random_.below(nodes.size())];
    switch (random_.below(15)) {
      case 0:
      case 1:
        if (!node.inputs.empty())
          node.inputs[random_.below(node.inputs.size())] = {odd(nodes.size()), odd(2)};
        return;
      case 2:
        if (!node.inputs.empty() && !other.inputs.empty())
          node.inputs[random_.below(node.inputs.size())] = other.inputs[0];
        return;
      case 3:
        node.control.push_back(odd(nodes.size()));
        return;
      case 4:
        node.op = other.op;
        return;
      case 5:
        word(node);
        return;
      case 6:
      case 7:
        attr(node, other);
        return;
      case 8:
        node.name = random_.below(2) ? odd_text(random_) : other.name;
        return;
      case 9:
        node.inputs.push_back({odd(nodes.size()), 0});
        return;
      case 10:
        if (!node.inputs.empty()) node.inputs.pop_back();
        return;
      case 11:
        node.device = random_.below(2) ? "/job:w/task:1" : odd_text(random_);
        return;
      case 12:
        node.colocate.push_back(random_.below(2) ? other.name : odd_text(random_));
        return;
      case 13:
        nodes.erase(nodes.begin() + (&node - nodes.data()));
        return;
      default:
        nodes.push_back(other);
        nodes.back().name += "_again";
    }
  }

  // One of the words that loops and branches consist of for another.
  void word(NodeDef& node) {
    constexpr const char* kWords[] = {"Enter",    "Leave",  "Exit",  "NextIteration",  "LoopCond",
                                      "Identity", "Switch", "Merge", "ControlTrigger", "Call",
                                      "If",       "While",  "Saved", "Argument",       "SavedList"};
    node.op = kWords[random_.below(std::size(kWords))];
  }

  void attr(NodeDef& node, const NodeDef& other) {
    if (node.attrs.empty() || random_.below(8) == 0) {
      node.attrs[random_.below(2) ? "N" : odd_text(random_)] = odd_attr(random_);
      return;
    }
    auto at = std::next(node.attrs.begin(), std::ptrdiff_t(random_.below(node.attrs.size())));
    if (auto same = other.attrs.find(at->first); same != other.attrs.end() && random_.below(2)) {
      at->second = same->second;
    } else if (at->second.get<std::string>() && random_.below(2) && !graph_.functions.empty()) {
      at->second = graph_.functions[random_.below(graph_.functions.size())].name;
    } else if (at->second.get<std::int64_t>() && random_.below(2)) {
      at->second = odd_number(random_);
    } else if (random_.below(4) == 0) {
      node.attrs.erase(at);
    } else {
      at->second = odd_attr(random_);
    }
  }

  Random& random_;
  GraphDef& graph_;
};

void give_lines(GraphDef& graph) {
  std::uint32_t line = 0;
  for (NodeDef& node : graph.nodes) node.site = {kHostileFile, ++line};
  for (FunctionDef& f : graph.functions) {
    f.site = {kHostileFile, ++line};
    for (NodeDef& node : f.nodes) node.site = {kHostileFile, ++line};
  }
}

// As it comes after its bytes were changed.
Expected<GraphDef> through_bytes(GraphDef graph, Random& random) {
  const std::size_t nodes = graph.nodes.size();
  LoadGraph message{1, nodes, std::make_shared<const GraphDef>(std::move(graph)), 0};
  std::vector<std::byte> bytes = encode(message);
  for (std::uint64_t k = random.below(4); k > 0; --k) {
    std::byte& at = bytes[random.below(bytes.size())];
    at = random.below(2) ? at ^ std::byte(1 << random.below(8)) : std::byte(random.below(256));
  }
  if (random.below(8) == 0) bytes.resize(random.below(bytes.size()) / 8 * 8);
  TROUPE_TRY(WireMessage read, decode(bytes));
  const auto* load = std::get_if<LoadGraph>(&read);
  if (!load) return invalid_argument("another message");
  return GraphDef(*load->graph);
}

}  // namespace

HostilePrograms::HostilePrograms(std::uint64_t seed) {
  constexpr int kPrograms = 24;
  for (int k = 0; k < kPrograms; ++k)
    valid_.push_back(Author(mix64(seed + std::uint64_t(k))).write());
}

HostilePrograms::Drawn HostilePrograms::draw(Random& random) const {
  GraphDef graph;
  switch (random.below(16)) {
    case 0:
      graph = doubling(random);
      break;
    case 1:
      graph = nonsense(random);
      break;
    default:
      graph = valid_[random.below(valid_.size())];
  }
  give_lines(graph);
  Harm harm(random, graph);
  for (std::uint64_t k = random.below(5); k > 0; --k) harm.once();
  if (random.below(4)) return {std::move(graph)};
  return {through_bytes(std::move(graph), random), true};
}

}  // namespace troupe::test
