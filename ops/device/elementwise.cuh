// y = f(a, b, ...) element by element, of inputs that broadcast.
#pragma once

#include "ops/device/arguments.hpp"
#include "ops/device/types.cuh"

namespace troupe::device {

// Inputs are elements of types In..., the output is of type Out. Where all of them are equally
// long, or single elements, a thread takes 16 bytes of the widest type at a time. The output may be
// the memory of an input that is as long: an element is read before it is written, by one thread.
template <class F, class Out, class... In>
struct Elementwise {
  static constexpr int kInputs = sizeof...(In);
  using Args = ElementwiseArgs<kInputs>;

  static constexpr int largest() {
    int size = int(sizeof(Out));
    ((size = int(sizeof(In)) > size ? int(sizeof(In)) : size), ...);
    return size;
  }
  static constexpr int kWidth = 16 / largest();
  template <class T>
  struct alignas(sizeof(T) * kWidth) Vector {
    T at[kWidth];
  };

  __device__ static void run(const Args& a) {
    if (a.walk.rank == 1 && aligned(a))
      flat(a);
    else if (a.n <= 0x7fffffff)
      walk<std::uint32_t>(a);
    else
      walk<std::uint64_t>(a);
  }

 private:
  template <class... Elements>
  __device__ static Out one(Elements... x) {
    return Store<Out>::of(F{}(load(x)...));
  }

  __device__ static bool aligned(const Args& a) {
    bool all = reinterpret_cast<std::uint64_t>(a.out) % sizeof(Vector<Out>) == 0;
    int i = 0;
    ((all = all && reinterpret_cast<std::uint64_t>(a.in[i++]) % sizeof(Vector<In>) == 0), ...);
    return all;
  }

  // Of vectors that vary the one at `i`; of single elements that one.
  template <class T>
  __device__ static Vector<T> vector(const void* in, std::int64_t stride, std::int64_t i) {
    if (stride != 0) return static_cast<const Vector<T>*>(in)[i];
    Vector<T> v;
    const T x = *static_cast<const T*>(in);
    for (int k = 0; k < kWidth; ++k) v.at[k] = x;
    return v;
  }
  template <class... Vectors>
  __device__ static Vector<Out> of_vectors(const Vectors&... x) {
    Vector<Out> y;
    for (int k = 0; k < kWidth; ++k) y.at[k] = one(x.at[k]...);
    return y;
  }

  // A braced list is evaluated from left to right, so `i` counts the inputs.
  __device__ static void flat(const Args& a) {
    const std::int64_t vectors = a.n / kWidth, step = element_step();
    for (std::int64_t v = first_element(); v < vectors; v += step) {
      int i = 0, s = 0;
      const Loaded<Vector<In>...> in{vector<In>(a.in[i++], a.walk.strides[s++][0], v)...};
      static_cast<Vector<Out>*>(a.out)[v] =
          in.apply([](const auto&... x) { return of_vectors(x...); });
    }
#pragma unroll 1  // less than a vector is left
    for (std::int64_t o = vectors * kWidth + first_element(); o < a.n; o += step) {
      int i = 0, s = 0;
      const Loaded<In...> in{static_cast<const In*>(a.in[i++])[a.walk.strides[s++][0] * o]...};
      static_cast<Out*>(a.out)[o] = in.apply([](auto... x) { return one(x...); });
    }
  }

  // Index: division of 64 bits takes several times as long.
  template <class Index>
  __device__ static void walk(const Args& a) {
    for (std::int64_t o = first_element(); o < a.n; o += element_step()) {
      std::int64_t at[kInputs] = {};
      Index rest = Index(o);
#pragma unroll 1  // a division is long: copies of it only take time to compile
      for (int d = a.walk.rank - 1; d >= 0; --d) {
        const Index extent = Index(a.walk.dims[d]), place = rest % extent;
        rest /= extent;
        for (int i = 0; i < kInputs; ++i) at[i] += std::int64_t(place) * a.walk.strides[i][d];
      }
      int i = 0, s = 0;
      const Loaded<In...> in{static_cast<const In*>(a.in[i++])[at[s++]]...};
      static_cast<Out*>(a.out)[o] = in.apply([](auto... x) { return one(x...); });
    }
  }

  // Up to three values.
  template <class... Ts>
  struct Loaded;
  template <class A>
  struct Loaded<A> {
    A a;
    template <class G>
    __device__ auto apply(G g) const {
      return g(a);
    }
  };
  template <class A, class B>
  struct Loaded<A, B> {
    A a;
    B b;
    template <class G>
    __device__ auto apply(G g) const {
      return g(a, b);
    }
  };
  template <class A, class B, class C>
  struct Loaded<A, B, C> {
    A a;
    B b;
    C c;
    template <class G>
    __device__ auto apply(G g) const {
      return g(a, b, c);
    }
  };
};

}  // namespace troupe::device
