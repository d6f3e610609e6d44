// Kernels that apply a function to each element, of one, two or three inputs that broadcast.
//
// The function object is all that an op writes:
//   struct Softsign { auto operator()(auto x) const { return x / (1 + std::abs(x)); } };
//   ... .cpu(elementwise<Softsign>)
// f16 and bf16 arrive as float. A bool result makes the output bool, any other is converted to T.
// With a constructor from KernelSpec it can read attributes. A function of which
//   static constexpr bool wraps = true;
// holds gives integers the bits that it gives unsigned ones of their size, and is compiled for
// those only. For functions that are computed faster by packets of elements, see packets.hpp.
//
// What an op adds to a build is one loop per element type: broadcasting, chunks, memory and the
// conversion of f16 and bf16 are written once, in elementwise.cpp, for all of them.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstring>
#include <span>

#include "devices/chunks.hpp"
#include "ops/kernels/support/half_rows.hpp"
#include "ops/kernels/support/types.hpp"

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
Expected<Tensor> elementwise_result(const KernelContext& ctx, DType dtype, const Shape& shape);

// `n` elements of an output and what they are made of: of each input the first element, and 1, or 0
// for one that stays the same.
struct ElementRow {
  const void* in[3] = {};
  std::int64_t steps[3] = {};
  void* out = nullptr;
  std::int64_t n = 0;
};

// The function object of an op, for loops that know its type.
struct ElementFunction {
  alignas(8) std::byte bytes[16] = {};

  template <class F>
  static ElementFunction of(const F& f) {
    static_assert(std::is_trivially_copyable_v<F> && sizeof(F) <= sizeof bytes);
    ElementFunction function;
    std::memcpy(function.bytes, &f, sizeof f);
    return function;
  }
  template <class F>
  const F& as() const {
    return *reinterpret_cast<const F*>(bytes);
  }
};
using ElementLoop = void (*)(const ElementFunction&, const ElementRow&);

// How an op computes elements of type `in`, of which it makes `out`. Where one is f16 or bf16, the
// loop has float in its place. Without a loop the conversions from and to float are all.
struct ElementTypes {
  DType in = DType::invalid, out = DType::invalid;
  ElementLoop loop = nullptr;
};

// An op on rows of elements of known types.
class ElementOp {
 public:
  ElementOp() = default;
  ElementOp(int inputs, ElementTypes types, ElementFunction function)
      : inputs_(inputs), types_(types), function_(function) {}

  int inputs() const { return inputs_; }
  const ElementTypes& types() const { return types_; }
  void operator()(const ElementRow& row) const {
    if (converts_)
      convert(row);
    else
      types_.loop(function_, row);
  }

 private:
  void convert(const ElementRow& row) const;

  int inputs_ = 0;
  ElementTypes types_;
  ElementFunction function_;
  bool converts_ = is_half(types_.in) || is_half(types_.out);
};

// The kernel that broadcasts the inputs of `op` and applies it to all elements, on all lanes.
std::unique_ptr<Kernel> elementwise_kernel(const ElementOp& op);
// The loop that ops/complex/ has under that name, for elements of type `dtype`.
Expected<ElementOp> complex_op(std::string_view name, DType dtype);
// The kernel factory for the loop that has the op's name.
Expected<std::unique_ptr<Kernel>> complex_kernel(const KernelSpec& spec);
// The factory F for real types of T, and complex_kernel for complex ones:
//   .cpu(or_complex<elementwise<formula::Neg>>)
template <KernelFactory F>
Expected<std::unique_ptr<Kernel>> or_complex(const KernelSpec& spec) {
  return is_complex(spec.type()) ? complex_kernel(spec) : F(spec);
}
// The entry of `table` for inputs of type `dtype`; unimplemented where there is none.
Expected<ElementTypes> find_types(std::span<const ElementTypes> table, DType dtype);

template <class F, class C>
constexpr int arity_of = std::is_invocable_v<F, C>      ? 1
                         : std::is_invocable_v<F, C, C> ? 2
                                                        : 3;

