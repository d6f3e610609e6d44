// Comparisons, logic, and choice between two values.
#include "ops/formulas/compare.hpp"
#include "ops/cuda/elementwise.hpp"
#include "ops/kernels/support/broadcast.hpp"
#include "ops/kernels/support/elementwise.hpp"
#include "ops/kernels/support/grad.hpp"

using namespace troupe;

namespace {

// Equality of strings: rows of std::string, without the arithmetic of the others.
template <bool Wanted>
Status compare_strings(KernelContext& ctx) {
  TROUPE_TRY(auto meet, Broadcast<2>::of({&ctx.input(0).shape(), &ctx.input(1).shape()}));
  const std::string* a = ctx.input(0).data<std::string>();
  const std::string* b = ctx.input(1).data<std::string>();
  TROUPE_TRY(Tensor y, ctx.allocate(DType::bool_, meet.out()));
  bool* out = y.mutable_data<bool>();
  meet.rows({0, y.elements()}, [&](std::int64_t o, auto at, std::int64_t n, auto steps) {
    for (std::int64_t i = 0; i < n; ++i)
      out[o + i] = (a[at[0] + i * steps[0]] == b[at[1] + i * steps[1]]) == Wanted;
  });
  ctx.set_output(0, std::move(y));
  return ok_status();
}
template <bool Wanted, class F>
Expected<std::unique_ptr<Kernel>> equality(const KernelSpec& spec) {
  if (spec.type() == DType::string) return kernel<compare_strings<Wanted>>(spec);
  return or_complex<elementwise<F, NumbersAndBool>>(spec);
}

OpDef comparison(std::string name, std::string doc) {
  return {.name = std::move(name),
          .in = {"a", "b"},
          .out = {"y: bool"},
          .types = kNumbers,
          .shape = broadcast_shape,
          .no_gradient = "a truth value",
          .elementwise = true,
          .doc = std::move(doc) + " The inputs broadcast."};
}
OpDef equality(std::string name, std::string doc) {
  OpDef def = comparison(std::move(name), std::move(doc));
  def.types = kAllTypes;
  def.commutative = true;
  return def;
}
OpDef logic(std::string name, std::string doc) {
  OpDef def = comparison(std::move(name), std::move(doc));
  def.types = "bool";
  def.commutative = true;
  return def;
}

// Shapes: condition, a and b broadcast together; a vector condition chooses rows when it stands
// first in the shape, as [n] against [n,1].
Status select_shape(InferenceContext& c) {
  TROUPE_TRY(auto values, broadcast(c.shape(1), c.shape(2)));
  TROUPE_TRY(auto all, broadcast(c.shape(0), values));
  c.set(0, std::move(all));
  return ok_status();
}
std::vector<Output> select_grad(GradContext& c) {
  Output zero = scalar_like(c.dy[0], 0);
  // dy has the broadcast shape, so the choices have it too.
  Output da = c.g.add("Select", {c.x[0], c.dy[0], zero});
  Output db = c.g.add("Select", {c.x[0], zero, c.dy[0]});
  return {Output(), sum_to(c.x[1], c.y[0], da), sum_to(c.x[2], c.y[0], db)};
}

// Without a branch, which no processor would guess: the bits of both are masked, so the loops
// vectorise.
template <int kYes, int kNo, class T>
void select_row(const bool* which, const T* yes, const T* no, std::int64_t n, T* to) {
  each(n, [=](std::int64_t i) {
    const T mask = T(-T(which[i])), other = no[i * kNo];
    to[i] = T(other ^ ((yes[i * kYes] ^ other) & mask));
  });
}

template <class T>
Status select_values(KernelContext& ctx) {
  TROUPE_TRY(auto meet, Broadcast<3>::of(
                            {&ctx.input(0).shape(), &ctx.input(1).shape(), &ctx.input(2).shape()}));
  const bool* condition = ctx.input(0).data<bool>();
  const T* a = moved_as<T>(ctx.input(1));
  const T* b = moved_as<T>(ctx.input(2));
  TROUPE_TRY(Tensor y, ctx.allocate(ctx.input(1).dtype(), meet.out()));
  T* out = moved_as<T>(y);
  for_chunks(ctx, y.elements(), [&](Range r) {
    meet.rows(r, [&](std::int64_t o, auto at, std::int64_t n, auto s) {
      const bool* const which = condition + at[0];
      const T *const yes = a + at[1], *const no = b + at[2];
      T* const to = out + o;
      if constexpr (std::is_integral_v<T>) {
        if (s[0] == 1 && s[1] == 1 && s[2] == 1) return select_row<1, 1>(which, yes, no, n, to);
        if (s[0] == 1 && s[1] == 1 && s[2] == 0) return select_row<1, 0>(which, yes, no, n, to);
        if (s[0] == 1 && s[1] == 0 && s[2] == 1) return select_row<0, 1>(which, yes, no, n, to);
      }
      for (std::int64_t i = 0; i < n; ++i) to[i] = which[i * s[0]] ? yes[i * s[1]] : no[i * s[2]];
    });
  });
  ctx.set_output(0, std::move(y));
  return ok_status();
}
Status select_any(KernelContext& ctx) {
  return dispatch_moves(ctx.input(1).dtype(),
                        [&](auto tag) { return select_values<typename decltype(tag)::type>(ctx); });
}

}  // namespace

