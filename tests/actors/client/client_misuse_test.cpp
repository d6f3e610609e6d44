// What a client can do wrong with sessions, steps and runs: an Error or a Status, never a crash.
#include <doctest/doctest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <memory>
#include <optional>
#include <vector>

#include "actors/client/session.hpp"
#include "ops/api.hpp"
#include "ops/metrics/metrics.hpp"
#include "tests/actors/support/printed.hpp"
#include "tests/apps/job_processes.hpp"
#include "tests/contains.hpp"
#include "tests/misuse.hpp"

using namespace troupe;
using namespace std::chrono_literals;
using test::check_thrown;

namespace {

// As a program has it in a function template.
template <class T>
T twice(T value, int threads) {
  Graph g;
  Session s{g, Cluster{.threads = threads}};
  return s.run({constant(g, value) * 2})[0].template item<T>();
}
template <class T>
Cluster cluster_of() {
  return Cluster{.threads = int(sizeof(T)), .devices = {"CPU", "FAKE"}};
}

const RunOptions kPassed{.timeout = -1ns};

}  // namespace

TEST_CASE("a function template makes a session on a cluster of its own") {
  CHECK(twice(2.5f, 1) == 5.0f);
  CHECK(twice<std::int64_t>(4, 1) == 8);
  CHECK(cluster_of<std::int64_t>().threads == 8);
  CHECK(cluster_of<float>().devices == std::vector<std::string>{"CPU", "FAKE"});
  CHECK(Cluster{}.devices == std::vector<std::string>{"CPU"});
}

TEST_CASE("a cluster that cannot be is refused by the field that says so") {
  Graph g;
  check_thrown({
      {"threads is a number from 0 to 1024", [&] { Session(g, Cluster{.threads = -1}); }},
      {"threads is a number from 0 to 1024", [&] { Session(g, Cluster{.threads = 5000}); }},
      {"replicas is a number from 1 to 1024", [&] { Session(g, Cluster{.replicas = 0}); }},
      {"workers is a number from 0 to 4096", [&] { Session(g, Cluster{.workers = -2}); }},
      {"wait_for is a number from 0 to 4096", [&] { Session(g, Cluster{.wait_for = -3}); }},
      {"Cluster::devices: how many there are", [&] { Session(g, Cluster{.devices = {}}); }},
      {"device", [&] { Session(g, Cluster{.devices = {"cpu 0"}}); }},
  });
}

TEST_CASE("steps and runs that nobody made are refused") {
  const CompiledStep step;
  PendingRun run;
  CHECK(step.try_run().status().code() == Code::failed_precondition);
  CHECK(step.try_rewind().code() == Code::failed_precondition);
  CHECK(step.try_next().status().code() == Code::failed_precondition);
  CHECK(step.try_single().status().code() == Code::failed_precondition);
  CHECK(run.try_get().status().code() == Code::failed_precondition);
  const std::string no_step = "the CompiledStep is empty", no_run = "the PendingRun is empty";
  check_thrown({
      {no_step, [&] { step.run(); }},
      {no_step, [&] { step.run<float>(); }},
      {no_step, [&] { (void)step.start(); }},
      {no_step, [&] { step.rewind(); }},
      {no_step, [&] { step.next(); }},
      {no_step, [&] { step.single(); }},
      {no_step, [&] { step.pass<float>(); }},
      {no_run, [&] { run.done(); }},
      {no_run, [&] { run.get(); }},
      {no_run, [&] { (void)run.committed(); }},
      {no_run, [&] { run.cancel(); }},
  });
}

TEST_CASE("a session refuses handles and feeds that are none of its graph") {
  Graph g, other;
  const Output x = placeholder<float>(g, {2}), y = x * 2, none;
  const Output foreign = constant(other, 1.0f);
  const Tensor value = Tensor::of<float>(Shape{2}, {1, 2});
  Session s(g, {.threads = 1});
  const auto code = [](const auto& result) { return result.status().code(); };
  CHECK(code(s.try_run({none})) == Code::invalid_argument);
  CHECK(code(s.try_run({}, {Op()})) == Code::invalid_argument);
  CHECK(code(s.try_run({}, {Op(none)})) == Code::invalid_argument);
  CHECK(code(s.try_run({y}, {}, {{none, value}})) == Code::invalid_argument);
  CHECK(code(s.try_run({y}, {}, {{x, Tensor()}})) == Code::invalid_argument);
  CHECK(code(s.try_run({foreign})) == Code::invalid_argument);
  CHECK(code(s.try_run({}, {Op(foreign)})) == Code::invalid_argument);
  CHECK(code(s.try_run({y.sibling(3)})) == Code::invalid_argument);
  CHECK(code(s.try_run({Output(&g, {NodeId(1'000'000), 0})})) == Code::invalid_argument);
  CHECK(code(s.try_run({}, {Op(&g, NodeId(1'000'000))})) == Code::invalid_argument);
  CHECK(code(s.try_compile({y}, {}, {x.sibling(1)})) == Code::invalid_argument);
  g.add_initializer(1'000'000);
  CHECK(s.try_init().code() == Code::invalid_argument);
  CHECK(s.run({y}, {}, {{x, value}})[0].data<float>()[1] == 4);
}

