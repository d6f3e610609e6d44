// The receiving half of the framing: bytes in, messages and tensors out. No I/O of its own.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "actors/net/frame.hpp"
#include "actors/net/tensor_header.hpp"
#include "core/buffer.hpp"
#include "core/status.hpp"

namespace troupe {

// What arrives. An error returned from any of these ends the stream with that error.
class RxSink {
 public:
  virtual ~RxSink() = default;
  virtual Status on_control(std::uint16_t type, Buffer payload) = 0;
  // Grants the memory of a tensor, or an empty buffer: it is dropped. See
  // TransportHandler::accept_tensor.
  virtual Expected<Buffer> on_tensor_begin(const TensorHeader& header) = 0;
  virtual Status on_tensor(const TensorHeader& header, Buffer bytes) = 0;
};

struct RxLimits {
  std::uint32_t control_bytes = 0;  // largest control payload; 0: control frames are refused
                                    // unless empty
  std::uint32_t chunk_bytes = 0;    // largest chunk; 0: data frames are refused
  bool data_trailer = true;         // data chunks carry a checksum
};

// One connection's incoming stream. Owned and used by one thread at a time. Every malformed input
// is a Status, after which the stream is over: each later call returns the same Status.
// Memory: a control payload grows as its bytes arrive; a tensor's is granted by the sink first.
//
// A reader loops: read into window() first and into a staging area of its own behind it, then
// filled(n) for what went into the window, then consume() for what went into the staging area. So
// bytes of large payloads are copied once, by the kernel.
class Rx {
 public:
  Rx(RxLimits limits, RxSink& sink) : limits_(limits), sink_(sink) {}

  // Applies from the next frame on; the sink may call it in on_control.
  void set_limits(RxLimits limits) { limits_ = limits; }

  // Where the next bytes of the stream belong, when at least kDirect of a payload are missing;
  // else empty. Never more than kHotPiece * 2, so that the checksum finds the bytes in cache.
  std::span<std::byte> window() const;
  // Whether the bytes after window() belong to the same payload: then a read must stop there.
  bool window_is_partial() const;
  // The first n bytes of window() were filled. REQUIRES: n <= window().size().
  Status filled(std::size_t n);
  Status consume(std::span<const std::byte> bytes);

  // At a frame boundary with no transfer open: the end of the stream is not a loss here.
  bool at_rest() const { return state_ == State::start && have_ == 0 && open_.empty(); }

  static constexpr std::size_t kDirect = 16u << 10;

 private:
  enum class State : std::uint8_t { start, control_head, data_head, tag, payload, trailer };
  struct Transfer {
    std::uint64_t number = 0;
    std::uint64_t received = 0;
    TensorHeader header;
    Buffer buffer;
    bool dropped = false;
  };

  Status fail(Status status);
  Status step();  // head_ holds need_ bytes: act on them
  Status control_header();
  Status data_header();
  Status open_chunk();
  Status begin_payload();
  Status take(std::size_t n);  // n more payload bytes are in place
  Status end_payload();
  Status finish_control();
  Status finish_chunk();
  Status grow_control();
  void use_scratch();
  void expect(State state, std::size_t need) { state_ = state, need_ = need; }
  void next_frame() { state_ = State::start, need_ = 4, have_ = 0; }

  RxLimits limits_;
  RxSink& sink_;
  State state_ = State::start;
  std::size_t need_ = 4;  // bytes of head_ (or of the trailer) that complete the state
  std::size_t have_ = 0;
  std::array<std::byte, kDataHeader + kMaxTensorTag> head_;
  ControlFrameHeader control_;
  DataFrameHeader data_;
  bool is_data_ = false;
  std::byte* target_ = nullptr;  // of the next payload byte
  std::size_t room_ = 0;         // bytes that fit behind target_ now
  std::size_t left_ = 0;         // payload bytes still missing
  std::uint32_t crc_ = 0;
  Buffer message_;
  std::vector<std::byte> scratch_;  // where dropped bytes go
  std::vector<Transfer> open_;
  std::size_t current_ = 0;  // index in open_
  std::uint64_t next_transfer_ = 0;
  Status failed_;
};

}  // namespace troupe
