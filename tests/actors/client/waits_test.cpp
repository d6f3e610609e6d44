// Endless waits, and what a program is told of them: the node, its line and what it waits for.
#include "core/wait.hpp"

#include <doctest/doctest.h>

#include <thread>

#include "tests/actors/support/busy_lane.hpp"
#include "tests/actors/support/sessions.hpp"

using namespace troupe;
using namespace troupe::test;
using namespace std::chrono_literals;

namespace {

// Asks until there is a wait of that kind.
Wait until_there(Session& s, Wait::On on) {
  for (;;)
    for (const Wait& wait : s.waits())
      if (wait.on == on) return wait;
}

bool has(const std::string& text, std::string_view part) {
  return text.find(part) != std::string::npos;
}

}  // namespace

TEST_CASE("a session whose runs are over waits for nothing") {
  Graph g;
  Session s(g, one_thread());
  CHECK(s.waits().empty());
  s.run({constant(g, 1.0f)});
  CHECK(s.waits().empty());
  s.close();
  CHECK_FALSE(s.try_waits().ok());
}

TEST_CASE("a run that waits for an empty queue names it, its node and the line") {
  for (const Place& place : kPlaces) {
    CAPTURE(place.name);
    Graph g;
    Output queue = queue_on(g, place.second, {.shared_name = "letters"});
    auto there = g.with_device(place.second);
    Output taken = take_from(queue);
    Op put = enqueue(queue, {constant(g, 1.0f)});
    PlacedSession s(g, place);
    PendingRun run = s->compile({taken}).start({}, {.timeout = 1h});
    const Wait wait = until_there(*s, Wait::On::queue);
    CHECK(wait.what == "queue 'letters', which is empty");
    CHECK(wait.op == "Dequeue");
    CHECK(has(wait.site, "nodes.hpp:"));
    CHECK(wait.device == std::string(place.second) + "/cpu:0");
    CHECK(has(wait.run, " of session "));
    REQUIRE(wait.left);
    CHECK(*wait.left <= 3600);
    s->run({}, {put});
    CHECK(run.get()[0].item<float>() == 1);
    CHECK(s->waits().empty());
  }
}

TEST_CASE("a run that waits for a full queue names it") {
  Graph g;
  Output queue = queue_on(g, kTask0, {.capacity = 1, .shared_name = "letters"});
  Op put = enqueue(queue, {constant(g, 1.0f)});
  Session s(g, one_thread());
  s.run({}, {put});
  PendingRun run = s.compile({}, {put}).start();
  CHECK(until_there(s, Wait::On::queue).what == "queue 'letters', which is full (capacity 1)");
  run.cancel();
}

TEST_CASE("a deadline that passes says what the run waited for") {
  for (const Place& place : kPlaces) {
    CAPTURE(place.name);
    Graph g;
    Output queue = queue_on(g, place.second, {.shared_name = "letters"});
    Output taken = take_from(queue);
    PlacedSession s(g, place);
    // A slow machine may need longer until the master knows what the run waits for.
    const CompiledStep take = s->compile({taken});
    Status status;
    for (auto timeout = 50ms; timeout < 1min && !has(status.text(), "for queue "); timeout *= 2)
      status = take.try_run({}, {.timeout = timeout}).status();
    says(status, Code::deadline_exceeded, "the deadline of step ");
    says(status, Code::deadline_exceeded, " has passed: ");
    says(status, Code::deadline_exceeded, "for queue 'letters'");
    says(status, Code::deadline_exceeded, "(Dequeue) at ");
  }
}

TEST_CASE("a busy lane is named with its node, and who waits for that node's tensor") {
  Graph g;
  BusyLane busy(g, kTask0);
  Output other = node(g, kTask1, "Neg", {busy.work}).output();
  TcpWorkers workers(2);
  Session s(g, workers.cluster());
  CompiledStep step = s.compile({other});
  PendingRun run = step.start();
  busy.wait();
  const Wait lane = until_there(s, Wait::On::node);
  CHECK(lane.op == "Print");
  CHECK(has(lane.site, "busy_lane.hpp:"));
  const Wait tensor = until_there(s, Wait::On::tensor);
  CHECK(has(tensor.what, "from /job:worker/task:0/cpu:0, which computes node '"));
  CHECK(tensor.device == "/job:worker/task:1/cpu:0");
  CHECK(has(tensor.text(), "(Print) at "));
  busy.release();
  run.get();
}
