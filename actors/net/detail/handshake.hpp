// What peers say to each other before they are peers, and the limits on strangers. Pure.
//
//   connecting side                            listening side
//   control connection: hello  ------------->  admit
//   admit               <--------------------  welcome (with a token) or bye (why not)
//   data connection: attach (the token) ---->  the token is spent; peer up
//   peer up             <--------------------  ready, on the control connection
#pragma once

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "actors/net/frame.hpp"
#include "actors/net/transport.hpp"

namespace troupe {

// The frames of a stranger, whatever its caps later: 4 KiB in all.
inline constexpr std::uint32_t kStrangerFrame = 4096 - kControlHeader - kTrailer;
inline constexpr std::size_t kTokenSize = 32;
using Token = std::array<std::byte, kTokenSize>;

// Payload of `hello` and `welcome`.
//   u32 protocol, 1      u32 largest control message accepted      u32 largest chunk accepted
//   u8 1 if the data connection is encrypted    32 bytes token     the rest: the opaque hello
// The last two fixed fields mean something in `welcome` only.
struct Greeting {
  std::uint32_t control_bytes = 0, chunk_bytes = 0;
  bool encrypt_data = false;
  Token token{};
  Hello hello;
};
std::string encode(const Greeting& greeting);
Expected<Greeting> decode_greeting(ByteView payload);

// Payload of `bye`: u8 code, then the text.
std::string encode_bye(const Status& why);
Status decode_bye(ByteView payload);

// Connections that were accepted and did not prove themselves yet: how many, from where, until
// when. Ids are the caller's.
class Strangers {
 public:
  using Time = std::chrono::steady_clock::time_point;
  explicit Strangers(const TransportLimits& limits) : limits_(limits) {}

  // resource_exhausted when there are too many, in all or from this address.
  Status add(std::uint64_t id, const std::string& address, Time now);
  // It left or is no stranger any more. Returns whether it was one.
  bool remove(std::uint64_t id);
  std::vector<std::uint64_t> expired(Time now) const;
  std::size_t size() const { return entries_.size(); }

 private:
  struct Entry {
    std::string address;
    Time deadline;
  };
  TransportLimits limits_;
  std::unordered_map<std::uint64_t, Entry> entries_;
  std::unordered_map<std::string, std::uint32_t> per_address_;
};

// Judges silence by a clock that may itself have been stopped: after a pause of this process
// nobody else is to blame, so silence counts from the end of the pause.
class Liveness {
 public:
  using Time = std::chrono::steady_clock::time_point;
  using Duration = std::chrono::steady_clock::duration;
  // `pause` between two ticks means that the loop stood still.
  explicit Liveness(Duration limit, Duration pause = std::chrono::milliseconds(100))
      : limit_(limit), pause_(pause) {}

  // Called by the loop that judges.
  void tick(Time now) {
    if (last_tick_ != Time{} && now - last_tick_ > pause_) since_ = now;
    last_tick_ = now;
  }
  // How long the peer has been silent in a window that counts, and whether that is too long.
  Duration silence(Time last_heard) const { return last_tick_ - std::max(last_heard, since_); }
  bool lost(Time last_heard) const { return silence(last_heard) > limit_; }

 private:
  Duration limit_, pause_;
  Time last_tick_{}, since_{};
};

}  // namespace troupe
