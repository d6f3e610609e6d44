// What a builder does for the bodies of functions: its own, and those that are open in it.
#include <algorithm>

#include "graph/builder.hpp"
#include "graph/control/functions/body.hpp"
#include "graph/control/functions/calls.hpp"
#include "graph/control/functions/ops.hpp"
#include "graph/detail/device_over.hpp"
#include "graph/node_query.hpp"

namespace troupe {

GraphBuilder& GraphBuilder::innermost() {
  GraphBuilder* g = this;
  while (g->open_) g = g->open_;
  return *g;
}

GraphBuilder& GraphBuilder::root() {
  GraphBuilder* g = this;
  while (g->body_) g = g->body_->parent;
  return *g;
}

bool GraphBuilder::in_loop() const {
  for (const GraphBuilder* g = &innermost(); g->body_; g = g->body_->parent)
    if (g->body_->repeated) return true;
  return false;
}

FunctionRecord* GraphBuilder::function(std::string_view name) {
  auto& known = root().functions_;
  auto at = known.find(std::string(name));
  return at == known.end() ? nullptr : at->second.get();
}

bool GraphBuilder::is_inside(const GraphBuilder& other) const {
  for (const GraphBuilder* g = this; g->body_; g = g->body_->parent)
    if (g->body_->parent == &other) return true;
  return false;
}

Status GraphBuilder::gone(const GraphBuilder& body, NodeId node) {
  const BodyState& state = *body.body_;
  return invalid_argument("'" + body.node(node).name + "' (" + body.node(node).site.text() +
                          ") is in the body of function '" + state.function + "' (" +
                          state.site.text() + "), and only there; return it from the body");
}

// --- values of the builders around a body ---

Expected<Output> GraphBuilder::here(const Output& value) {
  if (value.empty() || &value.graph() == this) return value;
  if (body_ && is_inside(value.graph())) {
    TROUPE_TRY(Output outer, body_->parent->here(value));
    return capture(outer);
  }
  if (value.graph().body_ && value.node() < value.graph().def_.nodes.size())
    return gone(value.graph(), value.node());
  return value;  // of another graph, as who checks the inputs will say
}

Expected<Output> GraphBuilder::capture(const Output& value) {
  if (auto at = body_->here.find(value.port()); at != body_->here.end())
    return Output(this, {at->second, 0});
  if (body_->finished) return gone(*this, 0);
  const NodeDef& source = value.graph().node(value.node());
  NodeDef node;
  node.name = "arguments/" + source.name;
  node.site = source.site;
  node.out_types = {value.dtype()};
  node.out_shapes = {value.shape()};
  const OpInfo* op = registry_.find(source.op);
  if (op && is_handle(op->def.role)) {
    node.op = source.op;
    node.attrs = source.attrs;
    if (op->attr("shared_name"))
      node.attrs.insert_or_assign("shared_name", Attr(resource_name(source)));
  } else {
    TROUPE_TRY(op, registry_.lookup(kArgumentOp));
    node.op = kArgumentOp;
    // Who moves the node with this body to a gradient function may know less of shapes.
    if (value.graph().is_tape()) node.out_shapes = {PartialShape::unknown()};
    node.attrs = {{"T", value.dtype()}, {"shape", node.out_shapes[0]}};
  }
  if (!valid_node_name(node.name)) node.name = "arguments/value";
  TROUPE_TRY(Op made, append(*op, std::move(node), {}));
  // A shape that is known around the body is known in it, though nobody else reads it as a
  // constant.
  const auto known = value.graph().known_.find(key(value.port()));
  if (known != value.graph().known_.end() && known->second.ints)
    known_.emplace(key({made.node(), 0}), KnownValue{std::nullopt, known->second.ints});
  body_->arguments.push_back(made.node());
  body_->captured.push_back(value);
  body_->here.emplace(value.port(), made.node());
  return made.output();
}

// Inputs as this builder has them. What has to come before is the business of who runs the body.
Status GraphBuilder::bring_inputs(NodeSpec& spec) {
  if (body_ && body_->finished) {
    for (const Output& input : spec.inputs)
      if (!input.empty() && &input.graph() == this) return gone(*this, input.node());
    return invalid_argument(spec.op + ": the body of function '" + body_->function +
                            "' is finished");
  }
  for (Output& input : spec.inputs) {
    TROUPE_TRY(input, here(input));
  }
  auto bring = [&](const Op& op) {
    if (!body_ || op.empty() || !is_inside(op.graph())) return false;
    auto same = [&](const Op& o) { return &o.graph() == &op.graph() && o.node() == op.node(); };
    if (std::none_of(body_->waits.begin(), body_->waits.end(), same)) body_->waits.push_back(op);
    return true;
  };
  for (const Op& op : frame().control) bring(op);
  std::erase_if(spec.control, bring);
  for (const Op& op : spec.control)
    if (!op.empty() && &op.graph() != this && op.graph().body_) return gone(op.graph(), op.node());
  return ok_status();
}

// --- what belongs to the graph ---

GraphBuilder::Outside::Outside(GraphBuilder& graph) : root_(graph.root()), open_(root_.open_) {
  Frame frame = root_.frame();
  frame.control.clear();  // a variable is read, and initialised, without what its users wait for
  for (GraphBuilder* g = open_; g; g = g->open_) {
    // A scope that is entered again by its whole name says where it is itself.
    const std::string& inner = g->frame().prefix;
    frame.prefix = inner.starts_with(frame.prefix) ? inner : frame.prefix + inner;
    if (auto device = detail::device_over(frame.device, g->frame().device); device.ok())
      frame.device = *device;
    if (g->frame().site.known()) frame.site = g->frame().site;
  }
  root_.open_ = nullptr;
  root_.frames_.push_back(std::move(frame));
}

GraphBuilder::Outside::~Outside() {
  root_.frames_.pop_back();
  root_.open_ = open_;
}

Expected<Op> GraphBuilder::add_handle(NodeSpec spec) {
  Output made;
  {
    Outside outside(*this);
    TROUPE_TRY(Op handle, root().try_add_here(std::move(spec)));
    made = handle.output();
  }
  TROUPE_TRY(Output argument, here(made));
  return Op(argument);
}

Expected<Output> GraphBuilder::outside(const Output& value) {
  GraphBuilder& g = root();
  std::map<std::pair<const GraphBuilder*, NodeId>, Op> made;
  auto bring = [&](auto& self, const Output& v) -> Expected<Output> {
    GraphBuilder& from = v.graph();
    if (!from.body_) return v;
    const BodyState& state = *from.body_;
    const auto argument = std::find(state.arguments.begin(), state.arguments.end(), v.node());
    if (argument != state.arguments.end()) {
      const auto n = std::size_t(argument - state.arguments.begin());
      if (n < state.declared)
        return invalid_argument("'" + v.name() + "' is an argument of function '" + state.function +
                                "': what belongs to the graph cannot depend on it")
            .at(state.site);
      return self(self, state.captured[n - state.declared]);
    }
    auto [at, fresh] = made.try_emplace({&from, v.node()});
    if (fresh) {
      const NodeDef node = from.node(v.node());
      NodeSpec spec{.op = node.op, .attrs = node.attrs, .device = node.device, .site = node.site};
      spec.name = node.name.substr(node.name.rfind('/') + 1);
      for (Port p : node.inputs) {
        TROUPE_TRY(Output input, self(self, Output(&from, p)));
        spec.inputs.push_back(input);
      }
      TROUPE_TRY(Op op, g.try_add_here(std::move(spec)));
      made[{&from, v.node()}] = op;
    }
    return made[{&from, v.node()}].output(int(v.port().index));
  };
  return bring(bring, value);
}

std::unique_ptr<GraphBuilder> GraphBuilder::clone() const {
  auto copy = std::make_unique<GraphBuilder>(registry_, def_.seed);
  copy->def_.nodes = def_.nodes;
  copy->by_name_ = by_name_;
  copy->names_ = names_;
  copy->known_ = known_;
  copy->body_ = std::make_unique<BodyState>();
  copy->body_->parent = &const_cast<GraphBuilder*>(this)->root();
  copy->body_->function = body_->function;
  copy->body_->site = body_->site;
  copy->body_->arguments = body_->arguments;
  copy->body_->tape = true;
  return copy;
}

bool GraphBuilder::is_tape() const { return body_ && body_->tape; }

// --- calls ---

Status GraphBuilder::complete_call(NodeSpec& spec) {
  NodeDef call;
  call.op = spec.op;
  call.attrs = spec.attrs;
  std::vector<ValueType> arguments;
  for (std::size_t i = selectors(call); i < spec.inputs.size(); ++i)
    arguments.push_back({spec.inputs[i].dtype(), spec.inputs[i].shape()});
  GraphBuilder& g = root();
  TROUPE_TRY(check_call(call, arguments, [&](std::string_view name) -> const FunctionDef* {
    const FunctionRecord* record = g.function(name);
    if (!record || record->position >= g.def_.functions.size()) return nullptr;
    return &g.def_.functions[record->position];
  }));
  spec.attrs = std::move(call.attrs);
  for (GraphBuilder* around = this; around->body_; around = around->body_->parent)
    for (const std::string& name : functions_of({.op = spec.op, .attrs = spec.attrs}))
      if (name == around->body_->function) around->body_->called_itself = true;
  return ok_status();
}

// --- taking back ---

void GraphBuilder::forget_functions(std::size_t left) {
  for (std::size_t i = left; i < def_.functions.size(); ++i) {
    auto at = functions_.find(def_.functions[i].name);
    if (at == functions_.end()) continue;
    abandoned_.push_back(std::move(at->second));
    functions_.erase(at);
    for (auto& [name, record] : functions_)
      if (record->gradient == def_.functions[i].name) record->gradient.clear();
  }
  def_.functions.resize(left);
}

void GraphBuilder::forget_arguments(std::size_t left, std::size_t waits) {
  BodyState& state = *body_;
  if (state.waits.size() > waits) state.waits.resize(waits);
  if (state.arguments.size() <= left) return;
  state.arguments.resize(left);
  if (state.captured.size() + state.declared > left) state.captured.resize(left - state.declared);
  std::erase_if(state.here, [&](const auto& entry) { return entry.second >= def_.nodes.size(); });
}

}  // namespace troupe
