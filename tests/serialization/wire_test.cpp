#include "serialization/wire.hpp"

#include <doctest/doctest.h>

#include <functional>
#include <random>

#include "tests/serialization/random_values.hpp"

using namespace troupe;
using namespace troupe::testing;

namespace {

using Bytes = std::vector<std::byte>;

std::uint64_t new_seed() { return std::random_device{}(); }

// The same bytes at an odd address.
Expected<WireMessage> decode_unaligned(const Bytes& bytes) {
  Bytes shifted(bytes.size() + 1);
  std::copy(bytes.begin(), bytes.end(), shifted.begin() + 1);
  return decode(std::span(shifted).subspan(1));
}

// Flips bits, overwrites words with telling values, cuts, extends, repeats.
void mutate(Bytes& bytes, Values& v) {
  for (std::uint64_t n = 1 + v.below(3); n > 0 && !bytes.empty(); --n) {
    std::size_t at = v.below(bytes.size());
    switch (v.below(6)) {
      case 0:
        bytes[at] ^= std::byte(1 << v.below(8));
        break;
      case 1:
        bytes[at] = std::byte(v.below(256));
        break;
      case 2: {
        std::uint32_t word = std::uint32_t(v.flag() ? v.u64() : ~v.below(3));
        at = at / 4 * 4;
        if (at + 4 <= bytes.size()) std::memcpy(&bytes[at], &word, 4);
        break;
      }
      case 3:
        bytes.resize(at);
        break;
      case 4:
        bytes.resize(bytes.size() + v.below(16));
        break;
      case 5: {
        std::size_t from = v.below(bytes.size()) / 8 * 8;
        at = at / 8 * 8;
        std::size_t size = std::min({std::size_t{8}, bytes.size() - from, bytes.size() - at});
        std::memmove(&bytes[at], &bytes[from], size);
        break;
      }
    }
  }
}

void mutate_many(std::uint64_t seed, int rounds) {
  INFO("seed " << seed);
  Values v{Random(seed)};
  int values = 0, errors = 0;
  for (int i = 0; i < rounds; ++i) {
    Bytes bytes = encode(v.message(std::size_t(i) % Values::kKinds));
    mutate(bytes, v);
    auto result = v.flag() ? decode(bytes) : decode_unaligned(bytes);
    if (!result.ok()) {
      CHECK(result.status().code() == Code::invalid_argument);
      ++errors;
      continue;
    }
    // Whatever is accepted is a message like any other.
    auto again = decode(encode(*result));
    REQUIRE(again.ok());
    CHECK(same(*again, *result));
    ++values;
  }
  CHECK(values > 0);
  CHECK(errors > 0);
}

}  // namespace

TEST_CASE("a graph that grows by another number of nodes than it has is refused") {
  auto graph = std::make_shared<GraphDef>();
  graph->nodes.resize(2);
  for (NodeDef& node : graph->nodes) node.name = node.op = "x";
  auto code = [&](std::uint64_t version, std::uint64_t from) {
    return decode(encode(LoadGraph{1, version, graph, from})).status().code();
  };
  CHECK(decode(encode(LoadGraph{1, 2, graph})).ok());
  CHECK(decode(encode(LoadGraph{1, 9, graph, 7})).ok());
  CHECK(code(3, 0) == Code::invalid_argument);
  CHECK(code(2, 1) == Code::invalid_argument);
  CHECK(code(1, ~std::uint64_t{0}) == Code::invalid_argument);  // the sum would fit
}

TEST_CASE("every message survives the wire") {
  std::uint64_t seed = new_seed();
  INFO("seed " << seed);
  Values v{Random(seed)};
  for (int i = 0; i < 3000; ++i) {
    WireMessage message = v.message(std::size_t(i) % Values::kKinds);
    INFO("message kind " << message.index());
    REQUIRE(message.index() == std::size_t(i) % Values::kKinds);
    Bytes bytes = encode(message);
    auto back = decode(bytes);
    REQUIRE(back.ok());
    CHECK(same(*back, message));
    CHECK(encode(*back) == bytes);
    auto shifted = decode_unaligned(bytes);
    REQUIRE(shifted.ok());
    CHECK(same(*shifted, message));
  }
}

