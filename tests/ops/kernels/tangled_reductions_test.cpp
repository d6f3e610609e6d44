// Reductions over dimensions that are not neighbours, whose elements are brought together first.
#include <doctest/doctest.h>

#include <cmath>
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

// Strips of columns in registers, eight rows of a wide matrix at a time, and what is left of both.
TEST_CASE("reductions down columns of every width take each row once, and keep NaN") {
  Random random(7);
  for (std::int64_t width = 1; width <= 150; ++width)
    for (std::int64_t rows : {1, 7, 8, 9, 23}) {
      INFO(rows << " rows of " << width);
      Tensor x = Tensor::make(DType::f32, Shape{rows, width}).value();
      std::vector<float> sums(std::size_t(width), 0), most(std::size_t(width), -2000);
      for (std::int64_t i = 0; i < x.elements(); ++i) {
        const float value = float(random.below(2000)) - 1000;
        x.mutable_data<float>()[i] = value;
        sums[std::size_t(i % width)] += value;
        most[std::size_t(i % width)] = std::max(most[std::size_t(i % width)], value);
      }
      const AttrMap down{{"axes", std::vector<std::int64_t>{0}}};
      const Tensor sum = run("Sum", {x}, down)[0];
      x.mutable_data<float>()[random.below(std::uint64_t(rows)) * std::uint64_t(width)] = NAN;
      const Tensor max = run("Max", {x}, down)[0];
      CHECK(std::isnan(max.data<float>()[0]));
      for (std::int64_t j = 0; j < width; ++j) {
        REQUIRE(sum.data<float>()[j] == sums[std::size_t(j)]);
        if (j != 0) REQUIRE(max.data<float>()[j] == most[std::size_t(j)]);
      }
    }
}

}  // namespace troupe::test
