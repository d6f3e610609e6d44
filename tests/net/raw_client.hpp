// A client of plain sockets that says whatever a test wants.
#pragma once

#include <arpa/inet.h>
#include <doctest/doctest.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <string>
#include <utility>

#include "actors/net/detail/handshake.hpp"
#include "actors/net/frame.hpp"
#include "tests/net/streams.hpp"
#include "tests/resident.hpp"

namespace troupe::testing {

class RawClient {
 public:
  explicit RawClient(std::uint16_t port) : fd_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in at{};
    at.sin_family = AF_INET;
    at.sin_port = htons(port);
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    linger reset{1, 0};  // no TIME_WAIT: tests open many
    setsockopt(fd_, SOL_SOCKET, SO_LINGER, &reset, sizeof reset);
    REQUIRE(::connect(fd_, reinterpret_cast<sockaddr*>(&at), sizeof at) == 0);
  }
  // The other end of the next connection to a listening socket.
  static RawClient accepted_by(int listener) {
    pollfd p{listener, POLLIN, 0};
    REQUIRE(::poll(&p, 1, 10'000) == 1);
    return RawClient(Descriptor{::accept(listener, nullptr, nullptr)});
  }
  ~RawClient() {
    if (fd_ >= 0) ::close(fd_);
  }
  RawClient(RawClient&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  RawClient(const RawClient&) = delete;
  RawClient& operator=(const RawClient&) = delete;

  // As much as the other side takes before it closes.
  void send(std::string_view bytes) {
    while (!bytes.empty()) {
      ssize_t n = ::send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (n <= 0) return;
      bytes.remove_prefix(std::size_t(n));
    }
  }
  // No more bytes will come from here.
  void finish() { ::shutdown(fd_, SHUT_WR); }
  // Whether the other side closed within 10 s; drops what it says before.
  bool closed() {
    char buffer[4096];
    for (;;) {
      pollfd p{fd_, POLLIN, 0};
      if (::poll(&p, 1, 10'000) <= 0) return false;
      if (::recv(fd_, buffer, sizeof buffer, 0) <= 0) return true;
    }
  }
  // The payload of the next control frame; empty when the connection ended.
  std::string frame(FrameType* type = nullptr) {
    std::string head = exactly(kControlHeader);
    if (head.empty()) return {};
    auto header = decode_control_header(std::span<const std::byte, kControlHeader>(
        reinterpret_cast<const std::byte*>(head.data()), kControlHeader));
    REQUIRE(header.ok());
    if (type != nullptr) *type = FrameType(header->type);
    std::string payload = exactly(header->length + kTrailer);
    return payload.empty() ? payload : payload.substr(0, header->length);
  }

 private:
  struct Descriptor {
    int fd;
  };
  explicit RawClient(Descriptor d) : fd_(d.fd) { REQUIRE(fd_ >= 0); }
  std::string exactly(std::size_t size) {
    std::string s(size, '\0');
    for (std::size_t done = 0; done < size;) {
      pollfd p{fd_, POLLIN, 0};
      if (::poll(&p, 1, 10'000) <= 0) return {};
      ssize_t n = ::recv(fd_, s.data() + done, size - done, 0);
      if (n <= 0) return {};
      done += std::size_t(n);
    }
    return s;
  }
  int fd_;
};

inline std::string frame_of(FrameType type, std::string_view payload) {
  return text_of(control_frame(type, as_bytes(payload)));
}
inline std::string hello_frame(std::string_view hello = "raw") {
  return frame_of(FrameType::hello, encode(Greeting{1u << 20, 1u << 20, false, {}, Hello(hello)}));
}
// Says hello; the token for a data connection.
inline std::string greet(RawClient& c) {
  c.send(hello_frame());
  auto g = decode_greeting(as_bytes(c.frame()));
  REQUIRE(g.ok());
  return {reinterpret_cast<const char*>(g->token.data()), g->token.size()};
}

}  // namespace troupe::testing
