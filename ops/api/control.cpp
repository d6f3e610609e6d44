#include "ops/api/control.hpp"

#include <algorithm>
#include <deque>

#include "graph/control/state/loop_reads.hpp"

namespace troupe {
namespace {

// Bodies under construction, of one node. They end in the reverse order of their making.
class Branches {
 public:
  explicit Branches(GraphBuilder& g) : g_(g) {}
  Branches(const Branches&) = delete;
  Branches& operator=(const Branches&) = delete;
  ~Branches() {
    while (!bodies_.empty()) bodies_.pop_back();
  }

  void build(std::string_view name, const std::function<std::vector<Output>()>& make,
             const Site& site) {
    bodies_.push_back(std::make_unique<Body>(g_, name, site));
    throw_if_error(bodies_.back()->returns(make()));
  }
  // One that a loop repeats.
  void build(std::string_view name, const std::vector<ValueType>& variables,
             const std::function<std::vector<Output>(const std::vector<Output>&)>& make,
             const Site& site) {
    bodies_.push_back(std::make_unique<Body>(g_, name, site));
    bodies_.back()->repeat();
    std::vector<Output> arguments;
    for (std::size_t v = 0; v < variables.size(); ++v)
      arguments.push_back(
          value_or_throw(bodies_.back()->argument(variables[v], "variable_" + std::to_string(v))));
    throw_if_error(bodies_.back()->returns(make(arguments)));
  }
  // Of a loop: reads that are the same in each iteration are made before it.
  void read_before(const std::vector<Output>& first) {
    std::vector<Body*> loop;
    for (const auto& body : bodies_) loop.push_back(body.get());
    throw_if_error(read_before_loop(loop, {first.begin(), first.end()}));
  }
  // All of them take what any of them uses. Returns that.
  std::vector<Output> captured() {
    std::vector<Output> all;
    for (const auto& body : bodies_)
      for (const Output& value : body->captured())
        if (std::none_of(all.begin(), all.end(), [&](const Output& o) { return o.is(value); }))
          all.push_back(value);
    for (const auto& body : bodies_) throw_if_error(body->capture(all));
    return all;
  }
  void finish(NodeSpec& call, std::vector<std::string>& names) {
    for (const auto& body : bodies_) {
      FunctionRecord* record = value_or_throw(body->finish());
      const std::vector<Op>& waits = record->body->body()->waits;
      call.control.insert(call.control.end(), waits.begin(), waits.end());
      names.push_back(body->name());
    }
  }

 private:
  GraphBuilder& g_;
  std::vector<std::unique_ptr<Body>> bodies_;
};

Status no_body(std::size_t branch) {
  return invalid_argument("switch_case: body " + std::to_string(branch) + " is an empty function");
}

// At the graph and at every body that is open in it: each may get arguments, variables, functions.
class Attempts {
 public:
  explicit Attempts(GraphBuilder& root) {
    GraphBuilder* g = &root.innermost();
    for (; g->body(); g = g->body()->parent)
      attempts_.emplace_back(*g, GraphBuilder::Attempt::At{});
    attempts_.emplace_back(*g, GraphBuilder::Attempt::At{});
  }
  void keep() {
    for (GraphBuilder::Attempt& attempt : attempts_) attempt.keep();
  }