TEST_CASE("a graph may be gone before its session, which says so") {
  auto g = std::make_unique<Graph>();
  const Variable w = variable(*g, "w", Tensor::scalar(3.0f));
  const Output y = w * 2;
  auto s = std::make_unique<Session>(*g, Cluster{.threads = 1});
  s->init();
  CompiledStep step = s->compile({y});
  g.reset();
  CHECK(step.run()[0].item<float>() == 6);
  const auto gone = [](const Status& status) {
    CHECK(status.code() == Code::failed_precondition);
    CHECK_MESSAGE(status.message().find("graph is gone") != std::string::npos, status.text());
  };
  gone(s->try_run({y}).status());
  gone(s->try_compile({}, {Op(y)}).status());
  gone(s->try_init());
  gone(s->try_variables().status());
  gone(s->try_state().status());
  gone(s->try_save("/dev/null"));
  gone(s->try_restore("/dev/null"));
  gone(s->try_restore({}, 1));
  CHECK(s->try_reset().ok());
  CHECK(s->try_close().ok());
  s.reset();
}

TEST_CASE("a timeout that has passed ends a run at once, and none is the default") {
  Graph g;
  const Variable w = variable(g, "w", Tensor::scalar(1.0f));
  const Op add = assign_add(w, constant(g, 1.0f));
  Session s(g, {.threads = 1});
  s.init();
  const CompiledStep step = s.compile({w}, {add});
  for (const auto timeout :
       {0ns, -1ns, std::chrono::nanoseconds(-1h), std::chrono::nanoseconds::min()}) {
    CAPTURE(timeout.count());
    const RunOptions options{.timeout = timeout};
    CHECK(step.try_run({}, options).status().code() == Code::deadline_exceeded);
    CHECK(step.start({}, options).try_get().status().code() == Code::deadline_exceeded);
    CHECK(s.try_run({w}, {add}, {}, options).status().code() == Code::deadline_exceeded);
    CHECK(step.try_next(options).status().code() == Code::deadline_exceeded);
  }
  CHECK(step.run()[0].item<float>() == 1);  // nothing was written
  CHECK(step.run({}, {.timeout = {}})[0].item<float>() == 2);
  CHECK(step.run({}, {.timeout = 1h})[0].item<float>() == 3);
  CHECK(step.run({}, {.timeout = std::chrono::nanoseconds::max()})[0].item<float>() == 4);
  CHECK(step.try_run({Tensor()}, kPassed).status().code() == Code::invalid_argument);
}

// Its threads stay behind: whoever waits for them would wait for ever.
TEST_CASE("in a forked process a session says that it is none of its own, and can be left") {
  Graph g;
  const Variable w = variable(g, "w", Tensor::scalar(1.0f));
  std::optional<Session> s(std::in_place, g, Cluster{.threads = 2});
  s->init();
  CompiledStep step = s->compile({w + 1.0f});
  const pid_t child = fork();
  if (child == 0) {
    alarm(60);
    const auto refused = [](const Status& status) {
      return status.code() == Code::failed_precondition &&
             status.message().find("forked") != std::string::npos;
    };
    bool all = refused(step.try_run().status()) && refused(s->try_init()) &&
               refused(s->try_run({w}).status()) && refused(s->try_close());
    try {
      (void)step.start();
      all = false;
    } catch (const Error& error) {
      all = all && refused(error.status());
    }
    step = {};
    s.reset();
    _exit(all ? 0 : 1);
  }
  REQUIRE(child > 0);
  int status = -1;
  REQUIRE(waitpid(child, &status, 0) == child);
  CHECK(status == 0);
  CHECK(step.run()[0].item<float>() == 2);
}

