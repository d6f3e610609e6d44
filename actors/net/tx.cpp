#include "actors/net/tx.hpp"

#include <algorithm>
#include <cstring>

#include "actors/net/crc32c.hpp"

namespace troupe {

std::vector<std::byte> control_frame(FrameType type, std::span<const ByteView> pieces) {
  std::size_t length = 0;
  for (ByteView piece : pieces) length += piece.size();
  std::vector<std::byte> frame(kControlHeader + length + kTrailer);
  encode(ControlFrameHeader{std::uint16_t(type), std::uint32_t(length)},
         std::span(frame).first<kControlHeader>());
  std::byte* out = frame.data() + kControlHeader;
  std::uint32_t crc = 0;
  for (ByteView piece : pieces) {
    if (piece.empty()) continue;
    std::memcpy(out, piece.data(), piece.size());
    crc = crc32c(piece, crc);
    out += piece.size();
  }
  store_le(crc, out);
  return frame;
}

std::span<const iovec> Tx::gather() {
  if (unsent_ == 0) build();
  return std::span(pieces_).subspan(first_);
}

std::uint64_t Tx::sent(std::size_t n) {
  TROUPE_CHECK(n <= unsent_, "more bytes sent than gathered");
  unsent_ -= n;
  while (n > 0) {
    iovec& piece = pieces_[first_];
    std::size_t part = std::min(n, piece.iov_len);
    piece.iov_base = static_cast<std::byte*>(piece.iov_base) + part;
    piece.iov_len -= part;
    n -= part;
    if (piece.iov_len == 0) ++first_;
  }
  if (unsent_ > 0) return 0;
  held_buffers_.clear();
  held_frames_.clear();
  pieces_.clear();
  first_ = 0;
  return std::exchange(batch_payload_, 0);
}

bool Tx::fits(std::size_t bytes) const {
  std::uint64_t sum = unsent_;
  for (const auto* frames : {&frames_, &bulk_}) {
    for (const auto& frame : *frames) {
      if ((sum += frame.size()) > bytes) return false;
    }
  }
  for (const auto& t : open_) {
    if ((sum += t.tensor.header.bytes - t.sent) > bytes) return false;
  }
  for (const auto& t : waiting_) {
    if ((sum += t.header.bytes) > bytes) return false;
  }
  return sum <= bytes;
}

void Tx::build() {
  pieces_.clear();
  first_ = batch_bytes_ = batch_frames_ = scratch_used_ = 0;
  add_frames();
  while (add_chunk()) {
  }
  unsent_ = batch_bytes_;
}

bool Tx::batch_has_room() const {
  return batch_bytes_ < kBatchBytes && batch_frames_ < kBatchFrames;
}

// A control frame never comes inside a chunk: control and data use different connections, except
// for the first frame of a data connection, which is sent before any chunk.
void Tx::add_frames() {
  if (in_chunk_) return;
  while (!frames_.empty() && batch_has_room()) {
    batch_payload_ += frames_.front().size();
    add_frame(frames_);
  }
  // What comes later waits for all of this: one long frame, or several small ones.
  const auto room = [&](const auto& frame) {
    return batch_bytes_ == 0 || batch_bytes_ + frame.size() <= kBulkBytes;
  };
  while (!bulk_.empty() && batch_has_room() && room(bulk_.front())) add_frame(bulk_);
}

void Tx::add_frame(std::deque<std::vector<std::byte>>& frames) {
  held_frames_.push_back(std::move(frames.front()));
  frames.pop_front();
  ++batch_frames_;
  add(held_frames_.back().data(), held_frames_.back().size());
}

void Tx::open_transfers() {
  while (open_.size() < kMaxOpenTransfers && !waiting_.empty()) {
    open_.push_back({std::move(waiting_.front()), 0, 0});
    waiting_.pop_front();
  }
}

bool Tx::add_chunk() {
  if (!batch_has_room()) return false;
  if (!in_chunk_) {
    open_transfers();
    if (open_.empty()) return false;
    current_ %= open_.size();
    begin_chunk(open_[current_]);
  }
  Transfer& t = open_[current_];
  std::size_t n = std::min({chunk_left_, kHotPiece, kBatchBytes});
  if (n > 0) {
    auto* from = static_cast<std::byte*>(t.tensor.bytes.data()) + t.tensor.offset + t.sent;
    if (options_.data_trailer) crc_ = crc32c({from, n}, crc_);
    if (n <= kTiny) {
      std::memcpy(scratch(n).data(), from, n);
    } else {
      add(from, n);
      if (held_buffers_.empty() || !(held_buffers_.back() == t.tensor.bytes))
        held_buffers_.push_back(t.tensor.bytes);
    }
    batch_payload_ += n;
    t.sent += n;
    chunk_left_ -= n;
  }
  if (chunk_left_ == 0) end_chunk();
  return true;
}

void Tx::begin_chunk(Transfer& t) {
  if (scratch_.empty()) scratch_.resize(kScratch);
  auto tag = t.sent == 0 ? t.tensor.header.tag() : ByteView{};
  if (t.sent == 0) t.number = next_transfer_++;
  chunk_left_ = std::min<std::uint64_t>(options_.chunk_bytes, t.tensor.header.bytes - t.sent);
  crc_ = 0;
  in_chunk_ = true;
  auto out = scratch(kDataHeader + tag.size());
  if (!tag.empty()) std::memcpy(out.data() + kDataHeader, tag.data(), tag.size());
  encode(DataFrameHeader{.trailer = options_.data_trailer,
                         .tag_length = std::uint16_t(tag.size()),
                         .transfer = t.number,
                         .total = t.tensor.header.bytes,
                         .offset = t.sent,
                         .length = std::uint32_t(chunk_left_)},
         out);
}

void Tx::end_chunk() {
  if (options_.data_trailer) store_le(crc_, scratch(kTrailer).data());
  in_chunk_ = false;
  ++batch_frames_;
  Transfer& t = open_[current_];
  if (t.sent == t.tensor.header.bytes)
    open_.erase(open_.begin() + std::ptrdiff_t(current_));
  else
    ++current_;
}

void Tx::add(const void* data, std::size_t size) {
  auto* bytes = static_cast<std::byte*>(const_cast<void*>(data));
  batch_bytes_ += size;
  if (!pieces_.empty()) {
    iovec& last = pieces_.back();
    if (static_cast<std::byte*>(last.iov_base) + last.iov_len == bytes) {
      last.iov_len += size;
      return;
    }
  }
  pieces_.push_back({bytes, size});
}

std::span<std::byte> Tx::scratch(std::size_t size) {
  TROUPE_CHECK(scratch_used_ + size <= scratch_.size(), "the scratch area holds a batch");
  std::span<std::byte> room{scratch_.data() + scratch_used_, size};
  scratch_used_ += size;
  add(room.data(), size);
  return room;
}

}  // namespace troupe
