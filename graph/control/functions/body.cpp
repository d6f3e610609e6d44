#include "graph/control/functions/body.hpp"

#include <algorithm>

#include "core/name.hpp"
#include "graph/control/functions/ops.hpp"
#include "graph/detail/value_type.hpp"

namespace troupe {

using detail::may_keep;
using detail::typed;

namespace {

ValueType type_of(const Output& value) { return {value.dtype(), value.shape()}; }

}  // namespace

Body::Body(GraphBuilder& g, std::string_view name, Site site, bool beside)
    : root_(g.root()), parent_(beside ? &root_ : &g.innermost()), beside_(beside) {
  if (!valid_node_name(name))
    throw Error(invalid_argument(quoted(name) + " is no name of a function").at(site));
  for (GraphBuilder* around = parent_;; around = around->body_->parent) {
    attempts_.emplace_back(*around, GraphBuilder::Attempt::At{});
    if (!around->body_) break;
  }
  name_ = root_.function_names_.take(std::string(name));
  auto record = std::make_unique<FunctionRecord>();
  record->body = std::make_unique<GraphBuilder>(root_.registry_, root_.def_.seed);
  record->position = ~std::size_t{0};
  graph_ = record->body.get();
  graph_->body_ = std::make_unique<BodyState>();
  graph_->body_->parent = parent_;
  graph_->body_->function = name_;
  graph_->body_->site = site;
  graph_->frames_.back().site = parent_->frame().site;
  record_ = root_.functions_.emplace(name_, std::move(record)).first->second.get();
  if (!beside_) parent_->open_ = graph_;
}

Body::~Body() {
  close();
  graph_->body_->finished = true;
  if (finished_) return;
  while (!attempts_.empty()) attempts_.pop_back();  // the graph's first: it removes functions
  auto at = root_.functions_.find(name_);
  if (at == root_.functions_.end()) return;
  root_.abandoned_.push_back(std::move(at->second));
  root_.functions_.erase(at);
}

BodyState& Body::state() { return *graph_->body_; }

void Body::close() {
  if (!beside_ && parent_->open_ == graph_) parent_->open_ = nullptr;
}

const std::vector<Output>& Body::captured() const { return graph_->body_->captured; }

Expected<Output> Body::argument(const ValueType& type, std::string_view name) {
  BodyState& state = *graph_->body_;
  TROUPE_CHECK(state.captured.empty(), "arguments come before what is captured");
  NodeSpec spec{.op = std::string(kArgumentOp), .name = std::string(name), .site = state.site};
  spec.attrs = {{"T", type.dtype}, {"shape", type.shape}};
  TROUPE_TRY(Op made, graph_->try_add_here(std::move(spec)));
  state.arguments.push_back(made.node());
  ++state.declared;
  return made.output();
}

Status Body::hand_on(const std::vector<Output>& values) {
  for (const Output& value : values) TROUPE_TRY(graph_->here(value));
  state().handed_on = values.size();
  return ok_status();
}

std::vector<Output> Body::to_hand_on() const {
  const BodyState& state = *graph_->body_;
  if (!state.called_itself || state.captured.size() == state.handed_on) return {};
  return state.captured;
}

void Body::declare(const std::vector<ValueType>& results) {
  FunctionDef signature;
  signature.name = name_;
  signature.nodes = graph_->def_.nodes;
  signature.arguments = graph_->body_->arguments;
  signature.site = graph_->body_->site;
  for (const ValueType& type : results) {
    signature.result_types.push_back(type.dtype);
    signature.result_shapes.push_back(type.shape);
  }
  record_->position = root_.def_.functions.size();
  root_.def_.functions.push_back(std::move(signature));
  declared_ = true;
}

Status Body::returns(const std::vector<Output>& results) {
  close();
  results_.clear();
  for (std::size_t i = 0; i < results.size(); ++i) {
    const std::string what = "result " + std::to_string(i) + " of function '" + name_ + "'";
    if (results[i].empty()) return invalid_argument(what + " is empty").at(graph_->body_->site);
    TROUPE_TRY(Output result, graph_->here(results[i]));
    if (&result.graph() != graph_)
      return invalid_argument(what + " is an output of another graph").at(graph_->body_->site);
    if (result.dtype() == DType::resource)
      return invalid_argument(what + " is a handle, which no function returns")
          .at(graph_->node(result.node()).site);
    results_.push_back(result);
  }
  return declared_ ? check_declared() : ok_status();
}

Status Body::check_declared() const {
  const FunctionDef& declared = root_.def_.functions[record_->position];
  if (results_.size() != declared.result_types.size())
    return invalid_argument("function '" + name_ + "' returns " + std::to_string(results_.size()) +
                            " values where " + std::to_string(declared.result_types.size()) +
                            " are declared")
        .at(declared.site);
  for (std::size_t i = 0; i < results_.size(); ++i) {
    const ValueType wanted{declared.result_types[i], declared.result_shapes[i]};
    if (may_keep(wanted, type_of(results_[i]))) continue;
    return invalid_argument("function '" + name_ + "' (" + declared.site.text() + ") returns '" +
                            results_[i].name() + "', " + typed(type_of(results_[i])) + ", where " +
                            typed(wanted) + " is declared")
        .at(graph_->node(results_[i].node()).site);
  }
  return ok_status();
}

Status Body::capture(const std::vector<Output>& values) {
  BodyState& state = *graph_->body_;
  std::vector<NodeId> order(state.arguments.begin(),
                            state.arguments.begin() + std::ptrdiff_t(state.declared));
  for (const Output& value : values) {
    TROUPE_TRY(Output argument, graph_->here(value));
    order.push_back(argument.node());
  }
  TROUPE_CHECK(order.size() == state.arguments.size(), "all that is captured has a place");
  state.arguments = std::move(order);
  state.captured = values;
  return ok_status();
}

Expected<FunctionRecord*> Body::finish() {
  BodyState& state = *graph_->body_;
  if (state.called_itself && state.captured.size() > state.handed_on)
    return unimplemented("function '" + name_ + "' calls itself, so it cannot use '" +
                         state.captured[state.handed_on].name() +
                         "' of the graph around it; pass its value as an argument")
        .at(state.site);
  FunctionDef def;
  def.name = name_;
  def.nodes = graph_->def_.nodes;
  def.arguments = state.arguments;
  def.site = state.site;
  for (const Output& result : results_) {
    def.results.push_back(result.port());
    def.result_types.push_back(result.dtype());
    def.result_shapes.push_back(result.shape());
  }
  auto& functions = root_.def_.functions;
  if (declared_) {
    def.result_shapes = functions[record_->position].result_shapes;
    functions[record_->position] = std::move(def);
  } else {
    record_->position = functions.size();
    functions.push_back(std::move(def));
  }
  record_->results = results_;
  for (GraphBuilder::Attempt& attempt : attempts_) attempt.keep();
  state.finished = finished_ = true;
  return record_;
}

}  // namespace troupe
