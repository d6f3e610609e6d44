#include "actors/supervision/process_supervisor.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <sstream>

#include "tests/contains.hpp"

using namespace troupe;
using test::contains;
using namespace std::chrono_literals;
namespace fs = std::filesystem;

namespace {

// A folder of a test's own, and a supervisor in a process of its own, which writes what happens
// into a file there, and at last what run() returned.
struct Supervised {
  std::string folder;
  pid_t pid = -1;

  Supervised() {
    std::string name = (fs::temp_directory_path() / "troupe-supervised-XXXXXX").string();
    REQUIRE(mkdtemp(name.data()) != nullptr);
    folder = name;
  }
  ~Supervised() {
    if (pid > 0) {
      kill(pid, SIGKILL);
      (void)waitpid(pid, nullptr, 0);
    }
    fs::remove_all(folder);
  }

  ProcessSpec shell(const std::string& id, const std::string& script,
                    Restart restart = Restart::transient) const {
    return {.child = {.id = id, .restart = restart},
            .command = {"sh", "-c", "cd " + folder + "; " + script}};
  }

  // `before`: a script that a child of the process runs that was there before it supervises.
  void start(ProcessSupervisor::Options options, const std::string& before = {}) {
    pid = fork();
    REQUIRE(pid >= 0);
    if (pid > 0) return;
    setpgid(0, 0);  // what a test sends to the group is not for the tests
    if (!before.empty() && fork() == 0) {
      execlp("sh", "sh", "-c", ("cd " + folder + "; " + before).c_str(), nullptr);
      _exit(127);
    }
    std::ofstream events(folder + "/events");
    options.told = [&](const ProcessSupervisor::Event& event) {
      using Kind = ProcessSupervisor::Event::Kind;
      if (event.kind == Kind::started) events << "+" << event.child;
      if (event.kind == Kind::not_started) events << "!" << event.child;
      if (event.kind == Kind::ended)
        events << "-" << event.child << ":" << event.end.code << ":" << event.end.signal;
      if (event.kind == Kind::restarting) events << "~" << event.child;
      events << " " << std::flush;
    };
    auto supervisor = ProcessSupervisor::make(std::move(options));
    if (!supervisor.ok()) _exit(100);
    const Status over = (*supervisor)->run();
    std::ofstream(folder + "/over") << over.text();
    _exit((*supervisor)->stopped_by() != 0 ? 128 + (*supervisor)->stopped_by() : over.ok() ? 0 : 1);
  }
  int end() {
    int status = 0;
    REQUIRE(waitpid(std::exchange(pid, -1), &status, 0) > 0);
    REQUIRE(WIFEXITED(status));
    return WEXITSTATUS(status);
  }
  std::string read(const std::string& name) const {
    std::ifstream file(folder + "/" + name);
    std::stringstream text;
    text << file.rdbuf();
    return text.str();
  }
  std::string events() const { return read("events"); }
  // Until it is true, which may take a minute.
  void wait_until(const std::function<bool()>& there) const {
    for (int i = 0; i < 12000; ++i) {
      if (there()) return;
      usleep(5000);
    }
    FAIL("nothing for a minute; events: " << events());
  }
  bool exists(const std::string& name) const { return fs::exists(folder + "/" + name); }
};

bool lives(pid_t pid) {
  std::ifstream stat("/proc/" + std::to_string(pid) + "/stat");
  std::string number, name, state;
  return bool(stat >> number >> name >> state) && state != "Z";
}

}  // namespace

TEST_CASE("processes start in order, are restarted by their specs, and stop in reverse") {
  Supervised s;
  s.start({.spec = {.strategy = Strategy::rest_for_one, .intensity = 3, .period = 60s},
           .children = {s.shell("a", "exec tail -f /dev/null"),
                        // Dies once, when it is told to.
                        s.shell("b",
                                "[ -e died ] || { until [ -e die ]; do sleep 0.01; done; "
                                "touch died; exit 3; }; exec tail -f /dev/null"),
                        s.shell("c", "exec tail -f /dev/null")}});
  s.wait_until([&] { return contains(s.events(), "+c"); });
  std::ofstream(s.folder + "/die") << "";
  s.wait_until([&] { return contains(s.events(), "~b -c:0:15 +b +c "); });
  kill(s.pid, SIGTERM);
  CHECK(s.end() == 128 + SIGTERM);
  CHECK(s.events() == "+a +b +c -b:3:0 ~b -c:0:15 +b +c -c:0:15 -b:0:15 -a:0:15 ");
  CHECK(s.read("over") == "ok");
}

