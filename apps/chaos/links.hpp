// The TCP connections between processes of this machine, changed from outside.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <set>
#include <string>
#include <vector>

#include "core/descriptor.hpp"
#include "core/status.hpp"

namespace troupe {

// A connected socket of another process. The duplicate is to be gone soon: as long as it is there
// the connection outlives the process.
class BorrowedSocket {
 public:
  BorrowedSocket(Descriptor fd, std::uint64_t inode, std::string here, std::string there)
      : here(std::move(here)), there(std::move(there)), inode(inode), fd_(std::move(fd)) {}
  int fd() const { return fd_.get(); }

  const std::string here, there;  // its ends: "127.0.0.1:4711"
  const std::uint64_t inode;      // names the socket for as long as the machine runs

 private:
  Descriptor fd_;
};

// Whether they are the two ends of one connection.
bool are_connected(const BorrowedSocket& one, const BorrowedSocket& other);

// Those of a process, but for the ones that are `known`. Empty: it has none, or is gone.
// failed_precondition: this process may not have them, or the kernel (before 5.6) cannot.
Expected<std::vector<BorrowedSocket>> borrow_sockets(pid_t process,
                                                     const std::set<std::uint64_t>& known = {});

// Two processes with a connection between them.
struct Link {
  pid_t one = 0, other = 0;
};
Expected<std::vector<Link>> links_among(const std::vector<pid_t>& processes);

// Does something to the ends of each connection of a link that it was not done to before.
class LinkChange {
 public:
  // `change` is given a socket of `one`, and that of `other` at its end.
  LinkChange(Link link, std::function<void(int one, int other)> change)
      : link_(link), change_(std::move(change)) {}
  // The connections that are there and new; how many they are.
  Expected<int> apply();

 private:
  const Link link_;
  const std::function<void(int, int)> change_;
  std::set<std::uint64_t> known_;  // by the socket of `one`
};

// What can be done to a socket.
void deafen(int socket);  // all that arrives is dropped, as if it had got lost on the way
void hear(int socket);    // no more
void slow_down(int socket, std::uint32_t bytes_per_second);  // what is sent
void full_speed(int socket);
void reset(int socket);  // the peer gets a reset (RST), and the process an error

}  // namespace troupe
