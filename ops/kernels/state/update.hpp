// What the update rules share: the shape function of a write and the loop over a variable.
//
// A write op's first inputs are handles, then operands. Its CPU kernel is the rule: at commit it is
// called with the current values of the handles followed by the operands, and its outputs are the
// new values in the order of the handles, written over the old ones where nobody else holds them.
// The shape function of a write checks everything that could make the rule fail, so it can be asked
// again, with the shapes that the variables have by then, when a write is logged.
#pragma once

#include <algorithm>
#include <concepts>

#include "devices/chunks.hpp"
#include "graph/control/state/state_ops.hpp"
#include "ops/op.hpp"

namespace troupe {

// The shape function of a dense write. Handles carry the shapes of their variables; all of them and
// the operands "grad" and "value" have one shape; "step" and every other operand are scalars.
inline Status dense_update_shape(InferenceContext& c) {
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

// The definition of a dense write: `def` has its name, inputs, types, doc and what is combined.
inline OpDef dense_update(OpDef def) {
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

// A rule that does nothing unless its last operand, a truth value, is true. The handles keep their
// values then.
template <KernelFactory kRule>
Expected<std::unique_ptr<Kernel>> only_when(const KernelSpec& spec) {
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
  TROUPE_TRY(auto rule, kRule(spec));
  const auto is_handle = [](const ArgSpec& arg) { return arg.dtype == DType::resource; };
  const auto handles = std::count_if(spec.op.in.begin(), spec.op.in.end(), is_handle);
  return std::unique_ptr<Kernel>(new OnlyWhen(
      std::move(rule), int(handles > 0 ? handles : std::ptrdiff_t(spec.op.out.size()))));
}

// --- writes in loops ---

// The shape function of a rule on values, which are as long as there are outputs.
inline Status rule_on_values_shape(InferenceContext& c) {
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

// A dense write as an op on values, "_NAME", for loops (graph/control/state/state_ops.hpp): of the
// handles it takes the values, and returns the new ones.
inline OpDef rule_on_values_op(const OpDef& write) {
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

// The rule behind it, on what it has not seen before.
template <KernelFactory kRule>
Expected<std::unique_ptr<Kernel>> checked_rule(const KernelSpec& spec) {
  struct Checked final : Kernel {
    Status compute(KernelContext& c) override {
      const Shape& shape = c.input(0).shape();
      for (int i = 0; i < c.inputs(); ++i)
        if (c.input(i).shape() != (whole[std::size_t(i)] ? shape : Shape{}))
          return invalid_argument(names[std::size_t(i)] + " has shape " +
                                  c.input(i).shape().text() + ", but the variable has " +
                                  shape.text());
      return rule->compute(c);
    }
    std::unique_ptr<Kernel> rule;
    std::vector<std::string> names;
    std::vector<bool> whole;  // of the shape of the variable; else scalars
  };
  TROUPE_TRY(auto rule, kRule(spec));
  auto checked = std::make_unique<Checked>();
  checked->rule = std::move(rule);
  for (const ArgSpec& arg : spec.op.in) {
    const bool value = checked->names.size() < spec.op.out.size();
    checked->whole.push_back(value ? arg.name != "step"
                                   : arg.name == "grad" || arg.name == "value");
    checked->names.push_back(arg.name);
  }
  return std::unique_ptr<Kernel>(std::move(checked));
}

template <KernelFactory kRule>
void add_write(OpTable& table, const OpDef& def) {
  table.add(dense_update(def)).cpu(kRule);
  table.add(rule_on_values_op(dense_update(def))).cpu(checked_rule<kRule>);
}

// Registers a dense write with its rule, and beside "NAME" the same as "NAMEWhen", which has one
// more operand: a run in which that is false changes nothing. Of both also what they do to values.
template <KernelFactory kRule>
void add_update(OpTable& table, OpDef def) {
  OpDef when = def;
  when.name += "When";
  when.in.push_back("when: bool");
  when.doc = "As " + def.name + ", in a run in which `when` is true; nothing changes in others.";
  add_write<kRule>(table, def);
  add_write<only_when<kRule>>(table, when);
}

// The value of scalar operand `i`.
template <class T>
T scalar_operand(const KernelContext& c, int i) {
  return *c.input(i).data<T>();
}

// The new value of a handle while a rule makes it: in the old one's memory when that may be
// overwritten, else in memory of its own.
template <class T>
class NewValue {
 public:
  static Expected<NewValue> of(const KernelContext& c, int i) {
    TROUPE_TRY(Tensor tensor, c.reuse_or_allocate(i, dtype_of<T>, c.input(i).shape()));
    return NewValue(c.input(i).data<T>(), std::move(tensor));
  }

  // Elements [begin, end), which are the old ones until they are written.
  T* bring(std::int64_t begin, std::int64_t end) const {
    if (old_ != data_) std::copy(old_ + begin, old_ + end, data_ + begin);
    return data_ + begin;
  }
  // All elements, for a rule that writes few of them.
  void bring_all(const KernelContext& c) const {
    if (old_ == data_) return;
    const Chunks chunks = elementwise_chunks(elements());
    c.parallel(chunks.count, [&](std::int64_t i) { bring(chunks[i].begin, chunks[i].end); });
  }
  std::int64_t elements() const { return tensor_.elements(); }
  Tensor take() { return std::move(tensor_); }

 private:
  NewValue(const T* old, Tensor tensor)
      : old_(old), tensor_(std::move(tensor)), data_(tensor_.mutable_data<T>()) {}

  const T* old_;
  Tensor tensor_;
  T* data_;
};

// f(values[i]..., operand[i]) for every i. Nothing of it overlaps: memory that an operand or
// another handle shares is not overwritten. The compiler has to know, or it will not vectorise.
template <class T, class F, class... Values>
void update_range(F f, std::int64_t n, const T* __restrict operand, Values* __restrict... values) {
  for (std::int64_t i = 0; i < n; ++i) f(values[i]..., operand[i]);
}

// The same over whole variables, in chunks on the lanes.
template <class T, class F>
void update_elements(const KernelContext& c, const T* operand, F f,
                     const std::same_as<NewValue<T>> auto&... values) {
  const Chunks chunks = elementwise_chunks((values.elements(), ...));
  c.parallel(chunks.count, [&](std::int64_t i) {
    const Range r = chunks[i];
    update_range<T>(f, r.size(), operand + r.begin, values.bring(r.begin, r.end)...);
  });
}

}  // namespace troupe
