#include "serialization/strings.hpp"

#include <doctest/doctest.h>

#include <cstring>
#include <limits>
#include <random>

#include "tests/serialization/random_values.hpp"

using namespace troupe;
using namespace troupe::testing;

namespace {

using Bytes = std::vector<std::byte>;

Bytes encoded(const Tensor& t) {
  Buffer buffer = value_or_throw(encode_strings(t));
  auto* data = static_cast<const std::byte*>(buffer.data());
  return Bytes(data, data + encoded_strings_size(t));
}

Tensor random_strings(Values& v) {
  Tensor t = Tensor::make(DType::string, v.shape()).value();
  for (std::int64_t i = 0; i < t.elements(); ++i)
    t.mutable_data<std::string>()[i] = v.text(v.below(8) ? 20 : 300);
  return t;
}

void set_length(Bytes& bytes, std::size_t i, std::uint64_t length) {
  std::memcpy(&bytes[8 * i], &length, 8);
}

}  // namespace

TEST_CASE("string tensors survive their bytes: none, empty ones, NULs") {
  using namespace std::string_literals;
  Tensor nul = Tensor::of<std::string>({2, 2}, {"a\0b"s, ""s, "\0"s, std::string(100, 'x')});
  Tensor none = Tensor::make(DType::string, {0, 3}).value();
  for (const Tensor& t : {nul, none, Tensor::scalar(""), Tensor::scalar("one")}) {
    auto back = decode_strings(t.shape(), encoded(t));
    REQUIRE(back.ok());
    CHECK(Tensor::same(*back, t));
  }
  CHECK(encoded(none).empty());
  CHECK(encoded(nul).size() == 4 * 8 + 3 + 0 + 1 + 100);
}

TEST_CASE("any string tensor survives its bytes") {
  std::uint64_t seed = std::random_device{}();
  INFO("seed " << seed);
  Values v{Random(seed)};
  for (int i = 0; i < 2000; ++i) {
    Tensor t = random_strings(v);
    Bytes bytes = encoded(t);
    REQUIRE(check_strings_size(t.shape(), bytes.size()).ok());
    auto back = decode_strings(t.shape(), bytes);
    REQUIRE(back.ok());
    CHECK(Tensor::same(*back, t));
  }
}

TEST_CASE("hostile lengths of strings are refused before memory is taken") {
  Tensor t = Tensor::of<std::string>({3}, {"abc", "", "defg"});
  const Bytes good = encoded(t);
  for (std::uint64_t length : {std::uint64_t{4}, std::uint64_t{8}, std::uint64_t{1} << 62,
                               std::numeric_limits<std::uint64_t>::max()})
    for (std::size_t i = 0; i < 3; ++i) {
      if (i == 2 && length == 4) continue;  // what it is
      Bytes bytes = good;
      set_length(bytes, i, length);
      CHECK(decode_strings({3}, bytes).status().code() == Code::invalid_argument);
    }
  // Lengths that come round to the right sum.
  Bytes bytes = good;
  set_length(bytes, 0, std::numeric_limits<std::uint64_t>::max());
  set_length(bytes, 1, 4);
  CHECK(decode_strings({3}, bytes).status().code() == Code::invalid_argument);
  // Too short for its lengths, bytes after the last string, another shape.
  CHECK(!decode_strings({3}, std::span(good).first(20)).ok());
  bytes = good;
  bytes.push_back(std::byte{0});
  CHECK(decode_strings({3}, bytes).status().code() == Code::invalid_argument);
  CHECK(!decode_strings({4}, good).ok());
  CHECK(!decode_strings({0}, good).ok());
  // Shapes whose lengths alone are more than the bytes, or more than there are.
  Shape huge{std::int64_t{1} << 40};
  CHECK(decode_strings(huge, good).status().code() == Code::invalid_argument);
  CHECK(
      !check_strings_size(Shape{std::numeric_limits<std::int64_t>::max()}, ~std::uint64_t{0}).ok());
  CHECK(check_strings_size({3}, std::uint64_t{1} << 33).ok());
}

TEST_CASE("mutated strings are refused or read") {
  std::uint64_t seed = std::random_device{}();
  INFO("seed " << seed);
  Values v{Random(seed)};
  int read = 0, refused = 0;
  for (int i = 0; i < 20'000; ++i) {
    Tensor t = random_strings(v);
    Bytes bytes = encoded(t);
    for (std::uint64_t n = v.below(3); n > 0 && !bytes.empty(); --n) {
      if (v.below(4) == 0)
        bytes.resize(v.below(bytes.size() + 9));
      else if (std::size_t at = v.below(bytes.size()); true)
        bytes[at] = std::byte(v.below(256));
    }
    auto back = decode_strings(t.shape(), bytes);
    if (!back.ok()) {
      CHECK(back.status().code() == Code::invalid_argument);
      ++refused;
      continue;
    }
    CHECK((encoded(*back) == bytes));
    ++read;
  }
  CHECK(read > 0);
  CHECK(refused > 0);
}
