#include "actors/net/detail/handshake.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

namespace troupe {
namespace {

constexpr std::uint32_t kProtocol = 4;
constexpr std::size_t kFixed = 4 + 4 + 4 + 1 + kTokenSize;
constexpr std::size_t kHeartbeat = 4 * 8 + 1;
constexpr std::size_t kMaxByeText = 2048;
static_assert(kFixed + kMaxHello <= kStrangerFrame);

std::byte* raw(std::string& s) { return reinterpret_cast<std::byte*>(s.data()); }

}  // namespace

std::string encode(const Greeting& g) {
  std::string out(kFixed, '\0');
  store_le(kProtocol, raw(out));
  store_le(g.control_bytes, raw(out) + 4);
  store_le(g.chunk_bytes, raw(out) + 8);
  out[12] = g.encrypt_data ? 1 : 0;
  std::memcpy(raw(out) + 13, g.token.data(), kTokenSize);
  return out + g.hello;
}

Expected<Greeting> decode_greeting(ByteView payload) {
  if (payload.size() < kFixed || payload.size() > kFixed + kMaxHello)
    return invalid_argument(fmt::format("a greeting of {} bytes", payload.size()));
  if (auto protocol = load_le<std::uint32_t>(payload.data()); protocol != kProtocol)
    return failed_precondition(
        fmt::format("the peer speaks protocol {}, this is {}", protocol, kProtocol));
  Greeting g;
  g.control_bytes = load_le<std::uint32_t>(&payload[4]);
  g.chunk_bytes = load_le<std::uint32_t>(&payload[8]);
  if (g.control_bytes < 4096 || g.chunk_bytes < 4096)
    return invalid_argument("a peer accepts messages and chunks of at least 4 KiB");
  g.encrypt_data = payload[12] != std::byte{0};
  std::memcpy(g.token.data(), &payload[13], kTokenSize);
  ByteView hello = payload.subspan(kFixed);
  g.hello.assign(reinterpret_cast<const char*>(hello.data()), hello.size());
  return g;
}

std::string encode(const Heartbeat& h) {
  std::string out(kHeartbeat, '\0');
  store_le(h.sent, raw(out));
  store_le(h.echo, raw(out) + 8);
  store_le(h.arrived, raw(out) + 16);
  store_le(h.data, raw(out) + 24);
  store_le(std::uint8_t(h.held), raw(out) + 32);
  return out;
}

Expected<Heartbeat> decode_heartbeat(ByteView payload) {
  if (payload.size() != kHeartbeat)
    return invalid_argument(fmt::format("a heartbeat of {} bytes", payload.size()));
  return Heartbeat{load_le<std::int64_t>(&payload[0]), load_le<std::int64_t>(&payload[8]),
                   load_le<std::int64_t>(&payload[16]), load_le<std::uint64_t>(&payload[24]),
                   load_le<std::uint8_t>(&payload[32]) != 0};
}

std::string encode_bye(const Status& why) {
  std::string out(1, char(why.code()));
  std::string text = why.message();
  for (const std::string& context : why.trail()) text += " (" + context + ")";
  return out + text.substr(0, kMaxByeText);
}

Status decode_bye(ByteView payload) {
  if (payload.empty() || !valid_code(std::uint8_t(payload[0])) || payload[0] == std::byte{0})
    return invalid_argument("a malformed goodbye");
  ByteView text = payload.subspan(1, std::min(payload.size() - 1, kMaxByeText));
  return Status(Code(std::uint8_t(payload[0])),
                std::string(reinterpret_cast<const char*>(text.data()), text.size()));
}

const Strangers::Leaving& Strangers::most_crowded() const {
  return std::max_element(unproved_.begin(), unproved_.end(),
                          [](auto& a, auto& b) { return a.second.size() < b.second.size(); })
      ->second;
}

std::optional<std::uint64_t> Strangers::add(std::uint64_t id, const std::string& address,
                                            Time now) {
  std::optional<std::uint64_t> leaves;
  if (auto here = unproved_.find(address);
      here != unproved_.end() && here->second.size() >= limits_.strangers_per_address)
    leaves = here->second.begin()->second;
  else if (!unproved_.empty() && entries_.size() - proved_.size() >= limits_.strangers)
    leaves = most_crowded().begin()->second;
  if (leaves) remove(*leaves);
  entries_[id] = {address, now + limits_.handshake};
  unproved_[address].emplace(Rank::silent, id);
  return leaves;
}

void Strangers::spoke(std::uint64_t id) {
  auto it = entries_.find(id);
  if (it == entries_.end() || it->second.rank != Rank::silent) return;
  Leaving& here = unproved_[it->second.address];
  here.erase({Rank::silent, id});
  here.emplace(it->second.rank = Rank::spoke, id);
}

std::optional<std::uint64_t> Strangers::prove(std::uint64_t id) {
  auto it = entries_.find(id);
  if (it == entries_.end() || it->second.rank == Rank::proved) return std::nullopt;
  Entry entry = it->second;
  remove(id);
  std::optional<std::uint64_t> leaves;
  if (!proved_.empty() && proved_.size() >= limits_.strangers) leaves = proved_.begin()->second;
  if (leaves) remove(*leaves);
  proved_.emplace(entry.rank = Rank::proved, id);
  entries_[id] = std::move(entry);
  return leaves;
}

bool Strangers::remove(std::uint64_t id) {
  auto it = entries_.find(id);
  if (it == entries_.end()) return false;
  const Entry& entry = it->second;
  if (entry.rank == Rank::proved) {
    proved_.erase({entry.rank, id});
  } else {
    auto here = unproved_.find(entry.address);
    here->second.erase({entry.rank, id});
    if (here->second.empty()) unproved_.erase(here);
  }
  entries_.erase(it);
  return true;
}

std::vector<std::uint64_t> Strangers::expired(Time now) const {
  std::vector<std::uint64_t> ids;
  for (auto& [id, entry] : entries_) {
    if (now >= entry.deadline) ids.push_back(id);
  }
  return ids;
}

}  // namespace troupe
