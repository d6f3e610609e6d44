// Elementwise kernels over packets, for functions that vector_math.hpp computes faster than the
// compiler's loop around the C library. The function object takes a value or a Packet, and also has
//   template <class T> static constexpr bool packets = ...;
#pragma once

#include "ops/kernels/support/elementwise.hpp"
#include "ops/kernels/support/vector_math.hpp"

namespace troupe {

template <class F, class T>
concept HasPackets = (std::is_same_v<T, float> ||
                      std::is_same_v<T, double>)&&F::template packets<T>;

// A base of functions that only floats have packets for.
struct FloatPackets {
  template <class T>
  static constexpr bool packets = std::is_same_v<T, float>;
};

template <class F, class T>
requires HasPackets<F, T>
struct PacketLoop<F, T> {
  static constexpr bool exists = true;

  static void run(const ElementFunction& function, const ElementRow& row) {
    const F f = function.as<F>();
    run(row, std::make_index_sequence<arity_of<F, T>>(), f);
  }

 private:
  template <std::size_t... k>
  static void run(const ElementRow& row, std::index_sequence<k...>, const F& f) {
    map_packets<T>(row.n, {static_cast<const T*>(row.in[k])...}, {row.steps[k]...},
                   {static_cast<T*>(row.out)}, [&](auto at, auto to) { to(0, f(at(k)...)); });
  }
};

}  // namespace troupe
