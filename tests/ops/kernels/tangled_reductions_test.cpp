// Reductions over dimensions that are not neighbours, whose elements are brought together first.
#include <doctest/doctest.h>

#include <map>

#include "core/hash.hpp"
#include "tests/ops/nn/nn_kernels.hpp"

namespace troupe::test {
namespace {

// The sums over `axes`, in the order of the kept dimensions.
std::vector<std::int64_t> plain_sums(const Tensor& x, const std::vector<std::int64_t>& axes) {
  std::map<std::vector<std::int64_t>, std::int64_t> sums;
  for (std::int64_t i = 0; i < x.elements(); ++i) {
    std::vector<std::int64_t> place;
    std::int64_t rest = i;
    for (int d = x.rank() - 1; d >= 0; --d) {
      if (std::count(axes.begin(), axes.end(), d) == 0)
        place.insert(place.begin(), rest % x.dim(d));
      rest /= x.dim(d);
    }
    sums[place] += x.span<std::int32_t>()[std::size_t(i)];
  }
  std::vector<std::int64_t> all;
  for (const auto& [place, sum] : sums) all.push_back(sum);
  return all;
}

}  // namespace

TEST_CASE("a sum over dimensions apart takes each element once, whatever the length of its rows") {
  const std::uint64_t seed = 5;
  INFO("seed " << seed);
  Random random(seed);
  for (const Shape& shape : {Shape{3, 5, 4, 7}, Shape{4, 8, 16, 32}, Shape{16, 2, 16, 3},
                             Shape{2, 3, 2048, 2}, Shape{8, 1, 32, 4}}) {
    Tensor x = Tensor::make(DType::i32, shape).value();
    for (std::int64_t i = 0; i < x.elements(); ++i)
      x.mutable_data<std::int32_t>()[i] = std::int32_t(random.below(2000)) - 1000;
    for (const auto& axes :
         std::vector<std::vector<std::int64_t>>{{0, 2}, {1, 3}, {0, 3}, {0, 1, 3}, {0, 2, 3}}) {
      INFO(shape.text() << " over " << axes.front() << " to " << axes.back());
      const Tensor sums = run("Sum", {x}, {{"axes", axes}})[0];
      const auto want = plain_sums(x, axes);
      REQUIRE(sums.elements() == std::int64_t(want.size()));
      for (std::size_t i = 0; i < want.size(); ++i)
        REQUIRE(sums.span<std::int32_t>()[i] == want[i]);
    }
  }
}

}  // namespace troupe::test
