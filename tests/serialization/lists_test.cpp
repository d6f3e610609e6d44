#include "serialization/lists.hpp"

#include <doctest/doctest.h>

#include <cstring>
#include <random>

#include "core/list.hpp"
#include "tests/serialization/random_values.hpp"

using namespace troupe;
using namespace troupe::testing;

namespace {

using Bytes = std::vector<std::byte>;

Bytes bytes_of(const Tensor& list) {
  const Buffer buffer = value_or_throw(encode_list(list));
  const auto* data = static_cast<const std::byte*>(buffer.data());
  return Bytes(data, data + buffer.size());
}

Tensor list_of(const std::vector<Tensor>& elements) {
  List list;
  for (const Tensor& element : elements) list.push(element);
  return list_tensor(std::move(list));
}

Tensor zeros(DType dtype, const Shape& shape) { return Tensor(dtype, shape, Buffer()); }

// With entries without a value, zeros that take no memory, and lists in it.
Tensor random_list(Values& v, int deep) {
  List list;
  for (std::uint64_t n = v.below(7); n > 0; --n) {
    if (v.below(6) == 0)
      list.push(zeros(DType::f32, {std::int64_t(1 + v.below(1000)), 7}));
    else if (deep > 0 && v.below(4) == 0)
      list.push(random_list(v, deep - 1));
    else
      list.push(v.tensor());
  }
  return list_tensor(std::move(list));
}

Tensor in_lists(Tensor value, int times) {
  for (; times > 0; --times) value = list_of({value});
  return value;
}

// Where a field of the first entry stands.
constexpr std::size_t kKindAt = 0, kDtypeAt = 1, kRankAt = 2, kFlagsAt = 3, kBytesAt = 8,
                      kDimsAt = 16;
void put(Bytes& bytes, std::size_t at, std::uint64_t value) {
  std::memcpy(bytes.data() + at, &value, sizeof value);
}

}  // namespace

TEST_CASE("lists survive their bytes: none, holes, zeros without memory, strings, lists") {
  const Tensor numbers = Tensor::of<double>({2, 2}, {1, -2, 3, 4});
  const Tensor words = Tensor::of<std::string>({2}, {"", "abc"});
  const Tensor none = Tensor::make(DType::f32, {0, 3}).value();
  for (const Tensor& list :
       {list_of({}), list_of({Tensor()}), list_of({numbers, Tensor(), numbers, none}),
        list_of({words, zeros(DType::c128, {1'000'000, 1'000'000}), list_of({})}),
        list_of({list_of({numbers, list_of({words})}), list_of({Tensor(), numbers})})}) {
    auto back = decode_list(bytes_of(list));
    REQUIRE(back.ok());
    CHECK(Tensor::same(*back, list));
  }
  CHECK(bytes_of(list_of({})).empty());
  CHECK(bytes_of(list_of({numbers, Tensor()})).size() == 2 * kListEntry + 32);
}

TEST_CASE("any list survives its bytes") {
  const std::uint64_t seed = std::random_device{}();
  INFO("seed " << seed);
  Values v{Random(seed)};
  for (int i = 0; i < 1000; ++i) {
    const Tensor list = random_list(v, 3);
    auto back = decode_list(bytes_of(list));
    REQUIRE(back.ok());
    CHECK(Tensor::same(*back, list));
  }
}

TEST_CASE("a list that came from elsewhere shares no memory with its bytes") {
  Bytes bytes = bytes_of(list_of({Tensor::scalar(1.5)}));
  const Tensor list = value_or_throw(decode_list(bytes));
  std::fill(bytes.begin(), bytes.end(), std::byte{0xff});
  CHECK(list_in(list).get(0).item<double>() == 1.5);
}

