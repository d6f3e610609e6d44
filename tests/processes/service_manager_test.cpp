#include "actors/supervision/service_manager.hpp"

#include <doctest/doctest.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstddef>
#include <cstring>
#include <filesystem>
#include <map>

using namespace troupe;
using namespace std::chrono_literals;

namespace {

// A manager that reads what it is told.
struct Told {
  int socket = ::socket(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  explicit Told(std::string address) {
    if (address[0] == '@') address[0] = '\0';
    sockaddr_un at{};
    at.sun_family = AF_UNIX;
    std::memcpy(at.sun_path, address.data(), address.size());
    REQUIRE(bind(socket, reinterpret_cast<const sockaddr*>(&at),
                 socklen_t(offsetof(sockaddr_un, sun_path) + address.size())) == 0);
  }
  ~Told() { close(socket); }
  std::string next() const {
    char text[256];
    const ssize_t n = recv(socket, text, sizeof text, 0);
    return n < 0 ? std::string("nothing") : std::string(text, std::size_t(n));
  }
};

Expected<ServiceManager> manager(const std::map<std::string, std::string>& environment) {
  return ServiceManager::make(
      [&](const std::string& name) -> std::optional<std::string> {
        const auto found = environment.find(name);
        return found == environment.end() ? std::nullopt
                                          : std::optional<std::string>(found->second);
      },
      7);
}

}  // namespace

TEST_CASE("a service manager hears states, each status once, and that the process is alive") {
  std::string folder = (std::filesystem::temp_directory_path() / "troupe-XXXXXX").string();
  REQUIRE(mkdtemp(folder.data()) != nullptr);
  for (const std::string& at : {folder + "/notify", "@" + folder}) {
    CAPTURE(at);
    const Told told(at);
    auto made = manager({{"NOTIFY_SOCKET", at}, {"WATCHDOG_USEC", "3000000"}});
    REQUIRE(made.ok());
    ServiceManager systemd = std::move(*made);
    CHECK(systemd.is_there());
    CHECK(systemd.alive_every() == 1500ms);
    systemd.tell("READY=1");
    CHECK(told.next() == "READY=1");
    systemd.tell_status("step 1");
    systemd.tell_status("step 1");
    systemd.tell_status("step 2");
    CHECK(told.next() == "STATUS=step 1");
    CHECK(told.next() == "STATUS=step 2");
    CHECK(told.next() == "nothing");
    for (const Instant now : {Instant(10s), Instant(11s), Instant(11499ms)})
      systemd.tell_alive(now);
    CHECK(told.next() == "WATCHDOG=1");
    CHECK(told.next() == "nothing");
    systemd.tell_alive(11500ms);
    CHECK(told.next() == "WATCHDOG=1");
  }
  // Nobody is there any more.
  manager({{"NOTIFY_SOCKET", folder + "/notify"}})->tell("READY=1");
  std::filesystem::remove_all(folder);
}

TEST_CASE("a process without a service manager tells nobody, and a wrong address is refused") {
  CHECK_FALSE(manager({})->is_there());
  CHECK_FALSE(manager({{"NOTIFY_SOCKET", ""}})->is_there());
  CHECK_FALSE(manager({{"WATCHDOG_USEC", "1"}})->is_there());
  CHECK(manager({{"NOTIFY_SOCKET", "@x"}})->alive_every() == kNever);
  // Of another process.
  CHECK(manager({{"NOTIFY_SOCKET", "@x"}, {"WATCHDOG_USEC", "9"}, {"WATCHDOG_PID", "8"}})
            ->alive_every() == kNever);
  CHECK(manager({{"NOTIFY_SOCKET", "@x"}, {"WATCHDOG_USEC", "8"}, {"WATCHDOG_PID", "7"}})
            ->alive_every() == 4us);
  for (const std::string& wrong :
       {std::string("x"), std::string("/"), std::string("vsock:2:1"), std::string(109, '/')})
    CHECK_FALSE(manager({{"NOTIFY_SOCKET", wrong}}).ok());
  for (const char* wrong : {"0", "-1", "x", "1s"})
    CHECK_FALSE(manager({{"NOTIFY_SOCKET", "@x"}, {"WATCHDOG_USEC", wrong}}).ok());
}
