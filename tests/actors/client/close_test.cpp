// Close: from any state, by any thread, more than once.
#include <doctest/doctest.h>

#include <atomic>
#include <thread>

#include "tests/actors/support/sessions.hpp"

using namespace troupe;
using namespace troupe::test;

TEST_CASE("Close cancels blocked runs and says who closed") {
  for (const Place& place : kPlaces) {
    CAPTURE(place.name);
    GatedSession x(place, place.first);
    std::vector<PendingRun> runs;
    for (int i = 0; i < 10; ++i) runs.push_back(x.take.start());
    CHECK(x.s->try_close().ok());
    for (PendingRun& run : runs) {
      REQUIRE(run.done());  // Close waited for them
      Status status = run.try_get().status();
      CHECK(status.code() == Code::cancelled);
      CHECK(status.message().find("closed by its user") != std::string::npos);
    }
  }
}

TEST_CASE("Close ends runs whose kernels are at work") {
  for (const Place& place : kPlaces) {
    CAPTURE(place.name);
    Graph g;
    Output start = placeholder<float>(g, {1024, 1024});
    Output work = long_work(g, place.second, start);
    PlacedSession s(g, place);
    PendingRun run = s->compile({work}, {}, {start}).start({long_work_start()});
    auto begin = std::chrono::steady_clock::now();
    CHECK(s->try_close().ok());
    MESSAGE(place.name, ": closed after ", seconds_since(begin), " s");
    CHECK(run.try_get().status().code() == Code::cancelled);
  }
}

TEST_CASE("Close twice, and from several threads at once, is one Close") {
  for (const Place& place : kPlaces) {
    CAPTURE(place.name);
    GatedSession x(place, place.second);
    PendingRun run = x.take.start();
    std::vector<std::thread> closers;
    std::atomic<int> fine{0};
    for (int t = 0; t < 4; ++t)
      closers.emplace_back([&] {
        if (x.s->try_close().ok()) ++fine;
      });
    for (auto& closer : closers) closer.join();
    CHECK(fine == 4);
    CHECK(run.try_get().status().code() == Code::cancelled);
    CHECK(x.s->try_close().ok());
    x.s->close();
  }
}

TEST_CASE("Close by another thread than the one that opened the session") {
  for (const Place& place : kPlaces) {
    CAPTURE(place.name);
    Graph g;
    Output y = constant(g, 1.0f) + 1.0f;
    PlacedSession s(g, place);
    CHECK(s->run({y})[0].item<float>() == 2);
    std::thread([&] { CHECK(s->try_close().ok()); }).join();
  }
}
