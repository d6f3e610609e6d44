// What systemd hears from a service of its own, by the protocol of sd_notify(3).
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "core/descriptor.hpp"
#include "core/status.hpp"
#include "core/transaction.hpp"

namespace troupe {

// Messages to the service manager that started this process. Without one it does nothing. Owned by
// one thread.
class ServiceManager {
 public:
  using Variable = std::function<std::optional<std::string>(const std::string& name)>;

  // NOTIFY_SOCKET, WATCHDOG_USEC and WATCHDOG_PID of this process. Takes them out of its
  // environment: what it starts is not the service.
  static ServiceManager of_this_process();
  // `self`: the process id. invalid_argument: NOTIFY_SOCKET is no address of a Unix socket, or
  // WATCHDOG_USEC no number.
  static Expected<ServiceManager> make(const Variable& variable, long self);

  bool is_there() const { return bool(socket_); }
  // How often it wants to hear that this process is alive: half of the time after which it would
  // end it. kNever: it does not.
  Instant alive_every() const { return alive_every_; }

  // "READY=1". Never waits; what a manager does not take is lost.
  void tell(std::string_view state) const;
  // "STATUS=..." of one line, if it is another one than before.
  void tell_status(const std::string& status);
  // "WATCHDOG=1", if it is time. The first one at once.
  void tell_alive(Instant now);

 private:
  Descriptor socket_;
  std::string address_;  // of a sockaddr_un: begins with '/', or with 0 for an abstract one
  Instant alive_every_ = kNever, alive_at_{0};
  std::string status_;
};

}  // namespace troupe
