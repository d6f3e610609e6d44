#include "actors/processes/gathering.hpp"

#include <doctest/doctest.h>

using namespace troupe;

namespace {

Track track_of(const std::string& name, std::int64_t spans, std::int64_t first = 0) {
  Track track{name, {}};
  for (std::int64_t i = 0; i < spans; ++i)
    track.spans.push_back({.name = "node", .begin_ns = first + i, .end_ns = first + i + 1});
  return track;
}

}  // namespace

TEST_CASE("a long recording travels in several messages and is whole again") {
  Trace::Recording recording;
  const auto n = std::int64_t(kSpansInMessage);
  recording.tracks = {track_of("a", 10), track_of("b", 3 * n), track_of("c", 1)};
  recording.dropped = 7;
  auto messages = in_messages(recording);
  CHECK(messages.size() == 4);
  Gathering all;
  all.ask(3, "worker 3", ClockOffset::Estimate{5, 6});
  for (TraceSpans& message : messages) {
    CHECK_FALSE(all.done());
    std::size_t spans = 0;
    for (const Track& track : message.tracks) spans += track.spans.size();
    CHECK(spans <= kSpansInMessage);
    CHECK(message.last == (&message == &messages.back()));
    all.take(3, std::move(message));
  }
  CHECK(all.done());
  auto result = all.result();
  REQUIRE(result.size() == 1);
  CHECK(result[0].name == "worker 3");
  CHECK(result[0].clock->offset_ns == 5);
  CHECK(result[0].complete);
  CHECK(result[0].dropped == 7);
  REQUIRE(result[0].tracks.size() == 3);
  for (std::size_t t = 0; t < 3; ++t) {
    const Track& before = recording.tracks[t];
    REQUIRE(result[0].tracks[t].spans.size() == before.spans.size());
    CHECK(result[0].tracks[t].name == before.name);
    CHECK(result[0].tracks[t].spans.back().begin_ns == before.spans.back().begin_ns);
  }
}

TEST_CASE("a process that recorded nothing still answers") {
  auto messages = in_messages({});
  REQUIRE(messages.size() == 1);
  CHECK(messages[0].last);
}

TEST_CASE("who is lost is not waited for, and what it told is kept as a part") {
  Gathering all;
  all.ask(1, "one", std::nullopt);
  all.ask(2, "two", std::nullopt);
  all.take(1, {{track_of("a", 5)}, 0, false});
  all.take(2, {{track_of("a", 5)}, 0, true});
  CHECK_FALSE(all.done());
  all.lost(1);
  CHECK(all.done());
  auto result = all.result();
  REQUIRE(result.size() == 2);
  CHECK_FALSE(result[0].complete);
  CHECK(result[0].tracks.at(0).spans.size() == 5);
  CHECK(result[1].complete);
}

TEST_CASE("what nobody asked for, or what is too much, is not kept") {
  Gathering all;
  all.take(1, {{track_of("a", 5)}, 0, true});
  CHECK(all.result().empty());
  all.ask(1, "one", std::nullopt);
  const auto half = std::int64_t(Gathering::kMostSpans / 2);
  for (int i = 0; i < 3; ++i) all.take(1, {{track_of("a", half)}, 0, false});
  all.take(1, {{}, 0, true});
  all.take(1, {{track_of("a", 5)}, 0, true});  // after its last word
  auto result = all.result();
  REQUIRE(result.size() == 1);
  CHECK(result[0].tracks.at(0).spans.size() == Gathering::kMostSpans);
  CHECK(result[0].dropped == std::uint64_t(half));

  all.ask(1, "one", std::nullopt);
  TraceSpans lines;
  for (std::size_t i = 0; i < Gathering::kMostTracks + 5; ++i)
    lines.tracks.push_back(track_of(std::to_string(i), 2));
  all.take(1, std::move(lines));
  result = all.result();
  CHECK(result.at(0).tracks.size() == Gathering::kMostTracks);
  CHECK(result[0].dropped == 10);
}
