#pragma once

#include <vector>

#include "core/status.hpp"
#include "core/timeline.hpp"
#include "serialization/message.hpp"

namespace troupe {

// Worker to master: the recorded spans, in one or more messages (actors/processes/gathering.hpp).
struct TraceSpans {
  std::vector<Track> tracks;
  std::uint64_t dropped = 0;  // old spans overwritten by newer ones; set in the last message
  bool last = false;
};

template <>
struct Fields<Span> {
  static auto of(auto& m) {
    auto& [kind, name, run, begin_ns, end_ns, peer, message, bytes] = m;
    return std::tie(kind, name, run, begin_ns, end_ns, peer, message, bytes);
  }
};
template <>
struct Fields<Track> {
  static auto of(auto& m) {
    auto& [name, spans] = m;
    return std::tie(name, spans);
  }
};
template <>
struct MessageAt<21> {
  using Type = TraceSpans;
  static constexpr Sender kSender = Sender::worker;
  static constexpr Receiver kReceiver = Receiver::membership;
  static constexpr bool kBulk = true;
  static auto fields(auto& m) {
    auto& [tracks, dropped, last] = m;
    return std::tie(tracks, dropped, last);
  }
  static Status check(const TraceSpans& m) {
    std::size_t spans = 0;
    for (const Track& track : m.tracks) {
      if ((spans += track.spans.size()) > kSpansInMessage)
        return invalid_argument("too many spans in one message");
      if (track.name.size() > kMostSpanName) return invalid_argument("a line with too long a name");
      for (const Span& span : track.spans)
        if (std::size_t(span.kind) >= kSpanKinds || span.begin_ns > span.end_ns ||
            span.name.size() > kMostSpanName)
          return invalid_argument("a span of a timeline that cannot be");
    }
    return ok_status();
  }
};

}  // namespace troupe
