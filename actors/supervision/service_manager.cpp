#include "actors/supervision/service_manager.hpp"

#include <fmt/format.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "core/number.hpp"

namespace troupe {
namespace {

constexpr const char* kManagerVariables[] = {"NOTIFY_SOCKET", "WATCHDOG_USEC", "WATCHDOG_PID"};

// "/run/...", or "@name" for one without a file.
Expected<std::string> socket_address(std::string text) {
  if (text.size() < 2 || text.size() > sizeof(sockaddr_un::sun_path) ||
      (text[0] != '/' && text[0] != '@'))
    return invalid_argument(
        fmt::format("NOTIFY_SOCKET is no address of a Unix socket: '{}'", text.substr(0, 60)));
  if (text[0] == '@') text[0] = '\0';
  return text;
}

}  // namespace

ServiceManager ServiceManager::of_this_process() {
  const auto variable = [](const std::string& name) {
    const char* value = std::getenv(name.c_str());
    return value == nullptr ? std::nullopt : std::optional<std::string>(value);
  };
  auto manager = make(variable, getpid());
  for (const char* name : kManagerVariables) unsetenv(name);
  return manager.ok() ? std::move(*manager) : ServiceManager();
}

Expected<ServiceManager> ServiceManager::make(const Variable& variable, long self) {
  ServiceManager manager;
  const std::string at = variable("NOTIFY_SOCKET").value_or("");
  if (at.empty()) return manager;
  TROUPE_TRY(manager.address_, socket_address(at));
  const std::string every = variable("WATCHDOG_USEC").value_or("");
  const std::string whose = variable("WATCHDOG_PID").value_or("");
  if (!every.empty() && (whose.empty() || whose == std::to_string(self))) {
    const auto microseconds = parse_number<std::int64_t>(every);
    if (!microseconds || *microseconds < 1)
      return invalid_argument(
          fmt::format("WATCHDOG_USEC is a number of microseconds, not '{}'", every.substr(0, 60)));
    constexpr std::int64_t kDay = 86'400'000'000;
    manager.alive_every_ = std::chrono::microseconds(std::min(*microseconds, kDay)) / 2;
  }
  manager.socket_ = Descriptor(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  return manager;
}

void ServiceManager::tell(std::string_view state) const {
  if (!socket_) return;
  sockaddr_un to{};
  to.sun_family = AF_UNIX;
  std::memcpy(to.sun_path, address_.data(), address_.size());
  (void)sendto(socket_.get(), state.data(), state.size(), MSG_DONTWAIT | MSG_NOSIGNAL,
               reinterpret_cast<const sockaddr*>(&to),
               socklen_t(offsetof(sockaddr_un, sun_path) + address_.size()));
}

void ServiceManager::tell_status(const std::string& status) {
  if (status == status_) return;
  status_ = status;
  tell("STATUS=" + status);
}

void ServiceManager::tell_alive(Instant now) {
  if (alive_every_ == kNever || now < alive_at_) return;
  alive_at_ = now + alive_every_;
  tell("WATCHDOG=1");
}

}  // namespace troupe
