// What functions that a session calls back may do, and what becomes of those that do more.
#include <doctest/doctest.h>

#include <atomic>
#include <future>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "actors/client/detail/aside.hpp"
#include "actors/client/detail/recovery.hpp"
#include "apps/troupe.hpp"
#include "tests/actors/support/sessions.hpp"

using namespace troupe;
using namespace troupe::test;
using namespace std::chrono_literals;

namespace {

struct Chained {
  Graph g{3};
  Variable v = variable(g, "v", Tensor::scalar(0.0f));
  Op add = assign_add(v, constant(g, 1.0f));
  std::shared_ptr<Session> session;
  CompiledStep step;

  explicit Chained(const Cluster& cluster) {
    session = std::make_shared<Session>(g, cluster);
    session->init();
    step = session->compile({}, {add});
  }
};

// Starts a run when the one before is over, as often as it is told or until one fails.
struct Chain : std::enable_shared_from_this<Chain> {
  CompiledStep step;
  int left = 0;
  std::promise<Status> over;
  void go() {
    step.start().then([self = shared_from_this()](const Expected<std::vector<Tensor>>& fetched) {
      if (!fetched.ok() || --self->left == 0) return self->over.set_value(fetched.status());
      self->go();
    });
  }
};

}  // namespace

TEST_CASE("runs that callbacks start go on while another thread keeps the state") {
  Cluster cluster = one_thread();
  cluster.workers = 2;
  Chained c(cluster);
  auto chain = std::make_shared<Chain>();
  chain->step = c.step;
  chain->left = 500;
  auto over = chain->over.get_future();
  chain->go();
  while (over.wait_for(std::chrono::seconds(0)) != std::future_status::ready) c.session->keep();
  CHECK(over.get().ok());
}

// It may wait for a lock of the program, whose holder waits to initialise or for once().
TEST_CASE("a callback that was held back while the state was kept finds nothing locked") {
  Graph g;
  const auto core = std::make_shared<detail::SessionCore>(g, Cluster{}, nullptr);  // not started
  bool called = false, locked = false;
  const auto look = [&] {
    called = true;
    std::thread([&] {
      std::unique_lock once(core->doing_once, std::try_to_lock);
      std::unique_lock initialising(core->initialising, std::try_to_lock);
      locked = !once || !initialising;
    }).join();
  };
  const auto taken = detail::taken_alone<int>(core, [&](bool quiet) -> Expected<int> {
    CHECK(quiet);
    core->callbacks->call(look);
    CHECK_FALSE(called);
    return 1;
  });
  CHECK(taken.ok());
  CHECK(called);
  CHECK_FALSE(locked);
}

TEST_CASE("a callback that starts runs until one fails ends with the session") {
  Chained c(one_thread());
  auto chain = std::make_shared<Chain>();
  chain->step = c.step;
  chain->left = 1 << 30;
  auto over = chain->over.get_future();
  chain->go();
  c.session->close();
  CHECK(!over.get().ok());
}

TEST_CASE("what would wait is refused in a callback") {
  Chained c(one_thread());
  std::promise<Status> said;
  PendingRun run = c.step.start();
  run.then([&](const auto&) { said.set_value(c.session->try_run({c.v.value()}).status()); });
  says(said.get_future().get(), Code::failed_precondition, "in a callback");
}

TEST_CASE("a callback may be the last to have the session") {
  auto c = std::make_unique<Chained>(one_thread());
  std::weak_ptr<Session> alive = c->session;
  std::promise<void> called;
  PendingRun run = c->step.start();
  c->step = {};
  run.then(
      [session = std::exchange(c->session, nullptr), &called](const auto&) { called.set_value(); });
  run = {};
  called.get_future().get();
  while (!alive.expired()) std::this_thread::yield();
}

TEST_CASE("sessions that close on other threads are waited for, one after the other") {
  std::promise<void> let_go;
  std::vector<int> closed;
  const auto held = std::make_shared<int>(0);
  REQUIRE(detail::close_aside([&, held] {
    let_go.get_future().wait();
    closed.push_back(1);
  }));
  REQUIRE(detail::close_aside([&, held] { closed.push_back(2); }));
  CHECK_FALSE(detail::closed_aside(0ms));
  let_go.set_value();
  REQUIRE(detail::closed_aside(1min));
  CHECK(closed == std::vector<int>{1, 2});
  CHECK(held.use_count() == 1);
  REQUIRE(detail::close_aside([&] { closed.push_back(3); }));
  REQUIRE(detail::closed_aside(1min));
  CHECK(closed.size() == 3);
}

TEST_CASE("whoever watches a session that has ended hears of that") {
  Chained c(one_thread());
  int ends = 0;
  const auto hear = [&](const SessionEvent& event) {
    if (event.kind == SessionEvent::Kind::ended) ++ends;
  };
  c.session->watch(hear);
  c.session->close();
  CHECK(ends == 1);
  c.session->watch(hear);
  CHECK(ends == 2);
}
