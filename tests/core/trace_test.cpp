#include "troupe/core/trace.hpp"

#include <doctest/doctest.h>

#include <thread>

using namespace troupe;

TEST_CASE("spans come out in the order in which they began") {
  Trace trace;
  TraceTrack& a = trace.track("lane 0");
  TraceTrack& b = trace.track("lane 1");
  trace.enable(true);
  b.record("second", 7, 20, 30);
  a.record("first", 7, 10, 50);
  a.record("third", 8, 60, 61);
  auto spans = trace.collect();
  REQUIRE(spans.size() == 3);
  CHECK(spans[0].name == "first");
  CHECK(spans[1].track == "lane 1");
  CHECK(spans[1].run == 7);
  CHECK(spans[2].end_ns == 61);
  CHECK(trace.collect().empty());
}

TEST_CASE("nothing is recorded while tracing is off") {
  Trace trace;
  TraceTrack& track = trace.track("lane");
  track.record("before", 0, 1, 2);
  { ScopedSpan span(track, "off"); }
  CHECK(trace.collect().empty());
  trace.enable(true);
  { ScopedSpan span(track, "on", 3); }
  trace.enable(false);
  auto spans = trace.collect();
  REQUIRE(spans.size() == 1);
  CHECK(spans[0].name == "on");
  CHECK(spans[0].end_ns >= spans[0].begin_ns);
}

TEST_CASE("a full ring keeps the newest spans and counts the lost ones") {
  Trace trace(4);
  TraceTrack& track = trace.track("lane");
  trace.enable(true);
  for (int i = 0; i < 10; ++i) track.record(std::to_string(i), 0, i, i + 1);
  std::uint64_t dropped = 0;
  auto spans = trace.collect(&dropped);
  REQUIRE(spans.size() == 4);
  CHECK(spans[0].name == "6");
  CHECK(spans[3].name == "9");
  CHECK(dropped == 6);
  track.record(std::string(100, 'x'), 0, 0, 0);
  CHECK(trace.collect(&dropped)[0].name == std::string(TraceTrack::kNameBytes, 'x'));
  CHECK(dropped == 0);
}

TEST_CASE("threads record while another collects, and no span is lost or torn") {
  Trace trace(1 << 12);
  trace.enable(true);
  std::vector<std::thread> threads;
  for (int t = 0; t < 3; ++t)
    threads.emplace_back([&track = trace.track("lane " + std::to_string(t)), t] {
      for (int i = 0; i < 1000; ++i) track.record("node", std::uint64_t(t), i, i + t);
    });
  std::size_t seen = 0;
  bool torn = false;
  auto count = [&] {
    for (const TraceSpan& s : trace.collect()) {
      ++seen;
      torn = torn || s.end_ns - s.begin_ns != std::int64_t(s.run) || s.name != "node";
    }
  };
  for (int i = 0; i < 20; ++i) count();
  for (auto& t : threads) t.join();
  count();
  CHECK(seen == 3000);
  CHECK_FALSE(torn);
}
