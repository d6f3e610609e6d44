// A job that is ended at any moment and begun again does what one does that nobody disturbed.
#include <doctest/doctest.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <functional>
#include <future>
#include <limits>
#include <string>
#include <thread>
#include <vector>

#include "actors/job/job_folder.hpp"
#include "actors/job/position.hpp"
#include "apps/troupe.hpp"
#include "core/log_writer.hpp"
#include "serialization/checkpoint.hpp"
#include "tests/actors/support/sessions.hpp"
#include "tests/apps/job_processes.hpp"
#include "tests/contains.hpp"
#include "tests/serialization/temporary.hpp"

using namespace troupe;
using namespace troupe::test;
using troupe::testing::TemporaryDir;
namespace fs = std::filesystem;

namespace {

struct Killed {};

// A program that begins with the values of a file, trains with dropout on a shuffled dataset,
// counts with metrics, looks at another dataset with noise, judges, and keeps a note. `effect` is
// called before each thing that it does.
struct Lesson {
  explicit Lesson(const std::string& file, int tasks) : file_(file) {
    auto [images, labels] = data::digits(96).shuffle(50).repeat().batch(8).outputs<2>(g, "train");
    auto [others, names] = data::digits(40).repeat().batch(8).outputs<2>(g, "test");
    Output x = flatten(images);
    loss = mean(softmax_cross_entropy(mat_mul(dropout(x, 0.3), w), labels));
    train = optim::Adam{.lr = 0.01}.minimize(loss);
    counted.emplace(metrics::mean(g.scope("losses"), loss));
    noisy = mean(softmax_cross_entropy(
        mat_mul(flatten(others) + random_standard_normal(g, {8, 784}), w), names));
    if (tasks > 0) workers = std::make_unique<TcpWorkers>(tasks);
    session = std::make_unique<Session>(g, workers ? workers->cluster() : one_thread());
  }

  // What it says, until it is over or `effect` throws.
  void run(JobOptions options, std::int64_t steps, std::vector<std::string>& lines,
           const std::function<void()>& effect) {
    Job job(*session, std::move(options));
    effect();
    session->once("pretrained", [&] { session->restore(file_, {.only = {w}}); });
    auto step = session->compile({loss}, {train, counted->update});
    auto look = session->compile({noisy});
    for (const JobStep& s : job.steps(steps)) {
      effect();
      auto [l] = step.run<float>(s);
      effect();
      std::string line = fmt::format("{} {}", s.number(), l);
      if (s.number() % 2 == 0) {
        auto [a] = look.run<float>();
        effect();
        auto [b] = look.run<float>();
        const bool better = job.judge(a + b);
        line += fmt::format(" {} {} {} {}", a, b, better, job.best_step());
      }
      if (s.number() % 3 == 0) {
        effect();
        line += fmt::format(" {}", session->run({counted->value})[0].item<double>());
        session->run({}, {counted->reset});
      }
      job.set_note(job.note() + std::to_string(s.number() % 10));
      line += " " + job.note();
      lines.resize(std::max(lines.size(), std::size_t(s.number())));
      CHECK((lines[std::size_t(s.number()) - 1].empty() ||
             lines[std::size_t(s.number()) - 1] == line));
      lines[std::size_t(s.number()) - 1] = line;
      effect();
    }
    effect();
  }

  Graph g{5};
  Variable w = variable(g, "w", Tensor::zeros(DType::f32, Shape{784, 10}).value());
  Output loss, noisy;
  Op train;
  std::optional<metrics::Metric> counted;
  std::unique_ptr<TcpWorkers> workers;
  std::unique_ptr<Session> session;

 private:
  const std::string file_;
};

// The file with which the program begins.
std::string pretrained(const TemporaryDir& dir) {
  Graph g(9);
  [[maybe_unused]] const Output read =
      variable(g, "w", Tensor::zeros(DType::f32, Shape{784, 10}).value()) + 0.f;
  Session s(g, one_thread());
  s.init();
  s.save(dir.path("pretrained"));
  return dir.path("pretrained");
}

JobOptions in(const std::string& dir, std::int64_t every) {
  JobOptions options;
  options.dir = dir;
  options.checkpoint_steps = every;
  options.signals = false;
  return options;
}

// A variable that each step adds one to; it fetches what is fed.
struct Counter {
  Graph g;
  Variable v = variable(g, "v", 0.f);
  Output x = placeholder<float>(g, PartialShape::scalar(), "x");
  Output element = sum(data::digits(64).batch(1).outputs<2>(g)[0]);
  Output seen = x + 0 * element;
  Op add = assign_add(v, constant(g, 1.f));
  Session session{g, one_thread()};
  CompiledStep step = session.compile({seen}, {add}, {x});
  float value() { return session.run({v})[0].item<float>(); }
};

}  // namespace

TEST_CASE("a Job under troupe run may go back to the checkpoints that it has there") {
  const TemporaryDir dir;
  Graph g;
  [[maybe_unused]] const Output read = variable(g, "v", Tensor::scalar(1.0f)) + 0.0f;
  Session s(g, one_thread());
  JobOptions options;
  options.on_nan = JobOptions::NanPolicy::back;
  options.signals = false;
  CHECK_THROWS_AS(Job(s, options), Error);  // there are none
  REQUIRE(setenv(JobFolder::kVariable, dir.path().c_str(), 1) == 0);
  CHECK_NOTHROW(Job(s, options));
  unsetenv(JobFolder::kVariable);
  CHECK(fs::is_directory(dir.path(JobFolder::kCheckpoints)));
}

TEST_CASE("a Job is refused in a callback of its session, which it would wait for") {
  Graph g;
  std::promise<Status> said;  // outlives the session, which waits for the callback
  const Output x = constant(g, 1.0f);
  Session s(g, one_thread());
  const CompiledStep step = s.compile({x});
  step.start({}).then([&](const Expected<std::vector<Tensor>>&) {
    try {
      const Job job(s, JobOptions{});
      said.set_value(ok_status());
    } catch (const Error& error) {
      said.set_value(error.status());
    }
  });
  const Status status = said.get_future().get();
  CHECK(status.code() == Code::failed_precondition);
  CHECK(contains(status.text(), "Job::Job was called in a callback"));
}

