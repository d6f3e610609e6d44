// Binary arithmetic with broadcasting, and the sum of many tensors.
#include <fmt/core.h>

#include <algorithm>
#include <cstring>
#include <functional>

#include "ops/cuda/add_n.hpp"
#include "ops/cuda/elementwise.hpp"
#include "ops/formulas/arithmetic.hpp"
#include "ops/kernels/support/elementwise.hpp"
#include "ops/kernels/support/grad.hpp"
#include "ops/kernels/support/one_shape.hpp"
#include "ops/kernels/support/packets.hpp"

using namespace troupe;

namespace {

struct Pow {
  template <class T>
  static constexpr bool packets = std::is_same_v<T, float>;
  template <class T>
  T operator()(T a, T b) const {
    if constexpr (std::is_same_v<T, double>) {
      return std::pow(a, b);
    } else if constexpr (!std::is_integral_v<T>) {
      return pow_value(a, b);
    } else {
      // By squaring, wrapping around; of negative numbers the sign is extended.
      std::uint64_t result = 1, base = std::uint64_t(std::int64_t(a));
      for (auto n = std::make_unsigned_t<T>(b); n != 0; n = decltype(n)(n >> 1), base *= base)
        if (n & 1) result *= base;
      return T(result);
    }
  }
};
// A kernel that asks its second input, of integers, first: division by an integer zero would stop
// the process.
class Checked final : public Kernel {
 public:
  using Check = Status (*)(const Tensor&);
  Checked(std::unique_ptr<Kernel> kernel, Check check)
      : kernel_(std::move(kernel)), check_(check) {}
  Status compute(KernelContext& ctx) override {
    TROUPE_TRY(check_(ctx.input(1)));
    return kernel_->compute(ctx);
  }

