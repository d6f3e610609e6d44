// The bytes on the wire. Two kinds of frames; all numbers are little-endian.
//
// Control frame: one message.               Data frame: one chunk of one tensor.
//   0  u32  magic "TRC1"                      0  u32  magic "TRD1"
//   4  u8   version, 1                        4  u8   version, 1
//   5  u8   flags, 0                          5  u8   flags; bit 0: a trailer follows the chunk
//   6  u16  type                              6  u16  T, length of the tag; 0 unless offset is 0
//   8  u32  N, length of the payload          8  u64  transfer: 0, 1, 2... per connection
//  12  u32  CRC32C of bytes 0 to 11          16  u64  total bytes of the tensor
//  16  N bytes of payload                    24  u64  offset of this chunk in the tensor
//  ..  u32  CRC32C of the payload            32  u32  N, length of the chunk
//                                            36  u32  CRC32C of bytes 0 to 35 and of the tag
//                                            40  T bytes of tag
//                                            ..  N bytes of the tensor
//                                            ..  u32  CRC32C of the N bytes, if flags bit 0
//
// A transfer opens with the chunk at offset 0, whose number must be the next unused one of the
// connection; its chunks follow in order, chunks of at most kMaxOpenTransfers may interleave, and
// it ends when offset + N reaches the total. N is 0 only in the one chunk of an empty tensor. The
// trailer is left out on encrypted connections, where every record is authenticated already; both
// sides know which form applies, and refuse the other one. Headers have a checksum of their own so
// that a flipped bit in a length is seen at once, not after waiting for bytes that never come.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "core/status.hpp"

namespace troupe {

inline constexpr std::uint32_t kControlMagic = 0x31435254;  // "TRC1"
inline constexpr std::uint32_t kDataMagic = 0x31445254;     // "TRD1"
inline constexpr std::uint8_t kWireVersion = 1;
inline constexpr std::size_t kControlHeader = 16;
inline constexpr std::size_t kDataHeader = 40;
inline constexpr std::size_t kTrailer = 4;
inline constexpr std::size_t kMaxOpenTransfers = 8;

// Types of control frames. All but `message` belong to the transport itself (detail/handshake.hpp).
enum class FrameType : std::uint16_t {
  hello = 1,      // connecting side, first frame of a control connection
  welcome = 2,    // the answer: who accepts, and the token for the data connection
  attach = 3,     // first frame of a data connection: the token
  ready = 4,      // on the control connection: the data connection is attached
  heartbeat = 5,  // the sender is alive; carries its clock
  bye = 6,        // last frame: the reason
  message = 7,    // what send_control sends
};

struct ControlFrameHeader {
  std::uint16_t type = 0;
  std::uint32_t length = 0;
};

struct DataFrameHeader {
  bool trailer = false;
  std::uint16_t tag_length = 0;
  std::uint64_t transfer = 0;
  std::uint64_t total = 0;
  std::uint64_t offset = 0;
  std::uint32_t length = 0;
};

// Writes the header and its checksum.
void encode(const ControlFrameHeader& header, std::span<std::byte, kControlHeader> out);
// `out` holds the header and the tag, already written behind it: kDataHeader + tag_length bytes.
void encode(const DataFrameHeader& header, std::span<std::byte> out);

// data_loss for a wrong checksum, invalid_argument for magic, version and flags. The caller checks
// lengths.
Expected<ControlFrameHeader> decode_control_header(std::span<const std::byte, kControlHeader> in);
// The checksum also covers the tag, so it is checked separately, once the tag is there.
Expected<DataFrameHeader> decode_data_header(std::span<const std::byte, kDataHeader> in);
Status check_data_header(std::span<const std::byte> header_and_tag);

// Little-endian numbers in byte arrays, for frames and for what is inside control frames.
template <class T>
void store_le(T value, std::byte* out) {
  for (std::size_t i = 0; i < sizeof(T); ++i) out[i] = std::byte(std::uint64_t(value) >> (8 * i));
}
template <class T>
T load_le(const std::byte* in) {
  std::uint64_t value = 0;
  for (std::size_t i = 0; i < sizeof(T); ++i) value |= std::uint64_t(in[i]) << (8 * i);
  return T(value);
}

}  // namespace troupe