TEST_CASE("a job that is ended at any moment goes on to the same lines and the same bits") {
  const TemporaryDir dir;
  const std::string file = pretrained(dir);
  constexpr std::int64_t kSteps = 7;
  for (int tasks : {0, 2}) {
    INFO(tasks << " workers");
    std::vector<std::string> whole;
    int effects = 0;
    Tensor weights;
    {
      Lesson lesson(file, 0);
      lesson.run({.signals = false}, kSteps, whole, [&] { ++effects; });
      weights = lesson.session->run({lesson.w})[0];
    }
    REQUIRE(whole.size() == std::size_t(kSteps));
    for (int kill = 0; kill<effects; kill += tasks> 0 ? 11 : 1) {
      INFO("ended at effect " << kill);
      const std::string here = dir.path(std::to_string(tasks) + "." + std::to_string(kill));
      std::vector<std::string> lines;
      int n = 0;
      {
        Lesson lesson(file, tasks);
        CHECK_THROWS_AS(lesson.run(in(here, 2), kSteps, lines,
                                   [&] {
                                     if (n++ == kill) throw Killed();
                                   }),
                        Killed);
      }
      Lesson lesson(file, tasks == 0 ? 0 : 1);
      lesson.run(in(here, 2), kSteps, lines, [] {});
      CHECK(lines == whole);
      CHECK(Tensor::same(lesson.session->run({lesson.w})[0], weights));
    }
  }
}

TEST_CASE("a job that skips steps goes on with other numbers, the same ones in each life") {
  const TemporaryDir dir;
  constexpr std::int64_t kSteps = 24;
  // Drawn numbers, of which half have no root.
  const auto run = [](JobOptions options, std::int64_t until, std::vector<float>& drawn) {
    Graph g{1};
    const Variable v = variable(g, "v", 0.f);
    const Output x = random_standard_normal(g, PartialShape::scalar());
    const Output seen = random_standard_normal(g, PartialShape::scalar());
    const Op add = assign_add(v, sqrt(x));
    Session session{g, one_thread()};
    options.on_nan = JobOptions::NanPolicy::skip;
    options.nan_limit = 20;
    options.quiet = true;
    Job job(session, options);
    auto step = session.compile({x, sqrt(x)}, {add});
    auto look = session.compile({seen});
    for (const JobStep& s : job.steps(kSteps)) {
      drawn.resize(std::size_t(2 * s.number()));
      drawn[std::size_t(2 * s.number() - 2)] = step.run({}, s)[0].item<float>();
      drawn[std::size_t(2 * s.number() - 1)] = look.run()[0].item<float>();
      if (s.number() == until) break;
    }
    return job.dropped();
  };
  std::vector<float> whole;
  CHECK(run({.signals = false}, kSteps, whole) > 5);
  std::vector<float> sorted = whole;
  std::sort(sorted.begin(), sorted.end());
  CHECK(std::adjacent_find(sorted.begin(), sorted.end()) == sorted.end());
  for (std::int64_t kill = 1; kill < kSteps; kill += 3) {
    const std::string here = dir.path(std::to_string(kill));
    std::vector<float> drawn;
    run(in(here, 2), kill, drawn);
    run(in(here, 2), kSteps, drawn);
    CHECK(drawn == whole);
  }
}

TEST_CASE("what a checkpoint of a job holds is made before the job") {
  const TemporaryDir dir;
  const auto late = [&](const std::string& folder, const std::function<Output(Counter&)>& make) {
    Counter c;
    Job job(c.session, folder.empty() ? JobOptions{.signals = false} : in(dir.path(folder), 1));
    try {
      for (const JobStep& s : job.steps(3)) {
        if (s.number() == 2) c.session.compile({make(c)});
        c.step.run({Tensor::scalar(0.f)}, s);
      }
    } catch (const Error& e) {
      CHECK(job.step() == 2);
      return e.status();
    }
    CHECK(job.step() == 3);
    return ok_status();
  };
  const auto variable_of = [](Counter& c) { return variable(c.g, "late", 0.f) + 1.f; };
  const auto queue_of = [](Counter& c) {
    return queue_size(fifo_queue(c.g, {DType::f32}, {.capacity = 10, .shared_name = "late"}));
  };
  const auto dataset_of = [](Counter& c) {
    return sum(data::digits(64).batch(1).outputs<2>(c.g, "late")[0]);
  };
  int n = 0;
  const std::vector<std::function<Output(Counter&)>> makers = {variable_of, queue_of, dataset_of};
  for (const auto& make : makers) {
    const Status refused = late(std::to_string(++n), make);
    CHECK(refused.code() == Code::failed_precondition);
    CHECK_MESSAGE(refused.text().find("job_test.cpp") != std::string::npos, refused.text());
    CHECK_MESSAGE(refused.text().find("'late'") != std::string::npos, refused.text());
    CHECK(late("", make).ok());  // nothing is to be resumed
  }
  CHECK(late("other", [](Counter& c) { return c.v + 1.f; }).ok());
  CHECK(late("other", [](Counter& c) { return c.v + 1.f; }).ok());
}

TEST_CASE("a job goes on with other devices") {
  const TemporaryDir dir;
  for (int life : {0, 1}) {
    Graph g;
    const Variable v = variable(g, "v", 0.f);
    Output seen;
    {
      const auto on = g.with_device(life == 0 ? "/cpu:1" : "/cpu:0");
      seen = v + 0.f;
    }
    const Op add = assign_add(v, constant(g, 1.f));
    Cluster cluster = one_thread();
    cluster.devices = {"CPU", "CPU"};
    Session session{g, cluster};
    Job job(session, in(dir.path("job"), 1));
    auto step = session.compile({seen}, {add});
    for (const JobStep& s : job.steps(3 + life * 3)) step.run({}, s);
    CHECK(session.run({v})[0].item<float>() == float(3 + life * 3));
  }
}

