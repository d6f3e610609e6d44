#include "serialization/graph_io.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <span>
#include <string_view>

#include "serialization/detail/crc32c.hpp"
#include "serialization/detail/graph.hpp"
#include "serialization/detail/sha256.hpp"

namespace troupe {
namespace {

constexpr std::uint64_t kMaxGraphFile = std::uint64_t{64} << 30;

std::vector<std::byte> bytes_of(const GraphDef& graph) {
  return detail::build<schema::Graph>(
      [&](schema::Graph::Builder out) { detail::write(out, graph); });
}

constexpr std::string_view kGraphMagic = "TRGRAPH1";
constexpr std::size_t kGraphSizeAt = 8, kGraphSumAt = 16, kGraphHeadSumAt = 20, kGraphHead = 24;

template <class T>
void put_number(T value, std::byte* out) {
  for (std::size_t i = 0; i < sizeof value; ++i)
    out[i] = std::byte(std::uint64_t(value) >> (8 * i) & 0xff);
}
template <class T>
T get_number(const std::byte* in) {
  std::uint64_t value = 0;
  for (std::size_t i = 0; i < sizeof(T); ++i) value |= std::uint64_t(in[i]) << (8 * i);
  return T(value);
}

std::array<std::byte, kGraphHead> graph_head_of(std::span<const std::byte> message) {
  std::array<std::byte, kGraphHead> head;
  std::memcpy(head.data(), kGraphMagic.data(), kGraphMagic.size());
  put_number(std::uint64_t(message.size()), &head[kGraphSizeAt]);
  put_number(detail::crc32c(message), &head[kGraphSumAt]);
  put_number(detail::crc32c(std::span(head).first(kGraphHeadSumAt)), &head[kGraphHeadSumAt]);
  return head;
}

// Whether the file begins with the magic, but for one byte: then it is none of an earlier version,
// whose first byte is small and followed by three zeros.
bool has_graph_magic(std::span<const std::byte> file) {
  std::size_t same = 0;
  for (std::size_t i = 0; i < std::min(file.size(), kGraphMagic.size()); ++i)
    same += file[i] == std::byte(kGraphMagic[i]);
  return same + 1 >= kGraphMagic.size();
}

Status wrong_checksum(std::string_view of, std::uint32_t has, std::uint32_t expected) {
  return data_loss(
      fmt::format("the checksum of its {} is {:08x}, {:08x} was expected", of, has, expected));
}

// The message in a file, if that is whole.
Expected<std::span<const std::byte>> graph_message_in(std::span<const std::byte> file) {
  if (!has_graph_magic(file)) return file;
  if (file.size() < kGraphHead)
    return data_loss(
        fmt::format("it ends after {} bytes, {} were expected", file.size(), kGraphHead));
  const auto head = file.first(kGraphHead), message = file.subspan(kGraphHead);
  const auto head_sum = get_number<std::uint32_t>(&head[kGraphHeadSumAt]);
  if (const auto sum = detail::crc32c(head.first(kGraphHeadSumAt)); sum != head_sum)
    return wrong_checksum("head", sum, head_sum);
  if (std::memcmp(head.data(), kGraphMagic.data(), kGraphMagic.size()) != 0)
    return data_loss(fmt::format("{} was expected at its beginning", kGraphMagic));
  if (const auto size = get_number<std::uint64_t>(&head[kGraphSizeAt]); size != message.size())
    return data_loss(
        fmt::format("it has {} bytes, {} were expected", file.size(), kGraphHead + size));
  const auto expected = get_number<std::uint32_t>(&head[kGraphSumAt]);
  if (const auto sum = detail::crc32c(message); sum != expected)
    return wrong_checksum("contents", sum, expected);
  return message;
}

}  // namespace

Status write_graph(const std::string& path, const GraphDef& graph, FileSystem& files) {
  const auto message = bytes_of(graph);
  return write_file(files, path, [&](WritableFile& file) -> Status {
    TROUPE_TRY(file.append(graph_head_of(message)));
    return file.append(message);
  });
}

Expected<GraphDef> read_graph(const std::string& path, FileSystem& files) {
  TROUPE_TRY(auto bytes, read_file(files, place_to_read(files, path), kMaxGraphFile));
  const auto message = graph_message_in(bytes);
  if (!message.ok())
    return data_loss(fmt::format("'{}' is damaged: {}", path, message.status().message()));
  auto graph = detail::parse<schema::Graph>(
      *message, [](schema::Graph::Reader in) { return detail::read(in); });
  if (graph.status().code() == Code::resource_exhausted)
    return graph.status().in("reading '" + path + "'");
  if (!graph.ok()) return data_loss("'" + path + "' is no graph: " + graph.status().text());
  return graph;
}

std::string graph_sha256(const GraphDef& graph) {
  GraphDef bare = graph;
  for (NodeDef& node : bare.nodes) node.site = {};
  for (FunctionDef& function : bare.functions) {
    function.site = {};
    for (NodeDef& node : function.nodes) node.site = {};
  }
  auto bytes = bytes_of(bare);
  detail::Sha256 sha;
  sha.bytes(bytes.data(), bytes.size());
  return sha.hex();
}

}  // namespace troupe
