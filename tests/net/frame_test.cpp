#include <doctest/doctest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "actors/net/crc32c.hpp"
#include "tests/net/streams.hpp"

using namespace troupe;
using namespace troupe::testing;

namespace {

constexpr RxLimits kOpenLimits{.control_bytes = 1u << 20, .chunk_bytes = 1u << 20};

void push_message(Tx& tx, std::string_view text) {
  tx.push(control_frame(FrameType::message, as_bytes(text)));
}

// The one error that a fresh receiver finds in `stream`.
Status verdict(std::string_view stream, RxLimits limits = kOpenLimits) {
  RecordingSink sink;
  Rx rx(limits, sink);
  return rx.consume(as_bytes(stream));
}

std::string data_stream(std::string_view tag, std::string_view bytes,
                        TxOptions options = {.chunk_bytes = 1000}) {
  Tx tx(options);
  tx.push(tensor_of(tag, bytes));
  return drain(tx);
}

// A data frame with any header one likes, its header checksum right.
std::string forged(DataFrameHeader header, std::size_t payload) {
  std::string s(kDataHeader + header.tag_length, 'x');
  encode(header, {reinterpret_cast<std::byte*>(s.data()), s.size()});
  return s + std::string(payload + kTrailer, '\0');
}

}  // namespace

TEST_CASE("the checksum is CRC32C and can be taken in pieces") {
  CHECK(crc32c(as_bytes("123456789")) == 0xE3069283u);
  CHECK(crc32c({}) == 0u);
  CHECK(crc32c(as_bytes("56789"), crc32c(as_bytes("1234"))) == 0xE3069283u);
}

TEST_CASE("a message and a tensor cross the framing unchanged") {
  Tx tx({});
  push_message(tx, "hello");
  push_message(tx, "");
  tx.push(tensor_of("tag", "some bytes"));
  tx.push(tensor_of("dead", ""));
  RecordingSink sink;
  Rx rx(kOpenLimits, sink);
  std::string stream = drain(tx);
  CHECK(rx.consume(as_bytes(stream)).ok());
  CHECK(tx.idle());
  CHECK(rx.at_rest());
  CHECK(sink.messages == std::vector<std::string>{"hello", ""});
  CHECK(sink.types == std::vector<std::uint16_t>{7, 7});
  CHECK(sink.tensors == std::vector<SeenTensor>{{"tag", "some bytes"}, {"dead", ""}});
}

TEST_CASE("the layout on the wire is the documented one") {
  std::string frame = data_stream("ab", "xyz");
  REQUIRE(frame.size() == kDataHeader + 2 + 3 + kTrailer);
  CHECK(frame.substr(0, 8) == std::string("TRD1\x01\x01\x02\x00", 8));
  CHECK(frame.substr(16, 1) == "\x03");
  CHECK(frame.substr(kDataHeader, 5) == "abxyz");
  std::vector<std::byte> message = control_frame(FrameType::message, as_bytes("xyz"));
  CHECK(text_of(message).substr(0, 12) == std::string("TRC1\x01\x00\x07\x00\x03\x00\x00\x00", 12));
  CHECK(message.size() == kControlHeader + 3 + kTrailer);
}

