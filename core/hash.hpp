// Stable 64-bit hashes and the counter-based random generator. Same bits everywhere, for ever.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace troupe {

// A 64-bit mix (splitmix64 finaliser): every input bit reaches every output bit.
constexpr std::uint64_t mix64(std::uint64_t x) {
  x += 0x9e3779b97f4a7c15u;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}
constexpr std::uint64_t hash_combine(std::uint64_t a, std::uint64_t b) {
  return mix64(a ^ (b + 0x9e3779b97f4a7c15u + (a << 6) + (a >> 2)));
}
// FNV-1a over the bytes, then mix64. Not for adversarial keys.
std::uint64_t hash_bytes(const void* data, std::size_t size, std::uint64_t seed = 0);
inline std::uint64_t hash_text(std::string_view text, std::uint64_t seed = 0) {
  return hash_bytes(text.data(), text.size(), seed);
}

// Philox 4x32-10 (Salmon et al., SC'11): 128 bits of counter, 64 of key, 128 of output.
using PhiloxBlock = std::array<std::uint32_t, 4>;
constexpr PhiloxBlock philox(std::uint64_t key, PhiloxBlock counter) {
  std::uint32_t k0 = std::uint32_t(key), k1 = std::uint32_t(key >> 32);
  for (int round = 0; round < 10; ++round) {
    std::uint64_t p0 = std::uint64_t{0xD2511F53u} * counter[0];
    std::uint64_t p1 = std::uint64_t{0xCD9E8D57u} * counter[2];
    counter = {std::uint32_t(p1 >> 32) ^ counter[1] ^ k0, std::uint32_t(p1),
               std::uint32_t(p0 >> 32) ^ counter[3] ^ k1, std::uint32_t(p0)};
    k0 += 0x9E3779B9u;
    k1 += 0xBB67AE85u;
  }
  return counter;
}

// A small sequential generator over Philox, for tests, schedules and drawn data. Satisfies
// UniformRandomBitGenerator; same sequence on every platform.
class Random {
 public:
  using result_type = std::uint64_t;
  explicit Random(std::uint64_t seed) : key_(seed) {}
  static constexpr result_type min() { return 0; }
  static constexpr result_type max() { return ~result_type{0}; }
  result_type operator()() {
    const PhiloxBlock block = philox(key_, {std::uint32_t(n_), std::uint32_t(n_ >> 32), 0, 0});
    ++n_;
    return std::uint64_t{block[1]} << 32 | block[0];
  }
  // Uniform in [0, n). REQUIRES: n > 0. The bias is below 2^-64 * n.
  std::uint64_t below(std::uint64_t n) {
    return std::uint64_t((static_cast<unsigned __int128>((*this)()) * n) >> 64);
  }
  double uniform() { return double((*this)() >> 11) * 0x1.0p-53; }
  double uniform(double low, double high) { return low + (high - low) * uniform(); }

 private:
  std::uint64_t key_, n_ = 0;
};

}  // namespace troupe