 private:
  std::deque<GraphBuilder::Attempt> attempts_;
};

}  // namespace

Op detail::branch(const Output& selector, const Bodies& bodies, bool two_ways, Site site) {
  if (selector.empty())
    throw Error(invalid_argument(two_ways ? "cond: the predicate is empty"
                                          : "switch_case: the index is empty")
                    .at(site));
  if (bodies.empty()) throw Error(invalid_argument("switch_case: there is no body").at(site));
  for (std::size_t b = 0; b < bodies.size(); ++b)
    if (!bodies[b]) throw Error(no_body(b).at(site));
  GraphBuilder& g = selector.graph().root();
  Attempts attempts(g);
  Op made;
  {
    Branches branches(g);
    for (std::size_t b = 0; b < bodies.size(); ++b)
      branches.build(!two_ways ? "case/branch_" + std::to_string(b)
                     : b == 0  ? "cond/else"
                               : "cond/then",
                     bodies[b], site);
    NodeSpec call{.op = two_ways ? "If" : "Case", .inputs = {selector}, .site = site};
    call.name = two_ways ? "cond" : "case";
    for (const Output& value : branches.captured()) call.inputs.push_back(value);
    std::vector<std::string> names;
    branches.finish(call, names);
    if (two_ways)
      call.attrs = {{"else_branch", names[0]}, {"then_branch", names[1]}};
    else
      call.attrs = {{"branches", names}};
    made = g.add(std::move(call));
  }
  attempts.keep();
  return made;
}

Op detail::loop(const std::vector<Output>& first, const LoopBody& cond, const LoopBody& body,
                const LoopOptions& options, Site site) {
  auto bad = [&](const std::string& why) {
    throw Error(invalid_argument("while_loop: " + why).at(site));
  };
  if (first.empty()) bad("there is no variable");
  if (!options.shapes.empty() && options.shapes.size() != first.size())
    bad("there are " + std::to_string(options.shapes.size()) + " shapes for " +
        std::to_string(first.size()) + " variables");
  std::vector<ValueType> types;
  for (std::size_t v = 0; v < first.size(); ++v) {
    if (first[v].empty()) bad("variable " + std::to_string(v) + " is empty");
    types.push_back(
        {first[v].dtype(), options.shapes.empty() ? first[v].shape() : options.shapes[v]});
  }
  return loop(
      first[0].graph().root(), types, [&] { return first; }, cond, body, options, std::move(site));
}

Op detail::loop(GraphBuilder& g, const std::vector<ValueType>& variables,
                const std::function<std::vector<Output>()>& first, const LoopBody& cond,
                const LoopBody& body, const LoopOptions& options, Site site) {
  Attempts attempts(g);
  Op made;
  {
    Branches bodies(g);
    bodies.build("while/cond", variables, cond, site);
    bodies.build("while/body", variables, body, site);
    NodeSpec call{.op = "While", .inputs = first(), .name = "while", .site = site};
    bodies.read_before(call.inputs);
    for (const Output& value : bodies.captured()) call.inputs.push_back(value);
    std::vector<std::string> names;
    bodies.finish(call, names);
    call.attrs = {{"cond", names[0]},
                  {"body", names[1]},
                  {"variables", std::int64_t(variables.size())},
                  {"window", options.window},
                  {"save", std::string(options.save == LoopSave::values ? "values" : "variables")}};
    made = g.add(std::move(call));
  }
  attempts.keep();
  return made;
}

Output switch_case(const Output& index, std::vector<std::function<Output()>> bodies, Site site) {
  Bodies all;
  for (std::size_t b = 0; b < bodies.size(); ++b)
    if (!bodies[b]) throw Error(no_body(b).at(site));
  for (auto& body : bodies) all.push_back([&body] { return std::vector<Output>{body()}; });
  return detail::branch(index, all, false, std::move(site)).output();
}

Op switch_case_op(const Output& index, const Bodies& bodies, Site site) {
  return detail::branch(index, bodies, false, std::move(site));
}

// --- functions ---

Op Function::call_op(const std::vector<Output>& arguments, Site site) const {
  const FunctionRecord* record = graph_->function(name_);
  if (!record) throw Error(not_found("there is no function '" + name_ + "'").at(site));
  const BodyState& state = *record->body->body();
  NodeSpec call{.op = "Call", .inputs = arguments, .attrs = {{"function", name_}}, .name = name_};
  // While its own body is made it passes on what is known that it needs.
  const std::size_t captured = state.finished ? state.captured.size() : state.handed_on;
  call.inputs.insert(call.inputs.end(), state.captured.begin(),
                     state.captured.begin() + std::ptrdiff_t(captured));
  if (state.finished) call.control = state.waits;
  call.site = std::move(site);
  return graph_->root().add(std::move(call));
}

std::vector<Output> Function::call(const std::vector<Output>& arguments, Site site) const {
  std::vector<Output> results = call_op(arguments, std::move(site)).outputs();
  results.pop_back();  // what it saves
  return results;
}

Output detail::argument_of(const std::vector<Output>& values, std::size_t i, std::string_view name,
                           const Site& site) {
  if (i < values.size()) return values[i];
  throw Error(invalid_argument("function '" + std::string(name) + "' has " +
                               std::to_string(values.size()) +
                               " arguments, and its body takes more")
                  .at(site));
}

Output Function::one(const std::vector<Output>& arguments, const Site& site) const {
  const std::vector<Output> results = call(arguments, site);
  if (results.size() == 1) return results[0];
  throw Error(invalid_argument("function '" + name_ + "' has " + std::to_string(results.size()) +
                               " results; ask for them with call()")
                  .at(site));
}

Function detail::make_function(
    GraphBuilder& g, std::string_view name, const std::vector<ValueType>& arguments,
    const std::vector<ValueType>& results, Site site,
    const std::function<std::vector<Output>(Function&, const std::vector<Output>&)>& make) {
  // One that calls itself is made again when it is known what it uses of the graph around it.
  std::vector<Output> known;
  for (;;) {
    std::vector<Output> more;
    const std::size_t before = g.innermost().def().nodes.size();
    {
      Body body(g, name, site);
      std::vector<Output> values;
      for (const ValueType& type : arguments)
        values.push_back(value_or_throw(body.argument(type, "argument")));
      throw_if_error(body.hand_on(known));
      body.declare(results);
      Function self(g.root(), body.name());
      throw_if_error(body.returns(make(self, values)));
      more = body.to_hand_on();
      const bool can =
          std::all_of(more.begin(), more.end(), [&](const Output& o) { return o.node() < before; });
      if (more.empty() || !can) {
        value_or_throw(body.finish());
        return self;
      }
    }
    known = std::move(more);
  }
}

}  // namespace troupe