TEST_CASE("Cluster::stop is refused what would wait for the session that asks it") {
  Graph g;
  std::atomic<bool> asks{false};
  std::optional<Session> s;
  CompiledStep step;
  std::vector<Status> said;
  Cluster cluster{.threads = 1, .workers = 1};
  cluster.stop = [&] {
    if (!asks.exchange(false)) return false;
    said.push_back(step.try_run().status());
    said.push_back(step.start().try_get().status());
    said.push_back(s->try_place().status());
    said.push_back(s->try_waits().status());
    CHECK(s->recoveries() == 0);  // which need not wait
    return false;
  };
  s.emplace(g, cluster);
  Variable v = variable(g, "v", 1.f);
  s->init();
  step = s->compile({v.value()});
  s->keep();
  const auto workers = test::processes_of(getpid());
  REQUIRE(workers.size() == 1);
  kill(workers[0], SIGKILL);
  asks = true;
  CHECK(step.run()[0].item<float>() == 1);
  CHECK(s->recoveries() == 1);
  REQUIRE(said.size() == 4);
  for (const Status& each : said) {
    CHECK_MESSAGE(each.code() == Code::failed_precondition, each.text());
    CHECK(test::contains(each.text(), "Cluster::stop"));
  }
}

TEST_CASE("a line that adds nodes for every run is named once") {
  test::Printed printed;
  set_log_level(LogLevel::warning);
  Graph g;
  const Variable w = variable(g, "w", Tensor::scalar(1.0f));
  Session s(g, {.threads = 1});
  s.init();
  const Output twice = w * 2;
  for (int i = 0; i < 300; ++i) s.run({twice});
  CHECK(printed.count("the graph got new nodes here") == 0);
  int line = 0;
  for (int i = 0; i < 210; ++i) {
    line = __LINE__ + 1;
    s.run({}, {assign(w, w + 1.0f)});
  }
  CHECK(printed.count("the graph got new nodes here") == 1);
  CHECK(printed.count("client_misuse_test.cpp:" + std::to_string(line)) == 1);
}

TEST_CASE("a pass is not read behind its end") {
  Graph g;
  const Output x = data::tensors({Tensor::of<float>(Shape{2}, {1, 2})}).outputs<1>(g)[0];
  Session s(g, {.threads = 1});
  auto pass = s.compile({x}).pass<float>();
  auto at = pass.begin();
  ++at, ++at;
  CHECK(at == pass.end());
  check_thrown({{"the pass is over", [&] { *at; }}});
}

TEST_CASE("a label that is no class is told by its number, and a score by its bounds") {
  Graph g;
  const Output labels = placeholder<std::int64_t>(g, {3}), scores = placeholder<float>(g, {3});
  const Tensor good = Tensor::of<std::int64_t>(Shape{3}, {1, 0, 9});
  const Tensor bad = Tensor::of<std::int64_t>(Shape{3}, {1, 0, 12});
  const Output other = placeholder<std::int64_t>(g, {3});
  const auto matrix = metrics::confusion(g.scope("confusion"), other, labels, 10);
  const auto area = metrics::auc(g.scope("auc"), scores, cast<bool>(labels));
  Session s(g, {.threads = 1});
  s.init();
  const auto told = [&](const Tensor& predicted, const Tensor& label) {
    return s.try_run({}, {matrix.update}, {{other, predicted}, {labels, label}}).status().text();
  };
  CHECK(told(good, good) == "ok");
  for (const auto& [told_of, name] : {std::pair{told(good, bad), "confusion/labels/"},
                                      {told(bad, good), "confusion/predictions/"}}) {
    const std::string& text = told_of;
    CAPTURE(text);
    CHECK(text.find("indices[2] = 12 is outside [0, 10)") != std::string::npos);
    CHECK(text.find(name) != std::string::npos);
    CHECK(text.find("client_misuse_test.cpp") != std::string::npos);
  }
  const Tensor counted = s.run({matrix.value})[0];
  CHECK(counted.shape() == Shape{10, 10});
  CHECK(counted.data<std::int64_t>()[99] == 1);
  for (const float score : {1.5f, -0.5f, std::numeric_limits<float>::quiet_NaN()}) {
    const Tensor fed = Tensor::of<float>(Shape{3}, {0.5f, score, 1});
    const std::string text =
        s.try_run({}, {area.update}, {{scores, fed}, {labels, good}}).status().text();
    CHECK_MESSAGE(text.find("auc: a score is not in [0, 1]") != std::string::npos, text);
  }
}