// The loop over elements of type T, which are computed as such.
template <class F, class T, class Out>
void element_loop(const ElementFunction& function, const ElementRow& row) {
  const F f = function.as<F>();
  const T* a = static_cast<const T*>(row.in[0]);
  Out* o = static_cast<Out*>(row.out);
  if constexpr (arity_of<F, T> == 1) {
    each(row.n, [=](std::int64_t i) { o[i] = Out(f(a[i])); });
  } else {
    const T* b = static_cast<const T*>(row.in[1]);
    if constexpr (arity_of<F, T> == 2) {
      if (row.steps[0] != 0 && row.steps[1] != 0)
        each(row.n, [=](std::int64_t i) { o[i] = Out(f(a[i], b[i])); });
      else if (row.steps[0] != 0)
        each(row.n, [=, y = *b](std::int64_t i) { o[i] = Out(f(a[i], y)); });
      else
        each(row.n, [=, x = *a](std::int64_t i) { o[i] = Out(f(x, b[i])); });
    } else {  // rare enough for one more loop
      const T* c = static_cast<const T*>(row.in[2]);
      const std::int64_t s[3] = {row.steps[0], row.steps[1], row.steps[2]};
      if (s[0] != 0 && s[1] != 0 && s[2] != 0)
        each(row.n, [=](std::int64_t i) { o[i] = Out(f(a[i], b[i], c[i])); });
      else if (s[0] != 0 && s[1] != 0)
        each(row.n, [=, z = *c](std::int64_t i) { o[i] = Out(f(a[i], b[i], z)); });
      else
        each(row.n, [=](std::int64_t i) { o[i] = Out(f(a[i * s[0]], b[i * s[1]], c[i * s[2]])); });
    }
  }
}

// Where F takes no packets of T. packets.hpp has the other case.
template <class F, class T>
struct PacketLoop {
  static constexpr bool exists = false;
};

template <class F>
concept Wraps = F::wraps;

template <class F, class T>
constexpr ElementTypes element_types() {
  using C = Compute<T>;
  using R = typename decltype([] {
    if constexpr (arity_of<F, C> == 1)
      return std::invoke_result<F, C>();
    else if constexpr (arity_of<F, C> == 2)
      return std::invoke_result<F, C, C>();
    else
      return std::invoke_result<F, C, C, C>();
  }())::type;
  constexpr bool kBool = std::is_same_v<R, bool>;
  constexpr DType out = kBool ? DType::bool_ : dtype_of<T>;
  if constexpr (requires { F::template packets<C>; })
    static_assert(!F::template packets<C> || PacketLoop<F, C>::exists, "include packets.hpp");
  if constexpr (PacketLoop<F, C>::exists) {
    return {dtype_of<T>, out, PacketLoop<F, C>::run};
  } else if constexpr (Wraps<F> && std::is_integral_v<T> && !std::is_same_v<T, bool>) {
    using U = std::make_unsigned_t<T>;
    return {dtype_of<T>, out, element_loop<F, U, std::conditional_t<kBool, bool, U>>};
  } else {
    return {dtype_of<T>, out, element_loop<F, C, std::conditional_t<kBool, bool, C>>};
  }
}
template <class F, class... Ts>
std::span<const ElementTypes> element_table(Types<Ts...>) {
  static constexpr ElementTypes table[] = {element_types<F, Ts>()...};
  return table;
}
template <class T, class... Ts>
T first_of(Types<T, Ts...>);

template <class F, class List>
Expected<ElementOp> element_op(DType dtype, const F& f) {
  using First = Compute<decltype(first_of(List{}))>;
  TROUPE_TRY(ElementTypes types, find_types(element_table<F>(List{}), dtype));
  return ElementOp(arity_of<F, First>, types, ElementFunction::of(f));
}

// The kernel factory for a function object of one, two or three elements, for the types of `List`
// (at least those of the definition).
template <class F, class List = Floats>
Expected<std::unique_ptr<Kernel>> elementwise(const KernelSpec& spec) {
  TROUPE_TRY(ElementOp op, (element_op<F, List>(spec.type(), make_function<F>(spec))));
  return elementwise_kernel(op);
}

}  // namespace troupe
