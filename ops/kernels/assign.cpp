// Assign, AssignAdd, AssignSub: the plain writes.
#include "troupe/ops/kernels/update.hpp"

using namespace troupe;

namespace {

// The variable becomes the value itself, whoever else holds it: a tensor is never written while it
// is shared.
Status assign(KernelContext& c) {
  c.set_output(0, c.input(1));
  return ok_status();
}

template <class T, int Sign>
Status accumulate(KernelContext& c) {
  TROUPE_TRY(auto var, NewValue<T>::of(c, 0));
  auto add = [](T& x, T value) { x = Sign > 0 ? T(x + value) : T(x - value); };
  update_elements(c, c.input(1).data<T>(), add, var);
  c.set_output(0, var.take());
  return ok_status();
}

template <int Sign>
Status accumulate_any(KernelContext& c) {
  switch (c.input(1).dtype()) {
    case DType::f32:
      return accumulate<float, Sign>(c);
    case DType::f64:
      return accumulate<double, Sign>(c);
    case DType::i32:
      return accumulate<std::int32_t, Sign>(c);
    default:
      return accumulate<std::int64_t, Sign>(c);
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
             .doc = "The variable becomes `value`; this is what gives it its first one. Of several "
                    "replicas the first one's value counts."}))
      .cpu(kernel<assign>);
  const auto accumulation = [](std::string name, std::string doc) {
    return OpDef{.name = std::move(name),
                 .in = {"var: resource", "value"},
                 .types = "f32 f64 i32 i64",
                 .reduce = {"value"},
                 .combine = Combine::sum,
                 .doc = std::move(doc)};
  };
  add_update<kernel<accumulate_any<1>>>(
      r, accumulation("AssignAdd", "var += value, summed over replicas."));
  add_update<kernel<accumulate_any<-1>>>(
      r, accumulation("AssignSub", "var -= value, summed over replicas."));
}