TEST_CASE("spans that cannot be are refused") {
  auto code = [](const std::function<void(Track&)>& change) {
    Track track{"thread 1", {{Span::Kind::wait, "node", 7, 10, 20}}};
    change(track);
    return decode(encode(TraceSpans{{track}, 0, true})).status().code();
  };
  const std::string longest(kMostSpanName, 'x');
  CHECK(code([](Track&) {}) == Code::ok);
  CHECK(code([](Track& t) { t.spans[0].end_ns = 10; }) == Code::ok);
  CHECK(code([](Track& t) { t.spans[0].end_ns = 9; }) == Code::invalid_argument);
  CHECK(code([](Track& t) { t.spans[0].kind = Span::Kind(kSpanKinds); }) == Code::invalid_argument);
  CHECK(code([&](Track& t) { t.spans[0].name = longest; }) == Code::ok);
  CHECK(code([&](Track& t) { t.spans[0].name = longest + "x"; }) == Code::invalid_argument);
  CHECK(code([&](Track& t) { t.name = longest; }) == Code::ok);
  CHECK(code([&](Track& t) { t.name = longest + "x"; }) == Code::invalid_argument);
}

TEST_CASE("defaults survive the wire") {
  for (const WireMessage& message :
       {WireMessage(Welcome{}), WireMessage(Leave{}), WireMessage(StartPartition{}),
        WireMessage(PartitionDone{}), WireMessage(LoadStep{}), WireMessage(LiveList{})}) {
    auto back = decode(encode(message));
    REQUIRE(back.ok());
    CHECK(same(*back, message));
  }
}

TEST_CASE("the bits of NaNs in tensors and attributes survive the wire") {
  Tensor t = Tensor::of<std::uint32_t>({2}, {0x7f800001u, 0xffc12345u}).retyped(DType::f32);
  StartPartition step;
  step.feeds = {t, Tensor{}, Tensor::scalar("a\0b"), Tensor::of<float>({0, 3}, {})};
  auto back = decode(encode(step));
  REQUIRE(back.ok());
  CHECK(same(std::get<StartPartition>(*back), step));
}

TEST_CASE("a constant of more than one part survives the wire [slow]") {
  constexpr std::int64_t kElements = (std::int64_t{640} << 20) / 8 + 3;
  Tensor t = Tensor::make(DType::u64, Shape{kElements}).value();
  for (std::int64_t i = 0; i < kElements; ++i) t.mutable_data<std::uint64_t>()[i] = mix64(i);
  GraphDef graph;
  graph.nodes.push_back({.name = "c", .op = "Const", .attrs = {{"value", Attr(t)}}});
  auto back = decode(encode(LoadGraph{1, 1, std::make_shared<const GraphDef>(graph)}));
  REQUIRE(back.ok());
  const GraphDef& got = *std::get<LoadGraph>(*back).graph;
  CHECK(Tensor::same(*got.nodes.at(0).attrs.at("value").get<Tensor>(), t));
}

TEST_CASE("a join survives the hello and says when it is too long") {
  std::uint64_t seed = new_seed();
  INFO("seed " << seed);
  Values v{Random(seed)};
  for (int i = 0; i < 500; ++i) {
    Join join = v.join();
    auto text = encode_join(join);
    REQUIRE(text.ok());
    CHECK(text->size() <= kMaxJoin);
    auto back = decode_join(*text);
    REQUIRE(back.ok());
    CHECK(same(*back, join));
  }
  Join join;
  join.listen_host = std::string(kMaxJoin, 'h');
  CHECK(encode_join(join).status().code() == Code::invalid_argument);
}

TEST_CASE("every tensor tag survives its bytes") {
  std::uint64_t seed = new_seed();
  INFO("seed " << seed);
  Values v{Random(seed)};
  std::array<std::byte, kMaxTensorTag> out;
  for (int i = 0; i < 3000; ++i) {
    TensorTag tag = v.tag();
    std::size_t size = encode_tag(tag, out);
    auto back = decode_tag(std::span(out).first(size));
    REQUIRE(back.ok());
    CHECK(same(*back, tag));
    CHECK(!decode_tag(std::span(out).first(size - 1)).ok());
  }
}