 private:
  std::unique_ptr<Kernel> kernel_;
  Check check_;
};
Status no_zeros(const Tensor& b) {
  return dispatch_size(dtype_size(b.dtype()), [&](auto tag) -> Status {
    using T = typename decltype(tag)::type;
    if constexpr (std::is_integral_v<T>) {
      const T* values = moved_as<T>(b);
      if (std::find(values, values + b.elements(), T(0)) != values + b.elements())
        return invalid_argument("integer division by zero");
    }
    return ok_status();
  });
}
Status none_negative(const Tensor& b) {
  using Signed = Types<std::int8_t, std::int16_t, std::int32_t, std::int64_t>;
  if (!is_signed(b.dtype())) return ok_status();
  return dispatch<Status>(Signed{}, b.dtype(), [&](auto tag) -> Status {
    for (auto value : b.span<typename decltype(tag)::type>())
      if (value < 0) return invalid_argument("an integer to a negative power");
    return ok_status();
  });
}
template <class F, Checked::Check check>
Expected<std::unique_ptr<Kernel>> checked(const KernelSpec& spec) {
  TROUPE_TRY(auto kernel, (or_complex<elementwise<F, Numbers>>(spec)));
  if (!is_integer(spec.type())) return kernel;
  return std::unique_ptr<Kernel>(new Checked(std::move(kernel), check));
}

// Both gradients, each brought back to the shape of its input.
std::vector<Output> to_inputs(GradContext& c, Output da, Output db) {
  return {unbroadcast(da, c.x[0], c.x[1]), unbroadcast(db, c.x[1], c.x[0])};
}
std::vector<Output> add_grad(GradContext& c) { return to_inputs(c, c.dy[0], c.dy[0]); }
std::vector<Output> sub_grad(GradContext& c) {
  return to_inputs(c, c.dy[0], c.g.add("Neg", {c.dy[0]}));
}
std::vector<Output> mul_grad(GradContext& c) {
  return to_inputs(c, multiply(c.dy[0], conjugate(c.x[1])), multiply(c.dy[0], conjugate(c.x[0])));
}
std::vector<Output> div_grad(GradContext& c) {
  Output da = divide(c.dy[0], conjugate(c.x[1]));
  return to_inputs(c, da, negate(multiply(da, conjugate(c.y[0]))));
}
std::vector<Output> mod_grad(GradContext& c) {
  Output times = c.g.add("FloorDiv", {c.x[0], c.x[1]});
  return to_inputs(c, c.dy[0], c.g.add("Neg", {c.g.add("Mul", {c.dy[0], times})}));
}
std::vector<Output> pow_grad(GradContext& c) {
  const Output a = conjugate(c.x[0]), b = conjugate(c.x[1]), y = conjugate(c.y[0]);
  return to_inputs(c, c.g.add("PowGradBase", {c.dy[0], a, b}),
                   c.g.add("PowGradExponent", {c.dy[0], y, a}));
}
// Where the gradient of a power takes the logarithm of a.
Output where_log(Output a) {
  return a.graph().add(is_complex(a.dtype()) ? "NotEqual" : "Greater", {a, scalar_like(a, 0)});
}
// Second order, with the gradient d; dy has the broadcast shape. What is chosen away is replaced
// before it is computed with: 0 times the slope of log(0) would be NaN.
// Of complex numbers the formulas are those of the conjugates, and log has a value but at 0.
// z = dy b a^(b-1), 0 where b is 0: dz/da = dy b (b-1) a^(b-2), dz/db = dy a^(b-1) + z log a
std::vector<Output> pow_grad_base_grad(GradContext& c) {
  const Output d = c.dy[0], dy = conjugate(c.x[0]), a = conjugate(c.x[1]), b = conjugate(c.x[2]);
  const Output one = scalar_like(b, 1), zero = scalar_like(b, 0), has_log = where_log(a);
  Output d_dy = multiply(d, dy);
  Output safe_b = where(c.g.add("Equal", {b, zero}), one, b);
  Output by_a = c.g.add("PowGradBase", {multiply(d_dy, b), a, minus(safe_b, one)});
  Output power = c.g.add("Pow", {where(has_log, a, one), minus(b, one)});
  Output by_b = plus(where(has_log, multiply(d_dy, power), zero),
                     c.g.add("PowGradExponent", {d, conjugate(c.y[0]), a}));
  return {c.g.add("PowGradBase", {d, a, b}), unbroadcast(by_a, c.x[1], c.x[0]),
          unbroadcast(by_b, c.x[2], c.x[0])};
}
// z = dy y log a, 0 where a <= 0
std::vector<Output> pow_grad_exponent_grad(GradContext& c) {
  const Output d = c.dy[0], dy = conjugate(c.x[0]), y = conjugate(c.x[1]), a = conjugate(c.x[2]);
  const Output zero = scalar_like(a, 0), has_log = where_log(a);
  Output slope = divide(multiply(multiply(d, dy), y), where(has_log, a, scalar_like(a, 1)));
  return {c.g.add("PowGradExponent", {d, y, a}), c.g.add("PowGradExponent", {d, dy, a}),
          unbroadcast(where(has_log, slope, zero), c.x[2], c.x[0])};
}
std::vector<Output> squared_difference_grad(GradContext& c) {
  Output d = c.g.add("Sub", {c.x[0], c.x[1]});
  Output da = c.g.add("Mul", {c.dy[0], c.g.add("Add", {d, d})});
  return to_inputs(c, da, c.g.add("Neg", {da}));
}
// Equal values share the gradient equally, as every maximum of Max does. Chosen, not multiplied by
// 0 and 1: behind sqrt(maximum(x, 0)) the gradient is infinite where x has none. A NaN is given to
// b.
std::vector<Output> extremum_grad(GradContext& c, std::string_view first_wins) {
  const Output dy = c.dy[0], zero = scalar_like(dy, 0);
  const Output wins = c.g.add(first_wins, {c.x[0], c.x[1]});
  const Output tie = c.g.add("Equal", {c.x[0], c.x[1]});
  const Output half = multiply(dy, scalar_like(dy, 0.5));
  return to_inputs(c, where(wins, dy, where(tie, half, zero)),
                   where(wins, zero, where(tie, half, dy)));
}
std::vector<Output> maximum_grad(GradContext& c) { return extremum_grad(c, "Greater"); }
std::vector<Output> minimum_grad(GradContext& c) { return extremum_grad(c, "Less"); }

std::vector<Output> add_n_grad(GradContext& c) { return std::vector<Output>(c.x.size(), c.dy[0]); }
Status add_n_shape(InferenceContext& c) {
  PartialShape shape = c.shape(0);
  for (int i = 1; i < c.inputs(); ++i) {
    TROUPE_TRY(shape, PartialShape::merge(shape, c.shape(i)));
  }
  c.set(0, std::move(shape));
  return ok_status();
}

// Elements `r` of y = the sum of all inputs, of f16 or bf16: kept in f32 and rounded once.
template <class T>
void add_in_float(const KernelContext& ctx, Range r, T* y) {
  constexpr std::int64_t kBlock = 512;
  float sum[kBlock];
  for (std::int64_t begin = r.begin; begin < r.end; begin += kBlock) {
    const std::int64_t n = std::min(kBlock, r.end - begin);
    std::copy_n(ctx.input(0).data<T>() + begin, n, sum);
    for (int k = 1; k < ctx.inputs(); ++k) {
      const T* more = ctx.input(k).data<T>() + begin;
      for (std::int64_t i = 0; i < n; ++i) sum[i] += float(more[i]);
    }
    for (std::int64_t i = 0; i < n; ++i) y[begin + i] = T(sum[i]);
  }
}

// ((a + b) + c) + d, chunk by chunk, so that the sum stays in the nearest cache.
class AddN final : public Kernel {
 public:
  explicit AddN(const ElementOp& add) : add_(add) {}
  Status compute(KernelContext& ctx) override {
    for (int k = 1; k < ctx.inputs(); ++k)
      if (ctx.input(k).shape() != ctx.input(0).shape())
        return invalid_argument(fmt::format("AddN: values[0] is {} and values[{}] {}",
                                            ctx.input(0).shape().text(), k,
                                            ctx.input(k).shape().text()));
    const DType dtype = add_.types().in;
    const auto size = std::int64_t(dtype_size(dtype));
    // Only the first may be overwritten: the others are read after the first write.
    TROUPE_TRY(Tensor sum, ctx.reuse_or_allocate(0, dtype, ctx.input(0).shape()));
    char* y = static_cast<char*>(sum.mutable_raw());
    const char* first = static_cast<const char*>(ctx.input(0).raw());
    for_chunks(ctx, sum.elements(), [&](Range r) {
      if (dtype == DType::f16) return add_in_float(ctx, r, sum.mutable_data<half>());
      if (dtype == DType::bf16) return add_in_float(ctx, r, sum.mutable_data<bfloat16>());
      const std::int64_t at = r.begin * size;
      if (y != first) std::memcpy(y + at, first + at, std::size_t(r.size() * size));
      for (int k = 1; k < ctx.inputs(); ++k)
        add_({.in = {y + at, static_cast<const char*>(ctx.input(k).raw()) + at},
              .steps = {1, 1},
              .out = y + at,
              .n = r.size()});
    });
    ctx.set_output(0, std::move(sum));
    return ok_status();
  }

