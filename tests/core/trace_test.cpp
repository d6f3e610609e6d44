#include "core/trace.hpp"

#include <doctest/doctest.h>

#include <thread>

using namespace troupe;

namespace {

SpanLabel node(std::string_view name, std::uint64_t run = 0) {
  return {.kind = Span::Kind::node, .name = name, .run = run};
}

}  // namespace

TEST_CASE("a line keeps what was recorded on it, and collecting forgets it") {
  Trace trace;
  trace.track("lane 0").record(node("first", 7), 10, 50);
  trace.track("lane 1").record(
      {.kind = Span::Kind::send, .name = "m", .peer = 2, .message = 9, .bytes = 100}, 20, 30);
  trace.track("lane 0").record(node("second", 8), 60, 61);
  trace.track("never used");
  const Trace::Recording all = trace.collect();
  REQUIRE(all.tracks.size() == 2);
  CHECK(all.tracks[0].name == "lane 0");
  REQUIRE(all.tracks[0].spans.size() == 2);
  CHECK(all.tracks[0].spans[0].name == "first");
  CHECK(all.tracks[0].spans[0].run == 7);
  CHECK(all.tracks[0].spans[1].end_ns == 61);
  const Span& sent = all.tracks[1].spans.at(0);
  CHECK(sent.kind == Span::Kind::send);
  CHECK(sent.peer == 2);
  CHECK(sent.message == 9);
  CHECK(sent.bytes == 100);
  CHECK(trace.collect().tracks.empty());
}

TEST_CASE("a block is recorded on the line of its thread, when it has a name") {
  auto trace = std::make_shared<Trace>();
  CHECK(active(trace) == nullptr);
  { ScopedSpan span(active(trace), node("off")); }
  trace->enable(true);
  {
    ScopedSpan span(active(trace));
    { ScopedSpan nameless(active(trace)); }
    span.label = node("on", 3);
  }
  std::thread([&] { ScopedSpan span(active(trace), node("elsewhere")); }).join();
  trace->enable(false);
  CHECK(active(nullptr) == nullptr);
  const auto tracks = trace->collect().tracks;
  REQUIRE(tracks.size() == 2);
  REQUIRE(tracks[0].spans.size() == 1);
  CHECK(tracks[0].spans[0].name == "on");
  CHECK(tracks[0].spans[0].run == 3);
  CHECK(tracks[0].spans[0].end_ns >= tracks[0].spans[0].begin_ns);
  CHECK(tracks[1].spans.at(0).name == "elsewhere");
  CHECK(tracks[0].name != tracks[1].name);
}

TEST_CASE("a thread that records for two recorders has a line in each") {
  Trace a, b;
  { ScopedSpan span(&a, node("a1")); }
  { ScopedSpan span(&b, node("b1")); }
  { ScopedSpan span(&a, node("a2")); }
  const auto of_a = a.collect(), of_b = b.collect();
  REQUIRE(of_a.tracks.size() == 1);
  CHECK(of_a.tracks[0].spans.size() == 2);
  CHECK(of_b.tracks.at(0).spans.at(0).name == "b1");
}

TEST_CASE("a full ring keeps the newest spans and counts the lost ones") {
  Trace trace(4);
  TraceTrack& track = trace.track("lane");
  for (int i = 0; i < 10; ++i) track.record(node(std::to_string(i)), i, i + 1);
  const Trace::Recording all = trace.collect();
  REQUIRE(all.tracks.at(0).spans.size() == 4);
  CHECK(all.tracks[0].spans[0].name == "6");
  CHECK(all.tracks[0].spans[3].name == "9");
  CHECK(all.dropped == 6);
  track.record(node("more"), 0, 0);
  CHECK(trace.collect().dropped == 0);
}

TEST_CASE("names are whole, or cut in the middle where that is seen") {
  Trace trace(1 << 11);
  TraceTrack& track = trace.track("lane");
  const auto named = [](std::size_t size) { return "begin" + std::string(size - 8, 'x') + "end"; };
  const auto names = [&] {
    std::vector<std::string> all;
    const Trace::Recording recording = trace.collect();
    for (const Span& span : recording.tracks.at(0).spans) all.push_back(span.name);
    return all;
  };
  const std::vector<std::string> whole = {named(79),   named(80),  named(100), named(80),
                                          named(1024), named(100), named(4096)};
  for (const std::string& name : whole) track.record(node(name), 0, 1);
  CHECK(names() == whole);

  track.record(node(named(4097)), 0, 1);
  const std::string cut = names().at(0);
  CHECK(cut.size() == 4096);
  CHECK(cut.starts_with("beginx"));
  CHECK(cut.ends_with("xend"));
  CHECK(cut.find("x...x") != std::string::npos);

  // Each other name takes room, until there is none.
  for (int i = 0; i < 2000; ++i) track.record(node(std::to_string(i) + named(4000)), 0, 1);
  std::vector<std::string> many = names();
  REQUIRE(many.size() == 2000);
  std::size_t bytes = 0;
  for (int i = 0; i < 2000; ++i) {
    CHECK(many[std::size_t(i)].starts_with(std::to_string(i) + "begin"));
    if (many[std::size_t(i)].size() > TraceTrack::kNameBytes) bytes += many[std::size_t(i)].size();
  }
  CHECK(bytes > (3 << 20));
  CHECK(bytes <= (4 << 20));
  CHECK(many.back().size() == TraceTrack::kNameBytes);
  CHECK(many.back().find("x...x") != std::string::npos);
  track.record(node(named(4000)), 0, 1);  // collecting has made room
  CHECK(names().at(0) == named(4000));

  std::string letters;  // of two bytes each: none is cut
  for (int i = 0; i < 3000; ++i) letters += "\xc3\xa9";
  track.record(node(letters), 0, 1);
  track.record(node("a" + letters), 0, 1);
  for (const std::string& name : names()) {
    const std::size_t at = name.find("...");
    REQUIRE(at != std::string::npos);
    CHECK(name[at - 1] == '\xa9');
    CHECK(name[at + 3] == '\xc3');
  }
}

TEST_CASE("threads record while another collects, and no span is lost or torn") {
  Trace trace(1 << 12);
  std::vector<std::thread> threads;
  for (int t = 0; t < 3; ++t)
    threads.emplace_back([&track = trace.track("lane " + std::to_string(t)), t] {
      for (int i = 0; i < 1000; ++i) track.record(node("node", std::uint64_t(t)), i, i + t);
    });
  std::size_t seen = 0;
  bool torn = false;
  auto count = [&] {
    for (const Track& track : trace.collect().tracks)
      for (const Span& s : track.spans) {
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
