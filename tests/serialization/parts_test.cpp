#include "serialization/parts.hpp"

#include <doctest/doctest.h>

#include "core/hash.hpp"

using namespace troupe;

namespace {

std::vector<std::byte> message(std::size_t size) {
  std::vector<std::byte> bytes(size);
  for (std::size_t i = 0; i < size; ++i) bytes[i] = std::byte(mix64(i) & 0xff);
  return bytes;
}

}  // namespace

TEST_CASE("a message in parts is whole with the last one") {
  PartJoiner joiner;
  for (std::size_t size : {kMessagePart + 1, 3 * kMessagePart, 5 * kMessagePart + 77}) {
    auto bytes = message(size);
    std::size_t offset = 0;
    while (true) {
      MessagePart part = message_part(bytes, offset);
      offset += part.bytes.size();
      auto whole = joiner.take(part, kMasterMessage);
      REQUIRE(whole.ok());
      CHECK(whole->has_value() == (offset == size));
      CHECK(joiner.open() == (offset < size));
      if (offset < size) continue;
      CHECK((**whole == bytes));
      break;
    }
  }
}

TEST_CASE("hostile parts are refused") {
  auto bytes = message(3 * kMessagePart + 5);
  auto part = [&](std::size_t i) { return message_part(bytes, i * kMessagePart); };
  auto begun = [&] {
    PartJoiner joiner;
    REQUIRE(joiner.take(part(0), kMasterMessage).ok());
    return joiner;
  };
  auto code = [](PartJoiner joiner, const MessagePart& p, std::uint64_t limit = kMasterMessage) {
    return joiner.take(p, limit).status().code();
  };
  CHECK(code({}, part(1)) == Code::invalid_argument);       // not the first
  CHECK(code(begun(), part(0)) == Code::invalid_argument);  // again
  CHECK(code(begun(), part(2)) == Code::invalid_argument);  // a gap
  MessagePart other = part(1);
  ++other.total;
  CHECK(code(begun(), other) == Code::invalid_argument);  // of another message
  MessagePart shorter = part(1);
  shorter.bytes.pop_back();
  CHECK(code(begun(), shorter) == Code::invalid_argument);
  MessagePart longer = part(1);
  longer.bytes.push_back({});
  CHECK(code(begun(), longer) == Code::invalid_argument);
  CHECK(code({}, {100, 0, message(100)}) == Code::invalid_argument);  // needs no parts
  CHECK(code({}, {0, 0, {}}) == Code::invalid_argument);
  CHECK(code({}, {~std::uint64_t{0}, 0, message(kMessagePart)}) == Code::resource_exhausted);
  CHECK(code({}, part(0), bytes.size() - 1) == Code::resource_exhausted);
  CHECK(code({}, part(0), 0) == Code::resource_exhausted);
  CHECK(code({}, part(0), bytes.size()) == Code::ok);
}
