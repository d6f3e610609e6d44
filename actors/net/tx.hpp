// The sending half of the framing: messages and tensors in, bytes out. No I/O of its own.
#pragma once

#include <sys/uio.h>

#include <array>
#include <cstdint>
#include <deque>
#include <span>
#include <vector>

#include "actors/net/frame.hpp"
#include "actors/net/tensor_header.hpp"
#include "actors/net/transport.hpp"
#include "core/buffer.hpp"

namespace troupe {

// A whole control frame, its payload the pieces in order.
std::vector<std::byte> control_frame(FrameType type, std::span<const ByteView> pieces);
inline std::vector<std::byte> control_frame(FrameType type, ByteView payload = {}) {
  return control_frame(type, {&payload, 1});
}

// A control frame that others may overtake.
struct BulkFrame {
  std::vector<std::byte> frame;
};

// A tensor on its way out: header.bytes bytes of `bytes`, from `offset`.
struct OutgoingTensor {
  TensorHeader header;
  Buffer bytes;
  std::size_t offset = 0;
};

struct TxOptions {
  std::uint32_t chunk_bytes = 1u << 20;
  bool data_trailer = true;  // checksums on data chunks
};

// One connection's outgoing stream. Owned and used by one thread at a time. Control frames leave
// first, in order, then bulk frames in theirs. Up to kMaxOpenTransfers tensors take turns chunk by
// chunk, so that a small one need not wait for a large one. Checksums are taken when bytes are
// gathered, shortly before the kernel copies them.
class Tx {
 public:
  explicit Tx(TxOptions options) : options_(options) {}
  Tx(const Tx&) = delete;
  Tx& operator=(const Tx&) = delete;

  void set_options(TxOptions options) { options_ = options; }

  void push(std::vector<std::byte> control_frame) { frames_.push_back(std::move(control_frame)); }
  void push(BulkFrame bulk) { bulk_.push_back(std::move(bulk.frame)); }
  void push(OutgoingTensor tensor) { waiting_.push_back(std::move(tensor)); }

  // Bulk frames of which nothing is gathered are dropped.
  void drop_bulk() { bulk_.clear(); }

  // The next bytes of the stream: at most kBatchFrames frames or kBatchBytes; the same ones until
  // sent() took them. Empty: nothing to send. Valid until the next call of sent or gather.
  std::span<const iovec> gather();
  // The first n bytes that gather() returned are sent. Returns how many bytes of payload (tensor
  // bytes, whole control frames; not bulk frames) this completed.
  std::uint64_t sent(std::size_t n);

  bool idle() const {
    return unsent_ == 0 && frames_.empty() && bulk_.empty() && waiting_.empty() && open_.empty();
  }
  // Whether at most `bytes` are left to send.
  bool fits(std::size_t bytes) const;

  static constexpr std::size_t kBatchFrames = 64;
  static constexpr std::size_t kBatchBytes = 256u << 10;
  static constexpr std::size_t kBulkBytes = 64u << 10;  // of several bulk frames in a batch

 private:
  struct Transfer {
    OutgoingTensor tensor;
    std::uint64_t number = 0;
    std::uint64_t sent = 0;  // gathered so far
  };

  void build();
  void add_frames();
  void add_frame(std::deque<std::vector<std::byte>>& frames);
  bool add_chunk();  // part of a chunk; false when the batch or the queue has no more
  void open_transfers();
  void begin_chunk(Transfer& transfer);
  void end_chunk();
  void add(const void* data, std::size_t size);
  // Room in scratch_, in the stream right behind what was added last.
  std::span<std::byte> scratch(std::size_t size);
  bool batch_has_room() const;

  // Per frame: header, tag, trailer, and the payload when it is tiny.
  static constexpr std::size_t kTiny = 256;
  static constexpr std::size_t kScratch =
      kBatchFrames * (kDataHeader + kMaxTensorTag + kTrailer + kTiny);

  TxOptions options_;
  std::deque<std::vector<std::byte>> frames_, bulk_;
  std::deque<OutgoingTensor> waiting_;
  std::vector<Transfer> open_;
  std::size_t current_ = 0;  // the transfer being sent, or the next one
  std::uint64_t next_transfer_ = 0;
  bool in_chunk_ = false;
  std::size_t chunk_left_ = 0;
  std::uint32_t crc_ = 0;

  // The batch that gather() returns.
  std::vector<iovec> pieces_;
  std::size_t first_ = 0;  // first of pieces_ that is not sent entirely
  std::size_t unsent_ = 0;
  std::size_t batch_bytes_ = 0;
  std::size_t batch_frames_ = 0;
  std::uint64_t batch_payload_ = 0;
  std::vector<std::vector<std::byte>> held_frames_;
  std::vector<Buffer> held_buffers_;
  std::vector<std::byte> scratch_;  // kScratch bytes, once there is data to send
  std::size_t scratch_used_ = 0;
};

}  // namespace troupe
