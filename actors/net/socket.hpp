// The socket calls that processes need, with values and Status.
#pragma once

#include <sys/socket.h>

#include <string>
#include <vector>

#include "actors/net/transport.hpp"
#include "core/descriptor.hpp"

namespace troupe {

struct Address {
  sockaddr_storage storage{};
  socklen_t size = 0;

  const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&storage); }
  bool loopback() const;     // 127.0.0.0/8, ::1, and the former inside IPv6
  std::string host() const;  // without the port; limits per address use it
  std::uint16_t port() const;
};

// All addresses of the endpoint, at least one. Waits for name servers unless host is numeric;
// unavailable if none answers, not_found if there is no such name.
Expected<std::vector<Address>> resolve(const Endpoint& endpoint);

// Non-blocking, close-on-exec, without Nagle's delay.
Expected<Descriptor> listen_on(const Address& at);
Expected<Descriptor> start_connect(
    const Address& to);  // ends with writability; then connect_result
Status connect_result(int fd);
void tune(int fd);
// What is written waits here rather than in the kernel, so that what is urgent can overtake it.
void keep_little_unsent(int fd);
// Whether the addresses of both ends of a connected socket are loopback.
bool between_loopbacks(int fd);
Address local_address(int fd);

Status errno_status(const std::string& doing, int error);

}  // namespace troupe