TROUPE_OPS(compare) {
  r.add(comparison("Less", "y = a < b; false if one is NaN."))
      .cpu(elementwise<formula::Less, Numbers>)
      .cuda(cuda::elementwise<formula::Less>);
  r.add(comparison("LessEqual", "y = a <= b; false if one is NaN."))
      .cpu(elementwise<formula::LessEqual, Numbers>)
      .cuda(cuda::elementwise<formula::LessEqual>);
  r.add(comparison("Greater", "y = a > b; false if one is NaN."))
      .cpu(elementwise<formula::Greater, Numbers>)
      .cuda(cuda::elementwise<formula::Greater>);
  r.add(comparison("GreaterEqual", "y = a >= b; false if one is NaN."))
      .cpu(elementwise<formula::GreaterEqual, Numbers>)
      .cuda(cuda::elementwise<formula::GreaterEqual>);
  r.add(equality("Equal", "y = a == b; a NaN equals nothing."))
      .cpu(equality<true, formula::Equal>)
      .cuda(cuda::elementwise<formula::Equal>, kNumbersAndBool);
  r.add(equality("NotEqual", "y = a != b; a NaN differs from everything."))
      .cpu(equality<false, formula::NotEqual>)
      .cuda(cuda::elementwise<formula::NotEqual>, kNumbersAndBool);
}

TROUPE_OPS(logic) {
  r.add(logic("LogicalAnd", "y = a and b."))
      .cpu(elementwise<formula::And, Types<bool>>)
      .cuda(cuda::elementwise<formula::And>);
  r.add(logic("LogicalOr", "y = a or b."))
      .cpu(elementwise<formula::Or, Types<bool>>)
      .cuda(cuda::elementwise<formula::Or>);
}

TROUPE_OPS(select) {
  r.add({.name = "Select",
         .in = {"condition: bool", "a", "b"},
         .out = {"y"},
         .types = kAllTypes,
         .shape = select_shape,
         .grad = select_grad,
         .elementwise = true,
         .doc = "a where the condition is true, else b. All three broadcast. The side that is not "
                "taken gets a zero gradient. If that side was computed with an infinite slope, "
                "such as log(x) at 0, then 0 * inf is NaN further back; to avoid that, select its "
                "argument first: select(x > 0, log(select(x > 0, x, 1)), 0)."})
      .cpu(kernel<select_any>)
      .cuda(cuda::select, kPlainTypes);
}
