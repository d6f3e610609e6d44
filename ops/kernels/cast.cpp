// Cast: between all numeric types and bool.
#include <limits>

#include "ops/kernels/elementwise.hpp"

using namespace troupe;

namespace {

// Floats to integers: towards zero, values outside go to the nearest end, NaN to 0 (the plain
// conversion is undefined there). Integers to integers keep the low bits.
template <class To, class From>
To convert(From x) {
  if constexpr (std::is_same_v<To, bool>) {
    return x != From(0);
  } else if constexpr (std::is_integral_v<To> && std::is_floating_point_v<From>) {
    // The first value above the range, exact in any float; the lowest is minus that, or zero.
    const From end = From(std::uint64_t{1} << (std::numeric_limits<To>::digits - 1)) * 2;
    const From low = std::is_signed_v<To> ? -end : From(0);
    const From clamped = x > low ? x : low;  // NaN becomes low, then 0 below
    const To inside = clamped >= end   ? std::numeric_limits<To>::max()
                      : clamped == low ? std::numeric_limits<To>::min()
                                       : To(clamped);
    return x == x ? inside : To(0);
  } else {
    return To(x);
  }
}

template <class From, class To>
Status cast(KernelContext& ctx) {
  const From* x = ctx.input(0).data<From>();
  TROUPE_TRY(Tensor y, elementwise_result(ctx, dtype_of<To>, ctx.input(0).shape()));
  To* out = y.mutable_data<To>();
  for_chunks(ctx, y.elements(), [&](Range r) {
    each(r.size(), [a = x + r.begin, o = out + r.begin](std::int64_t i) {
      o[i] = To(convert<Compute<To>>(Compute<From>(a[i])));
    });
  });
  ctx.set_output(0, std::move(y));
  return ok_status();
}
Status pass(KernelContext& ctx) {
  ctx.set_output(0, ctx.input(0));
  return ok_status();
}

Expected<std::unique_ptr<Kernel>> make_cast(const KernelSpec& spec) {
  using Made = Expected<std::unique_ptr<Kernel>>;
  const DType from = spec.type("from"), to = spec.type("to");
  if (from == to) return kernel<pass>(spec);
  return dispatch<Made>(NumbersAndBool{}, from, [&](auto f) {
    return dispatch<Made>(NumbersAndBool{}, to, [&](auto t) {
      return kernel<cast<typename decltype(f)::type, typename decltype(t)::type>>(spec);
    });
  });
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
         .grad = cast_grad,
         .doc = "The values of x in another type. Floats become integers towards zero, values out "
                "of range the nearest end of it, NaN 0; integers keep their low bits; everything "
                "but 0 becomes true. No gradient flows through integers and bool."})
      .cpu(make_cast);
}
