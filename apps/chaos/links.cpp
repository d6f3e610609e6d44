#include "apps/chaos/links.hpp"

#include <fmt/format.h>
#include <linux/filter.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <map>
#include <optional>

extern "C" {  // which the header forgets in glibc 2.36
#include <sys/pidfd.h>
}

#include "core/descriptor.hpp"
#include "core/number.hpp"

namespace troupe {
namespace {

namespace fs = std::filesystem;

// "127.0.0.1:4711", for a mapped IPv6 address, too.
std::string text_of(const sockaddr_storage& address, socklen_t size) {
  std::array<char, NI_MAXHOST> host{};
  std::array<char, NI_MAXSERV> port{};
  if (getnameinfo(reinterpret_cast<const sockaddr*>(&address), size, host.data(), host.size(),
                  port.data(), port.size(), NI_NUMERICHOST | NI_NUMERICSERV) != 0)
    return {};
  std::string_view name = host.data();
  constexpr std::string_view kMapped = "::ffff:";
  if (name.starts_with(kMapped)) name.remove_prefix(kMapped.size());
  return fmt::format("{}:{}", name, port.data());
}

// Empty: it is no connected TCP socket.
std::string end_of(int fd, bool here) {
  sockaddr_storage address{};
  socklen_t size = sizeof address;
  auto* out = reinterpret_cast<sockaddr*>(&address);
  if ((here ? getsockname(fd, out, &size) : getpeername(fd, out, &size)) != 0) return {};
  if (address.ss_family != AF_INET && address.ss_family != AF_INET6) return {};
  int type = 0;
  socklen_t type_size = sizeof type;
  if (getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &type_size) != 0 || type != SOCK_STREAM) return {};
  return text_of(address, size);
}

// The number in "socket:[4711]".
std::optional<std::uint64_t> inode_in(std::string_view target) {
  constexpr std::string_view kBegin = "socket:[";
  if (!target.starts_with(kBegin) || !target.ends_with(']')) return std::nullopt;
  target.remove_prefix(kBegin.size());
  target.remove_suffix(1);
  const auto inode = parse_number<std::uint64_t>(target);
  return inode ? std::optional<std::uint64_t>(*inode) : std::nullopt;
}

// The numbers of the descriptors that are sockets, and the sockets.
std::map<int, std::uint64_t> sockets_in(pid_t process) {
  std::map<int, std::uint64_t> sockets;
  std::error_code none;
  for (fs::directory_iterator it(fmt::format("/proc/{}/fd", process), none), end;
       !none && it != end; it.increment(none)) {
    const auto inode = inode_in(fs::read_symlink(it->path(), none).string());
    const auto fd = parse_number<int>(it->path().filename().string());
    none.clear();  // it was closed meanwhile
    if (inode && fd) sockets[*fd] = *inode;
  }
  return sockets;
}

}  // namespace

bool are_connected(const BorrowedSocket& one, const BorrowedSocket& other) {
  return one.here == other.there && one.there == other.here;
}

Expected<std::vector<BorrowedSocket>> borrow_sockets(pid_t process,
                                                     const std::set<std::uint64_t>& known) {
  std::vector<BorrowedSocket> all;
  const Descriptor handle(pidfd_open(process, 0));
  const auto refused = [&] {
    return failed_precondition(
        fmt::format("no access to the sockets of process {}: {}", process, std::strerror(errno)));
  };
  if (!handle) {
    if (errno == ESRCH) return all;
    return refused();
  }
  for (const auto& [number, inode] : sockets_in(process)) {
    if (known.contains(inode)) continue;
    Descriptor fd(pidfd_getfd(handle.get(), number, 0));
    if (!fd) {
      if (errno == ESRCH || errno == EBADF) continue;  // it, or the descriptor, is gone
      return refused();
    }
    std::string here = end_of(fd.get(), true), there = end_of(fd.get(), false);
    if (!here.empty() && !there.empty())
      all.emplace_back(std::move(fd), inode, std::move(here), std::move(there));
  }
  return all;
}

Expected<std::vector<Link>> links_among(const std::vector<pid_t>& processes) {
  std::vector<std::vector<BorrowedSocket>> sockets;
  for (const pid_t process : processes) {
    TROUPE_TRY(auto of_it, borrow_sockets(process));
    sockets.push_back(std::move(of_it));
  }
  const auto linked = [](const auto& some, const auto& others) {
    for (const BorrowedSocket& one : some)
      for (const BorrowedSocket& other : others)
        if (are_connected(one, other)) return true;
    return false;
  };
  std::vector<Link> links;
  for (std::size_t a = 0; a < processes.size(); ++a)
    for (std::size_t b = a + 1; b < processes.size(); ++b)
      if (linked(sockets[a], sockets[b])) links.push_back({processes[a], processes[b]});
  return links;
}

Expected<int> LinkChange::apply() {
  TROUPE_TRY(const auto ones, borrow_sockets(link_.one, known_));
  if (ones.empty()) return 0;
  TROUPE_TRY(const auto others, borrow_sockets(link_.other));
  int changed = 0;
  for (const BorrowedSocket& one : ones)
    for (const BorrowedSocket& other : others)
      if (are_connected(one, other)) {
        change_(one.fd(), other.fd());
        known_.insert(one.inode);
        ++changed;
      }
  return changed;
}

void deafen(int socket) {
  sock_filter nothing = BPF_STMT(BPF_RET | BPF_K, 0);
  const sock_fprog filter{1, &nothing};
  (void)setsockopt(socket, SOL_SOCKET, SO_ATTACH_FILTER, &filter, sizeof filter);
}

void hear(int socket) {
  const int none = 0;
  (void)setsockopt(socket, SOL_SOCKET, SO_DETACH_FILTER, &none, sizeof none);
}

void slow_down(int socket, std::uint32_t bytes_per_second) {
  (void)setsockopt(socket, SOL_SOCKET, SO_MAX_PACING_RATE, &bytes_per_second,
                   sizeof bytes_per_second);
}

void full_speed(int socket) { slow_down(socket, ~std::uint32_t{0}); }

void reset(int socket) {
  sockaddr nobody{};
  nobody.sa_family = AF_UNSPEC;
  (void)connect(socket, &nobody, sizeof nobody);
}

}  // namespace troupe
