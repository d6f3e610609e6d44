#include "actors/job/checkpoints.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <filesystem>

#include "core/log.hpp"
#include "tests/serialization/faulty_files.hpp"
#include "tests/serialization/temporary.hpp"

using namespace troupe;
using troupe::testing::FaultyFiles;
using troupe::testing::TemporaryDir;

namespace {

CheckpointData data_at(std::int64_t step) {
  CheckpointData data;
  data.step = std::uint64_t(step);
  data.commit = data.step + 1;
  data.tensors["w"] = Tensor::scalar(float(step));
  return data;
}

// Old ones that stay are warned about; this test makes hundreds stay.
struct Quiet {
  LogLevel before = log_level();
  Quiet() { set_log_level(LogLevel::error); }
  ~Quiet() { set_log_level(before); }
};

Checkpoints::Instant at(int seconds) {
  return Checkpoints::Instant(std::chrono::seconds(1'000 + seconds));
}

}  // namespace

TEST_CASE("a checkpoint is due an interval after the last try, good or not") {
  FaultyFiles files(1);
  Checkpoints steps({.directory = "d", .steps = 10}, files);
  steps.begin(5, "", at(0));
  CHECK_FALSE(steps.due(14, at(100)));
  CHECK(steps.due(15, at(0)));
  REQUIRE(steps.write(15, data_at(15), at(0)).ok());
  CHECK_FALSE(steps.due(24, at(0)));
  CHECK(steps.due(25, at(0)));
  files.fail_at(files.calls());
  CHECK_FALSE(steps.write(25, data_at(25), at(0)).ok());
  CHECK_FALSE(steps.due(26, at(0)));
  CHECK(steps.due(35, at(0)));

  Checkpoints seconds({.directory = "d", .seconds = 30}, files);
  seconds.begin(0, "", at(0));
  CHECK_FALSE(seconds.due(1'000'000, at(29)));
  CHECK(seconds.due(1, at(30)));

  // Of itself: after thirty times as long as the last one took.
  Checkpoints cheap({.directory = "d", .share = 1.0 / 30}, files);
  using std::chrono::milliseconds;
  cheap.begin(0, "", at(0));
  CHECK_FALSE(cheap.due(100, at(0) + milliseconds(249)));
  CHECK(cheap.due(1, at(0) + milliseconds(250)));
  for (auto [took, next] :
       {std::pair{milliseconds(2), milliseconds(250)}, {milliseconds(100), milliseconds(3000)}}) {
    cheap.begin_try(7, at(1), took / 2);
    CHECK(cheap.end_try(7, {CheckpointInfo{7, "d/ckpt-7"}, took / 2}).ok());
    CHECK_FALSE(cheap.due(8, at(1) + next - milliseconds(1)));
    CHECK(cheap.due(8, at(1) + next));
  }

  Checkpoints clean({.directory = "clean", .steps = 1, .nan = false}, files);
  clean.begin(0, "", at(0));
  REQUIRE(clean.write(1, data_at(1), at(0)).ok());
  CheckpointData bad = data_at(2);
  bad.tensors["v"] = Tensor::scalar(std::nanf(""));
  const Status nan = clean.write(2, bad, at(1));
  CHECK(nan.code() == Code::out_of_range);
  CHECK(nan.message() == "variable 'v' has a NaN");
  CHECK(clean.newest() == "clean/ckpt-1");

  Checkpoints none({}, files);
  none.begin(0, "", at(0));
  CHECK_FALSE(none.wanted());
  CHECK_FALSE(none.due(1'000, at(1'000)));
  Checkpoints last({.directory = "d"}, files);
  last.begin(0, "", at(0));
  CHECK(last.wanted());
  CHECK_FALSE(last.due(1'000, at(1'000)));
}

TEST_CASE("a checkpoint that the session may read again stays, if it is of that folder") {
  for (const char* end : {"", "/", "/./", "/../here"}) {
    CAPTURE(std::string(end));
    const TemporaryDir dir;
    const std::string here = dir.path("here");
    std::filesystem::create_directory(here);
    Checkpoints all({.directory = here + end, .steps = 1, .keep = 2});
    const auto names = [&] {
      std::vector<std::uint64_t> steps;
      for (const CheckpointInfo& info : value_or_throw(list_checkpoints(here)))
        steps.push_back(info.step);
      return steps;
    };
    all.begin(0, "", at(0));
    all.spare({here + "/ckpt-1/shard-00000", here + "/ckpt-3/shard-00000", "/ckpt-2/shard-00000"});
    for (int step = 1; step <= 6; ++step) REQUIRE(all.write(step, data_at(step), at(step)).ok());
    CHECK(names() == std::vector<std::uint64_t>{1, 3, 5, 6});
    all.spare({});
    REQUIRE(all.write(7, data_at(7), at(7)).ok());
    CHECK(names() == std::vector<std::uint64_t>{6, 7});
  }
}

TEST_CASE("what is left of a try that failed is gone when it is over") {
  Quiet quiet;
  FaultyFiles files(1);
  Checkpoints checkpoints({.directory = "d", .steps = 1}, files);
  checkpoints.begin(0, "", at(0));
  const auto write = checkpoints.writing(
      value_or_throw(checkpoints.draft()),
      []() -> Expected<Checkpoints::Contents> { return unavailable("a worker was lost"); });
  CHECK(write().info.status().code() == Code::unavailable);
  CHECK(files.list("d")->empty());
  // The thread that wrote it may hold it for a while: that does the next one no harm.
  auto next = value_or_throw(checkpoints.draft());
  CHECK(files.list(next.folder()).ok());
}

TEST_CASE("a full disk at any call keeps the old checkpoint, and the next interval tries again") {
  Quiet quiet;
  for (int call = 0;; ++call) {
    INFO("call " << call);
    FaultyFiles files(1);
    Checkpoints checkpoints({.directory = "d", .steps = 1, .keep = 2}, files);
    checkpoints.begin(0, "", at(0));
    CHECK_FALSE(checkpoints.have(0));
    REQUIRE(checkpoints.write(1, data_at(1), at(1)).ok());
    CHECK(checkpoints.have(1));
    CHECK(checkpoints.newest() == "d/ckpt-1");
    files.fail_at(files.calls() + call);
    Status full = checkpoints.write(2, data_at(2), at(2));
    const bool failed = files.failed();
    files.fail_at(-1);
    if (full.ok()) {
      CHECK(checkpoints.newest() == "d/ckpt-2");
      if (!failed) break;  // past its last call
      continue;
    }
    CHECK(full.code() == Code::resource_exhausted);
    CHECK(checkpoints.last() == full);
    CHECK(checkpoints.failures() == 1);
    CHECK(checkpoints.have(1));
    CHECK_FALSE(checkpoints.have(2));
    CHECK(checkpoints.newest() == "d/ckpt-1");
    CHECK(read_checkpoint("d/ckpt-1", files).ok());
    CHECK(checkpoints.due(3, at(3)));
    REQUIRE(checkpoints.write(3, data_at(3), at(3)).ok());
    CHECK(checkpoints.last().ok());
    CHECK(checkpoints.newest() == "d/ckpt-3");
    CHECK(latest_checkpoint("d", files)->path == checkpoints.newest());
  }
}
