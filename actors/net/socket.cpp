#include "actors/net/socket.hpp"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <cstring>
#include <system_error>

namespace troupe {
namespace {
constexpr int kBacklog = 256;

// While nobody listens on a port of the range that connecting sockets get theirs from, the one that
// connects to it may be given that very port, and then talks to itself.
bool connected_to_itself(int fd) {
  sockaddr_storage here{}, there{};
  socklen_t here_size = sizeof here, there_size = sizeof there;
  return getsockname(fd, reinterpret_cast<sockaddr*>(&here), &here_size) == 0 &&
         getpeername(fd, reinterpret_cast<sockaddr*>(&there), &there_size) == 0 &&
         here_size == there_size && std::memcmp(&here, &there, here_size) == 0;
}

}  // namespace

Expected<Endpoint> parse_endpoint(std::string_view text) {
  auto bad = [&] {
    return invalid_argument(fmt::format("'{}' is not an address like 127.0.0.1:7077", text));
  };
  std::size_t colon = text.rfind(':');
  if (colon == std::string_view::npos || colon == 0) return bad();
  std::string_view host = text.substr(0, colon), port = text.substr(colon + 1);
  if (host.front() == '[' && host.back() == ']' && host.size() > 2)
    host = host.substr(1, host.size() - 2);
  else if (host.find_first_of(":[]") != std::string_view::npos)
    return bad();
  Endpoint e{std::string(host), 0};
  auto [end, error] = std::from_chars(port.data(), port.data() + port.size(), e.port);
  if (error != std::errc{} || end != port.data() + port.size()) return bad();
  return e;
}

bool Address::loopback() const {
  if (storage.ss_family == AF_INET) {
    auto& in = reinterpret_cast<const sockaddr_in&>(storage);
    return (ntohl(in.sin_addr.s_addr) >> 24) == 127;
  }
  if (storage.ss_family != AF_INET6) return false;
  auto& in = reinterpret_cast<const sockaddr_in6&>(storage).sin6_addr;
  return IN6_IS_ADDR_LOOPBACK(&in) || (IN6_IS_ADDR_V4MAPPED(&in) && in.s6_addr[12] == 127);
}

std::string Address::host() const {
  char text[INET6_ADDRSTRLEN] = "?";
  if (storage.ss_family == AF_INET)
    inet_ntop(AF_INET, &reinterpret_cast<const sockaddr_in&>(storage).sin_addr, text, sizeof text);
  else if (storage.ss_family == AF_INET6)
    inet_ntop(AF_INET6, &reinterpret_cast<const sockaddr_in6&>(storage).sin6_addr, text,
              sizeof text);
  return text;
}

std::uint16_t Address::port() const {
  if (storage.ss_family == AF_INET)
    return ntohs(reinterpret_cast<const sockaddr_in&>(storage).sin_port);
  return ntohs(reinterpret_cast<const sockaddr_in6&>(storage).sin6_port);
}

Status errno_status(const std::string& doing, int error) {
  std::string text = fmt::format("{}: {}", doing, std::system_category().message(error));
  if (error == EMFILE || error == ENFILE || error == ENOMEM || error == ENOBUFS)
    return resource_exhausted(std::move(text));
  return unavailable(std::move(text));
}

Expected<std::vector<Address>> resolve(const Endpoint& endpoint) {
  addrinfo hints{}, *found = nullptr;
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_NUMERICSERV;
  std::string port = std::to_string(endpoint.port);
  if (int e = getaddrinfo(endpoint.host.c_str(), port.c_str(), &hints, &found); e != 0) {
    const std::string text = fmt::format("address of {}: {}", endpoint.host, gai_strerror(e));
    // The one who answers for names may be back later.
    return e == EAI_AGAIN ? unavailable(text) : not_found(text);
  }
  std::vector<Address> all;
  for (addrinfo* i = found; i != nullptr; i = i->ai_next) {
    Address a;
    std::memcpy(&a.storage, i->ai_addr, i->ai_addrlen);
    a.size = i->ai_addrlen;
    all.push_back(a);
  }
  freeaddrinfo(found);
  if (all.empty()) return not_found(fmt::format("address of {}: none", endpoint.host));
  return all;
}

namespace {

bool is_any_of_six(const Address& at) {
  return at.storage.ss_family == AF_INET6 &&
         IN6_IS_ADDR_UNSPECIFIED(&reinterpret_cast<const sockaddr_in6&>(at.storage).sin6_addr);
}

Address any_of_four(std::uint16_t port) {
  Address at;
  at.size = sizeof(sockaddr_in);
  auto& in = reinterpret_cast<sockaddr_in&>(at.storage);
  in.sin_family = AF_INET;
  in.sin_addr.s_addr = htonl(INADDR_ANY);
  in.sin_port = htons(port);
  return at;
}

}  // namespace

Expected<Descriptor> listen_on(const Address& at) {
  Descriptor fd(::socket(at.storage.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  const bool any = is_any_of_six(at);
  if (!fd && any && errno == EAFNOSUPPORT) return listen_on(any_of_four(at.port()));
  if (!fd) return errno_status("socket", errno);
  int on = 1, off = 0;
  setsockopt(fd.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  if (any) setsockopt(fd.get(), IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off);
  std::string what = fmt::format("listen on {}:{}", at.host(), at.port());
  if (::bind(fd.get(), at.get(), at.size) != 0) return errno_status(what, errno);
  if (::listen(fd.get(), kBacklog) != 0) return errno_status(what, errno);
  return fd;
}

Expected<Descriptor> start_connect(const Address& to) {
  Descriptor fd(::socket(to.storage.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!fd) return errno_status("socket", errno);
  tune(fd.get());
  if (::connect(fd.get(), to.get(), to.size) != 0 && errno != EINPROGRESS)
    return errno_status(fmt::format("connect to {}:{}", to.host(), to.port()), errno);
  return fd;
}

Status connect_result(int fd) {
  int error = 0;
  socklen_t size = sizeof error;
  if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size) != 0) error = errno;
  if (error != 0) return errno_status("connect", error);
  if (!connected_to_itself(fd)) return {};
  linger reset{1, 0};  // at once: somebody else may be about to listen there
  setsockopt(fd, SOL_SOCKET, SO_LINGER, &reset, sizeof reset);
  return errno_status("connect", ECONNREFUSED);
}

void tune(int fd) {
  int on = 1;
  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
}

void keep_little_unsent(int fd) {
  int bytes = 64 << 10;  // half a second at 1 Mbit/s
  setsockopt(fd, IPPROTO_TCP, TCP_NOTSENT_LOWAT, &bytes, sizeof bytes);
}

Address local_address(int fd) {
  Address a;
  a.size = sizeof a.storage;
  if (getsockname(fd, reinterpret_cast<sockaddr*>(&a.storage), &a.size) != 0) return {};
  return a;
}

bool between_loopbacks(int fd) {
  Address remote;
  remote.size = sizeof remote.storage;
  if (getpeername(fd, reinterpret_cast<sockaddr*>(&remote.storage), &remote.size) != 0)
    return false;
  return remote.loopback() && local_address(fd).loopback();
}

}  // namespace troupe