 private:
  ElementOp add_;
};
Expected<std::unique_ptr<Kernel>> add_n(const KernelSpec& spec) {
  auto made = is_complex(spec.type())
                  ? complex_op("Add", spec.type())
                  : element_op<formula::Add, Numbers>(spec.type(), formula::Add{});
  TROUPE_TRY(const ElementOp add, std::move(made));
  return std::unique_ptr<Kernel>(new AddN(add));
}

// Element by element, a scalar with all of the other's; `f` says nothing where it overflows or is
// an error.
using Element = KnownInts::Element;
template <Element (*F)(std::int64_t, std::int64_t)>
void binary_ints(InferenceContext& c) {
  const KnownInts *a = c.known_ints(0), *b = c.known_ints(1);
  if (!a || !b || (a->size() != b->size() && a->size() != 1 && b->size() != 1)) return;
  const std::size_t step_a = a->size() != 1, step_b = b->size() != 1;
  const std::int64_t n = step_a ? a->size() : b->size();
  KnownInts out{a->scalar && b->scalar, {}};
  for (std::size_t i = 0; i < std::size_t(n); ++i) {
    const Element x = a->elements[i * step_a], y = b->elements[i * step_b];
    out.elements.push_back(x && y ? F(*x, *y) : Element());
  }
  c.set_ints(0, std::move(out));
}
Element known_sum(std::int64_t a, std::int64_t b) {
  return __builtin_add_overflow(a, b, &a) ? Element() : a;
}
Element known_difference(std::int64_t a, std::int64_t b) {
  return __builtin_sub_overflow(a, b, &a) ? Element() : a;
}
Element known_product(std::int64_t a, std::int64_t b) {
  return __builtin_mul_overflow(a, b, &a) ? Element() : a;
}
template <class F>
Element known_quotient(std::int64_t a, std::int64_t b) {
  return b == 0 || b == -1 ? Element() : F{}(a, b);
}
template <class F>
Element known_choice(std::int64_t a, std::int64_t b) {
  return F{}(a, b);
}

OpDef binary(std::string name, GradFn grad, std::string doc, ValueFn value = nullptr) {
  return {.name = std::move(name),
          .in = {"a", "b"},
          .out = {"y"},
          .types = kNumbers,
          .shape = broadcast_shape,
          .value = value,
          .grad = grad,
          .no_gradient = grad == nullptr ? "constant between its steps" : "",
          .elementwise = true,
          .doc = std::move(doc) + " The inputs broadcast."};
}
OpDef commutative(OpDef def) {
  def.commutative = true;
  return def;
}

}  // namespace