TEST_CASE("a job that gathers its checkpoints writes and reads them alone, and is the same job") {
  const TemporaryDir dir;
  std::string values;
  for (const bool gather : {true, false})
    for (const std::int64_t steps : {3, 5}) {
      Graph g;
      Variable first = variable_on(g, kTask0, "first", Tensor::of<float>({2}, {1, 2}));
      Variable second = variable_on(g, kTask1, "second", Tensor::scalar(5.f));
      const Op add = group(g, {assign_add(first, ones(g, {2})), assign_add(second, ones(g, {}))});
      const std::vector<Output> now = {first.value(), second.value()};
      TcpWorkers workers(2);
      Session session(g, workers.cluster());
      const std::string folder = dir.path(gather ? "gathered" : "shared");
      Job job(session, {.dir = folder, .gather = gather, .quiet = true, .signals = false});
      CHECK(job.resumed() == (steps == 5));
      const auto step = session.compile({}, {add});
      for (const JobStep& each : job.steps(steps)) step.run({}, each);
      CHECK(session.run(now)[0].data<float>()[1] == float(2 + steps));
      CHECK(session.run(now)[1].item<float>() == float(5 + steps));
      const auto stored = value_or_throw(open_checkpoint(job.checkpoint()));
      CHECK(stored.files.size() == (gather ? 1u : 2u));
    }
}

TEST_CASE("a job that was over goes on, and one that is stopped keeps what it has") {
  const TemporaryDir dir;
  {
    Counter c;
    Job job(c.session, in(dir.path("job"), 1000));
    CHECK_FALSE(job.resumed());
    for (const JobStep& s : job.steps(3)) c.step.run({Tensor::scalar(0.f)}, s);
    CHECK(job.step() == 3);
    CHECK(job.checkpoint() == dir.path("job") + "/ckpt-3");
    CHECK(job.exit_code() == 0);
    CHECK_FALSE(job.stopped());
    for (const JobStep& s : job.steps(5)) {
      c.step.run({Tensor::scalar(0.f)}, s);
      CHECK(s.number() == 4);
      CHECK_FALSE(s.last());
      CHECK(s.every(2));
      CHECK_FALSE(s.every(3));
      job.stop();
    }
    CHECK(job.stopped());
    CHECK(job.checkpoint() == dir.path("job") + "/ckpt-4");
  }
  Counter c;
  JobOptions options = in(dir.path("job"), 0);
  int asked = 0;
  options.stop = [&] { return ++asked == 2; };
  Job job(c.session, options);
  CHECK(job.resumed());
  CHECK(job.step() == 4);
  CHECK(c.value() == 4);
  for (const JobStep& s : job.steps(4)) FAIL("step " << s.number());
  CHECK(job.checkpoint() == dir.path("job") + "/ckpt-4");
  for (const JobStep& s : job.steps(100)) c.step.run({Tensor::scalar(0.f)}, s);
  CHECK(job.step() == 5);  // it was asked before that step, and before the next
  // What ends the loop by itself leaves no checkpoint.
  Job again(c.session, {.signals = false});
  for (const JobStep& s : again.steps(9)) {
    c.step.run({Tensor::scalar(0.f)}, s);
    break;
  }
  CHECK(again.step() == 0);
}

TEST_CASE("a signal ends a job after its step") {
  const TemporaryDir dir;
  for (int signal : {SIGINT, SIGTERM}) {
    Counter c;
    JobOptions options = in(dir.path(std::to_string(signal)), 0);
    options.signals = true;
    const auto before = std::signal(signal, SIG_DFL);
    std::signal(signal, before);
    {
      Job job(c.session, options);
      for (const JobStep& s : job.steps(1000)) {
        c.step.run({Tensor::scalar(0.f)}, s);
        if (s.number() == 5) std::raise(signal);
      }
      CHECK(job.step() == 5);
      CHECK(job.exit_code() == 128 + signal);
      CHECK(job.checkpoint().ends_with("ckpt-5"));
    }
    const auto after = std::signal(signal, before);
    CHECK((after == before));
  }
}

TEST_CASE("a signal ends all jobs of a program, and none that is over") {
  const TemporaryDir dir;
  Counter a, b;
  JobOptions options = in(dir.path("a"), 0);
  options.signals = true;
  Job first(a.session, options);
  for (const JobStep& s : first.steps(9)) {
    a.step.run({Tensor::scalar(0.f)}, s);
    if (s.number() == 2) std::raise(SIGTERM);
    if (s.number() == 2) std::raise(SIGTERM);  // its supervisor's
  }
  CHECK(first.step() == 2);
  options.dir = dir.path("b");
  Job second(b.session, options);
  for (const JobStep& s : second.steps(9)) FAIL("step " << s.number());
  CHECK(first.exit_code() == 128 + SIGTERM);
  CHECK(second.exit_code() == 128 + SIGTERM);

  Counter c;
  options.dir = dir.path("c");
  {
    JobOptions quiet = options;
    quiet.signals = false;
    Job done(c.session, quiet);
    for (const JobStep& s : done.steps(3)) c.step.run({Tensor::scalar(0.f)}, s);
    CHECK_FALSE(done.stopped());
    CHECK(done.exit_code() == 0);
  }
}

TEST_CASE("a signal ends a job that outlives one which began before it") {
  const TemporaryDir dir;
  const auto before = std::signal(SIGTERM, SIG_DFL);
  std::signal(SIGTERM, before);
  Counter a, b;
  JobOptions options = in(dir.path("a"), 0);
  options.signals = true;
  auto first = std::make_unique<Job>(a.session, options);
  options.dir = dir.path("b");
  auto second = std::make_unique<Job>(b.session, options);
  first.reset();
  for (const JobStep& s : second->steps(9)) {
    b.step.run({Tensor::scalar(0.f)}, s);
    if (s.number() == 2) std::raise(SIGTERM);
  }
  CHECK(second->step() == 2);
  CHECK(second->exit_code() == 128 + SIGTERM);
  CHECK(second->checkpoint().ends_with("ckpt-2"));
  second.reset();
  const auto after = std::signal(SIGTERM, before);
  CHECK((after == before));
}

