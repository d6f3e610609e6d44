// Loops without an end: other steps run beside them, and whoever may end a run ends theirs.
#include <doctest/doctest.h>

#include <chrono>
#include <thread>

#include "ops/api.hpp"
#include "tests/actors/support/printed.hpp"
#include "tests/actors/support/sessions.hpp"

using namespace troupe;
using namespace troupe::test;
using namespace std::chrono_literals;

namespace {

// One device of one thread, two of one process, one each of two processes.
const Place kLoopPlaces[] = {
    {"one device", "/cpu:0", "/cpu:0"}, {"two devices", "/cpu:0", "/cpu:1"}, kPlaces[1]};

// A session with a loop that goes to the second device and back for ever, and with others beside
// it. Both devices say when an iteration of a run has come to them.
class EndlessLoop {
 public:
  explicit EndlessLoop(const Place& place) : s_(open(place)) {
    Output x = placeholder<float>(g_, PartialShape::scalar(), "x");
    auto tell = [&](const Output& i, const char* message) {
      cond(
          i == std::int64_t{3}, [&] { print(x, {.message = message}); }, [] {});
    };
    auto here = g_.with_device(place.first);
    auto [i, last] = while_loop(
        std::tuple{constant(g_, std::int64_t{0}), x}, [](Output, Output v) { return v < 1e9f; },
        [&](Output i, Output v) {
          auto there = g_.with_device(place.second);
          tell(i, "there with ");
          Output w = v * 1.0f;
          auto back = g_.with_device(place.first);
          tell(i, "here with ");
          return std::tuple{i + std::int64_t{1}, w * 1.0f};
        });
    auto there = g_.with_device(place.second);
    Output y = x * 2.0f;
    auto back = g_.with_device(place.first);
    endless_ = s_->compile({last}, {}, {x});
    other_ = s_->compile({y + 1.0f}, {}, {x});
  }

  PendingRun start(float x, std::optional<std::chrono::nanoseconds> timeout = {}) {
    RunOptions options;
    options.timeout = timeout;
    return endless_.start({Tensor::scalar(x)}, options);
  }
  bool seen(float x) { return printed_.count(line("there", x)) && printed_.count(line("here", x)); }
  // Until the run of x is in its loop.
  void wait_for(float x, const PendingRun& run) {
    while (!seen(x)) {
      REQUIRE_FALSE(run.done());
      printed_.wait();
    }
  }
  // That other steps run to their ends.
  void run_others() {
    for (int k = 0; k < 5; ++k) CHECK(other_.run({Tensor::scalar(1.0f)})[0].item<float>() == 3);
  }
  Session& session() { return *s_; }

 private:
  static std::string line(const char* where, float x) {
    return std::string(where) + " with " + Tensor::scalar(x).text() + "\n";
  }
  std::unique_ptr<Session> open(const Place& place) {
    Cluster cluster = one_thread();
    if (place.name == "two devices") cluster.devices = {"CPU", "CPU"};
    if (place.name == kPlaces[1].name) cluster = workers_.emplace(2).cluster();
    return std::make_unique<Session>(g_, cluster);
  }

  Printed printed_;
  Graph g_;
  std::optional<TcpWorkers> workers_;
  std::unique_ptr<Session> s_;
  CompiledStep endless_, other_;
};

Code ended_with(PendingRun& run) { return run.try_get().status().code(); }

}  // namespace

TEST_CASE("an endless loop ends with the session, and other steps end beside it") {
  for (const Place& place : kLoopPlaces) {
    CAPTURE(place.name);
    EndlessLoop loop(place);
    PendingRun first = loop.start(1), second = loop.start(2);
    loop.wait_for(1, first);
    loop.wait_for(2, second);
    loop.run_others();
    CHECK_FALSE(first.done());
    CHECK_FALSE(second.done());
    std::thread([&] { CHECK(loop.session().try_close().ok()); }).join();
    CHECK(ended_with(first) == Code::cancelled);
    CHECK(ended_with(second) == Code::cancelled);
  }
}

// However slow the machine: a deadline is put off until others ended between the loop's first
// iterations and its end.
TEST_CASE("an endless loop ends with its run's deadline, and other steps go on beside it") {
  for (const Place& place : kLoopPlaces) {
    CAPTURE(place.name);
    EndlessLoop loop(place);
    PendingRun patient = loop.start(1);
    loop.wait_for(1, patient);
    float x = 2;
    bool beside = false;
    for (auto timeout = 10ms; !beside; timeout *= 2, ++x) {
      PendingRun late = loop.start(x, timeout);
      while (!loop.seen(x) && !late.done()) loop.run_others();
      if (loop.seen(x)) {
        loop.run_others();
        beside = !late.done();
      }
      CHECK(ended_with(late) == Code::deadline_exceeded);
    }
    loop.run_others();
    CHECK_FALSE(patient.done());
    patient.cancel();
    CHECK(ended_with(patient) == Code::cancelled);
    loop.run_others();
  }
}
