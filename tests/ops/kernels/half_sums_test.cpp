// Sums of many f16 or bf16 elements are kept in f32 and rounded once.
#include <doctest/doctest.h>

#include <cmath>
#include <map>

#include "core/hash.hpp"
#include "tests/ops/nn/nn_kernels.hpp"

namespace troupe::test {
namespace {

constexpr DType kHalves[] = {DType::f16, DType::bf16};
double last_digit(DType dtype) { return dtype == DType::f16 ? 0x1p-10 : 0x1p-7; }

Tensor cast_to(DType dtype, const Tensor& x) {
  return run("Cast", {x}, {{"from", x.dtype()}, {"to", dtype}})[0];
}
std::vector<double> wide(const Tensor& x) {
  const Tensor y = cast_to(DType::f64, x);
  return {y.span<double>().begin(), y.span<double>().end()};
}

// Numbers of that type in [0, 1): in their own type, sums of a few hundred would stand still.
Tensor drawn(DType dtype, const Shape& shape, std::uint64_t seed) {
  Random random(seed);
  Tensor t = Tensor::make(DType::f64, shape).value();
  for (std::int64_t i = 0; i < t.elements(); ++i) t.mutable_data<double>()[i] = random.uniform();
  return cast_to(dtype, t);
}

// Within half of the last digit, and what f32 adds to it.
void check_sums(DType dtype, const Tensor& got, const std::vector<double>& want) {
  const auto values = wide(got);
  REQUIRE(got.dtype() == dtype);
  REQUIRE(values.size() == want.size());
  for (std::size_t i = 0; i < want.size(); ++i) {
    INFO(dtype_name(dtype) << " sum " << i);
    const double digit = std::ldexp(last_digit(dtype), std::ilogb(want[i]));
    CHECK(std::abs(values[i] - want[i]) <= 0.51 * digit);
  }
}

constexpr std::int64_t kRows = 3000, kPlaces = 3, kColumns = 300;  // columns of two chunks

struct Scattered {
  Tensor rows, indices, start;
  std::vector<double> sums, with_start;

