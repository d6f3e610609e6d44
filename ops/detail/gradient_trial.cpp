#include "ops/detail/gradient_trial.hpp"

#include <algorithm>

#include "graph/builder.hpp"
#include "graph/gradients.hpp"

namespace troupe::ops::detail {
namespace {

// The first type that a gradient can flow through.
DType type_of(const OpInfo& op, std::string_view attr) {
  const AttrSpec* spec = op.attr(attr);
  if (spec == nullptr || spec->types.empty()) return DType::f32;
  auto found = std::find_if(spec->types.begin(), spec->types.end(), carries_gradient);
  return found == spec->types.end() ? spec->types.front() : *found;
}

// A value for an attribute that has no default.
Attr value_of(const OpInfo& op, const AttrSpec& spec, bool known) {
  if (spec.kind == "int") return 1;
  if (spec.kind == "float") return 1.0;
  if (spec.kind == "bool") return false;
  if (spec.kind == "string") return spec.strings.empty() ? "x" : spec.strings.front();
  if (spec.kind == "type") return type_of(op, spec.name);
  if (spec.kind == "shape") return known ? PartialShape{1} : PartialShape();
  if (spec.kind == "tensor") return Tensor::scalar(1.0f);
  if (spec.kind == "list(int)") return std::vector<std::int64_t>(4, 1);  // windows of images
  if (spec.kind == "list(float)") return std::vector<double>{1};
  if (spec.kind == "list(string)") return std::vector<std::string>{"x"};
  if (spec.kind == "list(type)") return std::vector<DType>{DType::f32};
  return std::vector<PartialShape>{PartialShape()};
}

// One node of the op, and what its gradients lead to. With `known` its host inputs are constants
// and its shapes are known, which some ops want.
class Trial {
 public:
  Trial(const OpRegistry& registry, const OpInfo& op, bool known)
      : g_(registry), op_(op), known_(known) {}

  Status run(GradientTrial& out) {
    TROUPE_TRY(Op node, add_node());
    std::vector<Output> ys, dys, ddys;
    for (const Output& y : node.outputs()) {
      if (!carries_gradient(y.dtype())) continue;
      ys.push_back(y);
      TROUPE_TRY(Output dy, value(y.dtype(), y.shape()));
      dys.push_back(dy);
    }
    TROUPE_TRY(std::vector<Output> first, gradients(ys, xs_, dys));
    out.first = any_of(first);
    std::erase_if(first, [](const Output& dx) { return dx.empty(); });
    std::vector<Output> xs = xs_;
    xs.insert(xs.end(), dys.begin(), dys.end());
    for (const Output& dx : first) {
      TROUPE_TRY(Output ddy, value(dx.dtype(), dx.shape()));
      ddys.push_back(ddy);
    }
    TROUPE_TRY(std::vector<Output> second, gradients(first, xs, ddys));
    out.second = any_of(second);
    return ok_status();
  }

 private:
  static bool any_of(const std::vector<Output>& gradients) {
    return std::any_of(gradients.begin(), gradients.end(),
                       [](const Output& d) { return !d.empty(); });
  }

  // A value that a run would bring.
  Expected<Output> value(DType type, const PartialShape& shape = {}) {
    if (type == DType::list) {
      TROUPE_TRY(Output elements, value(DType::f32));
      TROUPE_TRY(Op list, g_.try_add({.op = "ListUnstack", .inputs = {elements}}));
      return list.output();
    }
    TROUPE_TRY(Op op, g_.try_add({.op = "Placeholder", .attrs = {{"T", type}, {"shape", shape}}}));
    return op.output();
  }

  Expected<Output> input(const ArgSpec& arg) {
    if (arg.dtype == DType::resource) {
      TROUPE_TRY(Op variable,
                 g_.try_add({.op = "Variable", .attrs = {{"T", DType::f32}, {"shape", Shape{1}}}}));
      return variable.output();
    }
    const DType type = arg.kind == ArgSpec::Kind::fixed ? arg.dtype : type_of(op_, arg.type_attr);
    if (!known_ || !arg.host) return value(type);
    TROUPE_TRY(Tensor one, Tensor::zeros(type, Shape{1}));
    TROUPE_TRY(Op op, g_.try_add({.op = "Const", .attrs = {{"T", type}, {"value", one}}}));
    return op.output();
  }

  Expected<Op> add_node() {
    NodeSpec spec{.op = op_.def.name, .name = "node"};
    for (const ArgSpec& arg : op_.in) {
      TROUPE_TRY(Output x, input(arg));
      spec.inputs.push_back(x);
      if (carries_gradient(x.dtype()) || x.dtype() == DType::resource) xs_.push_back(x);
    }
    for (const AttrSpec& attr : op_.attrs)
      if (!attr.fallback && !inferred(attr))
        spec.attrs.emplace(attr.name, value_of(op_, attr, known_));
    return g_.try_add(std::move(spec));
  }

  bool inferred(const AttrSpec& attr) const {
    return std::any_of(op_.in.begin(), op_.in.end(), [&](const ArgSpec& arg) {
      return (arg.kind != ArgSpec::Kind::fixed && arg.type_attr == attr.name) ||
             (arg.kind == ArgSpec::Kind::types && attr.name == "types") ||
             (arg.kind == ArgSpec::Kind::list && attr.name == "N");
    });
  }

  GraphBuilder g_;
  const OpInfo& op_;
  const bool known_;
  std::vector<Output> xs_;
};

}  // namespace

GradientTrial try_gradients(const OpRegistry& registry, const OpInfo& op) {
  GradientTrial found;
  for (bool known : {false, true}) {
    Status status = Trial(registry, op, known).run(found);
    if (status.code() == Code::unimplemented) found.refusal = status.message();
    if (status.ok() || !found.refusal.empty()) break;
  }
  return found;
}

}  // namespace troupe::ops::detail
