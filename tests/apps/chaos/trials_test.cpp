#include "apps/chaos/trials.hpp"

#include <doctest/doctest.h>

#include <set>

#include "apps/chaos/soak.hpp"

using namespace troupe;

TEST_CASE("figures count the faults that were injected, and next steps that came") {
  Figures figures;
  figures.add({.injected = unimplemented("not here"), .next_step_ms = 5.0, .twice = 1});
  CHECK(figures.done == 0);
  CHECK(figures.next_step_ms.empty());
  figures.add({.injected = {}, .next_step_ms = {}, .twice = 3});
  figures.add({.injected = {}, .next_step_ms = 5.0, .twice = 0});
  CHECK(figures.done == 2);
  CHECK(figures.next_step_ms == std::vector<double>{5});
  CHECK(figures.twice == std::vector<double>{3, 0});
}

TEST_CASE("a trial is good only if the job did what it had to") {
  using Outcome = Fault::Outcome;
  const auto judged = [](Outcome outcome, const TrialEnd& end) {
    return judge({.name = "f", .about = "", .inject = {}, .outcome = outcome, .causes = {"memory"}},
                 end);
  };
  const TrialEnd right{0, true, ""}, wrong{0, false, ""}, hangs{-1, true, "no memory"};
  const TrialEnd said{1, false, "error: no memory"}, silent{1, true, ""};
  CHECK(judged(Outcome::goes_on, right).empty());
  CHECK(judged(Outcome::either, right).empty());
  CHECK(judged(Outcome::ends, right) == "the job went on");
  CHECK(judged(Outcome::goes_on, wrong) == "the result is another one");
  CHECK(judged(Outcome::either, wrong) == "the result is another one");
  for (const Outcome outcome : {Outcome::goes_on, Outcome::ends, Outcome::either})
    CHECK(judged(outcome, hangs) == "it did not end within 120 s");
  CHECK(judged(Outcome::goes_on, said) == "it ended with code 1: error: no memory");
  for (const Outcome outcome : {Outcome::ends, Outcome::either}) {
    CHECK(judged(outcome, said).empty());
    CHECK(judged(outcome, silent) == "the job did not say why it ended: ");
  }
}

TEST_CASE("a row of which nothing could be done is not good") {
  TrialRow row;
  CHECK_FALSE(row.good());
  row.figures.add({.injected = {}});
  CHECK(row.good());
  row.trouble = "not done: no access";
  CHECK_FALSE(row.good());
}

TEST_CASE("each fault has a name of its own, and those that end a job have causes") {
  std::set<std::string> names;
  for (const Fault& fault : faults()) {
    CAPTURE(fault.name);
    CHECK(names.insert(fault.name).second);
    CHECK((fault.outcome == Fault::Outcome::goes_on) == fault.causes.empty());
  }
  for (const char* name : {"kill-worker", "kill-master", "kill-all", "stop", "pause-master", "cut",
                           "half-open", "reset", "slow-link", "disk-full", "io-error",
                           "corrupt-checkpoint", "oom", "nan", "crash-loop", "rolling-restart"})
    CHECK_MESSAGE(names.contains(name), name);
}

TEST_CASE("a duration is a number with its unit") {
  using std::chrono::milliseconds;
  CHECK(value_or_throw(parse_duration("90s")) == milliseconds(90'000));
  CHECK(value_or_throw(parse_duration("10m")) == milliseconds(600'000));
  CHECK(value_or_throw(parse_duration("1.5h")) == milliseconds(5'400'000));
  CHECK(value_or_throw(parse_duration("0.25s")) == milliseconds(250));
  for (const char* bad :
       {"", "s", "10", "10 m", "-1s", "0s", "nans", "infs", "1e12h", "10ms", "x5s"})
    CHECK_MESSAGE(parse_duration(bad).status().code() == Code::invalid_argument, bad);
}