TEST_CASE("lists in lists go so deep, and no deeper, at both ends") {
  const Tensor most = in_lists(Tensor::scalar(1.0f), kDeepestSent);
  CHECK(Tensor::same(value_or_throw(decode_list(bytes_of(most))), most));
  CHECK(check_sent_depth(most).ok());
  CHECK(!check_sent_depth(in_lists(most, 1)).ok());
  const Status deeper = encode_list(in_lists(most, 1)).status();
  CHECK(deeper.code() == Code::invalid_argument);
  CHECK(deeper.message().find("more than 64 deep") != std::string::npos);
  // One entry around the bytes of the deepest.
  Bytes inner = bytes_of(most), outer = bytes_of(list_of({list_of({})}));
  put(outer, kBytesAt, inner.size());
  outer.insert(outer.end(), inner.begin(), inner.end());
  CHECK(decode_list(outer).status().code() == Code::invalid_argument);
}

TEST_CASE("bytes that are no list are refused") {
  const Bytes good = bytes_of(list_of({Tensor::of<std::uint8_t>({4}, {1, 2, 3, 4})}));
  const auto refused = [&](std::size_t at, std::uint64_t value, std::size_t size) {
    Bytes bytes = good;
    std::memcpy(bytes.data() + at, &value, size);
    return decode_list(bytes).status().code() == Code::invalid_argument;
  };
  CHECK(refused(kKindAt, 3, 1));
  CHECK(refused(kKindAt, 0, 1));  // without a value, and with one
  CHECK(refused(kKindAt, 2, 1));  // zeros with contents
  CHECK(refused(kDtypeAt, std::uint64_t(DType::resource), 1));
  CHECK(refused(kDtypeAt, 0, 1));
  CHECK(refused(kDtypeAt, 200, 1));
  CHECK(refused(kDtypeAt, std::uint64_t(DType::f32), 1));
  CHECK(refused(kDtypeAt, std::uint64_t(DType::bool_), 1));  // of 2, 3 and 4
  CHECK(refused(kDtypeAt, std::uint64_t(DType::string), 1));
  CHECK(refused(kDtypeAt, std::uint64_t(DType::list), 1));
  CHECK(refused(kRankAt, kMaxRank + 1, 1));
  CHECK(refused(kRankAt, 0, 1));
  CHECK(refused(kFlagsAt, 1, 1));
  CHECK(refused(kBytesAt, 5, 8));
  CHECK(refused(kBytesAt, ~std::uint64_t{0}, 8));
  CHECK(refused(kDimsAt, 5, 8));
  CHECK(refused(kDimsAt, ~std::uint64_t{0}, 8));
  CHECK(refused(kDimsAt, std::uint64_t{1} << 62, 8));
  for (std::size_t size = 1; size < good.size(); ++size)
    CHECK(!decode_list(std::span(good).first(size)).ok());
  Bytes longer = good;
  longer.push_back(std::byte{0});
  CHECK(!decode_list(longer).ok());
}

TEST_CASE("zeros that arrive take no memory, however many they say they are") {
  Bytes bytes = bytes_of(list_of({zeros(DType::f64, {1'000'000'000, 100})}));
  CHECK(bytes.size() == kListEntry);
  const Tensor list = value_or_throw(decode_list(bytes));
  CHECK(!list_in(list).get(0).buffer());
  put(bytes, kDimsAt, std::uint64_t{1} << 62);  // more bytes than a number counts
  CHECK(!decode_list(bytes).ok());
}

TEST_CASE("lists with bytes changed at random are lists or errors") {
  const std::uint64_t seed = std::random_device{}();
  INFO("seed " << seed);
  Values v{Random(seed)};
  for (int i = 0; i < 3000; ++i) {
    Bytes bytes = bytes_of(random_list(v, 3));
    for (std::uint64_t n = 1 + v.below(4); n > 0 && !bytes.empty(); --n)
      bytes[v.below(bytes.size())] = std::byte(v.below(256));
    if (v.below(4) == 0) bytes.resize(v.below(bytes.size() + 1));
    auto back = decode_list(bytes);
    if (back.ok()) CHECK(Tensor::same(value_or_throw(decode_list(bytes_of(*back))), *back));
  }
}
