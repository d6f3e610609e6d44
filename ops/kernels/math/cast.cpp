// Cast: between all numeric types and bool.
#include "ops/formulas/cast.hpp"
#include "ops/cuda/elementwise.hpp"
#include "ops/kernels/support/elementwise.hpp"

using namespace troupe;

namespace {

template <class From, class To>
constexpr bool kRoundsTwice = !std::is_same_v<Compute<To>, To> && !std::is_same_v<From, float> &&
                              sizeof(From) >= sizeof(float);

// What `To` is computed as: the low bits of an integer are the same with a sign and without one.
template <class From, class To>
auto computed() {
  if constexpr (std::is_integral_v<From> && std::is_integral_v<To> && !std::is_same_v<To, bool>)
    return std::make_unsigned_t<To>();
  else
    return Compute<To>();
}
template <class From, class To>
constexpr ElementTypes cast_types() {
  using C = decltype(computed<Compute<From>, To>());
  if constexpr (kRoundsTwice<From, To>)
    return {dtype_of<From>, dtype_of<To>, element_loop<formula::ConvertToOdd, From, float>};
  else if constexpr (std::is_same_v<C, float> && std::is_same_v<Compute<From>, float>)
    return {dtype_of<From>, dtype_of<To>, nullptr};
  else
    return {dtype_of<From>, dtype_of<To>, element_loop<formula::Convert<C>, Compute<From>, C>};
}
template <class From, class... Tos>
Expected<ElementTypes> casts_from(DType to, Types<Tos...>) {
  static constexpr ElementTypes table[] = {cast_types<From, Tos>()...};
  for (const ElementTypes& types : table)
    if (types.out == to) return types;
  return unimplemented("no kernel for " + std::string(dtype_name(to)));
}

Status pass(KernelContext& ctx) {
  ctx.set_output(0, ctx.input(0));
  return ok_status();
}

Expected<std::unique_ptr<Kernel>> make_cast(const KernelSpec& spec) {
  const DType from = spec.type("from"), to = spec.type("to");
  if (from == to) return kernel<pass>(spec);
  TROUPE_TRY(auto types, dispatch<Expected<ElementTypes>>(NumbersAndBool{}, from, [&](auto f) {
               return casts_from<typename decltype(f)::type>(to, NumbersAndBool{});
             }));
  return elementwise_kernel(ElementOp(1, types, ElementFunction{}));
}

std::vector<Output> cast_grad(GradContext& c) {
  if (!is_trainable(c.type_attr("from")) || !is_trainable(c.type_attr("to"))) return {Output()};
  return {c.g.add("Cast", {c.dy[0]}, {{"to", c.type_attr("from")}})};
}

}  // namespace

TROUPE_OPS(cast) {
  const std::string types = std::string("type {") + kNumbersAndBool + "}";
  r.add({.name = "Cast",
         .in = {"x: from"},
         .out = {"y: to"},
         .attrs = {"from: " + types, "to: " + types},
         .shape = same_shape,
         .value = same_ints,
         .grad = cast_grad,
         .elementwise = true,
         .doc = "x converted to another type. Floats are truncated to integers; values out of "
                "range become the nearest limit, NaN becomes 0. Integers keep their low bits; "
                "nonzero becomes true. No gradient flows through integers and bool."})
      .cpu(make_cast)
      .cuda(cuda::cast);
}
