#include "actors/supervision/supervisor_actor.hpp"

#include <doctest/doctest.h>
#include <unistd.h>

#include <atomic>
#include <caf/actor_system_config.hpp>
#include <caf/event_based_actor.hpp>
#include <caf/scoped_actor.hpp>
#include <caf/send.hpp>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <mutex>
#include <stdexcept>

#include "tests/contains.hpp"

using namespace troupe;
using test::contains;
using namespace std::chrono_literals;

namespace {

// What children did, in order: "+a" started, "-a" asked to end or crashed.
struct Diary {
  std::mutex mutex;
  std::string text;
  std::map<std::string, caf::actor> actors;

  void write(const std::string& word) {
    std::lock_guard lock(mutex);
    text += word + " ";
  }
  std::string read() {
    std::lock_guard lock(mutex);
    return text;
  }
  caf::actor actor(const std::string& id) {
    std::lock_guard lock(mutex);
    return actors.at(id);
  }
};

// An actor that throws at the word "crash" and leaves at "leave".
ActorSpec child(Diary& diary, const std::string& id, Restart restart = Restart::permanent) {
  return {.child = {.id = id, .restart = restart},
          .start = [&diary, id](caf::actor_system& system) -> Expected<caf::actor> {
            diary.write("+" + id);
            caf::actor actor = system.spawn([&diary, id](caf::event_based_actor* self) {
              self->attach_functor([&diary, id] { diary.write("-" + id); });
              return caf::behavior{[self](const std::string& word) {
                if (word == "crash") throw std::runtime_error("crashed as asked");
                self->quit();
              }};
            });
            std::lock_guard lock(diary.mutex);
            diary.actors[id] = actor;
            return actor;
          }};
}

struct World {
  Diary diary;  // outlives the system's actors
  caf::actor_system_config config;
  caf::actor_system system{config};
  caf::scoped_actor self{system};
  caf::actor supervisor;

  void start(SupervisorSpec spec, std::vector<ActorSpec> children) {
    auto spawned = spawn_supervisor(system, spec, std::move(children));
    REQUIRE_MESSAGE(spawned.ok(), spawned.status().text());
    supervisor = *spawned;
    self->monitor(supervisor);
  }
  ~World() {
    diary.actors.clear();
    if (supervisor) caf::anon_send_exit(supervisor, caf::exit_reason::user_shutdown);
  }
  std::vector<Supervision::Child> children() {
    std::vector<Supervision::Child> all;
    self->request(supervisor, caf::infinite, WhichChildren{})
        .receive([&](const SupervisedChildren& c) { all = c.children; },
                 [](const caf::error&) { FAIL("no answer"); });
    return all;
  }
  template <class Request>
  Status ask(Request request) {
    Status status;
    self->request(supervisor, caf::infinite, std::move(request))
        .receive([&](const SupervisorAnswer& a) { status = a.status; },
                 [](const caf::error&) { FAIL("no answer"); });
    return status;
  }
  void wait_until(const std::function<bool()>& there) {
    for (int i = 0; i < 12000; ++i) {
      if (there()) return;
      usleep(5000);
    }
    FAIL("nothing for a minute; diary: " << diary.read());
  }
  // The reason of the supervisor's end, as text.
  std::string end() {
    std::string reason;
    self->receive([&](const caf::down_msg& down) { reason = system.render(down.reason); });
    return reason;
  }
};

}  // namespace

TEST_CASE("a supervisor restarts its actors by its strategy, and stops them in reverse") {
  World w;
  w.start({.strategy = Strategy::rest_for_one, .intensity = 3, .period = 60s},
          {child(w.diary, "a"), child(w.diary, "b"), child(w.diary, "c")});
  w.wait_until([&] { return w.diary.read() == "+a +b +c "; });
  caf::anon_send(w.diary.actor("b"), std::string("crash"));
  w.wait_until([&] { return w.diary.read() == "+a +b +c -b -c +b +c "; });
  const auto children = w.children();
  REQUIRE(children.size() == 3);
  CHECK(children[1].restarts == 1);
  CHECK(children[1].incarnation == 2);
  CHECK(children[1].state == Supervision::State::running);
  CHECK(children[1].last_exit == "was ended by an exception");
  CHECK(children[0].last_exit.empty());
  caf::anon_send_exit(w.supervisor, caf::exit_reason::user_shutdown);
  CHECK(contains(w.end(), "user_shutdown"));
  CHECK(w.diary.read() == "+a +b +c -b -c +b +c -c -b -a ");
}

