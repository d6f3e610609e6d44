// Assign, AssignAdd, AssignSub: the plain writes.
#include "ops/cuda/elementwise.hpp"
#include "ops/formulas/arithmetic.hpp"
#include "ops/kernels/state/update.hpp"
#include "ops/kernels/support/types.hpp"

using namespace troupe;

namespace {

// The variable becomes the value itself, whoever else holds it: a tensor is never written while it
// is shared.
Status assign(KernelContext& c) {
  c.set_output(0, c.input(1));
  return ok_status();
}

// In a loop: the variable is what is assigned, of a shape that it may have.
Expected<std::unique_ptr<Kernel>> make_assigned(const KernelSpec& spec) {
  struct Assigned final : Kernel {
    explicit Assigned(PartialShape shape) : shape(std::move(shape)) {}
    Status compute(KernelContext& c) override {
      if (!shape.accepts(c.input(0).shape()))
        return invalid_argument("value has shape " + c.input(0).shape().text() +
                                ", but the variable has " + shape.text());
      c.set_output(0, c.input(0));
      return ok_status();
    }
    const PartialShape shape;
  };
  return std::unique_ptr<Kernel>(new Assigned(*spec.node.attrs.at("shape").get<PartialShape>()));
}

Status assigned_shape(InferenceContext& c) {
  TROUPE_TRY(const PartialShape shape, PartialShape::merge(c.shape_attr("shape"), c.shape(0)));
  c.set(0, shape);
  return ok_status();
}

template <class T, class Op>
Status accumulate(KernelContext& c) {
  TROUPE_TRY(auto var, NewValue<T>::of(c, 0));
  auto add = [](T& x, T value) { x = Op()(x, value); };
  update_elements(c, parts_of<T>(c.input(1)), add, var);
  c.set_output(0, var.take());
  return ok_status();
}

template <class Op>
Status accumulate_any(KernelContext& c) {
  switch (c.input(1).dtype()) {
    case DType::f32:
    case DType::c64:
      return accumulate<float, Op>(c);
    case DType::f64:
    case DType::c128:
      return accumulate<double, Op>(c);
    case DType::i32:
      return accumulate<std::int32_t, Op>(c);
    default:
      return accumulate<std::int64_t, Op>(c);
  }
}

}  // namespace

TROUPE_OPS(assign) {
  r.add(dense_update(
            {.name = "Assign",
             .in = {"var: resource", "value"},
             .types = "f32 f64 f16 bf16 i8 i16 i32 i64 u8 u16 u32 u64 bool c64 c128 string",
             .external = {.sees = true},  // a value, not a change: two of them do not add up
             .reduce = {"value"},
             .combine = Combine::first,
             .doc = "Sets the variable to `value`, which may be its first. Of several replicas, "
                    "the value of the first one counts."}))
      .cpu(kernel<assign>)
      .cuda(kernel<assign>, kPlainTypes);
  r.add({.name = rule_on_values("Assign"),
         .in = {"value"},
         .out = {"new_value"},
         .types = "f32 f64 f16 bf16 i8 i16 i32 i64 u8 u16 u32 u64 bool c64 c128 string",
         .attrs = {"shape: shape"},
         .shape = assigned_shape,
         .no_gradient = "a write, which takes effect when the run commits",
         .cheap = true,
         .doc = "Assign on values, for a loop that carries a variable."})
      .cpu(make_assigned);
  const auto accumulation = [](std::string name, std::string doc) {
    return OpDef{.name = std::move(name),
                 .in = {"var: resource", "value"},
                 .types = "f32 f64 i32 i64 c64 c128",
                 .reduce = {"value"},
                 .combine = Combine::sum,
                 .doc = std::move(doc)};
  };
  add_update<kernel<accumulate_any<formula::Add>>, cuda::elementwise<formula::Add>>(
      r, accumulation("AssignAdd", "var += value, summed over replicas."));
  add_update<kernel<accumulate_any<formula::Sub>>, cuda::elementwise<formula::Sub>>(
      r, accumulation("AssignSub", "var -= value, summed over replicas."));
}
