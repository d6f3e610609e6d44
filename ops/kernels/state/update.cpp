#include "ops/kernels/state/update.hpp"

namespace troupe {

namespace {

// The shape function of a dense write. Handles carry the shapes of their variables; all of them and
// the operands "grad" and "value" have one shape; "step" and every other operand are scalars.
Status dense_update_shape(InferenceContext& c) {
  PartialShape shape;
  for (int i = 0; i < c.inputs(); ++i) {
    const ArgSpec& arg = c.op().in[std::size_t(i)];
    bool handle = arg.dtype == DType::resource && arg.name != "step";
    if (!handle && arg.name != "grad" && arg.name != "value") {
      TROUPE_TRY(c.want_rank(i, 0));
      continue;
    }
    auto merged = PartialShape::merge(shape, c.shape(i));
    if (!merged.ok())
      return invalid_argument(arg.name + " has shape " + c.shape(i).text() +
                              ", but the variable has " + shape.text());
    shape = std::move(merged).value();
  }
  return ok_status();
}

// The shape function of a rule on values, which are as long as there are outputs.
Status rule_on_values_shape(InferenceContext& c) {
  PartialShape shape;
  for (int i = 0; i < c.inputs(); ++i) {
    const std::string& name = c.op().in[std::size_t(i)].name;
    if (i < c.outputs() ? name == "step" : name != "grad" && name != "value") {
      TROUPE_TRY(c.want_rank(i, 0));
      continue;
    }
    auto merged = PartialShape::merge(shape, c.shape(i));
    if (!merged.ok())
      return invalid_argument(name + " has shape " + c.shape(i).text() + ", but the variable has " +
                              shape.text());
    shape = std::move(merged).value();
  }
  for (int i = 0; i < c.outputs(); ++i)
    c.set(i, c.op().in[std::size_t(i)].name == "step" ? PartialShape::scalar() : shape);
  return ok_status();
}

struct OnlyWhen final : Kernel {
  OnlyWhen(std::unique_ptr<Kernel> rule, int handles) : rule(std::move(rule)), handles(handles) {}
  Status compute(KernelContext& c) override {
    if (*c.input(c.inputs() - 1).data<bool>()) return rule->compute(c);
    for (int i = 0; i < handles; ++i) c.set_output(i, c.input(i));
    return ok_status();
  }
  std::unique_ptr<Kernel> rule;
  int handles;
};

struct Checked final : Kernel {
  Status compute(KernelContext& c) override {
    const Shape& shape = c.input(0).shape();
    for (const auto& [i, name, whole] : operands)
      if (c.input(i).shape() != (whole ? shape : Shape{}))
        return invalid_argument(name + " has shape " + c.input(i).shape().text() +
                                ", but the variable has " + shape.text());
    return rule->compute(c);
  }
  struct Operand {
    int input;
    std::string name;
    bool whole;  // of the shape of the variable; else a scalar
  };
  std::unique_ptr<Kernel> rule;
  std::vector<Operand> operands;
};

}  // namespace

OpDef dense_update(OpDef def) {
  def.attrs.emplace_back("replicas: int = 1");
  def.shape = dense_update_shape;
  def.no_gradient = "a write, which takes effect when the run commits";
  def.stateful = true;
  def.role = Role::external;
  def.external.resource = "variable";
  def.external.verb = "log";
  def.external.order = External::Order::write;
  def.external.commits = true;
  def.external.changes = true;
  return def;
}

OpDef rule_on_values_op(const OpDef& write) {
  OpDef def{.name = rule_on_values(write.name), .types = write.types, .attrs = write.attrs};
  for (const std::string& arg : write.in) {
    const std::size_t colon = arg.find(": resource");
    def.in.push_back(colon == std::string::npos ? arg
                     : arg.ends_with(" of i64") ? arg.substr(0, colon) + ": i64"
                                                : arg.substr(0, colon));
    if (colon == std::string::npos) continue;
    def.out.push_back("new_" + def.in.back());
  }
  def.shape = rule_on_values_shape;
  def.no_gradient = write.no_gradient;
  def.doc = "What " + write.name + " does to variables, on values.";
  return def;
}

OpDef only_when(const OpDef& write) {
  OpDef when = write;
  when.name += "When";
  when.in.push_back("when: bool");
  when.doc = "As " + write.name + ", in a run in which `when` is true; nothing changes in others.";
  return when;
}

std::unique_ptr<Kernel> only_when(const KernelSpec& spec, std::unique_ptr<Kernel> rule) {
  const auto is_handle = [](const ArgSpec& arg) { return arg.dtype == DType::resource; };
  const auto handles = std::count_if(spec.op.in.begin(), spec.op.in.end(), is_handle);
  return std::make_unique<OnlyWhen>(
      std::move(rule), int(handles > 0 ? handles : std::ptrdiff_t(spec.op.out.size())));
}

std::unique_ptr<Kernel> checked_rule(const KernelSpec& spec, std::unique_ptr<Kernel> rule) {
  auto checked = std::make_unique<Checked>();
  checked->rule = std::move(rule);
  for (std::size_t i = 0; i < spec.op.in.size(); ++i) {
    const std::string& name = spec.op.in[i].name;
    if (name == "indices" || name == "rows") continue;  // which the rule compares with the variable
    const bool value = i < spec.op.out.size();
    checked->operands.push_back(
        {int(i), name, value ? name != "step" : name == "grad" || name == "value"});
  }
  return checked;
}

}  // namespace troupe
