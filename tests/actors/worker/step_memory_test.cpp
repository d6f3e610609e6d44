// Steps that want more memory than they may hold, in sessions.
#include <doctest/doctest.h>

#include "ops/api.hpp"
#include "tests/actors/support/sessions.hpp"

using namespace troupe;
using namespace troupe::test;

namespace {

bool says(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

constexpr std::uint64_t kMiB = 1 << 20;

// n values of 256 KiB, all of which the gradient needs.
Output saves(Graph& g, Output n, Output x, LoopSave save = LoopSave::values) {
  return std::get<1>(while_loop(
      std::tuple{constant(g, 0), x}, [&](Output i, Output) { return i < n; },
      [&](Output i, Output v) {
        return std::tuple{i + 1, tanh(v * x)};
      },
      {.save = save}));
}

Tensor quarter_mib() { return value_or_throw(Tensor::zeros(DType::f32, {64 * 1024})); }

// A session, whose steps may hold so much.
class LimitedSession {
 public:
  LimitedSession(GraphBuilder& g, const Place& place, std::uint64_t bytes) {
    Cluster cluster = place.first == place.second ? one_thread() : workers_.emplace(2).cluster();
    cluster.step_memory = bytes;
    session_.emplace(g, cluster);
  }
  Session* operator->() { return &*session_; }

 private:
  std::optional<TcpWorkers> workers_;
  std::optional<Session> session_;
};

}  // namespace

TEST_CASE("a step that wants more than it may hold ends, writes nothing, and others go on") {
  for (const Place& place : kPlaces) {
    CAPTURE(place.name);
    Graph g;
    auto there = g.with_device(place.second);
    Output n = placeholder<std::int32_t>(g, PartialShape::scalar(), "n");
    Output x = placeholder<float>(g, {64 * 1024}, "x");
    Variable count = variable(g, "count", Tensor::scalar(0.0f));
    Op written = assign_add(count, constant(g, 1.0f));
    Output y = sum(saves(g, n, x));
    Output dx = value_or_throw(gradients(std::vector{y}, std::vector{x}))[0];
    LimitedSession s(g, place, 8 * kMiB);
    s->init();
    auto step = s->compile({sum(dx)}, {written}, {n, x});
    auto other = s->compile({count + 0.0f}, {});
    step.run({Tensor::scalar(std::int32_t{10}), quarter_mib()});
    for (int again = 0; again < 2; ++again) {
      const Status ended =
          step.try_run({Tensor::scalar(std::int32_t{100}), quarter_mib()}).status();
      CHECK(ended.code() == Code::resource_exhausted);
      const std::string text = ended.text();
      CHECK_MESSAGE(says(text, "where it may hold 8 MiB (step_memory)"), text);
      CHECK_MESSAGE(says(text, "values that were saved of 'while/"), text);
      CHECK_MESSAGE(says(text, "step_memory_test.cpp:"), text);
      CHECK_MESSAGE(says(text, "in iteration "), text);
      CHECK(other.run(std::vector<Tensor>{})[0].item<float>() == 1);
    }
    step.run({Tensor::scalar(std::int32_t{10}), quarter_mib()});
    CHECK(other.run(std::vector<Tensor>{})[0].item<float>() == 2);
  }
}

TEST_CASE("what a step may hold is that of one step, and of one process") {
  Graph g;
  Output x = placeholder<float>(g, {64 * 1024}, "x");
  Output y = exp(x) + 1.0f;
  Session s(g, [] {
    Cluster cluster = one_thread();
    cluster.step_memory = kMiB;
    return cluster;
  }());
  auto step = s.compile({y}, {}, {x});
  std::vector<Tensor> kept;  // of steps that are over
  for (int i = 0; i < 20; ++i) kept.push_back(step.run({quarter_mib()})[0]);
  CHECK(kept[19].data<float>()[7] == 2);
}

TEST_CASE("the options of a cluster say what a step may hold") {
  const char* words[] = {"program", "--step-memory", "3MiB"};
  CHECK(Cluster::from_args(3, const_cast<char**>(words)).step_memory == 3 * kMiB);
  const char* joined[] = {"program", "--step-memory=65536"};
  CHECK(Cluster::from_args(2, const_cast<char**>(joined)).step_memory == 65536);
  const char* bad[] = {"program", "--step-memory", "3MB"};
  const Status status = Cluster::try_from_args(3, const_cast<char**>(bad)).status();
  CHECK(status.code() == Code::invalid_argument);
  CHECK_MESSAGE(says(status.text(), "--step-memory wants a number of bytes"), status.text());
}