TEST_CASE("a process that keeps dying ends the supervisor with its cause") {
  Supervised s;
  s.start({.spec = {.intensity = 2, .period = 60s}, .children = {s.shell("x", "kill -SEGV $$")}});
  CHECK(s.end() == 1);
  CHECK(s.events() == "+x -x:0:11 ~x +x -x:0:11 ~x +x -x:0:11 ");
  CHECK(contains(s.read("over"),
                 "child 'x' was ended by signal 11 (Segmentation fault), after 2 restarts within"));
}

TEST_CASE("a command that cannot be run is said") {
  Supervised s;
  s.start({.children = {{.child = {.id = "x"}, .command = {"/no/such/program"}}}});
  CHECK(s.end() == 1);
  CHECK(s.events() == "!x ");
  CHECK(contains(s.read("over"), "cannot run '/no/such/program': No such file"));
  CHECK(ProcessSupervisor::make({.children = {{.child = {.id = "x"}}}}).status().code() ==
        Code::invalid_argument);
}

TEST_CASE("a child gets its variables, and no signal blocked") {
  Supervised s;
  ProcessSpec child =
      s.shell("x", "echo $HERE $HOME > said; grep SigBlk /proc/self/status >> said");
  child.environment = {{"HERE", "there"}, {"HOME", "moved"}};
  child.child.significant = true;
  s.start({.spec = {.auto_shutdown = AutoShutdown::any_significant}, .children = {child}});
  CHECK(s.end() == 0);
  CHECK(s.read("said") == "there moved\nSigBlk:\t0000000000000000\n");
}

TEST_CASE("what a child leaves behind ends before it is restarted, and at the end") {
  Supervised s;
  // A grandchild that ignores all, in a session of its own.
  const char* leave =
      "setsid sh -c 'trap \"\" TERM HUP INT; exec tail -f /dev/null' & "
      "echo $! >> left; ";
  s.start({.spec = {.intensity = 1, .period = 60s},
           .children = {s.shell("x", std::string(leave) + "kill -KILL $$")},
           .orphans_within = 100ms});
  CHECK(s.end() == 1);
  std::istringstream left(s.read("left"));
  int n = 0;
  for (pid_t pid = 0; left >> pid; ++n) CHECK_FALSE(lives(pid));
  CHECK(n == 2);
}

TEST_CASE("what a child lets go while it lives is not taken for what another one leaves behind") {
  Supervised s;
  const auto lets_go = [](const char* file) {
    return std::string("sh -c 'setsid tail -f /dev/null & echo $! >> ") + file + "'; ";
  };
  s.start({.spec = {.intensity = 3, .period = 60s},
           .children = {s.shell("a", lets_go("of_a") +
                                         "[ -e died ] || { until [ -e die ]; do sleep 0.01; done; "
                                         "touch died; kill -KILL $$; }; exec tail -f /dev/null"),
                        s.shell("b", lets_go("of_b") + "touch b; exec tail -f /dev/null")},
           .orphans_within = 0ms});
  s.wait_until([&] { return s.exists("b") && contains(s.read("of_a"), "\n"); });
  const pid_t of_a = std::stoi(s.read("of_a")), of_b = std::stoi(s.read("of_b"));
  std::ofstream(s.folder + "/die") << "";
  s.wait_until([&] { return contains(s.events(), "~a +a "); });
  CHECK_FALSE(lives(of_a));
  CHECK(lives(of_b));
  kill(s.pid, SIGTERM);
  CHECK(s.end() == 128 + SIGTERM);
  CHECK_FALSE(lives(of_b));
}

TEST_CASE(
    "what a child leaves behind ends, also with the number of a child that was there before") {
  Supervised s;
  // As if the kernel had given all other numbers meanwhile.
  const char* take =
      "until [ -e gone ]; do sleep 0.01; done; p=$(cat number); i=0; "
      "while [ $i -lt 100 ]; do i=$((i + 1)); "
      "echo $((p - 1)) > /proc/sys/kernel/ns_last_pid || break; "
      "setsid tail -f /dev/null & "
      "[ $! = $p ] && touch taken && break; kill -KILL $!; done; kill -KILL $$";
  s.start({.spec = {.intensity = 0}, .children = {s.shell("x", take)}, .orphans_within = 0ms},
          "echo $$ > number; until [ -e go ]; do sleep 0.01; done");
  s.wait_until([&] { return contains(s.read("number"), "\n") && contains(s.events(), "+x"); });
  const pid_t number = std::stoi(s.read("number"));
  std::ofstream(s.folder + "/go") << "";
  s.wait_until([&] { return !fs::exists("/proc/" + std::to_string(number)); });
  std::ofstream(s.folder + "/gone") << "";
  CHECK(s.end() == 1);
  if (!s.exists("taken")) {
    MESSAGE("skipped: this process may not choose the numbers of others");
    return;
  }
  const bool left = lives(number);
  CHECK_FALSE(left);
  if (left) kill(number, SIGKILL);
}

