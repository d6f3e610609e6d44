// The service example, killed while it answers.
#include <doctest/doctest.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cmath>
#include <csignal>
#include <cstdio>
#include <string>

#include "tests/apps/command.hpp"
#include "tests/apps/folder.hpp"
#include "tests/apps/job_processes.hpp"
#include "tests/apps/running_command.hpp"

using namespace troupe::test;

namespace {

// One connection to it.
class Guest {
 public:
  explicit Guest(const std::string& path) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    path.copy(address.sun_path, sizeof address.sun_path - 1);
    const timeval patience{10, 0};
    setsockopt(socket_, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    there_ = connect(socket_, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0;
  }
  ~Guest() { close(socket_); }
  bool say(const std::string& text) const {
    return there_ && send(socket_, text.data(), text.size(), MSG_NOSIGNAL) >= 0;
  }
  // Empty: the connection is lost.
  std::string ask(const std::string& text) const { return say(text) ? hear() : ""; }
  std::string hear() const {
    std::string answer;
    for (char c = 0; recv(socket_, &c, 1, 0) == 1;) {
      if (c == '\n') return answer;
      answer += c;
    }
    return "";
  }

 private:
  const int socket_ = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  bool there_ = false;
};

}  // namespace

TEST_CASE("a service counts each request once, whatever part of it is killed") {
  Folder folder;
  const std::string socket = folder.path + "/socket";
  RunningCommand run({"run", "--job", folder.path + "/job", "--",
                      build_dir() + "/bin/examples/service", "--socket", socket});
  // As often as it takes, as its clients do.
  const auto ask = [&](const std::string& line) {
    std::string answer;
    REQUIRE(wait_until([&] {
      answer = Guest(socket).ask(line + "\n");
      return !answer.empty();
    }));
    return answer;
  };
  const auto child_of = [](pid_t parent) {
    const auto children = processes_of(parent);
    return children.empty() ? 0 : children.front();
  };
  CHECK(ask("add 1 1") == "1 1 1");
  CHECK(ask("add 2 1") == "2 1 2");
  const pid_t service = child_of(run.pid());
  REQUIRE(service > 0);
  REQUIRE(kill(service, SIGKILL) == 0);
  CHECK(ask("add 2 1") == "2 1 2");  // whose answer was lost, for all that client 2 knows
  CHECK(ask("add 1 2") == "1 2 3");
  Guest guest(socket);
  CHECK(guest.ask("crash 1 3\n").empty());  // an actor: its supervisor opens the door again
  CHECK(ask("add 1 3") == "1 3 4");
  // What its child process learns, whatever becomes of that.
  if (const pid_t child = child_of(child_of(run.pid())); child > 0) kill(child, SIGKILL);
  std::string answer;
  REQUIRE(wait_until([&] { return !contains(answer = ask("predict 1 4 1.5"), "error"); }));
  float sine = 0;
  REQUIRE(std::sscanf(answer.c_str(), "1 4 %f", &sine) == 1);
  CHECK(std::abs(sine - std::sin(1.5f)) < 0.2f);
  CHECK(contains(ask("add 99 1"), "error expected"));
  CHECK(contains(ask(std::string(150, 'x')), "error expected"));
  CHECK(Guest(socket).ask(std::string(5000, 'x')).empty());
  // Clients that do not wait for their answers: no number overtakes an earlier one of its client.
  Guest third(socket), fourth(socket);
  for (const auto& [client, sender] : {std::pair(3, &third), std::pair(4, &fourth)}) {
    std::string lines;
    for (int n = 1; n <= 20; ++n)
      lines += "add " + std::to_string(client) + " " + std::to_string(n) + "\n";
    sender->say(lines);
  }
  for (int n = 0; n < 20; ++n)
    for (Guest* each : {&third, &fourth}) CHECK_FALSE(contains(each->hear(), "error"));
  CHECK(ask("add 1 4") == "1 4 45");
  run.signal(SIGTERM);
  CHECK(run.end() == 143);
}