TEST_CASE("a supervisor whose intensity is exceeded ends with the cause, and its own decides") {
  World w;
  // The inner one gives up at the first crash and is started again, with all that it has.
  w.start({.intensity = 1, .period = 60s},
          {supervisor_child({.id = "inner", .shutdown = Shutdown::infinite()}, {.intensity = 0},
                            {child(w.diary, "a"), child(w.diary, "b")})});
  w.wait_until([&] { return w.diary.read() == "+a +b "; });
  caf::anon_send(w.diary.actor("b"), std::string("leave"));
  w.wait_until([&] { return w.diary.read() == "+a +b -b -a +a +b "; });
  CHECK(w.children()[0].last_exit == "child 'b' ended, and no restart is allowed");
  caf::anon_send(w.diary.actor("a"), std::string("crash"));
  const std::string reason = w.end();
  CHECK(contains(reason, "child 'inner' child 'a' was ended by an exception"));
  CHECK(contains(reason, "after 1 restart within 60 s"));
  w.supervisor = nullptr;
}

TEST_CASE("children of a supervisor are added, stopped, restarted and refused") {
  World w;
  w.start({}, {child(w.diary, "a")});
  CHECK(w.ask(AddChild{child(w.diary, "b")}).ok());
  CHECK(w.ask(AddChild{child(w.diary, "b")}).code() == Code::already_exists);
  CHECK(w.ask(AddChild{{.child = {.id = "c"}}}).code() == Code::invalid_argument);
  CHECK(w.ask(RestartChild{"a"}).ok());
  w.wait_until([&] { return w.diary.read() == "+a +b -a +a "; });
  CHECK(w.ask(StopChild{"b"}).ok());
  w.wait_until([&] { return w.children()[1].state == Supervision::State::ended; });
  CHECK(w.ask(StopChild{"x"}).code() == Code::not_found);
  CHECK(w.ask(RestartChild{"b"}).ok());
  w.wait_until([&] { return w.diary.read() == "+a +b -a +a -b +b "; });
  CHECK(spawn_supervisor(w.system, {}, {{.child = {.id = "a"}}}).status().code() ==
        Code::invalid_argument);
  CHECK(spawn_supervisor(w.system, {.intensity = -1}, {}).status().code() ==
        Code::invalid_argument);
}

TEST_CASE("a child that cannot be started is a start that failed") {
  World w;
  ActorSpec refuses = child(w.diary, "b"), throws = child(w.diary, "b");
  refuses.start = [](caf::actor_system&) -> Expected<caf::actor> {
    return not_found("no such thing");
  };
  w.start({}, {child(w.diary, "a"), refuses});
  CHECK(contains(w.end(), "child 'b' was not started: not_found: no such thing"));
  throws.start = [](caf::actor_system&) -> Expected<caf::actor> {
    throw std::runtime_error("boo");
  };
  w.start({}, {child(w.diary, "a"), throws});
  CHECK(contains(w.end(), "threw boo"));
  w.wait_until([&] { return w.diary.read() == "+a -a +a -a "; });
  w.supervisor = nullptr;
}

TEST_CASE("an actor that does not leave is killed at its time") {
  World w;
  ActorSpec deaf{.child = {.id = "deaf", .shutdown = Shutdown::timed(50ms)},
                 .start = [&](caf::actor_system& system) -> Expected<caf::actor> {
                   return system.spawn([](caf::event_based_actor* self) {
                     self->set_exit_handler([](const caf::exit_msg&) {});
                     return caf::behavior{[](int) {}};
                   });
                 }};
  w.start({}, {deaf});
  w.wait_until([&] { return w.children()[0].state == Supervision::State::running; });
  caf::anon_send_exit(w.supervisor, caf::exit_reason::user_shutdown);
  CHECK(contains(w.end(), "user_shutdown"));
}

TEST_CASE("a process is a child like an actor") {
  std::string folder = (std::filesystem::temp_directory_path() / "troupe-child-XXXXXX").string();
  REQUIRE(mkdtemp(folder.data()) != nullptr);
  const auto pids = [&] {
    std::vector<pid_t> all;
    std::ifstream file(folder + "/pids");
    for (pid_t pid = 0; file >> pid;) all.push_back(pid);
    return all;
  };
  {
    World w;
    w.start(
        {.intensity = 2, .period = 60s},
        {child(w.diary, "a"),
         process_child(
             {.child = {.id = "p"},
              .command = {"sh", "-c", "echo $$ >> " + folder + "/pids; exec tail -f /dev/null"}})});
    w.wait_until([&] { return pids().size() == 1; });
    kill(pids()[0], SIGKILL);
    w.wait_until([&] { return pids().size() == 2; });
    CHECK(w.children()[1].last_exit == "was ended by signal 9 (Killed)");
    CHECK(w.ask(RestartChild{"p"}).ok());
    w.wait_until([&] { return pids().size() == 3; });
    CHECK(w.ask(AddChild{process_child({.child = {.id = "q", .restart = Restart::temporary},
                                        .command = {"/no/such/program"}})})
              .ok());
    CHECK(contains(w.children()[2].last_exit, "cannot run '/no/such/program'"));
    // One that is killed leaves no process.
    caf::anon_send_exit(w.supervisor, caf::exit_reason::kill);
    (void)w.end();
    w.wait_until([&] { return kill(pids()[2], 0) != 0; });
    w.supervisor = nullptr;
  }
  std::filesystem::remove_all(folder);
}
