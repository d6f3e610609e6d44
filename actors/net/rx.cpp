#include "actors/net/rx.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "actors/net/crc32c.hpp"

namespace troupe {
namespace {
constexpr std::size_t kFirstGrant = 64u << 10;  // of a control payload, whatever it claims
}

std::span<std::byte> Rx::window() const {
  if (state_ != State::payload || left_ < kDirect || room_ < kDirect) return {};
  return {target_, std::min({left_, room_, 2 * kHotPiece})};
}

bool Rx::window_is_partial() const {
  std::size_t size = window().size();
  return size > 0 && left_ > size;
}

Status Rx::filled(std::size_t n) {
  if (!failed_.ok()) return failed_;
  TROUPE_CHECK(n <= std::min(left_, room_), "more bytes than the window holds");
  return take(n);
}

Status Rx::consume(std::span<const std::byte> bytes) {
  if (!failed_.ok()) return failed_;
  while (!bytes.empty()) {
    std::size_t n = 0;
    if (state_ == State::payload) {
      n = std::min({bytes.size(), left_, room_, kHotPiece});
      std::memcpy(target_, bytes.data(), n);
      TROUPE_TRY(take(n));
    } else {
      n = std::min(bytes.size(), need_ - have_);
      std::memcpy(head_.data() + have_, bytes.data(), n);
      have_ += n;
      if (have_ == need_) TROUPE_TRY(step());
    }
    bytes = bytes.subspan(n);
  }
  return {};
}

Status Rx::fail(Status status) {
  failed_ = std::move(status);
  open_.clear();
  message_ = {};
  return failed_;
}

Status Rx::step() {
  switch (state_) {
    case State::start: {
      auto magic = load_le<std::uint32_t>(head_.data());
      is_data_ = magic == kDataMagic;
      if (!is_data_ && magic != kControlMagic)
        return fail(invalid_argument(fmt::format("not a frame: it starts with {:#010x}", magic)));
      if (is_data_ && limits_.chunk_bytes == 0)
        return fail(failed_precondition("a data frame on a connection that carries none"));
      if (is_data_)
        expect(State::data_head, kDataHeader);
      else
        expect(State::control_head, kControlHeader);
      return {};
    }
    case State::control_head:
      return control_header();
    case State::data_head:
      return data_header();
    case State::tag:
      return open_chunk();
    case State::trailer:
      if (load_le<std::uint32_t>(head_.data()) != crc_)
        return fail(data_loss(is_data_ ? "checksum of a chunk" : "checksum of a message"));
      return is_data_ ? finish_chunk() : finish_control();
    case State::payload:
      break;
  }
  TROUPE_CHECK(false, "a payload has no header to act on");
}

Status Rx::control_header() {
  auto header = decode_control_header(std::span(head_).first<kControlHeader>());
  if (!header.ok()) return fail(header.status());
  control_ = *header;
  if (control_.length > limits_.control_bytes)
    return fail(resource_exhausted(fmt::format("a control frame of {} bytes where {} are allowed",
                                               control_.length, limits_.control_bytes)));
  message_ = {};
  left_ = control_.length;
  room_ = 0;
  if (left_ > 0) TROUPE_TRY(grow_control());
  return begin_payload();
}

// Doubles the message's buffer, up to the length that the header claims.
Status Rx::grow_control() {
  std::size_t done = message_.size();
  std::size_t size = std::min<std::size_t>(control_.length, std::max(kFirstGrant, 2 * done));
  auto grown = Buffer::allocate(heap_allocator(), size);
  if (!grown.ok()) return fail(grown.status());
  if (done > 0) std::memcpy(grown->data(), message_.data(), done);
  message_ = std::move(*grown);
  target_ = static_cast<std::byte*>(message_.data()) + done;
  room_ = size - done;
  return {};
}

Status Rx::data_header() {
  auto header = decode_data_header(std::span(head_).first<kDataHeader>());
  if (!header.ok()) return fail(header.status());
  data_ = *header;
  if (data_.tag_length > kMaxTensorTag)
    return fail(invalid_argument(fmt::format("a tensor's tag of {} bytes", data_.tag_length)));
  if (data_.tag_length == 0) return open_chunk();
  expect(State::tag, kDataHeader + data_.tag_length);
  return {};
}

Status Rx::open_chunk() {
  std::span<const std::byte> all = std::span(head_).first(kDataHeader + data_.tag_length);
  if (Status s = check_data_header(all); !s.ok()) return fail(s);
  const DataFrameHeader& d = data_;
  if (d.trailer != limits_.data_trailer)
    return fail(invalid_argument("a chunk with the wrong kind of checksum for its connection"));
  if (d.length > limits_.chunk_bytes)
    return fail(resource_exhausted(
        fmt::format("a chunk of {} bytes where {} are allowed", d.length, limits_.chunk_bytes)));
  if (d.offset > d.total || d.length > d.total - d.offset || (d.length == 0 && d.total != 0))
    return fail(invalid_argument(
        fmt::format("a chunk of {} bytes at {} of a tensor of {}", d.length, d.offset, d.total)));
  if (d.offset == 0) {
    if (d.transfer != next_transfer_)
      return fail(invalid_argument(
          fmt::format("transfer {} opens where {} is next", d.transfer, next_transfer_)));
    if (open_.size() == kMaxOpenTransfers) return fail(resource_exhausted("too many transfers"));
    ++next_transfer_;
    Transfer t{d.transfer, 0, {all.subspan(kDataHeader), d.total}, {}};
    auto grant = sink_.on_tensor_begin(t.header);
    if (!grant.ok()) return fail(grant.status());
    t.dropped = d.total > 0 && grant->size() == 0;
    TROUPE_CHECK(t.dropped || grant->size() >= d.total, "a grant holds the whole tensor");
    t.buffer = std::move(*grant);
    open_.push_back(std::move(t));
    current_ = open_.size() - 1;
  } else {
    if (d.tag_length != 0) return fail(invalid_argument("a tag inside a transfer"));
    auto it = std::find_if(open_.begin(), open_.end(),
                           [&](const Transfer& t) { return t.number == d.transfer; });
    if (it == open_.end())
      return fail(invalid_argument(fmt::format("a chunk of transfer {}, not open", d.transfer)));
    if (it->received != d.offset || it->header.bytes != d.total)
      return fail(invalid_argument(fmt::format("a chunk at {} of {} where {} of {} is next",
                                               d.offset, d.total, it->received, it->header.bytes)));
    current_ = std::size_t(it - open_.begin());
  }
  left_ = room_ = d.length;
  if (open_[current_].dropped)
    use_scratch();
  else
    target_ = static_cast<std::byte*>(open_[current_].buffer.data()) + d.offset;
  return begin_payload();
}

// The next bytes go where those before them went.
void Rx::use_scratch() {
  if (scratch_.empty()) scratch_.resize(2 * kHotPiece);
  target_ = scratch_.data();
  room_ = std::min(left_, scratch_.size());
}

Status Rx::begin_payload() {
  crc_ = 0;
  state_ = State::payload;
  return left_ == 0 ? end_payload() : Status{};
}

Status Rx::take(std::size_t n) {
  bool check = !is_data_ || data_.trailer;
  for (std::size_t done = 0; check && done < n;) {
    std::size_t piece = std::min(n - done, kHotPiece);
    crc_ = crc32c({target_ + done, piece}, crc_);
    done += piece;
  }
  target_ += n;
  room_ -= n;
  left_ -= n;
  if (left_ == 0) return end_payload();
  if (room_ > 0) return {};
  if (!is_data_) return grow_control();
  use_scratch();
  return {};
}

Status Rx::end_payload() {
  if (is_data_ && !data_.trailer) return finish_chunk();
  have_ = 0;
  expect(State::trailer, kTrailer);
  return {};
}

Status Rx::finish_control() {
  next_frame();
  Status s = sink_.on_control(control_.type, std::move(message_));
  message_ = {};
  return s.ok() ? s : fail(s);
}

Status Rx::finish_chunk() {
  next_frame();
  Transfer& t = open_[current_];
  t.received += data_.length;
  if (t.received < t.header.bytes) return {};
  Transfer whole = std::move(t);
  open_.erase(open_.begin() + std::ptrdiff_t(current_));
  if (whole.dropped) return {};
  Status s = sink_.on_tensor(whole.header, std::move(whole.buffer));
  return s.ok() ? s : fail(s);
}

}  // namespace troupe
