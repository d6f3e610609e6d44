// Cast: between all numeric types, complex ones included, and bool.
#include "ops/formulas/cast.hpp"
#include "ops/cuda/elementwise.hpp"
#include "ops/cuda/host_kernel.hpp"
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

Expected<ElementOp> real_cast(DType from, DType to) {
  TROUPE_TRY(auto types, dispatch<Expected<ElementTypes>>(NumbersAndBool{}, from, [&](auto f) {
               return casts_from<typename decltype(f)::type>(to, NumbersAndBool{});
             }));
  return ElementOp(1, types, ElementFunction{});
}

// Two casts in turn, block by block: between the parts of complex numbers and any other type.
class CastTwice final : public Kernel {
 public:
  CastTwice(const ElementOp& first, const ElementOp& second) : first_(first), second_(second) {}
  Status compute(KernelContext& ctx) override {
    TROUPE_TRY(Tensor y, elementwise_result(ctx, second_.types().out, ctx.input(0).shape()));
    const char* in = static_cast<const char*>(ctx.input(0).raw());
    char* out = static_cast<char*>(y.mutable_raw());
    const auto in_size = std::int64_t(dtype_size(first_.types().in));
    const auto out_size = std::int64_t(dtype_size(y.dtype()));
    for_chunks(ctx, y.elements(), [&](Range r) {
      constexpr std::int64_t kBlock = 512;
      alignas(64) double between[kBlock];
      for (std::int64_t at = r.begin; at < r.end; at += kBlock) {
        const std::int64_t n = std::min(kBlock, r.end - at);
        first_({.in = {in + at * in_size}, .steps = {1}, .out = between, .n = n});
        second_({.in = {between}, .steps = {1}, .out = out + at * out_size, .n = n});
      }
    });
    ctx.set_output(0, std::move(y));
    return ok_status();
  }

 private:
  ElementOp first_, second_;
};
Expected<std::unique_ptr<Kernel>> complex_cast(DType from, DType to) {
  const auto one = [](Expected<ElementOp> op) -> Expected<std::unique_ptr<Kernel>> {
    TROUPE_TRY(const ElementOp made, std::move(op));
    return elementwise_kernel(made);
  };
  if (is_complex(from) && is_complex(to)) return one(complex_op("Convert", from));
  if (is_complex(from) && to == DType::bool_) return one(complex_op("NonZero", from));
  const DType part = real_of(is_complex(from) ? from : to);
  TROUPE_TRY(const ElementOp parts,
             is_complex(from) ? complex_op("Real", from) : complex_op("Widen", part));
  if (from == part || to == part) return elementwise_kernel(parts);
  TROUPE_TRY(const ElementOp real, is_complex(from) ? real_cast(part, to) : real_cast(from, part));
  return std::unique_ptr<Kernel>(is_complex(from) ? new CastTwice(parts, real)
                                                  : new CastTwice(real, parts));
}

Expected<std::unique_ptr<Kernel>> make_cast(const KernelSpec& spec) {
  const DType from = spec.type("from"), to = spec.type("to");
  if (from == to) return kernel<pass>(spec);
  if (is_complex(from) || is_complex(to)) return complex_cast(from, to);
  TROUPE_TRY(const ElementOp op, real_cast(from, to));
  return elementwise_kernel(op);
}

// Which has no dtype T, by which placement would know that GPUs do not compute with complex
// numbers.
Expected<std::unique_ptr<Kernel>> cast_on_gpu(const KernelSpec& spec) {
  const DType from = spec.type("from"), to = spec.type("to");
  if (from == to || (!is_complex(from) && !is_complex(to))) return cuda::cast(spec);
  TROUPE_TRY(auto on_host, make_cast(spec));
  return cuda::host_kernel(std::move(on_host), spec);
}

std::vector<Output> cast_grad(GradContext& c) {
  if (!is_trainable(c.type_attr("from")) || !is_trainable(c.type_attr("to"))) return {Output()};
  return {c.g.add("Cast", {c.dy[0]}, {{"to", c.type_attr("from")}})};
}

}  // namespace

TROUPE_OPS(cast) {
  const std::string types = std::string("type {") + kPlainTypes + "}";
  r.add(
       {.name = "Cast",
        .in = {"x: from"},
        .out = {"y: to"},
        .attrs = {"from: " + types, "to: " + types},
        .shape = same_shape,
        .value = same_ints,
        .grad = cast_grad,
        .elementwise = true,
        .doc =
            "x converted to another type. Floats are truncated to integers; values out of "
            "range become the nearest limit, NaN becomes 0. Integers keep their low bits; "
            "nonzero becomes true. A real number becomes a complex one without an imaginary part; "
            "of a complex one the real part is kept. No gradient flows through integers and bool."})
      .cpu(make_cast)
      .cuda(cast_on_gpu);
}
