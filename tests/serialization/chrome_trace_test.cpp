#include "serialization/chrome_trace.hpp"

#include <doctest/doctest.h>

#include <limits>
#include <map>
#include <nlohmann/json.hpp>

#include "core/hash.hpp"

using namespace troupe;
using nlohmann::json;

namespace {

constexpr std::int64_t kMicrosecond = 1000, kSecond = 1'000'000'000;
constexpr std::int64_t kBegin = 5'000 * kSecond;

Span span(std::string name, std::int64_t begin_us, std::int64_t end_us,
          Span::Kind kind = Span::Kind::node) {
  Span s;
  s.kind = kind;
  s.name = std::move(name);
  s.begin_ns = kBegin + begin_us * kMicrosecond;
  s.end_ns = kBegin + end_us * kMicrosecond;
  return s;
}
Span message(Span::Kind kind, ProcessId peer, std::uint64_t name, std::int64_t begin_us,
             std::int64_t end_us) {
  Span s = span("m", begin_us, end_us, kind);
  s.peer = peer;
  s.message = name;
  return s;
}

// The master, and a worker whose clock shows `offset_us` more.
Timeline job(std::vector<Track> master, std::vector<Track> worker, std::int64_t offset_us = 0) {
  Timeline t{kBegin, kBegin + 10 * kSecond, {}};
  t.processes.push_back({0, "master", std::nullopt, std::move(master)});
  for (Track& track : worker)
    for (Span& s : track.spans) {
      s.begin_ns += offset_us * kMicrosecond;
      s.end_ns += offset_us * kMicrosecond;
    }
  t.processes.push_back(
      {7, "worker 7", ClockOffset::Estimate{offset_us * kMicrosecond, 20'000}, std::move(worker)});
  return t;
}

struct Slice {
  std::string name, category;
  std::int64_t begin, end;  // 1/8 us, exact
};
using Thread = std::pair<int, int>;  // pid, tid

std::int64_t grid(const json& us) { return std::int64_t(us.get<double>() * 8); }

// Parses, and checks every rule of the format on the way.
struct Picture {
  json document;
  std::map<Thread, std::vector<Slice>> slices;
  std::map<std::uint64_t, std::map<std::string, std::pair<Thread, std::int64_t>>> flows;

  explicit Picture(const Timeline& timeline) : document(json::parse(chrome_trace(timeline))) {
    for (const json& e : document["traceEvents"]) {
      const std::string ph = e["ph"];
      const Thread thread{e["pid"], e["tid"]};
      if (ph == "X") {
        CHECK(grid(e["ts"]) >= 0);
        CHECK(grid(e["dur"]) >= 0);
        slices[thread].push_back(
            {e["name"], e["cat"], grid(e["ts"]), grid(e["ts"]) + grid(e["dur"])});
      } else if (ph == "s" || ph == "f") {
        CHECK((ph == "s" || e["bp"] == "e"));
        CHECK(flows[e["id"]].emplace(ph, std::pair{thread, grid(e["ts"])}).second);
      } else {
        CHECK(ph == "M");
      }
    }
    check_nesting();
    check_flows();
  }
  void check_nesting() {
    for (const auto& [_, all] : slices) {
      std::vector<std::int64_t> open;
      std::int64_t last = 0;
      for (const Slice& s : all) {
        CHECK(s.begin >= last);
        last = s.begin;
        while (!open.empty() && open.back() <= s.begin) open.pop_back();
        CHECK((open.empty() || s.end <= open.back()));
        open.push_back(s.end);
      }
    }
  }
  void check_flows() {
    for (const auto& [id, ends] : flows) {
      REQUIRE(ends.size() == 2);
      CHECK(ends.at("s").second <= ends.at("f").second);
      for (const auto& [_, end] : ends) {
        // The innermost span that is open there belongs to a message.
        const auto& on = slices[end.first];
        const auto it = std::find_if(on.rbegin(), on.rend(), [at = end.second](const Slice& s) {
          return s.begin <= at && at < s.end;
        });
        REQUIRE(it != on.rend());
        CHECK((it->category == "send" || it->category == "receive"));
      }
    }
  }
  std::size_t count() const {
    std::size_t n = 0;
    for (const auto& [_, all] : slices) n += all.size();
    return n;
  }
  const json& about() const { return document["otherData"]; }
};

}  // namespace

TEST_CASE("spans that nest share a thread, those that overlap have one each") {
  Picture p(job({{"lane", {span("b", 10, 40), span("in b", 20, 40), span("c", 40, 50)}},
                 {"waits", {span("x", 0, 30), span("y", 20, 50), span("z", 30, 40)}}},
                {}));
  REQUIRE(p.slices.size() == 3);
  CHECK(p.slices.at({1, 1000}).size() == 3);
  CHECK(p.slices.at({1, 1001}).size() == 2);  // x and z
  CHECK(p.slices.at({1, 1002}).at(0).name == "y");
  CHECK(p.slices.at({1, 1001}).at(0).begin == 0);  // the first of all
}

TEST_CASE("a message is an arrow from its send to its receive, on one clock") {
  for (std::int64_t offset : {0L, 123'456L, -999'999L}) {
    CAPTURE(offset);
    Picture p(job({{"a", {message(Span::Kind::send, 7, 5, 100, 110)}}},
                  {{"b", {message(Span::Kind::receive, 0, 5, 150, 160)}}}, offset));
    REQUIRE(p.flows.size() == 1);
    const auto& ends = p.flows.begin()->second;
    CHECK(ends.at("s").first.first == 1);
    CHECK(ends.at("f").first.first == 2);
    CHECK(ends.at("f").second - ends.at("s").second == 50 * 8);
    CHECK(p.about()["moved_receives"] == 0);
    CHECK(p.about()["workers"][0]["clock_offset_us"] == double(offset));
    CHECK(p.about()["workers"][0]["clock_error_us"] == 20.0);
  }
}

TEST_CASE("messages alike are connected in the order in which they were sent") {
  auto sends = Track{
      "a", {message(Span::Kind::send, 7, 5, 10, 11), message(Span::Kind::send, 7, 5, 30, 31)}};
  auto receives = Track{
      "b",
      {message(Span::Kind::receive, 0, 5, 20, 21), message(Span::Kind::receive, 0, 5, 40, 41)}};
  Picture p(job({sends}, {receives}));
  REQUIRE(p.flows.size() == 2);
  for (const auto& [_, ends] : p.flows) CHECK(ends.at("f").second - ends.at("s").second == 10 * 8);
}

TEST_CASE("what only one end recorded is no arrow") {
  Picture p(job(
      {{"a", {message(Span::Kind::send, 7, 5, 10, 11), message(Span::Kind::send, 8, 6, 20, 21)}}},
      {{"b",
        {message(Span::Kind::receive, 0, 6, 30, 31),
         message(Span::Kind::receive, 3, 5, 40, 41)}}}));
  CHECK(p.flows.empty());
  CHECK(p.count() == 4);
}

TEST_CASE("an estimate is moved to where no message with the master comes before it was sent") {
  // The worker's clock is said to show 500 us more; messages show that it is 470 to 480.
  Timeline t = job(
      {{"a",
        {message(Span::Kind::send, 7, 5, 100, 110), message(Span::Kind::receive, 7, 6, 200, 210)}}},
      {{"b",
        {message(Span::Kind::receive, 0, 5, 80, 90), message(Span::Kind::send, 0, 6, 170, 180)}}},
      500);
  Picture p(t);
  CHECK(p.about()["workers"][0]["clock_offset_us"] == 500.0);
  CHECK(p.about()["workers"][0]["aligned_by_us"] == 480.0);
  CHECK(p.about()["moved_receives"] == 0);
  CHECK(p.flows.size() == 2);
}

TEST_CASE("a receive that comes out before its send begins with it, and says so") {
  // Between two workers, of which the first is said to be 20 us off.
  Timeline t = job({}, {{"b",
                         {span("around", 80, 130), message(Span::Kind::receive, 8, 5, 90, 95),
                          span("later", 96, 120)}}});
  t.processes.push_back({8,
                         "worker 8",
                         ClockOffset::Estimate{0, 20'000},
                         {{"a", {message(Span::Kind::send, 7, 5, 100, 110)}}}});
  Picture p(t);
  REQUIRE(p.flows.size() == 1);
  CHECK(p.flows.begin()->second.at("f").second == p.flows.begin()->second.at("s").second);
  CHECK(p.about()["moved_receives"] == 1);
}

TEST_CASE("messages that contradict each other move no clock") {
  Picture p(job(
      {{"a",
        {message(Span::Kind::send, 7, 5, 100, 110), message(Span::Kind::receive, 7, 6, 100, 110)}}},
      {{"b",
        {message(Span::Kind::receive, 0, 5, 90, 95), message(Span::Kind::send, 0, 6, 150, 160)}}}));
  CHECK(p.about()["workers"][0]["aligned_by_us"] == 0.0);
  CHECK(p.about()["moved_receives"] == 2);
}

TEST_CASE("an empty message span still holds its arrow") {
  Picture p(job({{"a", {message(Span::Kind::send, 7, 5, 100, 100)}}},
                {{"b", {message(Span::Kind::receive, 0, 5, 100, 100)}}}));
  CHECK(p.flows.size() == 1);
}

TEST_CASE("of spans that begin and end together the one recorded last is around the others") {
  Picture p(job({{"a", {message(Span::Kind::send, 7, 5, 100, 110), span("around", 100, 110)}}},
                {{"b", {message(Span::Kind::receive, 0, 5, 150, 160)}}}));
  const auto& on = p.slices.at({1, 1000});
  REQUIRE(on.size() == 2);
  CHECK(on[0].name == "around");
  CHECK(on[1].name == "m");
}

TEST_CASE("an arrow belongs to its message, whatever else begins at that moment") {
  const std::vector<Span> bursts = {span("short", 100, 105, Span::Kind::burst),
                                    span("alike", 100, 110, Span::Kind::burst),
                                    span("long", 100, 120, Span::Kind::burst)};
  for (std::size_t before = 0; before <= bursts.size(); ++before) {
    std::vector<Span> spans = bursts;
    spans.insert(spans.begin() + std::ptrdiff_t(before),
                 message(Span::Kind::receive, 0, 5, 100, 110));
    Picture p(job({{"a", {message(Span::Kind::send, 7, 5, 50, 60)}}}, {{"b", spans}}));
    CHECK(p.flows.size() == 1);
    CHECK(p.count() == 5);
  }
}

TEST_CASE("times that cannot be, and spans without end, are left out and counted") {
  constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();
  Timeline t = job({}, {{"b",
                         {span("good", 10, 20), span("early", -2'000'000, 10),
                          span("late", 0, 12'000'000), span("backwards", 20, 10)}}});
  for (std::int64_t time : {kMost, -kMost - 1}) {
    Span wild = span("wild", 0, 0);
    wild.begin_ns = wild.end_ns = time;
    t.processes[1].tracks[0].spans.push_back(wild);
  }
  CHECK(Picture(t).count() == 1);
  CHECK(Picture(t).about()["left_out_spans"] == 5);
  t.processes[1].clock->offset_ns = -kMost;
  CHECK(Picture(t).count() == 0);
}

TEST_CASE("names are anybody's bytes, and the document is still one") {
  Timeline t = job({{"quote \" and \x01", {span("caf\xc3\xa9 \xff\xfe \\ \n", 0, 1)}}}, {});
  t.processes[1].name = "\xc3";
  t.processes[1].complete = false;
  Picture p(t);
  CHECK(p.slices.begin()->second.at(0).name.find("caf\xc3\xa9") == 0);
  CHECK(p.about()["workers"][0]["complete"] == false);
}

TEST_CASE("whatever processes say, the picture keeps the rules") {
  std::size_t arrows = 0;
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    CAPTURE(seed);
    Random random(seed);
    auto tracks = [&](ProcessId other) {
      std::vector<Track> all(1 + random.below(3));
      for (Track& track : all)
        for (std::uint64_t n = random.below(200); n > 0; --n) {
          Span s = span("s", std::int64_t(random.below(300)), 0, Span::Kind(random.below(6)));
          s.begin_ns += std::int64_t(random.below(1000));
          s.end_ns = s.begin_ns + std::int64_t(random.below(60'000));
          s.peer = random.below(8) == 0 ? 99 : other;
          s.message = random.below(10);
          track.spans.push_back(s);
        }
      return all;
    };
    Timeline t = job(tracks(7), tracks(0), std::int64_t(random.below(100)) - 50);
    arrows += Picture(t).flows.size();
  }
  CHECK(arrows > 300);
}

TEST_CASE("more overlaps than rows are left out, and so are the arrows to them") {
  Track sends{"a", {}}, receives{"b", {}};
  for (int i = 0; i < 100; ++i) {
    sends.spans.push_back(message(Span::Kind::send, 7, std::uint64_t(i), i, 1000 + i));
    receives.spans.push_back(message(Span::Kind::receive, 0, std::uint64_t(i), 2000 + i, 2001 + i));
  }
  Picture p(job({sends}, {receives}));
  CHECK(p.flows.size() == 64);
  CHECK(p.about()["left_out_spans"] == 36);
}
