#include "apps/chaos/links.hpp"

#include <arpa/inet.h>
#include <doctest/doctest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>

using namespace troupe;

namespace {

// A connection of this process with itself.
struct Connection {
  int ends[2] = {-1, -1};
  Connection() {
    const int listener = socket(AF_INET, SOCK_STREAM, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    auto* at = reinterpret_cast<sockaddr*>(&address);
    REQUIRE(bind(listener, at, size) == 0);
    REQUIRE(listen(listener, 1) == 0);
    REQUIRE(getsockname(listener, at, &size) == 0);
    ends[0] = socket(AF_INET, SOCK_STREAM, 0);
    REQUIRE(connect(ends[0], at, size) == 0);
    ends[1] = accept(listener, nullptr, nullptr);
    close(listener);
  }
  ~Connection() {
    for (int end : ends) close(end);
  }
  void say(int end, char what) const { REQUIRE(send(ends[end], &what, 1, MSG_NOSIGNAL) == 1); }
  // 0: nothing is there. What is sent over loopback is there when send() has returned.
  char heard(int end) const {
    char what = 0;
    return recv(ends[end], &what, 1, MSG_DONTWAIT) == 1 ? what : '\0';
  }
  char waited_for(int end) const {
    char what = 0;
    return recv(ends[end], &what, 1, 0) == 1 ? what : '\0';
  }
};

Link with_itself() { return {getpid(), getpid()}; }

}  // namespace

TEST_CASE("what is sent over a deaf connection is lost, and comes once it hears") {
  const Connection some, other;
  LinkChange cut(with_itself(), [](int one, int) { deafen(one); });
  // Each of the two connections is found from both of its ends.
  CHECK(value_or_throw(cut.apply()) >= 4);
  CHECK(value_or_throw(cut.apply()) == 0);
  some.say(0, 'a');
  other.say(1, 'b');
  CHECK(some.heard(1) == '\0');
  CHECK(other.heard(0) == '\0');
  const Connection later;
  later.say(0, 'c');
  CHECK(later.heard(1) == 'c');
  // The duplicates are this process's, too, for as long as there are any.
  CHECK(value_or_throw(cut.apply()) >= 2);
  later.say(0, 'd');
  CHECK(later.heard(1) == '\0');
  value_or_throw(LinkChange(with_itself(), [](int one, int) { hear(one); }).apply());
  CHECK(some.waited_for(1) == 'a');
  CHECK(other.waited_for(0) == 'b');
  CHECK(later.waited_for(1) == 'd');
}

TEST_CASE("a connection that is deaf at one end is heard at the other") {
  const Connection connection;
  deafen(connection.ends[0]);
  connection.say(0, 'a');
  CHECK(connection.heard(1) == 'a');
  connection.say(1, 'b');
  CHECK(connection.heard(0) == '\0');
}

TEST_CASE("both ends of a reset connection learn of it") {
  const Connection connection;
  reset(connection.ends[0]);
  char byte = 0;
  CHECK(recv(connection.ends[1], &byte, 1, 0) == -1);
  CHECK(errno == ECONNRESET);
  CHECK(recv(connection.ends[0], &byte, 1, 0) <= 0);
}

TEST_CASE("a slow connection has a rate, until it is at full speed") {
  const Connection connection;
  const auto rate = [&] {
    std::uint32_t bytes = 0;
    socklen_t size = sizeof bytes;
    getsockopt(connection.ends[0], SOL_SOCKET, SO_MAX_PACING_RATE, &bytes, &size);
    return bytes;
  };
  slow_down(connection.ends[0], 1000);
  CHECK(rate() == 1000);
  full_speed(connection.ends[0]);
  CHECK(rate() == ~std::uint32_t{0});
}

TEST_CASE("processes with a connection between them are found, and only those") {
  const Connection connection;
  int held[2];
  REQUIRE(pipe(held) == 0);
  const pid_t child = fork();
  if (child == 0) {  // has both ends, as this process has
    char byte = 0;
    close(held[1]);
    (void)!read(held[0], &byte, 1);
    _exit(0);
  }
  const auto links = value_or_throw(links_among({getpid(), child}));
  REQUIRE(links.size() == 1);
  CHECK(links[0].one == getpid());
  CHECK(links[0].other == child);
  close(held[1]);
  close(held[0]);
  waitpid(child, nullptr, 0);
  CHECK(value_or_throw(borrow_sockets(child)).empty());
  CHECK(value_or_throw(links_among({getpid(), child})).empty());
  CHECK(value_or_throw(links_among({})).empty());
}