TROUPE_OPS(arithmetic) {
  r.add(commutative(with_complex(
            binary("Add", add_grad, "y = a + b. Integers wrap around.", binary_ints<known_sum>))))
      .cpu(or_complex<elementwise<formula::Add, Numbers>>)
      .cuda(cuda::elementwise<formula::Add>);
  r.add(with_complex(binary("Sub", sub_grad, "y = a - b. Integers wrap around.",
                            binary_ints<known_difference>)))
      .cpu(or_complex<elementwise<formula::Sub, Numbers>>)
      .cuda(cuda::elementwise<formula::Sub>);
  r.add(commutative(with_complex(binary("Mul", mul_grad, "y = a * b. Integers wrap around.",
                                        binary_ints<known_product>))))
      .cpu(or_complex<elementwise<formula::Mul, Numbers>>)
      .cuda(cuda::elementwise<formula::Mul>);
  r.add(with_complex(
            binary("Div", div_grad,
                   "y = a / b. Integers round towards zero; an integer b with a zero is an error.",
                   binary_ints<known_quotient<formula::Div>>)))
      .cpu(checked<formula::Div, no_zeros>)
      .cuda(cuda::elementwise<formula::Div>, kFloats);
  r.add(commutative(binary("SquaredDifference", squared_difference_grad, "y = (a - b)^2.")))
      .cpu(elementwise<formula::SquaredDifference, Numbers>)
      .cuda(cuda::elementwise<formula::SquaredDifference>);
  r.add(binary("Maximum", maximum_grad,
               "The larger of a and b; NaN if one is NaN. If they are equal, each gets "
               "half of the gradient.",
               binary_ints<known_choice<formula::Maximum>>))
      .cpu(elementwise<formula::Maximum, Numbers>)
      .cuda(cuda::elementwise<formula::Maximum>);
  r.add(binary("Minimum", minimum_grad,
               "The smaller of a and b; NaN if one is NaN. If they are equal, each "
               "gets half of the gradient.",
               binary_ints<known_choice<formula::Minimum>>))
      .cpu(elementwise<formula::Minimum, Numbers>)
      .cuda(cuda::elementwise<formula::Minimum>);
}

TROUPE_OPS(division_and_powers) {
  r.add(binary("FloorDiv", nullptr, "y = floor(a / b). An integer b with a zero is an error.",
               binary_ints<known_quotient<formula::FloorDiv>>))
      .cpu(checked<formula::FloorDiv, no_zeros>)
      .cuda(cuda::elementwise<formula::FloorDiv>, kFloats);
  r.add(binary("Mod", mod_grad,
               "y = a - b * floor(a / b), which has the sign of b. An integer b with a zero is an "
               "error.",
               binary_ints<known_quotient<formula::Mod>>))
      .cpu(checked<formula::Mod, no_zeros>)
      .cuda(cuda::elementwise<formula::Mod>, kFloats);
  r.add(with_complex(binary(
            "Pow", pow_grad,
            "y = a^b. For integers b must not be negative. The gradient with respect to b is 0 "
            "where a <= 0. Of complex numbers it is the principal value, exp(b log a): 1 where b "
            "is 0; where a is 0, else 0 if the real part of b is positive, NaN if not.")))
      .cpu(checked<Pow, none_negative>)
      .cuda(cuda::elementwise<formula::Pow>, kFloats);
  r.add({.name = "PowGradBase",
         .in = {"dy", "a", "b"},
         .out = {"da"},
         .types = kFloatsAndComplex,
         .shape = same_shape,
         .grad = pow_grad_base_grad,
         .elementwise = true,
         .doc = "da = dy * b * a^(b-1), 0 where b is 0, in the broadcast shape of a and b (dy's)."})
      .cpu(in_first_shape<or_complex<elementwise<formula::PowGradBase>>>)
      .cuda(cuda::elementwise<formula::PowGradBase, cuda::Shapes::to_first>);
  r.add({.name = "PowGradExponent",
         .in = {"dy", "y", "a"},
         .out = {"db"},
         .types = kFloatsAndComplex,
         .shape = same_shape,
         .grad = pow_grad_exponent_grad,
         .elementwise = true,
         .doc = "db = dy * y * log(a), 0 where a <= 0 (if complex: is 0), in the broadcast shape "
                "of a and b (dy's)."})
      .cpu(in_first_shape<or_complex<elementwise<formula::PowGradExponent>>>)
      .cuda(cuda::elementwise<formula::PowGradExponent, cuda::Shapes::to_first>);
}

TROUPE_OPS(add_n) {
  r.add({.name = "AddN",
         .in = {"values: T..."},
         .out = {"sum"},
         .types = kNumbersAndComplex,
         .shape = add_n_shape,
         .grad = add_n_grad,
         .doc = "The sum of one or more tensors of equal shape, added from left to right."})
      .cpu(add_n)
      .cuda(cuda::add_n);
}