TEST_CASE("a signal after the last step changes nothing, and one that is ignored stays so") {
  const TemporaryDir dir;
  const auto ignored = std::signal(SIGINT, SIG_IGN);
  {
    Counter c;
    JobOptions options = in(dir.path("a"), 0);
    options.signals = true;
    Job job(c.session, options);
    for (const JobStep& s : job.steps(3)) {
      c.step.run({Tensor::scalar(0.f)}, s);
      std::raise(SIGINT);
    }
    CHECK(job.step() == 3);
    std::raise(SIGTERM);
    CHECK_FALSE(job.stopped());
    CHECK(job.exit_code() == 0);
  }
  std::signal(SIGINT, ignored);
}

TEST_CASE("a folder has one job at a time") {
  const TemporaryDir dir;
  Counter a, b;
  {
    Job job(a.session, in(dir.path("job"), 1));
    CHECK_THROWS_WITH_AS(Job(b.session, in(dir.path("job"), 1)),
                         doctest::Contains("somebody else writes checkpoints into"), Error);
  }
  Job job(b.session, in(dir.path("job"), 1));
}

TEST_CASE("variables with a NaN that no run fetched become no checkpoint") {
  const TemporaryDir dir;
  using Policy = JobOptions::NanPolicy;
  // The root's derivative at 0 times 0: the loss of step 3 is 0, and the variable has a NaN then.
  struct Root {
    Graph g;
    Variable w = variable(g, "w", 1.f);
    Output x = placeholder<float>(g, {});
    Output loss = sqrt(w * x);
    Op train = optim::Sgd{.lr = 0.01f}.minimize(loss);
    Session session{g, one_thread()};
    CompiledStep step = session.compile({loss}, {train}, {x});
    std::int64_t run(JobOptions options, Policy policy, std::vector<float> inputs) {
      options.on_nan = policy;
      Job job(session, options);
      for (const JobStep& s : job.steps(std::int64_t(inputs.size())))
        step.run({Tensor::scalar(inputs[std::size_t(s.number()) - 1])}, s);
      return job.step();
    }
  };
  for (Policy policy : {Policy::fail, Policy::skip}) {
    Root r;
    const std::string here = dir.path(policy == Policy::fail ? "fail" : "skip");
    // By the next step at the latest, which fetches one, or by the checkpoint.
    CHECK_THROWS_WITH_AS(r.run(in(here, 1), policy, {1, 1, 0}),
                         doctest::Contains("variable 'w' has a NaN after step 3; the newest "
                                           "checkpoint is"),
                         Error);
    CHECK_THROWS_AS(r.run(in(here + "1", 1), policy, {1, 0, 1, 1, 1, 1, 1}), Error);
    CHECK(value_or_throw(latest_checkpoint(here)).step == 2);
  }
  {
    Root r;
    CHECK(r.run(in(dir.path("back"), 1), Policy::back, {1, 1, 0, 1, 1}) == 5);
    CHECK_FALSE(r.session.run({r.w})[0].has_nan());
    CHECK(value_or_throw(latest_checkpoint(dir.path("back"))).step == 5);
    Root last;
    CHECK_THROWS_AS(last.run(in(dir.path("last"), 1), Policy::back, {1, 0}), Error);
    CHECK(value_or_throw(latest_checkpoint(dir.path("last"))).step == 1);
  }
  Root r;
  CHECK(r.run(in(dir.path("ignore"), 1), Policy::ignore, {1, 0}) == 2);
  CHECK(value_or_throw(latest_checkpoint(dir.path("ignore"))).step == 2);
}

TEST_CASE("a job goes on from a checkpoint of a version without positions") {
  const TemporaryDir dir;
  {
    Counter c;
    Job job(c.session, in(dir.path("job"), 0));
    for (const JobStep& s : job.steps(3)) c.step.run({Tensor::scalar(0.f)}, s);
  }
  CheckpointData old = value_or_throw(read_checkpoint(dir.path("job") + "/ckpt-3"));
  old.note.clear();
  old.graph.clear();
  old.fetches.clear();
  REQUIRE(write_checkpoint(dir.path("old"), old).ok());
  Counter c;
  Job job(c.session, in(dir.path("old"), 0));
  CHECK(job.step() == 3);
  CHECK(c.value() == 3);
}

TEST_CASE("best variables that cannot be written end no training") {
  const TemporaryDir dir;
  Counter c;
  Job job(c.session, in(dir.path("job"), 0));
  fs::create_directories(dir.path("job") + "/best.safetensors/in the way");
  for (const JobStep& s : job.steps(3)) {
    c.step.run({Tensor::scalar(0.f)}, s);
    CHECK(job.judge(double(-s.number())));
  }
  CHECK(job.step() == 3);
  CHECK(job.best_step() == 3);
}

TEST_CASE("best variables that a killed life was writing are removed by the next one") {
  const TemporaryDir dir;
  const std::string begun = dir.path(".best.safetensors.7.8.9.tmp"), other = dir.path(".best.tmp");
  for (const std::string& path : {begun, other}) std::ofstream(path) << "half of th";
  Counter c;
  Job job(c.session, in(dir.path(), 0));
  CHECK_FALSE(fs::exists(begun));
  CHECK(fs::exists(other));
}

TEST_CASE("a session whose state cannot be taken trains on, and the job says so at its end") {
  const TemporaryDir dir;
  Graph g;
  Output x = placeholder<float>(g, {});
  Session session(g, one_thread());
  CompiledStep step = session.compile({x * 2.f}, {}, {x});
  JobOptions options = in(dir.path("job"), 1);
  std::vector<Status> tried;
  options.checkpointed = [&](const std::string&, const Status& status) { tried.push_back(status); };
  Job job(session, options);
  for (const JobStep& s : job.steps(2)) step.run({Tensor::scalar(1.f)}, s);
  CHECK(job.step() == 2);
  if (!tried.empty() && !tried.back().ok()) CHECK(job.exit_code() == 1);
}

