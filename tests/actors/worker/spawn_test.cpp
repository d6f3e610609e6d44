// An actor of the runtime that ends by itself takes its process along. The cases marked skip() are
// that process: other cases run this program again for them.
#include "actors/spawn.hpp"

#include <doctest/doctest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <caf/send.hpp>
#include <cstdio>
#include <future>
#include <stdexcept>
#include <string>

#include "actors/interfaces.hpp"
#include "ops/api.hpp"
#include "tests/actors/sim/world.hpp"
#include "tests/actors/support/actor_system.hpp"

using namespace troupe;
using namespace troupe::test;

namespace {

struct Ended {
  int code = -1;
  std::string output;
};

// This program with the one case that is skipped otherwise. The limit is for a case that hangs,
// which is what it was before.
Ended run_case(const std::string& name) {
  std::array<char, 4096> piece;
  const ssize_t length = readlink("/proc/self/exe", piece.data(), piece.size());
  REQUIRE(length > 0);
  const std::string program(piece.data(), std::size_t(length));
  const std::string command =
      "timeout 120 " + program + " --no-skip '--test-case=" + name + "' 2>&1";
  std::FILE* pipe = popen(command.c_str(), "r");
  REQUIRE(pipe != nullptr);
  Ended ended;
  while (std::size_t n = std::fread(piece.data(), 1, piece.size(), pipe))
    ended.output.append(piece.data(), n);
  const int status = pclose(pipe);
  ended.code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  return ended;
}

ServiceActor::behavior_type throwing(ServiceActor::pointer, int thrown) {
  return {[thrown](const ResourceCall&) {
    if (thrown == 0) throw std::runtime_error("planted in a handler");
    throw thrown;
  }};
}

ServiceActor::behavior_type throwing_at_once(ServiceActor::pointer, int) {
  throw std::runtime_error("planted before the first message");
}

void ask_and_wait(ServiceActor::behavior_type (*behavior)(ServiceActor::pointer, int), int thrown) {
  testing::System system;
  auto actor = system.make([&](caf::actor_system& s) {
    return spawn_actor<ServiceActor>(s, "planted", behavior, thrown);
  });
  caf::anon_send(actor, ResourceCall{});
  std::promise<void>().get_future().wait();
}

void ended_with(const std::string& name, const std::string& actor, const std::string& cause) {
  INFO(name);
  const Ended ended = run_case(name);
  INFO(ended.output);
  CHECK(ended.code == kOurFault);
  CHECK(ended.output.find("actor '" + actor + "' of process ") != std::string::npos);
  CHECK(ended.output.find(" ended: " + cause) != std::string::npos);
}

// All ops, and one whose kernel throws.
const OpTable& with_throwing_op() {
  static const OpTable table = [] {
    OpTable all = ops::builtin();
    all.add({.name = "Throw",
             .out = {"y: f32"},
             .shape =
                 [](InferenceContext& c) {
                   c.set(0, PartialShape::scalar());
                   return ok_status();
                 },
             .stateful = true,
             .cheap = true})
        .cpu(kernel<[](KernelContext&) -> Status { throw std::bad_alloc(); }>);
    return all;
  }();
  return table;
}

}  // namespace

TEST_CASE("process: an exception in a handler" * doctest::skip()) { ask_and_wait(throwing, 0); }
TEST_CASE("process: a number is thrown" * doctest::skip()) { ask_and_wait(throwing, 7); }
TEST_CASE("process: an exception of an actor that begins" * doctest::skip()) {
  ask_and_wait(throwing_at_once, 0);
}
TEST_CASE("process: an actor is killed" * doctest::skip()) {
  testing::System system;
  auto actor = system.make(
      [](caf::actor_system& s) { return spawn_actor<ServiceActor>(s, "planted", throwing, 0); });
  caf::anon_send_exit(actor, caf::exit_reason::kill);
  std::promise<void>().get_future().wait();
}
TEST_CASE("an actor of the runtime that throws ends its process, which says why") {
  ended_with("process: an exception in a handler", "planted", "planted in a handler");
  ended_with("process: a number is thrown", "planted", "an exception of unknown type");
  ended_with("process: an exception of an actor that begins", "planted",
             "planted before the first message");
  ended_with("process: an actor is killed", "planted", "exit_reason(kill)");
}

TEST_CASE("what a kernel throws in an executor's handler fails its run, and the next one is done") {
  World world(1, 2, with_throwing_op());
  GraphBuilder g(with_throwing_op().ops);
  Output y = g.add(NodeSpec{.op = "Throw", .name = "bad"}).output();
  Output two = constant(g, 2.0f);
  Client client(world.master(), 1, g);
  client.compile("throw", {y}, {}).try_run("throw", kNever);
  client.compile("two", {two}, {}).run("two");
  REQUIRE(world.run({&client}).ok());
  const Status& status = client.ended()[0];
  CHECK(status.code() == Code::resource_exhausted);
  CHECK(status.text().find("in node 'bad' (Throw)") != std::string::npos);
  CHECK(client.fetched().back()[0].item<float>() == 2);
}

TEST_CASE("actors that are told to end, or that nobody knows any more, end alone") {
  testing::System system;
  for (bool told : {true, false}) {
    std::promise<void> ended;
    auto actor = system.make([&](caf::actor_system& s) {
      auto made = spawn_actor<ServiceActor>(s, "planted", throwing, 0);
      caf::actor_cast<caf::abstract_actor*>(made)->attach_functor([&] { ended.set_value(); });
      return made;
    });
    if (told) caf::anon_send_exit(actor, caf::exit_reason::user_shutdown);
    actor = nullptr;
    ended.get_future().wait();
  }
}
