// The handshake of peers, and the limits on strangers. Pure.
//
//   connecting side                            listening side
//   control connection: hello  ------------->  admit
//   admit               <--------------------  welcome (with a token) or bye (why not)
//   data connection: attach (the token) ---->  the token is spent; peer up
//   peer up             <--------------------  ready, on the control connection
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "actors/net/frame.hpp"
#include "actors/net/transport.hpp"

namespace troupe {

// The largest frame of a stranger, whatever its limits are later: 4 KiB in all.
inline constexpr std::uint32_t kStrangerFrame = 4096 - kControlHeader - kTrailer;
inline constexpr std::size_t kTokenSize = 32;
using Token = std::array<std::byte, kTokenSize>;

// Payload of `hello` and `welcome`.
//   u32 protocol, 3      u32 largest control message accepted      u32 largest chunk accepted
//   u8 1 if the data connection is encrypted    32 bytes token     the rest: the opaque hello
// The last two fixed fields are used in `welcome` only.
struct Greeting {
  std::uint32_t control_bytes = 0, chunk_bytes = 0;
  bool encrypt_data = false;
  Token token{};
  Hello hello;
};
std::string encode(const Greeting& greeting);
Expected<Greeting> decode_greeting(ByteView payload);

// Payload of `heartbeat`: three i64, nanoseconds of the sender's steady clock except `echo`, then
// u64 and u8: how much of the data connection it has read, and whether it holds that.
struct Heartbeat {
  std::int64_t sent = 0;
  std::int64_t echo = 0;     // `sent` of the last heartbeat that it received; 0: none yet
  std::int64_t arrived = 0;  // when that one came
  std::uint64_t data = 0;    // bytes read from the data connection so far
  bool held = false;         // it is not read now, on purpose
};
std::string encode(const Heartbeat& heartbeat);
Expected<Heartbeat> decode_heartbeat(ByteView payload);

// Payload of `bye`: u8 code, then the text.
std::string encode_bye(const Status& why);
Status decode_bye(ByteView payload);

// Connections that were accepted and belong to no peer yet: how many, from where, until when.
//
// A new connection is never refused. If there are too many, one is closed: the oldest that has sent
// nothing or else the oldest that has, from the new one's address or, if there are too many in all,
// from the address with the most. So idle connections make room for active ones, and a crowd can
// only displace connections from its own address. One that has proved to know the secret makes room
// only for others that have.
//
// Ids are the caller's, each higher than the one before.
class Strangers {
 public:
  using Time = std::chrono::nanoseconds;  // on a clock of the caller's
  explicit Strangers(const TransportLimits& limits) : limits_(limits) {}

  // Returns the connection that is closed for it, and forgotten, if any.
  std::optional<std::uint64_t> add(std::uint64_t id, const std::string& address, Time now);
  // It sent something, valid or not.
  void spoke(std::uint64_t id);
  // It proved itself, and has the rest of its time to say hello. Returns the one closed for it.
  std::optional<std::uint64_t> prove(std::uint64_t id);
  // It left or is no stranger any more. Returns whether it was one.
  bool remove(std::uint64_t id);
  std::vector<std::uint64_t> expired(Time now) const;
  std::size_t size() const { return entries_.size(); }

 private:
  enum class Rank : std::uint8_t { silent, spoke, proved };
  struct Entry {
    std::string address;
    Time deadline{};
    Rank rank = Rank::silent;
  };
  using Leaving = std::set<std::pair<Rank, std::uint64_t>>;  // in this order
  const Leaving& most_crowded() const;

  TransportLimits limits_;
  std::unordered_map<std::uint64_t, Entry> entries_;
  std::unordered_map<std::string, Leaving> unproved_;  // by address
  Leaving proved_;
};

}  // namespace troupe
