// Loops that decide by masks, blocks or a few candidates give what the obvious loop does.
#include <doctest/doctest.h>

#include <cstring>
#include <functional>
#include <random>
#include <unordered_map>
#include <vector>

#include "core/hash.hpp"
#include "tests/ops/nn/nn_kernels.hpp"

namespace troupe::test {
namespace {

Tensor bytes_of(DType dtype, std::int64_t n, std::mt19937_64& random) {
  Tensor t = Tensor::make(dtype, Shape{n}).value();
  auto* to = static_cast<unsigned char*>(t.mutable_raw());
  for (std::size_t i = 0; i < t.bytes(); ++i) to[i] = static_cast<unsigned char>(random());
  return t;
}

Tensor coins(std::int64_t n, std::mt19937_64& random) {
  Tensor t = Tensor::make(DType::bool_, Shape{n}).value();
  for (std::int64_t i = 0; i < n; ++i) t.mutable_data<bool>()[i] = random() % 2 == 0;
  return t;
}

const char* bytes_at(const Tensor& t, std::int64_t i) {
  const auto size = std::int64_t(dtype_size(t.dtype()));
  return static_cast<const char*>(t.raw()) + (t.elements() == 1 ? 0 : i * size);
}

// The x with mix64(x) == h.
std::uint64_t unmixed(std::uint64_t h) {
  const auto inverse = [](std::uint64_t odd) {
    std::uint64_t of = odd;
    for (int i = 0; i < 6; ++i) of *= 2 - odd * of;
    return of;
  };
  h = (h ^ h >> 31 ^ h >> 62) * inverse(0x94d049bb133111ebu);
  h = (h ^ h >> 27 ^ h >> 54) * inverse(0xbf58476d1ce4e5b9u);
  return (h ^ h >> 30 ^ h >> 60) - 0x9e3779b97f4a7c15u;
}

}  // namespace

TEST_CASE("Unique finds what an obvious loop does, however its values collide") {
  CAPTURE(test_seed());
  std::mt19937_64 random(test_seed());
  REQUIRE(mix64(unmixed(12345)) == 12345);
  const auto few = [&](std::int64_t) { return std::int64_t(random() % 100); };
  const auto many = [&](std::int64_t) { return std::int64_t(random() % 200'000); };
  // All in one slot of any table: compared with each other they would take minutes.
  const auto colliding = [&](std::int64_t i) {
    return std::int64_t(unmixed(std::uint64_t(i % 150'000) << 40) ^ std::uint64_t{1} << 63);
  };
  for (const std::function<std::int64_t(std::int64_t)>& value :
       {std::function<std::int64_t(std::int64_t)>(few), {many}, {colliding}}) {
    Tensor x = Tensor::make(DType::i64, Shape{200'000}).value();
    std::unordered_map<std::int64_t, std::int64_t> number;
    std::vector<std::int64_t> values, index, counts;
    for (std::int64_t i = 0; i < x.elements(); ++i) {
      const std::int64_t v = x.mutable_data<std::int64_t>()[i] = value(i);
      const auto [at, added] = number.emplace(v, std::int64_t(values.size()));
      if (added) values.push_back(v), counts.push_back(0);
      index.push_back(at->second);
      ++counts[std::size_t(at->second)];
    }
    const std::vector<Tensor> found = run("Unique", {x});
    const auto list = [&](std::size_t i) {
      const auto span = found[i].span<std::int64_t>();
      return std::vector<std::int64_t>(span.begin(), span.end());
    };
    CHECK((list(0) == values));
    CHECK((list(1) == index));
    CHECK((list(2) == counts));
  }
}

TEST_CASE("Select keeps the bits of what it chooses, NaN and all") {
  CAPTURE(test_seed());
  std::mt19937_64 random(test_seed());
  constexpr std::int64_t kMany = 40'003;
  for (const DType dtype : {DType::i8, DType::bf16, DType::f32, DType::f64, DType::c128})
    for (const auto& [yes_size, no_size] : {std::pair{kMany, kMany}, {kMany, 1}, {1, kMany}}) {
      CAPTURE(dtype_name(dtype));
      const Tensor which = coins(kMany, random);
      const Tensor yes = bytes_of(dtype, yes_size, random), no = bytes_of(dtype, no_size, random);
      const Tensor y = run("Select", {which, yes, no})[0];
      std::int64_t wrong = 0;
      for (std::int64_t i = 0; i < kMany; ++i)
        wrong += std::memcmp(bytes_at(y, i), bytes_at(which.data<bool>()[i] ? yes : no, i),
                             dtype_size(dtype)) != 0;
      CHECK(wrong == 0);
    }
}

TEST_CASE("TopK takes the first of what ArgSort puts in order") {
  CAPTURE(test_seed());
  std::mt19937_64 random(test_seed());
  for (const std::int64_t size : {1, 15, 16, 160, 1000})
    for (const std::int64_t k : {0, 1, 10, 62, 63}) {
      if (k > size) continue;
      CAPTURE(size);
      CAPTURE(k);
      Tensor x = Tensor::make(DType::i32, Shape{4, size}).value();
      for (std::int64_t i = 0; i < size; ++i) {
        x.mutable_data<std::int32_t>()[i] = std::int32_t(random() % 50);  // with ties
        x.mutable_data<std::int32_t>()[size + i] = std::int32_t(i);       // each is larger
        x.mutable_data<std::int32_t>()[2 * size + i] = -std::int32_t(i);
        x.mutable_data<std::int32_t>()[3 * size + i] = 7;
      }
      const auto top = run("TopK", {x}, {{"k", k}});
      const Tensor order = run("ArgSort", {x}, {{"descending", true}})[0];
      for (std::int64_t row = 0; row < 4; ++row)
        for (std::int64_t i = 0; i < k; ++i) {
          const std::int64_t at = order.data<std::int64_t>()[row * size + i];
          CHECK(top[1].data<std::int64_t>()[row * k + i] == at);
          CHECK(top[0].data<std::int32_t>()[row * k + i] ==
                x.data<std::int32_t>()[row * size + at]);
        }
    }
}

TEST_CASE("Bincount counts few and many elements alike") {
  CAPTURE(test_seed());
  std::mt19937_64 random(test_seed());
  constexpr std::int64_t kSize = 5;
  for (const std::int64_t n : {39, 40, 41, 42, 43, 5000}) {
    CAPTURE(n);
    Tensor x = Tensor::make(DType::i64, Shape{n}).value();
    std::int64_t want[kSize] = {};
    for (std::int64_t i = 0; i < n; ++i) {
      const auto value = std::int64_t(random() % kSize);
      x.mutable_data<std::int64_t>()[i] = value;
      ++want[value];
    }
    const Tensor counts = run("Bincount", {x}, {{"size", kSize}})[0];
    for (std::int64_t k = 0; k < kSize; ++k) CHECK(counts.data<std::int64_t>()[k] == want[k]);
  }
}

}  // namespace troupe::test