TEST_CASE("a child that does not hear is killed at its time, and at once by a second signal") {
  const char* deaf = "trap '' TERM; touch there; while :; do sleep 0.01; done";
  {
    Supervised s;
    ProcessSpec child = s.shell("x", deaf);
    child.child.shutdown = Shutdown::timed(100ms);
    s.start({.children = {child}});
    s.wait_until([&] { return s.exists("there"); });
    kill(s.pid, SIGTERM);
    CHECK(s.end() == 128 + SIGTERM);
    CHECK(s.events() == "+x -x:0:9 ");
  }
  Supervised s;
  ProcessSpec child = s.shell("x", std::string("sh -c '") +
                                       "trap \"\" TERM; exec tail -f /dev/null"
                                       "' & echo $! > left; " +
                                       deaf);
  child.child.shutdown = Shutdown::infinite();
  s.start({.children = {child}, .orphans_within = 1h});
  s.wait_until([&] { return s.exists("there"); });
  kill(s.pid, SIGINT);
  // A closed terminal is no sign of impatience.
  kill(s.pid, SIGHUP);
  kill(s.pid, SIGHUP);
  kill(s.pid, SIGTERM);
  CHECK(s.end() > 128);
  CHECK(s.events() == "+x -x:0:9 ");
  CHECK_FALSE(lives(std::stoi(s.read("left"))));
}

TEST_CASE("a signal of the user's is passed on to the children of the group alone") {
  Supervised s;
  ProcessSpec apart = s.shell("b", "touch b; exec tail -f /dev/null");
  apart.own_group = true;
  s.start({.children = {s.shell("a",
                                "trap 'touch heard' USR1; touch a; while :; do sleep 0.01; "
                                "done"),
                        apart}});
  s.wait_until([&] { return s.exists("a") && s.exists("b"); });
  kill(s.pid, SIGUSR1);
  s.wait_until([&] { return s.exists("heard"); });
  kill(s.pid, SIGTERM);
  CHECK(s.end() == 128 + SIGTERM);
  CHECK(s.events() == "+a +b -b:0:15 -a:0:15 ");
}

TEST_CASE("a child of a closed terminal is asked to end, and not cut off") {
  Supervised s;
  ProcessSpec child =
      s.shell("x", "trap 'touch asked; exit 0' TERM; touch there; while :; do sleep 0.01; done");
  child.child.shutdown = Shutdown::infinite();
  s.start({.children = {child}});
  s.wait_until([&] { return s.exists("there"); });
  kill(-s.pid, SIGHUP);  // as a shell sends it to its jobs
  CHECK(s.end() == 128 + SIGHUP);
  CHECK(s.exists("asked"));
  CHECK(s.events() == "+x -x:0:0 ");
}

TEST_CASE("a child that is stopped ends when it is asked") {
  Supervised s;
  ProcessSpec child = s.shell("x", "echo $$ > pid; exec tail -f /dev/null");
  child.child.shutdown = Shutdown::infinite();
  s.start({.children = {child}});
  s.wait_until([&] { return !s.read("pid").empty(); });
  kill(std::stoi(s.read("pid")), SIGSTOP);
  kill(s.pid, SIGTERM);
  CHECK(s.end() == 128 + SIGTERM);
}

TEST_CASE("what got on is restarted for ever") {
  Supervised s;
  ProcessSupervisor::Options options{
      .spec = {.intensity = 1, .period = 1h},
      .children = {s.shell("x", "echo >> n; [ $(wc -l < n) -lt 20 ] && kill -KILL $$; exit 0")}};
  options.children[0].child.significant = true;
  options.spec.auto_shutdown = AutoShutdown::any_significant;
  options.progressed = [](const std::string&) { return true; };
  s.start(std::move(options));
  CHECK(s.end() == 0);
  CHECK(s.read("n").size() == 20);
}

TEST_CASE("lives that are longer than the period cost nothing of the budget") {
  Supervised s;
  ProcessSupervisor::Options options{
      .spec = {.intensity = 1, .period = 150ms},
      .children = {
          s.shell("x", "echo >> n; [ $(wc -l < n) -lt 5 ] || exit 0; sleep 0.3; kill -KILL $$")}};
  options.children[0].child.significant = true;
  options.spec.auto_shutdown = AutoShutdown::any_significant;
  s.start(std::move(options));
  CHECK(s.end() == 0);
  CHECK(s.read("n").size() == 5);
}

TEST_CASE("children end when their supervisor is killed") {
  Supervised s;
  s.start({.children = {s.shell("x", "echo $$ > pid; exec tail -f /dev/null")}});
  s.wait_until([&] { return !s.read("pid").empty(); });
  const pid_t child = std::stoi(s.read("pid"));
  kill(s.pid, SIGKILL);
  s.wait_until([&] { return !lives(child); });
}
