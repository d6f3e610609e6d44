// Products of bf16 by AMX and without it: the same bits.
#include "ops/kernels/support/bf16_tiles.hpp"

#include <doctest/doctest.h>

#include <bit>
#include <cmath>
#include <random>
#include <vector>

#include "ops/detail/machine_level.hpp"
#include "ops/isa.hpp"
#include "tests/ops/nn/nn_kernels.hpp"

namespace troupe::test {
namespace {

constexpr std::int64_t kPairs = 48, kRowOfA = 50;  // of A, whose rows need not be aligned

struct Blocks {
  std::vector<std::uint32_t> a = std::vector<std::uint32_t>(32 * kRowOfA),
                             b = std::vector<std::uint32_t>(kPairs * 32);
  std::vector<float> sums = std::vector<float>(32 * 32);
};

// Elements of one kind: of any bits, or with exponents between two.
Blocks draw(std::mt19937_64& rng, int least, int most, bool special) {
  const auto element = [&] {
    if (special && rng() % 64 == 0)
      return std::uint32_t(rng() % 2 == 0 ? 0x7f80 : 0x7fc1) | std::uint32_t(rng() % 2) << 15;
    const auto exponent =
        std::uint32_t(least + std::int64_t(rng() % std::uint64_t(most - least + 1)));
    return (std::uint32_t(rng()) & 0x807f) | exponent << 7;
  };
  Blocks made;
  for (std::uint32_t& word : made.a) word = element() | element() << 16;
  for (std::uint32_t& word : made.b) word = element() | element() << 16;
  for (float& sum : made.sums)
    sum = std::bit_cast<float>(element() << 16 | (std::uint32_t(rng()) & 0xffff));
  return made;
}

std::vector<float> by(tiles::Add add, const Blocks& of, std::int64_t rows, bool first) {
  std::vector<float> sums = of.sums;
  const tiles::Zeros zeros;
  add(of.a.data(), kRowOfA, of.b.data(), kPairs, rows, sums.data(), first);
  return sums;
}

std::vector<float> on_amx(const Blocks& of, std::int64_t rows, bool first) {
  const tiles::Tiles tiles;
  return by(tiles::add_on_amx, of, rows, first);
}

// As the header says it, one element at a time.
void add_slowly(const std::uint32_t* a, std::int64_t step_a, const std::uint32_t* b,
                std::int64_t pairs, std::int64_t rows, float* sums, bool first) {
  const auto even = [](std::uint32_t word) { return std::bit_cast<float>(word << 16); };
  const auto odd = [](std::uint32_t word) { return std::bit_cast<float>(word & 0xffff0000); };
  for (std::int64_t i = 0; i < rows; ++i)
    for (std::int64_t j = 0; j < 32; ++j) {
      volatile float sum = first ? 0.0f : sums[i * 32 + j];  // rounded at every step
      for (std::int64_t p = 0; p < pairs; p += 16) {
        volatile float evens = 0, odds = 0;
        for (std::int64_t q = p; q < p + 16; ++q) {
          const std::uint32_t x = a[i * step_a + q], y = b[q * 32 + j];
          evens = std::fma(even(x), even(y), evens);
          odds = std::fma(odd(x), odd(y), odds);
        }
        volatile float both = evens + odds;
        sum = sum + both;
      }
      sums[i * 32 + j] = sum;
    }
}

// Numbers whose bits differ; NaN has many.
std::int64_t different(const std::vector<float>& x, const std::vector<float>& y) {
  std::int64_t count = 0;
  for (std::size_t i = 0; i < x.size(); ++i)
    if (std::isnan(x[i]) != std::isnan(y[i]) ||
        (!std::isnan(x[i]) &&
         std::bit_cast<std::uint32_t>(x[i]) != std::bit_cast<std::uint32_t>(y[i])))
      ++count;
  return count;
}

}  // namespace

TEST_CASE("AMX and its emulation give the same bits of bf16 products") {
  if (machine_level() < 4) {
    MESSAGE("skipped: this processor is no x86-64-v4");
    return;
  }
  if (!ops::has_tiles()) MESSAGE("no AMX here: the emulation alone");
  std::mt19937_64 rng(test_seed());
  INFO("seed " << test_seed());
  struct Kind {
    const char* name;
    int least, most;
    bool special;
  };
  const Kind kinds[] = {{"near 1", 120, 134, false},          {"tiny products", 50, 76, false},
                        {"subnormal elements", 0, 1, false},  {"large", 180, 200, false},
                        {"infinity and NaN", 120, 134, true}, {"any", 0, 255, false}};
  for (const Kind& kind : kinds)
    for (int round = 0; round < 2; ++round)
      for (const bool first : {true, false}) {
        INFO(kind.name);
        const Blocks blocks = draw(rng, kind.least, kind.most, kind.special);
        const std::int64_t rows = round == 0 ? 32 : 16;
        const std::vector<float> emulated = by(tiles::add_without_amx, blocks, rows, first);
        CHECK(different(emulated, by(add_slowly, blocks, rows, first)) == 0);
        if (ops::has_tiles()) CHECK(different(emulated, on_amx(blocks, rows, first)) == 0);
      }
}

}  // namespace troupe::test