  explicit Scattered(DType dtype)
      : rows(drawn(dtype, {kRows, kColumns}, 1)),
        indices(Tensor::make(DType::i64, Shape{kRows}).value()),
        start(drawn(dtype, {kPlaces, kColumns}, 2)),
        sums(kPlaces * kColumns),
        with_start(wide(start)) {
    Random random(3);
    const auto values = wide(rows);
    for (std::int64_t i = 0; i < kRows; ++i) {
      const auto at = std::int64_t(random.below(kPlaces));
      indices.mutable_data<std::int64_t>()[i] = at;
      for (std::int64_t j = 0; j < kColumns; ++j) {
        sums[std::size_t(at * kColumns + j)] += values[std::size_t(i * kColumns + j)];
        with_start[std::size_t(at * kColumns + j)] += values[std::size_t(i * kColumns + j)];
      }
    }
  }
};

Tensor i64s(std::initializer_list<std::int64_t> v) {
  return Tensor::of(Shape{std::int64_t(v.size())}, v);
}

}  // namespace

TEST_CASE("rows of bf16 are added up at whatever place of many") {
  Random random(4);
  for (const std::int64_t places : {1, 200, 70'000, 3'000'000}) {
    CAPTURE(places);
    constexpr std::int64_t kMany = 3000;
    Tensor at = Tensor::make(DType::i64, Shape{kMany}).value();
    Tensor rows = Tensor::make(DType::f64, Shape{kMany, 1}).value();
    std::map<std::int64_t, float> sums;
    for (std::int64_t i = 0; i < kMany; ++i) {
      at.mutable_data<std::int64_t>()[i] = std::int64_t(random.below(std::uint64_t(places)));
      rows.mutable_data<double>()[i] = double(random.below(16));
    }
    at.mutable_data<std::int64_t>()[7] = places - 1;
    for (std::int64_t i = 0; i < kMany; ++i)
      sums[at.data<std::int64_t>()[i]] += float(rows.data<double>()[i]);
    const Tensor got = cast_to(
        DType::f32,
        run("UnsortedSegmentSum", {cast_to(DType::bf16, rows), at, Tensor::scalar(places)})[0]);
    std::int64_t wrong = 0;
    for (const auto& [place, sum] : sums) wrong += got.data<float>()[place] != float(bfloat16(sum));
    CHECK(wrong == 0);
  }
}

TEST_CASE("rows of f16 and bf16 that are added up by index are added in f32") {
  for (DType dtype : kHalves) {
    const Scattered s(dtype);
    check_sums(dtype, run("UnsortedSegmentSum", {s.rows, s.indices, Tensor::scalar(kPlaces)})[0],
               s.sums);
    const Tensor shape = i64s({kPlaces, kColumns});
    check_sums(dtype, run("GatherGrad", {s.rows, s.indices, shape})[0], s.sums);
    check_sums(dtype, run("GatherAdd", {s.start, s.rows, s.indices, shape})[0], s.with_start);
  }
}

TEST_CASE("places that no index names are zero, or what was there") {
  for (DType dtype : kHalves) {
    const Tensor rows = drawn(dtype, {2, 3}, 1), at = i64s({2, 2}), shape = i64s({4, 3});
    const auto sums = wide(run("GatherGrad", {rows, at, shape})[0]);
    const auto values = wide(rows);
    for (std::size_t i = 0; i < 12; ++i)
      CHECK((i / 3 == 2 ? std::abs(sums[i] - values[i % 3] - values[3 + i % 3]) < 0.01
                        : sums[i] == 0));
    const Tensor none = Tensor::zeros(DType::i64, Shape{0}).value();
    const Tensor start = drawn(dtype, {4, 3}, 5), no_rows = drawn(dtype, {0, 3}, 5);
    CHECK(Tensor::same(run("GatherAdd", {start, no_rows, none, shape})[0], start));
  }
}

TEST_CASE("a sum of many f16 or bf16 tensors is added in f32") {
  for (DType dtype : kHalves) {
    std::vector<Tensor> all;
    std::vector<double> sums(700);
    for (std::uint64_t i = 0; i < 1200; ++i) {
      all.push_back(drawn(dtype, {700}, 10 + i % 7));
      const auto values = wide(all.back());
      for (std::size_t k = 0; k < sums.size(); ++k) sums[k] += values[k];
    }
    check_sums(dtype, run("AddN", all, {{"T", dtype}, {"N", std::int64_t(all.size())}})[0], sums);
  }
}

TEST_CASE("reductions of f16 and bf16 are added in f32") {
  for (DType dtype : kHalves) {
    const Tensor x = drawn(dtype, {40, 50, 3}, 1);
    const auto values = wide(x);
    std::vector<double> columns(3), rows(40), all(1);
    for (std::size_t i = 0; i < values.size(); ++i) {
      columns[i % 3] += values[i];
      rows[i / 150] += values[i];
      all[0] += values[i];
    }
    const auto axes = [](std::vector<std::int64_t> v) { return AttrMap{{"axes", v}}; };
    check_sums(dtype, run("Sum", {x}, axes({0, 1}))[0], columns);
    check_sums(dtype, run("Sum", {x}, axes({1, 2}))[0], rows);
    check_sums(dtype, run("Sum", {x}, axes({}))[0], all);
    check_sums(dtype, run("SumToShape", {x}, {{"shape", PartialShape{3}}})[0], columns);
    check_sums(dtype,
               run("TileGrad", {x, i64s({1, 1, 3})},
                   {{"multiples", std::vector<std::int64_t>{40, 50, 1}}})[0],
               columns);
    check_sums(dtype, run("Mean", {x}, axes({}))[0], {all[0] / 6000});
  }
}

}  // namespace troupe::test
