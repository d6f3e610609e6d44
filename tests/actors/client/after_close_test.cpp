// What is left of a session, its steps and its runs after Close.
#include <doctest/doctest.h>

#include <atomic>
#include <thread>

#include "tests/actors/support/sessions.hpp"

using namespace troupe;
using namespace troupe::test;

namespace {

bool ended_by_close(const Status& status) {
  return status.code() == Code::cancelled || status.code() == Code::failed_precondition;
}

}  // namespace

TEST_CASE("Close under clients that run, compile and extend ends all of them") {
  for (const Place& place : kPlaces) {
    CAPTURE(place.name);
    Graph g;
    Variable v = variable_on(g, place.second, "v", Tensor::scalar(0.0f));
    Op add = assign_add(v, constant(g, 1.0f));
    std::vector<Output> others;
    for (int i = 0; i < 50; ++i) others.push_back(v.value() + float(i));
    PlacedSession s(g, place);
    s->init();
    auto step = s->compile({}, {add});
    std::atomic<int> committed{0}, wrong{0};
    std::vector<std::thread> clients;
    for (int t = 0; t < 3; ++t)
      clients.emplace_back([&, t] {
        for (int i = 0;; ++i) {
          Status status = t == 2 ? s->try_compile({others[std::size_t(i % 50)]}).status()
                                 : step.try_run().status();
          if (status.ok()) {
            ++committed;
            continue;
          }
          if (!ended_by_close(status)) ++wrong;
          return;
        }
      });
    while (committed < 20) std::this_thread::yield();
    CHECK(s->try_close().ok());
    for (auto& client : clients) client.join();
    CHECK(wrong == 0);
  }
}

TEST_CASE("use after Close fails with a reason, whatever is used") {
  for (const Place& place : kPlaces) {
    CAPTURE(place.name);
    Graph g;
    Variable v = variable(g, "v", Tensor::scalar(1.0f));
    Output y = v.value() + 1.0f;
    PlacedSession s(g, place);
    s->init();
    auto step = s->compile({y});
    PendingRun over = step.start();
    CHECK(over.get()[0].item<float>() == 2);
    CHECK(s->try_close().ok());
    auto refused = [](const Status& status) {
      return status.code() == Code::failed_precondition &&
             status.message().find("closed") != std::string::npos;
    };
    CHECK(refused(step.try_run().status()));
    CHECK(refused(step.start().try_get().status()));
    CHECK(refused(s->try_run({y}).status()));
    CHECK(refused(s->try_compile({y}).status()));
    CHECK(refused(s->try_init()));
    CHECK(refused(s->try_variables().status()));
    CHECK(refused(s->try_restore({{"v", Tensor::scalar(2.0f)}}, 1)));
    CHECK_THROWS_AS(s->run({y}), Error);
    over.cancel();
    CHECK(over.get()[0].item<float>() == 2);
    (void)s->describe();
    CHECK(s->memory().empty());
    CHECK(s->committed() == 1);
  }
}

TEST_CASE("the end of a session is a Close; its runs may outlive it") {
  for (const Place& place : kPlaces) {
    CAPTURE(place.name);
    GatedSession x(place, place.second);
    PendingRun run = x.take.start();
    x.s.destroy();
    CHECK(run.try_get().status().code() == Code::cancelled);
    CHECK(x.take.try_run().status().code() == Code::failed_precondition);
    run.cancel();
  }
}
