// How many timers the actors of a cluster have under way.
#include <doctest/doctest.h>

#include "tests/actors/sim/world.hpp"
#include "tests/actors/support/nodes.hpp"

using namespace troupe;
using namespace troupe::test;
using namespace std::chrono_literals;

TEST_CASE("timers do not multiply with the steps") {
  Graph g;
  Variable left = variable_on(g, kTask0, "left", Tensor::scalar(0.0f));
  Variable right = variable_on(g, kTask1, "right", Tensor::scalar(0.0f));
  Output queue = queue_on(g, kTask1, {.capacity = 1});
  std::vector<Op> add{assign_add(left, constant(g, 1.0f)), assign_add(right, left.value())};
  World world(1);
  Client client(world.master(), 1, g), waiting(world.master(), 2, g);
  client.init().compile("add", {}, add);
  waiting.compile("take", {take_from(queue)}, {}).try_run("take", 1h);  // ticks keep coming
  auto proceed = [&](const std::vector<Client*>& clients) {
    Status status = world.run(clients);
    REQUIRE_MESSAGE(status.ok(), status.text());
  };
  proceed({&client});
  for (int call = 0; call < 8; ++call) {  // open, extend, compile and the run that waits
    if (waiting.ready()) waiting.step();
    world.pass(5ms);
  }
  REQUIRE(waiting.text().find("waits for 'run take'") != std::string::npos);
  std::size_t most = 0;
  for (int step = 0; step < 2'000; ++step) {
    client.run("add");
    proceed({&client});
    world.pass(18ms);
    most = std::max(most, world.timers());
  }
  CHECK(most <= 3 * 8);  // of a master and two workers
  MESSAGE("timers under way: at most ", most);
}
