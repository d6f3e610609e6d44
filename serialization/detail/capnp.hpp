// Converts between bytes and the root of a Cap'n Proto message: the only place that handles sizes,
// alignment, limits and exceptions.
#pragma once

#include <capnp/message.h>
#include <capnp/serialize.h>
#include <kj/exception.h>
#include <kj/io.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <new>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/status.hpp"

namespace troupe::detail {

// A list or blob of Cap'n Proto ends at 2^29 - 1; contents are split into parts well below.
inline constexpr std::size_t kPartBytes = std::size_t{256} << 20;

inline capnp::Text::Reader text(const std::string& s) { return {s.c_str(), s.size()}; }
inline std::string text(capnp::Text::Reader s) { return std::string(s.begin(), s.size()); }

// The bytes of a message whose root `fill(Root::Builder)` writes.
// REQUIRES: no single text of 2^29 bytes.
template <class Root, class Fill>
std::vector<std::byte> build(Fill&& fill) try {
  capnp::word first[256];  // small messages need no other memory than the result
  std::memset(static_cast<void*>(first), 0, sizeof first);
  capnp::MallocMessageBuilder builder(kj::arrayPtr(first, 256));
  fill(builder.initRoot<Root>());
  auto segments = builder.getSegmentsForOutput();
  std::vector<std::byte> out(capnp::computeSerializedSizeInWords(segments) * sizeof(capnp::word));
  kj::ArrayOutputStream stream(kj::arrayPtr(reinterpret_cast<kj::byte*>(out.data()), out.size()));
  capnp::writeMessage(stream, segments);
  return out;
} catch (const kj::Exception& e) {
  check_failed(__FILE__, __LINE__, "a message can be built", e.getDescription().cStr());
}

// The result of `read(Root::Reader)`, a Status or an Expected, for untrusted bytes;
// invalid_argument if they are no message. `read` may follow every pointer only once: the traversal
// limit is the message's size, so that overlapping or empty structs cannot make a reader allocate
// memory out of proportion.
template <class Root, class Read>
auto parse(std::span<const std::byte> bytes, Read&& read)
    -> decltype(read(std::declval<typename Root::Reader>())) try {
  constexpr std::size_t kWord = sizeof(capnp::word);
  if (bytes.empty() || bytes.size() % kWord != 0)
    return invalid_argument("malformed message: " + std::to_string(bytes.size()) +
                            " bytes are not a whole number of words");
  std::size_t words = bytes.size() / kWord;
  kj::Array<capnp::word> aligned;
  auto* data = reinterpret_cast<const capnp::word*>(bytes.data());
  if (reinterpret_cast<std::uintptr_t>(data) % kWord != 0) {
    aligned = kj::heapArray<capnp::word>(words);
    std::memcpy(static_cast<void*>(aligned.begin()), bytes.data(), bytes.size());
    data = aligned.begin();
  }
  capnp::ReaderOptions options;
  options.traversalLimitInWords = words + 64;
  capnp::FlatArrayMessageReader reader(kj::arrayPtr(data, words), options);
  if (reader.getEnd() != data + words)
    return invalid_argument("malformed message: bytes follow its end");
  return read(reader.getRoot<Root>());
} catch (const kj::Exception& e) {
  return invalid_argument(std::string("malformed message: ") + e.getDescription().cStr());
} catch (const std::bad_alloc&) {
  return resource_exhausted("no memory for a message of " + std::to_string(bytes.size()) +
                            " bytes");
}

}  // namespace troupe::detail
