// What a job writes for TensorBoard.
#include <doctest/doctest.h>

#include "apps/troupe.hpp"
#include "core/log_writer.hpp"
#include "tests/actors/support/sessions.hpp"
#include "tests/contains.hpp"
#include "tests/core/file_limit.hpp"
#include "tests/serialization/events.hpp"
#include "tests/serialization/temporary.hpp"

using namespace troupe;
using namespace troupe::test;
using troupe::testing::FileLimit;
using troupe::testing::read_events;
using troupe::testing::ReadEvent;
using troupe::testing::shown_events;
using troupe::testing::TemporaryDir;

namespace {

struct Struck {};

// Each step adds 1 to a variable, and reports what it then is.
struct ShownCounter {
  Graph g;
  Variable v = variable(g, "v", {0.f, 1.f});
  Op add = assign_add(v, constant(g, {1.f, 1.f}));
  Output all = summary::merge({summary::histogram("v", v), summary::scalar("twice", 2.f * sum(v))});
  Session session{g, one_thread()};
  CompiledStep step = session.compile({sum(v)}, {add});
  CompiledStep look = session.compile({all});

  // Throws Struck in the midst of step `strike`.
  void run(JobOptions options, std::int64_t until, std::int64_t strike = 0) {
    Job job(session, std::move(options));
    for (const JobStep& s : job.steps(until)) {
      auto [before] = step.run<float>(s);
      job.report({{"sum", double(before)}});
      auto [bytes] = look.run<std::string>();
      job.summarize(bytes);
      if (s.number() == strike) throw Struck();
    }
  }
};

JobOptions shown_in(const TemporaryDir& dir, std::int64_t every = 0) {
  JobOptions options;
  if (every > 0) options.dir = dir.path("job");
  options.checkpoint_steps = every;
  options.logdir = dir.path("logs");
  options.signals = false;
  options.quiet = true;
  return options;
}

// The values of a tag by step; a step that is shown twice fails the test.
std::map<std::int64_t, float> curve(const std::vector<ReadEvent>& events, const std::string& tag) {
  std::map<std::int64_t, float> out;
  for (const ReadEvent& event : events)
    for (const auto& [name, value] : event.scalars())
      if (name == tag) CHECK_MESSAGE(out.emplace(event.step, value).second, event.step);
  return out;
}

}  // namespace

TEST_CASE("a job that is killed and goes on shows each step once, with its values") {
  const TemporaryDir dir, whole;
  ShownCounter().run(shown_in(whole), 10);
  for (const std::int64_t strike : {4, 5, 8, 9})
    CHECK_THROWS_AS(ShownCounter().run(shown_in(dir, 3), 10, strike), Struck);
  ShownCounter().run(shown_in(dir, 3), 10);
  const auto all = read_events(dir.path("logs"));
  const auto shown = shown_events(all), undisturbed = shown_events(read_events(whole.path("logs")));
  for (const char* tag : {"sum", "twice"}) {
    CAPTURE(tag);
    CHECK(curve(shown, tag).size() == 10);
    CHECK(curve(shown, tag) == curve(undisturbed, tag));
  }
  std::vector<std::int64_t> starts;
  for (const ReadEvent& event : all)
    if (event.start) starts.push_back(event.step);
  CHECK(starts == std::vector<std::int64_t>{0, 4, 4, 7, 7});
}

TEST_CASE("a job shows its graph once, with the nodes that were added before its steps") {
  const TemporaryDir dir;
  ShownCounter().run(shown_in(dir), 2);
  int graphs = 0;
  for (const ReadEvent& event : read_events(dir.path("logs")))
    if (!event.graph.empty()) {
      ++graphs;
      CHECK(contains(event.graph, "MergeSummary"));
      CHECK(contains(event.graph, "HistogramSummary"));
    }
  CHECK(graphs == 1);
}

TEST_CASE("what is reported of a step is shown with its speed, once") {
  const TemporaryDir dir;
  ShownCounter c;
  Job job(c.session, shown_in(dir));
  for (const JobStep& s : job.steps(3)) {
    (void)c.step.run<float>(s);
    job.report({{"a", 1.0}, {"\xff", 2.0}, {"", 3.0}});
    job.report({{"b", 4.0}});
  }
  const auto events = read_events(dir.path("logs"));
  CHECK(curve(events, "a").size() == 3);
  CHECK(curve(events, "b") == std::map<std::int64_t, float>{{1, 4}, {2, 4}, {3, 4}});
  CHECK(curve(events, "\xEF\xBF\xBD").size() == 3);
  for (const auto& [step, speed] : curve(events, "steps_per_second")) CHECK(speed > 0);
}

TEST_CASE("what is no summary is an error of the program; without a folder nothing is written") {
  const TemporaryDir dir;
  ShownCounter c;
  {
    Job job(c.session, shown_in(dir));
    REQUIRE(job.summaries() != nullptr);
    CHECK_THROWS_AS(job.summarize("garbage"), Error);
    CHECK(job.summaries()->lost() == 0);
  }
  Job job(c.session, {.signals = false});
  CHECK(job.summaries() == nullptr);
  job.summarize("garbage");
}

TEST_CASE("a folder for summaries that cannot be is an error before the first step, by its name") {
  const TemporaryDir dir;
  dir.write("logs", "a file");
  ShownCounter c;
  try {
    Job job(c.session, shown_in(dir));
    FAIL("accepted");
  } catch (const Error& e) {
    CHECK(e.status().code() == Code::failed_precondition);
    CHECK(contains(e.status().text(), dir.path("logs")));
  }
}

TEST_CASE("a disk that is full costs a job summaries, and no step") {
  const TemporaryDir dir;
  ShownCounter c;
  std::vector<std::string> log;
  set_log_writer([&](std::string_view line) { log.emplace_back(line); });
  {
    Job job(c.session, shown_in(dir));
    const std::string large(100'000, 'x');
    for (const JobStep& s : job.steps(4)) {
      (void)c.step.run<float>(s);
      job.report({{"a", 1.0}});
      if (s.number() == 2) {
        const FileLimit limit(65'536);
        job.summaries()->add_graph({.nodes = {{.name = large, .op = "Large"}}});
      }
    }
    CHECK(job.step() == 4);
    CHECK(job.exit_code() == 0);
    CHECK(job.summaries()->lost() == 3);  // the graph, and two reports until it tries again
    CHECK(job.summaries()->failure().code() == Code::resource_exhausted);
  }
  set_log_writer({});
  REQUIRE(log.size() == 1);
  CHECK(contains(log[0], "goes on without summaries"));
  CHECK(curve(read_events(dir.path("logs")), "a").size() == 2);
}

TEST_CASE("--logdir names the folder for summaries") {
  const char* words[] = {"program", "--logdir", "logs/a", "--quiet"};
  auto options = JobOptions::try_from_args(4, const_cast<char**>(words));
  REQUIRE(options.ok());
  CHECK(options->logdir == "logs/a");
  words[2] = "";
  options = JobOptions::try_from_args(4, const_cast<char**>(words));
  CHECK(options.status().code() == Code::invalid_argument);
  CHECK(contains(options.status().message(), "--logdir"));
}
