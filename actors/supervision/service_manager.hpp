// Messages to systemd, by the protocol of sd_notify(3).
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

  // From NOTIFY_SOCKET, WATCHDOG_USEC and WATCHDOG_PID of this process. Removes them from its
  // environment: the processes that it starts are not the service.
  static ServiceManager of_this_process();
  // `self`: the process id. invalid_argument: NOTIFY_SOCKET is not the address of a Unix socket, or
  // WATCHDOG_USEC is not a number.
  static Expected<ServiceManager> make(const Variable& variable, long self);

  bool is_there() const { return bool(socket_); }
  // How often it expects tell_alive(): half of its timeout. kNever: it does not expect it.
  Instant alive_every() const { return alive_every_; }

  // Sends a state, such as "READY=1". Never waits; a message that the manager does not accept is
  // lost.
  void tell(std::string_view state) const;
  // Sends "STATUS=..." with one line, if it has changed.
  void tell_status(const std::string& status);
  // Sends "WATCHDOG=1" if it is time. The first call sends it at once.
  void tell_alive(Instant now);

 private:
  Descriptor socket_;
  std::string address_;  // of a sockaddr_un: begins with '/', or with 0 for an abstract one
  Instant alive_every_ = kNever, alive_at_{0};
  std::string status_;
};

}  // namespace troupe
