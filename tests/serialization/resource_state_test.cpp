#include "serialization/resource_state.hpp"

#include <doctest/doctest.h>

#include <cstring>
#include <random>

#include "core/list.hpp"
#include "graph/graph.hpp"
#include "tests/graph/allocated.hpp"
#include "tests/serialization/random_values.hpp"

using namespace troupe;
using namespace troupe::testing;

namespace {

// Values of all kinds, by what is drawn.
ResourceState some_state(Values& v) {
  StateWriter out;
  for (std::uint64_t n = v.below(12); n > 0; --n) switch (v.below(7)) {
      case 0:
        out.number(v.u64());
        break;
      case 1:
        out.text(v.text());
        break;
      case 2:
        out.tensor(v.tensor());
        break;
      case 3:
        out.tensors(v.list([&] { return v.tensor(); }));
        break;
      case 4:
        out.key({v.u32(), v.u32(), {std::int64_t(v.u64())}});
        break;
      case 5:
        out.attempt(v.attempt());
        break;
      default:
        out.node(v.node());
    }
  return out.take();
}

bool same_state(const ResourceState& a, const ResourceState& b) {
  return a.words == b.words && same(a.tensors, b.tensors);
}

}  // namespace

TEST_CASE("a resource's state survives its bytes") {
  const std::uint64_t seed = std::random_device{}();
  INFO("seed " << seed);
  Values v{Random(seed)};
  for (int i = 0; i < 2000; ++i) {
    const ResourceState state = some_state(v);
    const auto bytes = encode_state(state);
    REQUIRE(bytes.ok());
    const auto back = decode_state(*bytes);
    REQUIRE_MESSAGE(back.ok(), back.status().text());
    CHECK(same_state(*back, state));
    CHECK(*encode_state(*back) == *bytes);
    CHECK(same_state(value_or_throw(state_of(*state_tensor(state))), state));
  }
}

TEST_CASE("what a state was made of is read in the same order, to the end") {
  StateWriter out;
  out.number(7);
  out.text("a text");
  out.tensors({Tensor::scalar(1.5f), Tensor{}});
  out.key({3, 1, {-1, 4}});
  out.run({5, 6});
  NodeDef node;
  node.name = "n";
  node.op = "Assign";
  node.attrs = {{"T", DType::f32}};
  out.node(node);
  const ResourceState state = out.take();
  {
    StateReader in(state);
    CHECK(in.number() == 7);
    CHECK(in.text() == "a text");
    const auto tensors = in.tensors();
    REQUIRE(tensors.size() == 2);
    CHECK(tensors[0].item<float>() == 1.5f);
    CHECK(!tensors[1].defined());
    CHECK(in.key() == WriteKey{3, 1, {-1, 4}});
    CHECK(in.run() == RunId{5, 6});
    const NodeDef back = in.node();
    CHECK(back.op == "Assign");
    CHECK(back.attrs == node.attrs);
    CHECK(in.end().ok());
  }
  StateReader half(state);
  CHECK(half.number() == 7);
  CHECK(half.end().code() == Code::invalid_argument);
  StateReader wrong(state);
  CHECK(wrong.tensor().defined() == false);  // there is no tensor number 7
  CHECK(wrong.end().code() == Code::invalid_argument);
}

TEST_CASE("lists and zeros that take no memory are part of a state") {
  List list;
  list.push(Tensor::scalar(2.f));
  list.push(Tensor());
  const ResourceState state{{},
                            {list_tensor(std::move(list)), Tensor(DType::f32, Shape{3}, Buffer())}};
  const auto back = decode_state(*encode_state(state));
  REQUIRE_MESSAGE(back.ok(), back.status().text());
  REQUIRE(back->tensors.size() == 2);
  CHECK(list_in(back->tensors[0]).size() == 2);
  CHECK(back->tensors[1].span<float>()[2] == 0);
}

TEST_CASE("many texts take memory for their bytes, not for the square of their number") {
  const auto cost_of = [](int texts) {
    const std::uint64_t before = test::allocated_bytes();
    StateWriter out;
    for (int i = 0; i < texts; ++i) out.text("CPU");
    const ResourceState state = out.take();
    CHECK(state.words.size() == std::size_t(texts) * 16);
    return test::allocated_bytes() - before;
  };
  CHECK(cost_of(20'000) < 5 * 20'000 * 16);
}

TEST_CASE("hostile bytes of a resource's state are refused or read, never more") {
  const std::uint64_t seed = std::random_device{}();
  INFO("seed " << seed);
  Values v{Random(seed)};
  int values = 0, errors = 0;
  for (int i = 0; i < 10'000; ++i) {
    std::vector<std::byte> bytes = *encode_state(some_state(v));
    for (std::uint64_t n = 1 + v.below(3); n > 0 && !bytes.empty(); --n) {
      const std::size_t at = v.below(bytes.size());
      switch (v.below(4)) {
        case 0:
          bytes[at] ^= std::byte(1 << v.below(8));
          break;
        case 1: {
          const std::uint64_t word = v.flag() ? v.u64() : ~v.below(3);
          if (at / 8 * 8 + 8 <= bytes.size()) std::memcpy(&bytes[at / 8 * 8], &word, 8);
          break;
        }
        case 2:
          bytes.resize(at);
          break;
        default:
          bytes.resize(bytes.size() + v.below(24));
      }
    }
    const auto state = decode_state(bytes);
    if (!state.ok()) {
      CHECK(state.status().code() == Code::invalid_argument);
      ++errors;
      continue;
    }
    ++values;
    const auto again = decode_state(*encode_state(*state));
    REQUIRE(again.ok());
    CHECK(same_state(*again, *state));
  }
  CHECK(values > 0);
  CHECK(errors > 0);
}
