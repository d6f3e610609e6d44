#include "serialization/summary_writer.hpp"

#include <doctest/doctest.h>

#include "core/log_writer.hpp"
#include "tests/contains.hpp"
#include "tests/serialization/events.hpp"
#include "tests/serialization/faulty_files.hpp"
#include "tests/serialization/temporary.hpp"

using namespace troupe;
using namespace troupe::testing;
using troupe::test::contains;

namespace {

// The log lines of a block.
struct SummaryLog {
  std::vector<std::string> lines;
  SummaryLog() {
    set_log_writer([this](std::string_view line) { lines.emplace_back(line); });
  }
  ~SummaryLog() { set_log_writer({}); }
};

std::vector<std::int64_t> steps_of(const std::vector<ReadEvent>& events) {
  std::vector<std::int64_t> out;
  for (const ReadEvent& event : events)
    if (!event.summary.empty()) out.push_back(event.step);
  return out;
}

}  // namespace

TEST_CASE("a program that goes on from a checkpoint shows each step once") {
  TemporaryDir dir;
  const auto life = [&](std::int64_t from, std::int64_t to) {
    auto writer = SummaryWriter::open(dir.path() + "/", from);
    REQUIRE(writer.ok());
    for (std::int64_t step = from; step <= to; ++step)
      REQUIRE(writer->add_scalar(step, "loss", double(step)).ok());
  };
  life(1, 10);  // killed; its newest checkpoint is of step 6
  life(7, 8);   // killed before there was another one
  life(7, 12);
  const auto shown = shown_events(read_events(dir.path()));
  CHECK(steps_of(shown) == std::vector<std::int64_t>{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12});
  life(0, 2);  // the program begins anew
  CHECK(steps_of(shown_events(read_events(dir.path()))) == std::vector<std::int64_t>{0, 1, 2});
}

TEST_CASE("a full disk costs summaries, is told once, and later ones go into another file") {
  for (int part = 0; part < 4; ++part) {  // what the torn record leaves is drawn
    FaultyFiles files{std::uint64_t(part)};
    REQUIRE(files.make_dirs("d").ok());
    SummaryLog log;
    double now = 1'700'000'000;
    auto writer = SummaryWriter::open("d", 1, files, [&] { return now; });
    REQUIRE(writer.ok());
    CHECK(writer->add_scalar(1, "loss", 1).ok());
    files.fail_at(files.calls());
    CHECK(writer->add_scalar(2, "loss", 1).ok());
    CHECK(writer->failure().code() == Code::resource_exhausted);
    CHECK(writer->add_scalar(3, "loss", 1).ok());
    CHECK(writer->add_scalar(4, "", 1).ok());  // of no file nothing is wrong
    writer->flush();
    CHECK(writer->lost() == 3);
    now += SummaryWriter::kRetrySeconds;
    files.fail_at(files.calls() + 1);  // still full
    CHECK(writer->add_scalar(5, "loss", 1).ok());
    CHECK(writer->lost() == 4);
    now += SummaryWriter::kRetrySeconds;
    CHECK(writer->add_scalar(6, "loss", 1).ok());
    CHECK(writer->add_scalar(7, "loss", 1).ok());
    CHECK(writer->failure().ok());
    CHECK(writer->lost() == 4);
    CHECK(steps_of(read_events("d", files)) == std::vector<std::int64_t>{1, 6, 7});
    REQUIRE(log.lines.size() == 2);
    CHECK(contains(log.lines[0], "the program goes on without summaries in 'd'"));
    CHECK(contains(log.lines[1], "again; 4 were lost"));
  }
}

TEST_CASE("a disk that is full from the beginning costs summaries, and no start") {
  FaultyFiles files(1);
  REQUIRE(files.make_dirs("d").ok());
  SummaryLog log;
  double now = 1'700'000'000;
  files.fail_at(files.calls() + 4);  // the record of the start
  auto writer = SummaryWriter::open("d", 7, files, [&] { return now; });
  REQUIRE(writer.ok());
  CHECK(files.failed());
  CHECK(writer->add_scalar(7, "loss", 1).ok());
  now += SummaryWriter::kRetrySeconds;
  CHECK(writer->add_scalar(8, "loss", 1).ok());
  CHECK(writer->lost() == 1);
  const auto events = read_events("d", files);
  REQUIRE(events.size() == 3);
  CHECK(events[1].start);
  CHECK(events[1].step == 7);
  CHECK(events[2].step == 8);
}

TEST_CASE("what the program gets wrong is an error, and loses nothing else") {
  TemporaryDir dir;
  auto writer = SummaryWriter::open(dir.path());
  REQUIRE(writer.ok());
  CHECK(writer->add_scalar(1, "\xff", 1).code() == Code::invalid_argument);
  CHECK(writer->add_summary(1, "garbage").code() == Code::invalid_argument);
  CHECK(writer->add_scalar(2, "loss", 1).ok());
  CHECK(writer->lost() == 0);
  CHECK(steps_of(read_events(dir.path())) == std::vector<std::int64_t>{2});
}

TEST_CASE("the runs of a timeline are run metadata of successive steps") {
  Timeline timeline;
  ProcessTimeline& process = timeline.processes.emplace_back();
  process.name = "master";
  process.tracks.push_back({"steps on /job:worker/task:0/cpu:0", {}});
  for (const std::uint64_t run : {7, 9})
    process.tracks[0].spans.push_back({.name = "MatMul", .run = run, .begin_ns = 10, .end_ns = 20});
  TemporaryDir dir;
  auto writer = SummaryWriter::open(dir.path());
  REQUIRE(writer.ok());
  writer->add_timeline(timeline, 41);
  std::vector<std::string> tags;
  for (const ReadEvent& event : read_events(dir.path()))
    if (!event.run.empty()) {
      tags.push_back(event.run_tag);
      CHECK(contains(event.run, "/job:worker/task:0/cpu:0"));
      CHECK(contains(event.run, "MatMul"));
    }
  CHECK(tags == std::vector<std::string>{"step 41", "step 42"});
}
