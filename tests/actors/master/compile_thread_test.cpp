// Compiling takes as long as it takes: nothing else waits for it.
#include <doctest/doctest.h>

#include <caf/send.hpp>

#include "tests/actors/sim/world.hpp"
#include "tests/actors/support/nodes.hpp"

using namespace troupe;
using namespace troupe::test;

namespace {

// A session that adds to variables of its own, one on each worker.
struct Adding {
  Adding(World& world, std::uint64_t session)
      : first(variable_on(g, kTask0, "first" + std::to_string(session), Tensor::scalar(0.0f))),
        second(variable_on(g, kTask1, "second" + std::to_string(session), Tensor::scalar(0.0f))),
        add{assign_add(first, constant(g, 1.0f)), assign_add(second, constant(g, 2.0f))},
        client(world.master(), session, g) {}
  Adding& ready() {
    client.init().compile("add", {}, add).compile("read", {first.value(), second.value()}, {});
    return *this;
  }
  Graph g;
  Variable first, second;
  std::vector<Op> add;
  Client client;
};

// A client that sends without waiting for answers.
struct Hasty {
  Hasty(World& world, std::uint64_t id) : master(world.master()), session(id) {}

  template <class Message>
  std::shared_ptr<Call> send(Message message) {
    message.session = session;
    message.call = std::make_shared<Call>();
    auto call = message.call;
    caf::anon_send(master, std::move(message));
    return call;
  }
  std::shared_ptr<Call> extend(std::uint64_t from = 0, std::uint64_t hash = 0) {
    auto graph = std::make_shared<GraphDef>();
    const auto& nodes = g.def().nodes;
    graph->nodes.assign(nodes.begin() + std::ptrdiff_t(from), nodes.end());
    ExtendSession message;
    message.graph = std::move(graph);
    message.from = from;
    message.hash = hash;
    return send(std::move(message));
  }
  std::shared_ptr<Call> compile(Output fetch) {
    CompileStep message;
    message.request.fetches.push_back({g.node(fetch.node()).name, 0, false});
    return send(std::move(message));
  }

  MasterActor master;
  std::uint64_t session;
  Graph g;
};

Status code_of(const std::shared_ptr<Call>& call) {
  REQUIRE(call->done());
  return call->result().status;
}

}  // namespace

TEST_CASE("runs commit while another session's graph is imported, compiled or loaded") {
  int held_up = 0;
  for (std::uint64_t after = 0; after < 120; after += 3) {
    CAPTURE(after);
    World world(after);
    Adding running(world, 1), waiting(world, 2);
    running.ready();
    REQUIRE(world.run({&running.client}).ok());
    waiting.ready().client.run("read");
    (void)world.run({&waiting.client}, after);  // gets to some point
    world.hold_compilers(true);
    running.client.run("add", 3).run("read");
    Status status = world.run({&running.client, &waiting.client});
    held_up += !status.ok();
    CHECK(running.client.finished());
    REQUIRE_MESSAGE(running.client.status().ok(), running.client.status().text());
    CHECK(running.client.fetched().back()[1].item<float>() == 6);
    world.hold_compilers(false);
    status = world.run({&running.client, &waiting.client});
    CHECK_MESSAGE(status.ok(), status.text());
    CHECK_MESSAGE(waiting.client.status().ok(), waiting.client.status().text());
    status = world.shut_down();
    CHECK_MESSAGE(status.ok(), status.text());
  }
  CHECK(held_up > 20);
}

TEST_CASE("what is asked of a session while it compiles is answered in order") {
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    CAPTURE(seed);
    World world(seed);
    Adding other(world, 1);
    Hasty client(world, 2);
    Output a = constant(client.g, 1.0f);
    auto opened = client.send(OpenSession{});
    auto first = client.extend();
    auto early = client.compile(a);
    Output b = a + 1.0f;
    auto too_early = client.compile(b);  // nobody has said yet what it is
    auto second = client.extend();
    auto late = client.compile(b);
    auto again = client.compile(a);
    REQUIRE(world.run({&other.ready().client}).ok());
    for (int i = 0; i < 50 && !again->done(); ++i)
      REQUIRE(world.run({&other.client.run("add")}).ok());
    CHECK(code_of(opened).ok());
    CHECK(code_of(first).ok());
    CHECK(code_of(early).ok());
    CHECK(code_of(too_early).code() == Code::not_found);
    CHECK(code_of(second).ok());
    CHECK(code_of(late).ok());
    CHECK(code_of(again).ok());
    CHECK(again->result().compiled == early->result().compiled);
  }
}

TEST_CASE("a session that is closed while it compiles is closed at once") {
  World world(3);
  Adding other(world, 1);
  Hasty client(world, 2);
  Output a = constant(client.g, 1.0f);
  auto opened = client.send(OpenSession{});
  auto first = client.extend();
  REQUIRE(world.run({&other.ready().client}).ok());
  REQUIRE(code_of(first).ok());
  world.hold_compilers(true);
  auto compiling = client.compile(a);
  auto second = client.extend();
  auto closed = client.send(CloseSession{});
  auto reopened = client.send(OpenSession{});
  REQUIRE(world.run({&other.client.run("add", 3)}).ok());
  CHECK(code_of(compiling).code() == Code::cancelled);
  CHECK(code_of(second).code() == Code::cancelled);
  CHECK(code_of(closed).ok());
  CHECK(code_of(reopened).ok());  // another session of that number
  auto no_graph = client.compile(a);
  world.hold_compilers(false);
  REQUIRE(world.run({&other.client.run("add", 3)}).ok());
  CHECK(code_of(no_graph).code() == Code::invalid_argument);
  Status end = world.shut_down();
  CHECK_MESSAGE(end.ok(), end.text());
}

TEST_CASE("the loss of a process ends what is being compiled for it at once") {
  World world(4);
  Hasty client(world, 2);
  Output a = constant(client.g, 1.0f);
  Adding other(world, 1);
  auto opened = client.send(OpenSession{});
  auto extended = client.extend();
  REQUIRE(world.run({&other.ready().client}).ok());
  REQUIRE(code_of(extended).ok());
  world.hold_compilers(true);
  auto compiling = client.compile(a);
  world.crash_after(0, 2);
  (void)world.run({&other.client.try_run("add", kNever)});
  CHECK(code_of(compiling).code() == Code::unavailable);
}

TEST_CASE("a reset does not wait for a compile, and the step runs after both") {
  for (std::uint64_t seed = 0; seed < 10; ++seed) {
    CAPTURE(seed);
    World world(seed);
    Adding other(world, 1), compiling(world, 2);
    REQUIRE(world.run({&other.ready().client}).ok());
    world.hold_compilers(true);
    compiling.ready().client.run("read");
    (void)world.run({&compiling.client});
    CHECK_FALSE(compiling.client.finished());
    other.client.reset({""});
    REQUIRE(world.run({&other.client}).ok());
    world.hold_compilers(false);
    Status status = world.run({&compiling.client});
    CHECK_MESSAGE(status.ok(), status.text());
    CHECK_MESSAGE(compiling.client.status().ok(), compiling.client.status().text());
  }
}
