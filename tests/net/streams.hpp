// What the framing tests share: a sink that remembers, and a pump from Tx to Rx.
#pragma once

#include <doctest/doctest.h>

#include <algorithm>
#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include "actors/net/rx.hpp"
#include "actors/net/tx.hpp"
#include "core/hash.hpp"

namespace troupe::testing {

inline std::string text_of(ByteView bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}
inline ByteView bytes_of(const Buffer& b) {
  return {static_cast<const std::byte*>(b.data()), b.size()};
}
inline std::string text_of(const Buffer& b) { return text_of(bytes_of(b)); }

inline Buffer buffer_of(std::string_view text) {
  Buffer b = Buffer::allocate(heap_allocator(), text.size()).value();
  if (!text.empty()) std::memcpy(b.data(), text.data(), text.size());
  return b;
}
inline std::string random_text(Random& random, std::size_t size) {
  std::string s(size, '\0');
  for (std::size_t at = 0; at < size; at += sizeof(std::uint64_t)) {
    const std::uint64_t bytes = random();
    std::memcpy(s.data() + at, &bytes, std::min(sizeof bytes, size - at));
  }
  return s;
}

struct SeenTensor {
  std::string tag, bytes;
  friend bool operator==(const SeenTensor&, const SeenTensor&) = default;
};

// Remembers what arrived; grants tensors up to a budget, and counts what it granted.
class RecordingSink : public RxSink {
 public:
  Status on_control(std::uint16_t type, Buffer payload) override {
    types.push_back(type);
    messages.push_back(text_of(payload));
    return {};
  }
  Expected<Buffer> on_tensor_begin(const TensorHeader& header) override {
    if (header.bytes > budget) return resource_exhausted("no credit");
    if (wants && !wants(header)) return Buffer{};
    granted += header.bytes;
    return Buffer::allocate(heap_allocator(), header.bytes);
  }
  Status on_tensor(const TensorHeader& header, Buffer bytes) override {
    tensors.push_back({text_of(header.tag()), text_of(bytes)});
    return {};
  }

  std::function<bool(const TensorHeader&)> wants;  // not set: all
  std::uint64_t budget = 64u << 20, granted = 0;
  std::vector<std::uint16_t> types;
  std::vector<std::string> messages;
  std::vector<SeenTensor> tensors;
};

// Everything that `tx` has to say.
inline std::string drain(Tx& tx) {
  std::string stream;
  for (auto pieces = tx.gather(); !pieces.empty(); pieces = tx.gather()) {
    std::size_t n = 0;
    for (const iovec& p : pieces) {
      stream.append(static_cast<const char*>(p.iov_base), p.iov_len);
      n += p.iov_len;
    }
    (void)tx.sent(n);
  }
  return stream;
}

// Gives `stream` to `rx` as a reader would that receives `piece()` bytes at a time: first what
// fits the window, the rest through staging.
template <class Piece>
Status deliver(Rx& rx, ByteView stream, Piece piece) {
  while (!stream.empty()) {
    std::size_t n = std::min<std::size_t>(stream.size(), piece());
    auto window = rx.window();
    std::size_t direct = std::min(n, window.size());
    bool stop = rx.window_is_partial();
    REQUIRE(!(stop && window.empty()));
    if (direct > 0) {
      std::memcpy(window.data(), stream.data(), direct);
      TROUPE_TRY(rx.filled(direct));
      stream = stream.subspan(direct);
      n -= direct;
      if (stop) continue;
    }
    TROUPE_TRY(rx.consume(stream.first(n)));
    stream = stream.subspan(n);
  }
  return {};
}

inline OutgoingTensor tensor_of(std::string_view tag, std::string_view bytes) {
  return {TensorHeader(as_bytes(tag), bytes.size()), buffer_of(bytes), 0};
}

}  // namespace troupe::testing
