#include "actors/net/frame.hpp"

#include <fmt/format.h>

#include "actors/net/crc32c.hpp"

namespace troupe {
namespace {

constexpr std::uint8_t kTrailerFlag = 1;

Status check_start(std::span<const std::byte> in, std::uint32_t magic, std::uint8_t flags) {
  if (auto got = load_le<std::uint32_t>(in.data()); got != magic)
    return invalid_argument(fmt::format("not a frame: it starts with {:#010x}", got));
  if (auto got = std::uint8_t(in[4]); got != kWireVersion)
    return invalid_argument(fmt::format("frame of version {}, this is {}", got, kWireVersion));
  if ((std::uint8_t(in[5]) & ~flags) != 0)
    return invalid_argument(fmt::format("frame with unknown flags {:#x}", std::uint8_t(in[5])));
  return {};
}

}  // namespace

void encode(const ControlFrameHeader& header, std::span<std::byte, kControlHeader> out) {
  store_le(kControlMagic, &out[0]);
  store_le(kWireVersion, &out[4]);
  store_le(std::uint8_t{0}, &out[5]);
  store_le(header.type, &out[6]);
  store_le(header.length, &out[8]);
  store_le(crc32c(out.first(12)), &out[12]);
}

void encode(const DataFrameHeader& header, std::span<std::byte> out) {
  store_le(kDataMagic, &out[0]);
  store_le(kWireVersion, &out[4]);
  store_le(header.trailer ? kTrailerFlag : std::uint8_t{0}, &out[5]);
  store_le(header.tag_length, &out[6]);
  store_le(header.transfer, &out[8]);
  store_le(header.total, &out[16]);
  store_le(header.offset, &out[24]);
  store_le(header.length, &out[32]);
  auto tag = out.subspan(kDataHeader, header.tag_length);
  store_le(crc32c(tag, crc32c(out.first(36))), &out[36]);
}

Expected<ControlFrameHeader> decode_control_header(std::span<const std::byte, kControlHeader> in) {
  TROUPE_TRY(check_start(in, kControlMagic, 0));
  if (crc32c(in.first(12)) != load_le<std::uint32_t>(&in[12]))
    return data_loss("checksum of a control frame's header");
  return ControlFrameHeader{load_le<std::uint16_t>(&in[6]), load_le<std::uint32_t>(&in[8])};
}

Expected<DataFrameHeader> decode_data_header(std::span<const std::byte, kDataHeader> in) {
  TROUPE_TRY(check_start(in, kDataMagic, kTrailerFlag));
  return DataFrameHeader{
      .trailer = (std::uint8_t(in[5]) & kTrailerFlag) != 0,
      .tag_length = load_le<std::uint16_t>(&in[6]),
      .transfer = load_le<std::uint64_t>(&in[8]),
      .total = load_le<std::uint64_t>(&in[16]),
      .offset = load_le<std::uint64_t>(&in[24]),
      .length = load_le<std::uint32_t>(&in[32]),
  };
}

Status check_data_header(std::span<const std::byte> bytes) {
  auto tag = bytes.subspan(kDataHeader);
  if (crc32c(tag, crc32c(bytes.first(36))) != load_le<std::uint32_t>(&bytes[36]))
    return data_loss("checksum of a data frame's header");
  return {};
}

}  // namespace troupe