TEST_CASE("hostile messages are refused or read, never more") { mutate_many(new_seed(), 20'000); }

TEST_CASE("hostile messages by the million are refused or read [slow]") {
  mutate_many(new_seed(), 1'000'000);
}

TEST_CASE("hostile noise is refused") {
  std::uint64_t seed = new_seed();
  INFO("seed " << seed);
  Values v{Random(seed)};
  CHECK(!decode({}).ok());
  for (int i = 0; i < 5000; ++i) {
    Bytes noise(v.below(200));
    for (std::byte& b : noise) b = std::byte(v.below(v.flag() ? 256 : 3));
    (void)decode(noise).ok();
    (void)decode_tag(noise).ok();
    std::string text(reinterpret_cast<const char*>(noise.data()), noise.size());
    (void)decode_join(text).ok();
  }
  CHECK(!decode_join(std::string(1 << 20, '\0')).ok());
}

TEST_CASE("hostile hellos and tags are refused or read") {
  std::uint64_t seed = new_seed();
  INFO("seed " << seed);
  Values v{Random(seed)};
  for (int i = 0; i < 10'000; ++i) {
    std::string hello = encode_join(v.join()).value();
    Bytes bytes(hello.size());
    std::memcpy(bytes.data(), hello.data(), hello.size());
    mutate(bytes, v);
    hello.assign(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    if (auto join = decode_join(hello); join.ok()) CHECK(decode_join(*encode_join(*join)).ok());

    std::array<std::byte, kMaxTensorTag> out;
    bytes.assign(out.begin(), out.begin() + std::ptrdiff_t(encode_tag(v.tag(), out)));
    mutate(bytes, v);
    if (auto tag = decode_tag(bytes); tag.ok()) {
      CHECK(tag->iterations.size() <= 8);
      CHECK(encode_tag(*tag, out) == bytes.size());
    }
  }
}

TEST_CASE("hostile counts and lengths do not make a reader allocate") {
  std::uint64_t seed = new_seed();
  INFO("seed " << seed);
  Values v{Random(seed)};
  for (int i = 0; i < 2000; ++i) {
    const Bytes bytes = encode(v.message(std::size_t(i) % Values::kKinds));
    for (std::uint64_t claim :
         {std::uint64_t{1} << 31, std::uint64_t{1} << 60, ~std::uint64_t{0}}) {
      Bytes changed = bytes;
      std::memcpy(&changed[v.below(bytes.size() / 8) * 8], &claim, 8);
      // Memory that there is not would be resource_exhausted.
      auto message = decode(changed);
      if (!message.ok()) CHECK(message.status().code() == Code::invalid_argument);
    }
  }
}

TEST_CASE("a message with a word too many, or too few, is refused") {
  for (std::size_t kind = 0; kind < Values::kKinds; ++kind) {
    Values v{Random(kind)};
    Bytes bytes = encode(v.message(kind));
    INFO("message kind " << kind);
    bytes.resize(bytes.size() + 8);
    CHECK(decode(bytes).status().code() == Code::invalid_argument);
    bytes.resize(bytes.size() - 16);
    CHECK(decode(bytes).status().code() == Code::invalid_argument);
  }
}

TEST_CASE("a message whose values mean nothing is refused") {
  Values v{Random(1)};
  LoadStep load;
  load.devices = {{v.device(), MemorySpace::host}};
  CHECK(decode(encode(load)).ok());
  load.devices[0].space = MemorySpace(2);
  CHECK(decode(encode(load)).status().code() == Code::invalid_argument);
  load.devices[0] = {v.device(), MemorySpace::device};
  CHECK(decode(encode(load)).ok());
  load.devices[0].name.index = std::nullopt;
  CHECK(decode(encode(load)).status().code() == Code::invalid_argument);
  LiveList live;
  live.live = {{3, {}, 0}, {3, {}, 0}};
  CHECK(decode(encode(live)).status().code() == Code::invalid_argument);
}