TEST_CASE("a job ends when its patience is over, and keeps the best variables") {
  const TemporaryDir dir;
  Counter c;
  JobOptions options = in(dir.path(), 1);
  options.patience = 2;
  const double losses[] = {3, 2, std::nan(""), 2.5, 1};
  {
    Job job(c.session, options);
    for (const JobStep& s : job.steps(5)) {
      c.step.run({Tensor::scalar(0.f)}, s);
      CHECK(job.judge(losses[s.number() - 1]) == (s.number() < 3));
    }
    CHECK(job.step() == 4);
    CHECK(job.best() == 2);
    CHECK(job.best_step() == 2);
    CHECK_FALSE(job.stopped());
  }
  Counter later;
  Job job(later.session, options);
  for (const JobStep& s : job.steps(5)) FAIL("step " << s.number());
  CHECK(job.best() == 2);
  CHECK(later.value() == 4);
  later.session.restore(dir.path("best.safetensors"));
  CHECK(later.value() == 2);
}

TEST_CASE("a step with a NaN fails, is skipped, or leads back, and commits nothing") {
  const TemporaryDir dir;
  constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
  using Policy = JobOptions::NanPolicy;
  const auto train = [&](Policy policy, std::vector<float> values, Counter& c, JobOptions options) {
    options.on_nan = policy;
    options.nan_limit = 2;
    Job job(c.session, options);
    std::vector<std::uint64_t> elements;
    for (const JobStep& s : job.steps(std::int64_t(values.size()))) {
      const float fetched =
          c.step.run({Tensor::scalar(values[std::size_t(s.number()) - 1])}, s)[0].item<float>();
      CHECK(std::isnan(fetched) == std::isnan(values[std::size_t(s.number()) - 1]));
    }
    return job.dropped();
  };
  {
    Counter c;
    CHECK_THROWS_WITH_AS(train(Policy::fail, {1, 1, kNan, 1}, c, {.signals = false}),
                         doctest::Contains("has a NaN: nothing was committed"), Error);
    CHECK(c.value() == 2);
  }
  {
    Counter c;
    CHECK(train(Policy::skip, {1, kNan, kNan, 1, kNan, kNan, 1}, c, {.signals = false}) == 4);
    CHECK(c.value() == 3);
    CHECK(c.session.place().datasets[0].next == 7);  // the elements are used up
    Counter more;
    CHECK_THROWS_WITH_AS(train(Policy::skip, {1, kNan, kNan, kNan, 1}, more, {.signals = false}),
                         doctest::Contains("step 4 has a NaN, as had the 2 before it"), Error);
    CHECK(more.value() == 1);
  }
  {
    Counter c;
    CHECK(train(Policy::back, {1, 1, 1, kNan, 1}, c, in(dir.path("back"), 2)) == 1);
    CHECK(c.value() == 3);  // that of step 2, and another one
    CHECK(c.session.place().datasets[0].next == 5);
    Counter more;
    CHECK_THROWS_WITH_AS(
        train(Policy::back, {1, 1, kNan, kNan, kNan, 1}, more, in(dir.path("more"), 2)),
        doctest::Contains("step 5 has a NaN, after 2 returns to"), Error);
    Counter none;
    CHECK_THROWS_WITH_AS(train(Policy::back, {kNan, 1}, none, in(dir.path("none"), 2)),
                         doctest::Contains("there is no checkpoint to go back to"), Error);
  }
}

// Two workers that are processes, to be lost. REQUIRES: this process has no other child.
struct Losable {
  Graph g;
  Variable v;
  Session session;
  explicit Losable(Variable (*make)(Graph&))
      : v(make(g)), session(g, [] {
          Cluster cluster = one_thread();
          cluster.workers = 2;
          return cluster;
        }()) {}
  void lose_workers() {
    const auto workers = processes_of(getpid());
    REQUIRE(workers.size() == 2);
    for (pid_t worker : workers) kill(worker, SIGKILL);
  }
};

TEST_CASE("a job that went back after a NaN goes on without a worker, whatever was pruned since") {
  const TemporaryDir dir;
  Losable c([](Graph& g) { return variable(g, "v", 0.f); });
  Output x = placeholder<float>(c.g, PartialShape::scalar(), "x");
  Op add = assign_add(c.v, x);
  JobOptions options = in(dir.path("job"), 2);
  options.on_nan = JobOptions::NanPolicy::back;
  options.keep = 1;
  options.memory_seconds = JobOptions::kNever;  // its state is that of the beginning
  Job job(c.session, options);
  auto step = c.session.compile({x + 0.f}, {add}, {x});
  for (const JobStep& s : job.steps(12)) {
    const float value = s.number() == 4 ? std::numeric_limits<float>::quiet_NaN() : 1.f;
    step.run({Tensor::scalar(value)}, s);
    if (s.number() == 11) c.lose_workers();
  }
  CHECK(c.session.recoveries() == 1);
  // That of step 2, and steps 5 to 12.
  CHECK(c.session.run({c.v})[0].item<float>() == 10);
}

namespace {

// Of the job of this process, as its lock tells; empty: there is none.
std::string folder_in_memory() {
  for (const fs::directory_entry& file : fs::directory_iterator("/proc/self/fd")) {
    std::error_code closed;
    const fs::path path = fs::read_symlink(file.path(), closed);
    if (path.filename() == ".owner" && path.string().starts_with("/dev/shm/troupe-"))
      return path.parent_path();
  }
  return {};
}

}  // namespace

