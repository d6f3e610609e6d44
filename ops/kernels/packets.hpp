// Eigen's packet math in elementwise kernels, where it is faster than the compiler's loop (exp,
// tanh). The function object also has
//   template <class T> static constexpr bool packets = ...;
//   template <class P> P packet(const P& x) const;
#pragma once

#include <Eigen/Core>

#include <algorithm>

#include "ops/kernels/elementwise.hpp"

namespace troupe {

template <class F, class T>
concept HasPackets = (std::is_same_v<T, float> ||
                      std::is_same_v<T, double>)&&F::template packets<T>;

// Every element goes through the packet function, the last few in a padded packet: an element's
// bits depend neither on where its row starts in memory nor on the length of the row.
template <class F, class T>
requires HasPackets<F, T>
struct PacketLoop<F, T> {
  static constexpr bool exists = true;

  static void run(const ElementFunction& function, const ElementRow& row) {
    using P = typename Eigen::internal::packet_traits<T>::type;
    constexpr std::int64_t kWidth = Eigen::internal::unpacket_traits<P>::size;
    const F f = function.as<F>();
    const T* x = static_cast<const T*>(row.in[0]);
    T* y = static_cast<T*>(row.out);
    const std::int64_t n = row.n;
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
};

}  // namespace troupe
