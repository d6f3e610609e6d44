#include "ops/kernels/support/order.hpp"

#include <bit>
#include <limits>

#include "ops/kernels/support/types.hpp"

namespace troupe {
namespace {

constexpr std::uint64_t kTopBit = std::uint64_t{1} << 63;

template <class T>
std::uint64_t order_key(T x) {
  if constexpr (!std::is_integral_v<T>) {
    const auto v = double(Compute<T>(x));  // exact for every float type
    const auto bits = std::bit_cast<std::uint64_t>(v);
    const std::uint64_t ordered = bits ^ (std::uint64_t(std::int64_t(bits) >> 63) | kTopBit);
    const std::uint64_t number = v == 0 ? kTopBit : ordered;
    return v != v ? std::numeric_limits<std::uint64_t>::max() : number;
  } else if constexpr (std::is_signed_v<T>) {
    return std::uint64_t(std::int64_t(x)) ^ kTopBit;
  } else {
    return std::uint64_t(x);
  }
}

}  // namespace

void rank_elements(const Tensor& x, std::int64_t first, std::int64_t step, bool descending,
                   std::vector<Ranked>& out) {
  const std::uint64_t flip = descending ? ~std::uint64_t{0} : 0;
  (void)dispatch<Status>(NumbersAndBool{}, x.dtype(), [&](auto tag) {
    const auto* from = x.data<typename decltype(tag)::type>() + first;
    for (std::size_t i = 0; i < out.size(); ++i)
      out[i] = {order_key(from[std::int64_t(i) * step]) ^ flip, std::int64_t(i)};
    return ok_status();
  });
}

}  // namespace troupe
