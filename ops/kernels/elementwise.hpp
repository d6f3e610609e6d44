// Kernels that apply a function to each element, of one, two or three inputs that broadcast.
//
// The function object is all that an op writes:
//   struct Softsign { auto operator()(auto x) const { return x / (1 + std::abs(x)); } };
//   ... .cpu(elementwise<Softsign>)
// f16 and bf16 arrive as float. A bool result makes the output bool, any other is converted to T.
// With a constructor from KernelSpec it can read attributes. Where Eigen's packet math is faster
// than the compiler's loop (exp, tanh), it also has
//   template <class T> static constexpr bool packets = ...;
//   template <class P> P packet(const P& x) const;
#pragma once

#include <algorithm>
#include <cmath>

#include <Eigen/Core>

#include "devices/chunks.hpp"
#include "ops/kernels/broadcast.hpp"
#include "ops/kernels/types.hpp"

namespace troupe {

// for i in [0, n): body(i). The iterations are independent even where output and input are the
// same memory (element k is written after element k is read), which a compiler cannot know.
template <class Body>
inline void each(std::int64_t n, Body body) {
#if !defined(__clang__)  // which checks at run time
#pragma GCC ivdep
#endif
  for (std::int64_t i = 0; i < n; ++i) body(i);
}

// Splits [0, n) by the elementwise rule: f(Range).
template <class F>
void for_chunks(const KernelContext& ctx, std::int64_t n, F&& f) {
  const Chunks chunks = elementwise_chunks(n);
  if (chunks.count == 0) return;
  ctx.parallel(chunks.count, [&](std::int64_t c) {
    if (!ctx.cancelled()) f(chunks[c]);
  });
}

// Memory for an elementwise result: that of an input that is as large and not needed again, else
// fresh.
inline Expected<Tensor> elementwise_result(const KernelContext& ctx, DType dtype,
                                           const Shape& shape) {
  for (int i = 0; i < ctx.inputs(); ++i)
    if (dtype_size(ctx.input(i).dtype()) == dtype_size(dtype) &&
        ctx.input(i).elements() == shape.elements() && ctx.may_reuse(i))
      return ctx.reuse_or_allocate(i, dtype, shape);
  return ctx.allocate(dtype, shape);
}

// Every element goes through the packet function, the last few in a padded packet: an element's
// bits depend neither on where its row starts in memory nor on the length of the row.
template <class T, class F>
void apply_packets(const F& f, const T* x, T* y, std::int64_t n) {
  using P = typename Eigen::internal::packet_traits<T>::type;
  constexpr std::int64_t kWidth = Eigen::internal::unpacket_traits<P>::size;
  std::int64_t i = 0;
  for (; i + kWidth <= n; i += kWidth)
    Eigen::internal::pstoreu(y + i, f.packet(Eigen::internal::ploadu<P>(x + i)));
  if (i == n) return;
  T rest[kWidth];
  std::fill_n(rest, kWidth, T(1));
  std::copy(x + i, x + n, rest);
  Eigen::internal::pstoreu(rest, f.packet(Eigen::internal::ploadu<P>(rest)));
  std::copy_n(rest, n - i, y + i);
}

template <class F, class T>
concept HasPackets = (std::is_same_v<T, float> ||
                      std::is_same_v<T, double>)&&F::template packets<T>;

template <class F, class T>
struct UnaryKernel final : Kernel {
  using R = decltype(std::declval<F>()(Compute<T>()));
  using Out = std::conditional_t<std::is_same_v<R, bool>, bool, T>;
  explicit UnaryKernel(F f) : f(std::move(f)) {}
  Status compute(KernelContext& ctx) override {
    const T* x = ctx.input(0).data<T>();
    TROUPE_TRY(Tensor y, elementwise_result(ctx, dtype_of<Out>, ctx.input(0).shape()));
    Out* out = y.mutable_data<Out>();
    for_chunks(ctx, y.elements(), [&, f = f](Range r) {
      if constexpr (HasPackets<F, T>)
        apply_packets(f, x + r.begin, out + r.begin, r.size());
      else
        each(r.size(), [f, a = x + r.begin, o = out + r.begin](std::int64_t i) {
          o[i] = Out(f(Compute<T>(a[i])));
        });
    });
    ctx.set_output(0, std::move(y));
    return ok_status();
  }
  F f;
};

template <class F, class T>
struct BinaryKernel final : Kernel {
  using R = decltype(std::declval<F>()(Compute<T>(), Compute<T>()));
  using Out = std::conditional_t<std::is_same_v<R, bool>, bool, T>;
  explicit BinaryKernel(F f) : f(std::move(f)) {}
  Status compute(KernelContext& ctx) override {
    TROUPE_TRY(auto meet, Broadcast<2>::of({&ctx.input(0).shape(), &ctx.input(1).shape()}));
    const T* a = ctx.input(0).data<T>();
    const T* b = ctx.input(1).data<T>();
    TROUPE_TRY(Tensor y, elementwise_result(ctx, dtype_of<Out>, meet.out()));
    Out* out = y.mutable_data<Out>();
    for_chunks(ctx, y.elements(), [&](Range r) {
      meet.rows(r, [&](std::int64_t o, auto at, std::int64_t n, auto steps) {
        row(f, a + at[0], b + at[1], out + o, n, steps[0], steps[1]);
      });
    });
    ctx.set_output(0, std::move(y));
    return ok_status();
  }
  static void row(F f, const T* a, const T* b, Out* o, std::int64_t n, std::int64_t step_a,
                  std::int64_t step_b) {
    using C = Compute<T>;
    if (step_a != 0 && step_b != 0)
      each(n, [=](std::int64_t i) { o[i] = Out(f(C(a[i]), C(b[i]))); });
    else if (step_a != 0)
      each(n, [=, y = C(*b)](std::int64_t i) { o[i] = Out(f(C(a[i]), y)); });
    else
      each(n, [=, x = C(*a)](std::int64_t i) { o[i] = Out(f(x, C(b[i]))); });
  }
  F f;
};

// Three inputs of one type. Rare enough for one loop.
template <class F, class T>
struct TernaryKernel final : Kernel {
  explicit TernaryKernel(F f) : f(std::move(f)) {}
  Status compute(KernelContext& ctx) override {
    using C = Compute<T>;
    TROUPE_TRY(auto meet, Broadcast<3>::of({&ctx.input(0).shape(), &ctx.input(1).shape(),
                                            &ctx.input(2).shape()}));
    const T* x[3] = {ctx.input(0).data<T>(), ctx.input(1).data<T>(), ctx.input(2).data<T>()};
    TROUPE_TRY(Tensor y, elementwise_result(ctx, dtype_of<T>, meet.out()));
    T* out = y.mutable_data<T>();
    for_chunks(ctx, y.elements(), [&](Range r) {
      meet.rows(r, [&](std::int64_t o, auto at, std::int64_t n, auto steps) {
        const T *a = x[0] + at[0], *b = x[1] + at[1], *c = x[2] + at[2];
        if (steps[0] != 0 && steps[1] != 0 && steps[2] != 0)
          each(n, [=, f = f, to = out + o](std::int64_t i) {
            to[i] = T(f(C(a[i]), C(b[i]), C(c[i])));
          });
        else
          each(n, [=, f = f, to = out + o](std::int64_t i) {
            to[i] = T(f(C(a[i * steps[0]]), C(b[i * steps[1]]), C(c[i * steps[2]])));
          });
      });
    });
    ctx.set_output(0, std::move(y));
    return ok_status();
  }
  F f;
};

// The kernel factory for a function object of one, two or three elements, for the types of `List`
// (at least those of the definition).
template <class F, class List = Floats>
Expected<std::unique_ptr<Kernel>> elementwise(const KernelSpec& spec) {
  return dispatch<Expected<std::unique_ptr<Kernel>>>(List{}, spec.type(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    using C = Compute<T>;
    F f = make_function<F>(spec);
    if constexpr (std::is_invocable_v<F, C>)
      return std::unique_ptr<Kernel>(new UnaryKernel<F, T>(f));
    else if constexpr (std::is_invocable_v<F, C, C>)
      return std::unique_ptr<Kernel>(new BinaryKernel<F, T>(f));
    else
      return std::unique_ptr<Kernel>(new TernaryKernel<F, T>(f));
  });
}

}  // namespace troupe