TEST_CASE("a session does not go back to what a job kept in memory that is gone") {
  Losable c([](Graph& g) { return variable(g, "v", 0.f); });
  const Output zeros =
      fill(constant(c.g, Tensor::of<std::int64_t>({1}, {17 << 20})), constant(c.g, 0.f));
  const Output first = variable(c.g, "large", zeros)[0];
  Op add = assign_add(c.v, constant(c.g, 1.f));
  {
    JobOptions options;
    options.signals = false;
    options.memory_seconds = 0.01;
    Job job(c.session, options);
    // The second one is begun when the session has taken the first.
    const auto there = [&] {
      const std::string folder = folder_in_memory();
      const auto all =
          folder.empty() ? std::vector<CheckpointInfo>() : value_or_throw(list_checkpoints(folder));
      return all.size() == 2;
    };
    const auto until = std::chrono::steady_clock::now() + std::chrono::minutes(1);
    for (const JobStep& s : job.steps(1'000'000'000)) {
      c.session.run({}, {add}, {}, s);
      if (there()) break;
      REQUIRE(std::chrono::steady_clock::now() < until);
    }
    CHECK(c.session.can_recover().ok());
  }
  says(c.session.can_recover(), Code::failed_precondition, "by a Job that has ended");
  c.lose_workers();
  says(
      c.session.try_run({first}).status(), Code::unavailable,
      "could not go on: failed_precondition: its state was kept in memory by a Job that has ended");
}

TEST_CASE("a service that commits nothing keeps its state again after a run that was cut short") {
  const TemporaryDir dir;
  Losable c([](Graph& g) { return variable(g, "v", 3.f); });
  const Gate gate(c.g, "/job:worker/task:0");
  Job job(c.session, in(dir.path("job"), 0));
  std::thread serves([&] { job.serve(); });
  CompiledStep look = c.session.compile({c.v.value()}), take = c.session.compile({gate.taken});
  CHECK(wait_until([&] { return c.session.can_recover().ok(); }));
  PendingRun waits = take.start();
  waits.cancel();
  CHECK(waits.try_get().status().code() == Code::cancelled);
  CHECK(wait_until([&] { return c.session.can_recover().ok(); }));
  c.lose_workers();
  CHECK(look.run()[0].item<float>() == 3);
  CHECK(c.session.recoveries() == 1);
  job.stop();
  serves.join();
}

TEST_CASE("a job's folder stays the same when its program goes to another one") {
  struct Here {
    const fs::path path = fs::current_path();
    ~Here() { fs::current_path(path); }
  } here;
  const TemporaryDir dir;
  Graph g;
  Variable v = variable(g, "v", 0.f);
  Op add = assign_add(v, constant(g, 1.f));
  fs::create_directory(dir.path("elsewhere"));
  fs::current_path(dir.path());
  for (int lives = 1; lives <= 2; ++lives) {
    Session s(g, one_thread());
    JobOptions options = in("job", 2);
    options.logdir = "logs";
    Job job(s, options);
    auto step = s.compile({v.value()}, {add});
    fs::current_path(dir.path("elsewhere"));
    for (const JobStep& each : job.steps(4 * lives)) (void)step.run<float>(each);
    fs::current_path(dir.path());
    CHECK(job.checkpoint() ==
          fs::current_path().string() + "/job/ckpt-" + std::to_string(4 * lives));
    CHECK(job.resumed() == (lives > 1));
  }
  CHECK(fs::is_empty(dir.path("elsewhere")));
}

TEST_CASE("steps that only read, at once, cut short or refused, let a session recover") {
  Losable c([](Graph& g) {
    return variable(g, "v", random_uniform(g, PartialShape::scalar()) * 0.f + 3.f);
  });
  const CompiledStep look = c.session.compile({c.v.value()});
  Output wide = placeholder<float>(c.g, {-1}, "wide");
  const CompiledStep three =
      c.session.compile({reshape(wide, constant<std::int64_t>(c.g, {1}, {3})) + c.v}, {}, {wide});
  const CompiledStep draw = c.session.compile({c.v + random_uniform(c.g, PartialShape::scalar())});
  c.session.init();
  c.session.keep();
  std::vector<PendingRun> runs;
  for (int i = 0; i < 20; ++i) {
    runs.push_back(look.start());
    if (i % 2 == 0) runs.back().cancel();
  }
  for (PendingRun& run : runs) (void)run.try_get();
  CHECK_FALSE(three.try_run({Tensor::of<float>({2}, {1, 2})}).ok());
  CHECK_MESSAGE(c.session.can_recover().ok(), c.session.can_recover().text());
  c.lose_workers();
  CHECK(look.run()[0].item<float>() == 3);
  CHECK(c.session.recoveries() == 1);
  // Another one also counts in this graph: the order of runs that draw matters.
  std::vector<PendingRun> draws;
  for (int i = 0; i < 20; ++i) {
    draws.push_back(draw.start());
    draws.back().cancel();
  }
  for (PendingRun& run : draws) (void)run.try_get();
  CHECK_FALSE(c.session.can_recover().ok());
}

TEST_CASE("a reset that comes after a worker was lost is done where the session goes on") {
  std::atomic<bool> lost{false};
  Losable c([](Graph& g) { return variable(g, "v", 1.f); });
  Op add = assign_add(c.v, constant(c.g, 1.f));
  c.session.watch([&](const SessionEvent& event) {
    if (event.kind == SessionEvent::Kind::lost) lost = true;
  });
  c.session.init();
  c.session.keep();
  c.session.run({}, {add});
  const auto lose_workers = [&] {
    lost = false;
    c.lose_workers();
    CHECK(wait_until([&] { return lost.load(); }));
  };
  lose_workers();
  c.session.reset();
  CHECK(c.session.recoveries() == 1);
  c.session.init();
  const CompiledStep look = c.session.compile({c.v.value()});
  lose_workers();
  look.load();
  CHECK(c.session.recoveries() == 2);
  CHECK(look.start().get()[0].item<float>() == 1);
}

TEST_CASE("a session that waits for workers in the place of lost ones can be closed") {
  const TemporaryDir dir;
  const std::string program = dir.path("program");
  fs::create_symlink(fs::read_symlink("/proc/self/exe"), program);
  Graph g;
  const Variable v = variable(g, "v", 1.f);
  std::atomic<bool> waits{false};
  Cluster cluster = one_thread();
  cluster.workers = 1;
  cluster.worker_program = program;
  cluster.stop = [&] {  // asked while it waits for workers
    waits = true;
    return false;
  };
  Session s(g, cluster);
  const CompiledStep look = s.compile({v.value()});
  s.init();
  s.keep();
  // Whoever is started from now on does not join.
  fs::remove(program);
  std::ofstream(program) << "#!/bin/sh\nexec tail -f /dev/null\n";
  fs::permissions(program, fs::perms::owner_all);
  waits = false;
  for (pid_t worker : processes_of(getpid())) kill(worker, SIGKILL);
  Status run;
  std::thread runs([&] { run = look.try_run().status(); });
  CHECK(wait_until([&] { return waits.load(); }));
  s.close();
  runs.join();
  says(run, Code::cancelled, "could not go on: ");
}

TEST_CASE(
    "a service whose large state is in its checkpoints keeps it again, though it commits nothing") {
  const TemporaryDir dir;
  Graph g;
  const Variable v = variable(g, "v", Tensor::zeros(DType::f32, Shape{17 << 20}).value());
  const Output first = v[0];
  const Gate gate(g, kTask0);
  TcpWorkers workers(1);
  Session s(g, workers.cluster());
  std::atomic<int> written{0};
  JobOptions options = in(dir.path("job"), 0);
  options.checkpoint_seconds = 0.01;
  options.checkpointed = [&](const std::string&, const Status& status) { written += status.ok(); };
  Job job(s, options);
  std::thread serves([&] { job.serve(); });
  const CompiledStep take = s.compile({gate.taken});
  CHECK(wait_until([&] { return written > 0 && s.can_recover().ok(); }));
  PendingRun waits = take.start();
  waits.cancel();
  CHECK(waits.try_get().status().code() == Code::cancelled);
  CHECK(wait_until([&] { return written > 1 && s.can_recover().ok(); }));
  CHECK(s.run({first})[0].item<float>() == 0);
  job.stop();
  serves.join();
}

// Whoever answers requests may tell their errors to the clients, and live on.
TEST_CASE("a service whose session cannot go on ends with the cause") {
  for (const bool recover : {true, false}) {
    CAPTURE(recover);
    const TemporaryDir dir;
    Graph g;
    const Variable v = variable(g, "v", 3.f);
    std::atomic<bool> gives_up{false}, over{false};
    Cluster cluster = one_thread();
    cluster.workers = 2;
    cluster.stop = [&] { return gives_up.load(); };
    Session s(g, cluster);
    JobOptions options = in(dir.path("job"), 1'000'000);  // nothing is due
    options.recover = recover;
    Job job(s, options);
    const CompiledStep look = s.compile({v.value()});
    Status ended;
    std::thread serves([&] {
      try {
        job.serve();
      } catch (const Error& error) {
        ended = error.status();
      }
      over = true;
    });
    gives_up = true;
    for (pid_t worker : processes_of(getpid())) kill(worker, SIGKILL);
    const Code code = recover ? Code::cancelled : Code::unavailable;
    CHECK(look.try_run().status().code() == code);
    CHECK(wait_until([&] { return over.load(); }));
    job.stop();
    serves.join();
    says(ended, code, recover ? "could not go on: " : "cannot go on: its state was not kept");
    says(s.can_recover(), Code::failed_precondition, recover ? "it has ended: " : "was not kept");
  }
}

TEST_CASE("a worker that is lost with the last checkpoint is an error of the loop") {
  const TemporaryDir dir;
  Losable c([](Graph& g) { return variable(g, "v", 0.f); });
  Op add = assign_add(c.v, constant(c.g, 1.f));
  const auto send = [](int signal) {
    for (pid_t worker : processes_of(getpid())) kill(worker, signal);
  };
  JobOptions options = in(dir.path("job"), 2);
  options.recover = false;
  // The last one is begun by workers that do nothing any more, and then are gone.
  options.describe = [&](CheckpointHeader& header) {
    if (header.step == 3) send(SIGKILL);
  };
  Job job(c.session, options);
  Code code = Code::ok;
  try {
    for (const JobStep& s : job.steps(3)) {
      c.session.run({}, {add}, {}, s);
      if (s.number() == 3) {
        CHECK(wait_until([&] { return fs::exists(dir.path("job") + "/ckpt-2"); }));
        send(SIGSTOP);
      }
    }
  } catch (const Error& error) {
    code = error.status().code();
  }
  CHECK(code == Code::unavailable);
  CHECK(job.checkpoint().ends_with("ckpt-2"));
  CHECK(job.last_checkpoint().code() == Code::unavailable);
}

TEST_CASE("a mark of the place of a state that was not kept is there after a worker was lost") {
  Losable c([](Graph& g) { return variable(g, "v", 0.f); });
  Op add = assign_add(c.v, constant(c.g, 1.f));
  const Gate gate(c.g, "/job:worker/task:0");
  c.session.init();
  c.session.keep("begun");
  c.session.run({}, {add});
  PendingRun waits = c.session.compile({gate.taken}).start();
  c.session.keep("of no use");  // a run is under way
  c.session.run({}, {gate.put}, {{gate.fed, Tensor::scalar(1.f)}});
  (void)waits.get();
  c.lose_workers();
  c.session.run({}, {add});
  CHECK(c.session.recoveries() == 1);
  CHECK(c.session.place().note == "of no use");
  CHECK(c.session.run({c.v})[0].item<float>() == 2);
}

TEST_CASE(
    "a checkpoint that cannot be written ends no training, and the last one's failure shows") {
  const TemporaryDir dir;
  const std::string here = dir.path("job");
  for (bool heals : {true, false}) {
    Counter c;
    Job job(c.session, in(here, 1));
    for (const JobStep& s : job.steps(6)) {
      c.step.run({Tensor::scalar(0.f)}, s);
      if (s.number() == 2) {  // somebody puts a file in the folder's place
        fs::rename(here, here + ".away");
        std::ofstream(here) << "a file";
      }
      if (s.number() == 5 && heals) {
        fs::remove(here);
        fs::rename(here + ".away", here);
      }
    }
    CHECK(job.step() == 6);
    CHECK(c.value() == 6);
    CHECK(job.last_checkpoint().ok() == heals);
    CHECK(job.exit_code() == (heals ? 0 : 1));
    CHECK(job.checkpoint().ends_with("ckpt-6") == heals);
    fs::remove_all(here);
    fs::remove_all(here + ".away");
  }
}

TEST_CASE("a job does not go on from what is not its own") {
  const TemporaryDir dir;
  const std::string here = dir.path("job");
  const auto refused = [&](GraphBuilder& g, JobOptions options, Code code, const char* why) {
    Session session(g, one_thread());
    try {
      Job job(session, std::move(options));
      FAIL("it went on: " << why);
    } catch (const Error& error) {
      says(error.status(), code, why);
    }
  };
  {
    Counter c;
    Job job(c.session, in(here, 1));
    for (const JobStep& s : job.steps(2)) c.step.run({Tensor::scalar(0.f)}, s);
  }
  Graph other;
  const Variable v = variable(other, "v", 7.f);
  [[maybe_unused]] const Output read = v * 2.f;
  refused(other, in(here, 1), Code::failed_precondition, "the graph is another one");
  {
    JobOptions options = in(here, 1);
    options.other_graph = true;
    Graph third;
    const Variable w = variable(third, "v", 7.f);
    [[maybe_unused]] const Output used = w * 2.f;
    data::digits(64).batch(1).outputs<2>(third);  // whose place is in the checkpoint
    Session session(third, one_thread());
    Job job(session, options);
    CHECK(job.step() == 2);
    CHECK(session.run({w})[0].item<float>() == 2);
  }
  {
    Session session(other, one_thread());
    session.init();
    session.save_job(dir.path("plain"));
  }
  refused(other, in(dir.path("plain"), 1), Code::data_loss, "is none of a Job");
  for (const auto& entry : fs::directory_iterator(here))
    if (entry.is_directory()) fs::remove(entry.path() / "manifest.json");
  refused(other, in(here, 1), Code::not_found, "no checkpoint that is whole");
  std::ofstream(dir.path("file")) << "x";
  refused(other, in(dir.path("file"), 1), Code::failed_precondition, "file");
  for (const char* note :
       {"troupe job 1 5 2000000000\n", "troupe job 1 5 0 3 nan\n", "troupe job 1 -1 0\n"})
    CHECK(JobPosition::parse(note).status().code() == Code::data_loss);
  refused(other, {.keep = 0}, Code::invalid_argument, "keep is a number from 1 to 1000, not 0");
  refused(other, {.checkpoint_seconds = std::nan("")}, Code::invalid_argument, "0 to 1e12");
  refused(other, {.on_nan = JobOptions::NanPolicy::back}, Code::invalid_argument, "dir");
}

TEST_CASE("a job that has an interval for checkpoints and no folder for them says so") {
  const auto said = [](JobOptions options) {
    Graph g;
    variable(g, "count", 0.f);
    Session session{g, one_thread()};
    std::vector<std::string> log;
    set_log_writer([&](std::string_view line) { log.emplace_back(line); });
    { const Job job(session, std::move(options)); }
    set_log_writer({});
    return log;
  };
  const TemporaryDir dir;
  CHECK(said({}).empty());
  CHECK(said({.checkpoint_seconds = JobOptions::kNever}).empty());
  CHECK(said({.dir = dir.path("job"), .checkpoint_steps = 5}).empty());
  for (const JobOptions& options :
       {JobOptions{.checkpoint_steps = 5}, JobOptions{.checkpoint_seconds = 1}}) {
    const auto log = said(options);
    REQUIRE(log.size() == 1);
    CHECK(contains(log[0], "no checkpoints are written"));
  }
}

TEST_CASE("options of a job are read from a program's arguments") {
  const auto read = [](std::vector<std::string> words) {
    std::vector<char*> argv;
    words.insert(words.begin(), "program");
    for (std::string& word : words) argv.push_back(word.data());
    argv.push_back(nullptr);
    return JobOptions::try_from_args(int(words.size()), argv.data());
  };
  const JobOptions all = value_or_throw(read({"--job-dir",
                                              "d",
                                              "--threads",
                                              "2",
                                              "--checkpoint-every=30s",
                                              "--keep",
                                              "7",
                                              "--allow-other-graph",
                                              "--patience",
                                              "4",
                                              "--on-nan",
                                              "back",
                                              "--nan-limit",
                                              "9",
                                              "--output",
                                              "json",
                                              "--quiet",
                                              "mine",
                                              "--",
                                              "--keep",
                                              "8"}));
  CHECK(all.dir == "d");
  CHECK(all.checkpoint_seconds == 30);
  CHECK(all.checkpoint_steps == 0);
  CHECK(all.keep == 7);
  CHECK(all.other_graph);
  CHECK(all.patience == 4);
  CHECK(all.on_nan == JobOptions::NanPolicy::back);
  CHECK(all.nan_limit == 9);
  CHECK(all.json);
  CHECK(all.quiet);
  CHECK(read({"--checkpoint-every", "200"})->checkpoint_steps == 200);
  for (const auto& [words, why] : std::vector<std::pair<std::vector<std::string>, const char*>>{
           {{"--job-dir"}, "--job-dir wants a value"},
           {{"--job-dir", ""}, "wants a folder"},
           {{"--jobdir", "d"}, "did you mean '--job-dir'?"},
           {{"--keep", "0"}, "from 1 to 1000, not '0'"},
           {{"--checkpoint-every", "often"}, "such as 30s, not 'often'"},
           {{"--checkpoint-every", "0s"}, "such as 30s, not '0s'"},
           {{"--on-nan", "cry"}, "one of fail, skip, back, ignore, not 'cry'"},
           {{"--output", "xml"}, "one of text, json"},
           {{"--quiet=1"}, "--quiet takes no value"}})
    says(read(words).status(), Code::invalid_argument, why);
}