TEST_CASE("any split of the stream gives the same messages and tensors") {
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    INFO("seed " << seed);
    Random random(seed);
    Tx tx({.chunk_bytes = std::uint32_t(1 + random.below(100'000)),
           .data_trailer = random.below(2) == 0});
    RxLimits limits = kOpenLimits;
    limits.data_trailer = true;
    bool trailer = random.below(2) == 0;
    tx.set_options(
        {.chunk_bytes = std::uint32_t(1 + random.below(100'000)), .data_trailer = trailer});
    limits.data_trailer = trailer;
    std::vector<std::string> messages;
    std::vector<SeenTensor> tensors;
    std::string stream;
    for (std::uint64_t i = 0, n = random.below(20); i < n; ++i) {
      std::size_t size = random.below(2) == 0 ? random.below(300) : random.below(200'000);
      if (random.below(3) == 0) {
        messages.push_back(random_text(random, size));
        push_message(tx, messages.back());
      } else {
        tensors.push_back({random_text(random, random.below(257)), random_text(random, size)});
        tx.push(tensor_of(tensors.back().tag, tensors.back().bytes));
      }
      if (random.below(4) == 0) stream += drain(tx);
    }
    stream += drain(tx);
    RecordingSink sink;
    if (random.below(2) == 0) {
      sink.wants = [](const TensorHeader& h) { return h.tag().size() % 3 != 0; };
      std::erase_if(tensors,
                    [](const SeenTensor& t) { return t.tag.size() % 3 == 0 && !t.bytes.empty(); });
    }
    Rx rx(limits, sink);
    std::uint64_t most = 1 + random.below(random.below(2) == 0 ? 40 : 300'000);
    Status s = deliver(rx, as_bytes(stream), [&] { return 1 + random.below(most); });
    REQUIRE_MESSAGE(s.ok(), s.text());
    CHECK(rx.at_rest());
    CHECK(sink.messages == messages);
    auto by_tag = [](const SeenTensor& a, const SeenTensor& b) {
      return std::tie(a.tag, a.bytes) < std::tie(b.tag, b.bytes);
    };
    std::sort(sink.tensors.begin(), sink.tensors.end(), by_tag);
    std::sort(tensors.begin(), tensors.end(), by_tag);
    CHECK(sink.tensors == tensors);
  }
}

TEST_CASE("bytes that are taken in any portion leave in the same order") {
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    INFO("seed " << seed);
    Random random(seed);
    std::string bytes = random_text(random, random.below(1'000'000));
    auto make = [&](Tx& tx) {
      push_message(tx, "first");
      tx.push(tensor_of("t", bytes));
      tx.push(tensor_of("u", "small"));
    };
    Tx whole({.chunk_bytes = 50'000}), portions({.chunk_bytes = 50'000});
    make(whole), make(portions);
    std::string expected = drain(whole), stream;
    std::uint64_t payload = 0;
    for (auto p = portions.gather(); !p.empty(); p = portions.gather()) {
      std::size_t n = std::min<std::size_t>(p[0].iov_len, 1 + random.below(70'000));
      stream.append(static_cast<const char*>(p[0].iov_base), n);
      payload += portions.sent(n);
    }
    CHECK(stream == expected);
    std::size_t frame = control_frame(FrameType::message, as_bytes("first")).size();
    CHECK(payload == frame + bytes.size() + 5);
  }
}

TEST_CASE("a small tensor overtakes a large one") {
  Tx tx({.chunk_bytes = 1000});
  tx.push(tensor_of("large", std::string(1'000'000, 'l')));
  tx.push(tensor_of("small", "s"));
  RecordingSink sink;
  Rx rx(kOpenLimits, sink);
  REQUIRE(rx.consume(as_bytes(drain(tx))).ok());
  REQUIRE(sink.tensors.size() == 2);
  CHECK(sink.tensors[0].tag == "small");
}

TEST_CASE("bulk messages let others pass and keep their order") {
  auto push_bulk = [](Tx& tx, const std::string& text) {
    tx.push(BulkFrame{control_frame(FrameType::message, as_bytes(text))});
  };
  Tx tx({});
  std::vector<std::string> bulk;
  for (int i = 0; i < 8; ++i) push_bulk(tx, bulk.emplace_back(200'000, char('a' + i)));
  push_message(tx, "before");
  CHECK(!tx.fits(1'000'000));
  RecordingSink sink;
  Rx rx(kOpenLimits, sink);
  std::uint64_t counted = 0;
  for (int i = 0; !tx.idle(); ++i) {
    std::string portion;
    for (const iovec& p : tx.gather()) portion.append(static_cast<char*>(p.iov_base), p.iov_len);
    REQUIRE(!portion.empty());
    // Also in the middle of a frame: what comes then waits for that frame alone.
    if (i % 2 == 0) portion.resize(portion.size() / 2);
    REQUIRE(rx.consume(as_bytes(portion)).ok());
    counted += tx.sent(portion.size());
    if (i == 2) push_message(tx, "between");
  }
  REQUIRE(sink.messages.size() == bulk.size() + 2);
  CHECK(sink.messages[0] == "before");
  auto between = std::find(sink.messages.begin(), sink.messages.end(), "between");
  CHECK(between < sink.messages.end() - 2);
  sink.messages.erase(between);
  sink.messages.erase(sink.messages.begin());
  CHECK((sink.messages == bulk));
  // A sender that waits for the others to leave does not wait for bulk messages.
  CHECK(counted == std::string("beforebetween").size() + 2 * (kControlHeader + kTrailer));
}

TEST_CASE("an urgent message waits for one bulk message at most") {
  constexpr std::size_t kPart = 128u << 10;
  Tx tx({});
  for (int i = 0; i < 8; ++i)
    tx.push(BulkFrame{control_frame(FrameType::message, as_bytes(std::string(kPart, 'b')))});
  for (int i = 0; i < 100; ++i)
    tx.push(BulkFrame{control_frame(FrameType::message, as_bytes("small"))});
  std::size_t gathers = 0;
  for (; !tx.idle(); ++gathers) {
    std::size_t size = 0;
    for (const iovec& p : tx.gather()) size += p.iov_len;
    CHECK(size <= kControlHeader + kPart + kTrailer);
    (void)tx.sent(size);
  }
  CHECK(gathers <= 12);  // small ones leave together
}

TEST_CASE("bulk messages of a connection that is closed stay behind, whole ones") {
  Tx tx({});
  for (int i = 0; i < 3; ++i)
    tx.push(BulkFrame{control_frame(FrameType::message, as_bytes(std::string(1000, 'b')))});
  RecordingSink sink;
  Rx rx(kOpenLimits, sink);
  const auto take = [&](std::size_t most) {
    std::string portion;
    for (const iovec& p : tx.gather()) portion.append(static_cast<char*>(p.iov_base), p.iov_len);
    portion.resize(std::min(most, portion.size()));
    REQUIRE(rx.consume(as_bytes(portion)).ok());
    (void)tx.sent(portion.size());
  };
  take(10);
  tx.push(BulkFrame{control_frame(FrameType::message, as_bytes("too late"))});
  push_message(tx, "last");
  tx.drop_bulk();
  while (!tx.idle()) take(~std::size_t{0});
  CHECK(rx.at_rest());
  REQUIRE(!sink.messages.empty());
  CHECK(sink.messages.back() == "last");
  for (const std::string& text : sink.messages) CHECK(text != "too late");
}

TEST_CASE("any number of queued tensors keeps within the open transfers of the receiver") {
  Tx tx({.chunk_bytes = 10});
  for (int i = 0; i < 100; ++i) tx.push(tensor_of("t", std::string(std::size_t(i), 'x')));
  RecordingSink sink;
  Rx rx(kOpenLimits, sink);
  Status s = rx.consume(as_bytes(drain(tx)));
  CHECK_MESSAGE(s.ok(), s.text());
  CHECK(sink.tensors.size() == 100);
}

TEST_CASE("every flipped bit of a stream is found") {
  std::string stream = data_stream("tag", std::string(3000, 'x'));
  auto message = control_frame(FrameType::message, as_bytes("a message"));
  stream += text_of(message);
  // A last frame, so that a length that grew is caught by what it swallows or by its checksum.
  for (std::size_t bit = 0; bit < stream.size() * 8; ++bit) {
    std::string bad = stream;
    bad[bit / 8] = char(bad[bit / 8] ^ (1 << (bit % 8)));
    Status s = verdict(bad);
    CHECK_MESSAGE(!s.ok(), "bit " << bit);
  }
}

TEST_CASE("an oversized message is refused before memory is spent on it") {
  std::string frame(kControlHeader, '\0');
  encode(ControlFrameHeader{7, 4097},
         std::span<std::byte, kControlHeader>(reinterpret_cast<std::byte*>(frame.data()), 16));
  CHECK(verdict(frame, {.control_bytes = 4096}).code() == Code::resource_exhausted);
  CHECK(verdict(frame, {.control_bytes = 4097}).ok());
}

TEST_CASE("a message's buffer grows with the bytes that arrived, not with its claim") {
  RecordingSink sink;
  Rx rx({.control_bytes = 16u << 20}, sink);
  std::string frame(kControlHeader, '\0');
  encode(ControlFrameHeader{7, 16u << 20},
         std::span<std::byte, kControlHeader>(reinterpret_cast<std::byte*>(frame.data()), 16));
  REQUIRE(rx.consume(as_bytes(frame)).ok());
  CHECK(rx.window().size() <= 64u << 10);
  CHECK(rx.window().size() >= Rx::kDirect);
}

TEST_CASE("a tensor that nobody wants is read without memory for it") {
  RecordingSink sink;
  sink.wants = [](const TensorHeader& h) { return h.bytes < 1000; };
  Rx rx(kOpenLimits, sink);
  std::string stream = data_stream("t", std::string(1'000'000, 'x'), {.chunk_bytes = 500'000});
  CHECK(rx.consume(as_bytes(stream)).ok());
  CHECK(rx.at_rest());
  CHECK(sink.granted == 0);
  CHECK(sink.tensors.empty());
  RecordingSink other;
  other.wants = sink.wants;
  Rx damaged(kOpenLimits, other);
  stream[600'000] ^= 1;
  CHECK(damaged.consume(as_bytes(stream)).code() == Code::data_loss);
}

TEST_CASE("a tensor that the receiver did not grant ends the stream with its reason") {
  RecordingSink sink;
  sink.budget = 10;
  Rx rx(kOpenLimits, sink);
  std::string stream = data_stream("t", std::string(11, 'x'));
  Status s = rx.consume(as_bytes(stream));
  CHECK(s.code() == Code::resource_exhausted);
  CHECK(s.message() == "no credit");
  CHECK(rx.consume(as_bytes(stream)) == s);
  CHECK(sink.granted == 0);
}

TEST_CASE("data frames that break the rules of transfers are refused") {
  auto refused = [](std::string_view why, std::string stream) {
    Status s = verdict(stream);
    CHECK_MESSAGE(s.text().find(why) != std::string::npos, s.text() << " / " << why);
  };
  DataFrameHeader ok{.trailer = true, .total = 100, .length = 10};
  auto with = [&](auto change) {
    DataFrameHeader h = ok;
    change(h);
    return h;
  };
  CHECK(verdict(forged(ok, 0).substr(0, kDataHeader)).ok());
  refused("not open", forged(with([](auto& h) { h.offset = 10; }), 0));
  refused("is next", forged(with([](auto& h) { h.transfer = 1; }), 0));
  refused("of a tensor of", forged(with([](auto& h) { h.length = 101; }), 0));
  refused("of a tensor of", forged(with([](auto& h) { h.offset = 99; }), 0));
  refused("of a tensor of", forged(with([](auto& h) { h.length = 0; }), 0));
  refused("of a tensor of", forged(with([](auto& h) { h.offset = ~std::uint64_t{0}; }), 0));
  refused("wrong kind", forged(with([](auto& h) { h.trailer = false; }), 0));
  refused("allowed", forged(with([](auto& h) { h.total = h.length = 2u << 20; }), 0));
  refused("tag of 257", forged(with([](auto& h) { h.tag_length = 257; }), 0));
  refused("no credit", forged(with([](auto& h) { h.total = std::uint64_t{1} << 60; }), 0));

  std::string first = data_stream("t", std::string(2000, 'x')).substr(0, kDataHeader + 1 + 1004);
  auto next = [&](auto change) {
    DataFrameHeader h{.trailer = true, .total = 2000, .offset = 1000, .length = 1000};
    change(h);
    return first + forged(h, 0);
  };
  refused("is next", next([](auto& h) { h.offset = 999; }));
  refused("is next", next([](auto& h) { h.total = 3000; }));
  refused("is next", next([](auto& h) { h.offset = 0, h.length = 1000; }));
  refused("a tag inside", next([](auto& h) { h.tag_length = 1; }));
  std::string many;
  for (std::uint64_t i = 0; i <= kMaxOpenTransfers; ++i) {
    std::string chunk = data_stream("t", std::string(2000, 'x')).substr(0, kDataHeader + 1 + 1004);
    DataFrameHeader h{.trailer = true,
                      .tag_length = 1,
                      .transfer = i,
                      .total = 2000,
                      .offset = 0,
                      .length = 1000};
    encode(h, {reinterpret_cast<std::byte*>(chunk.data()), kDataHeader + 1});
    many += chunk;
  }
  refused("too many", many);
}

TEST_CASE("a connection takes only the kind of frames it is for") {
  std::string data = data_stream("t", "x");
  std::string message = text_of(control_frame(FrameType::message, as_bytes("m")));
  CHECK(verdict(data, {.control_bytes = 4096}).code() == Code::failed_precondition);
  CHECK(verdict(message, {.chunk_bytes = 4096}).code() == Code::resource_exhausted);
  CHECK(verdict("GET / HTTP/1.1\r\n\r\n").code() == Code::invalid_argument);
}

namespace {

// Streams of valid frames, mutated: bytes changed, removed, repeated, header checksums repaired
// half of the time so that the fields behind them are reached.
void fuzz(std::uint64_t seed, int rounds) {
  Random random(seed);
  MESSAGE("seed " << seed);
  int failed = 0;
  for (int round = 0; round < rounds; ++round) {
    INFO("seed " << seed << " round " << round);
    Tx tx({.chunk_bytes = std::uint32_t(1 + random.below(500))});
    for (std::uint64_t i = 0, n = 1 + random.below(4); i < n; ++i) {
      if (random.below(2) == 0)
        push_message(tx, std::string(random.below(100), 'm'));
      else
        tx.push(tensor_of(std::string(random.below(20), 't'), std::string(random.below(900), 'x')));
    }
    std::string stream = drain(tx);
    for (std::uint64_t i = 0, n = 1 + random.below(3); i < n; ++i) {
      std::size_t at = random.below(std::min<std::size_t>(stream.size(), 80));
      if (random.below(4) == 0) at = random.below(stream.size());
      switch (random.below(4)) {
        case 0:
          stream[at] = char(stream[at] ^ (1 << random.below(8)));
          break;
        case 1:
          stream[at] = char(random());
          break;
        case 2:
          stream.erase(at, 1 + random.below(8));
          break;
        default:
          stream.insert(at, stream.substr(at, random.below(60)));
          break;
      }
      if (stream.empty()) stream = "x";
    }
    auto* head = reinterpret_cast<std::byte*>(stream.data());
    if (random.below(2) == 0 && stream.size() >= kDataHeader + kMaxTensorTag) {
      std::size_t tag = load_le<std::uint16_t>(head + 6) % (kMaxTensorTag + 1);
      if (load_le<std::uint32_t>(head) == kDataMagic)
        store_le(crc32c({head + kDataHeader, tag}, crc32c({head, 36})), head + 36);
      else
        store_le(crc32c({head, 12}), head + 12);
    }
    RecordingSink sink;
    sink.budget = 1u << 20;
    Rx rx({.control_bytes = 1u << 20, .chunk_bytes = 1u << 20}, sink);
    Status s = deliver(rx, as_bytes(stream), [&] { return 1 + random.below(400); });
    failed += s.ok() ? 0 : 1;
    // A grant needs a header whose checksum agrees, and never more than the few frames hold.
    REQUIRE(sink.granted <= 8u << 20);
  }
  CHECK(failed > rounds / 2);
}

}  // namespace

TEST_CASE("100000 mutated streams end in a status or in valid frames") { fuzz(1, 100'000); }
TEST_CASE("1000000 mutated streams end in a status or in valid frames [slow]") {
  fuzz(2, 1'000'000);
}
