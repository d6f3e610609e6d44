// A socket in the job's folder for questions about the state of a program under `troupe run`.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

#include "core/status.hpp"

namespace troupe {

// The socket JOB/control.PID of this process, with a thread that serves it. A client that may open
// it (the owner: mode 0600, in a folder of mode 0700) sends one line and gets a JSON document:
//
//   waits    what runs wait for
//   status   the same, memory, tasks, and the values of note() and figure()
//
// Any other line gets {"error": ...}. Clients that are slow, too many or send nonsense are dropped;
// the program does not wait for any of them. It lives until the process ends, and is never
// destroyed. Thread-safe.
class ControlSocket {
 public:
  static constexpr const char* kPrefix = "control.";
  static constexpr std::string_view kWaits = "waits", kStatus = "status";

  // The socket of this process, opened in the folder of its job at the first call. Null: no
  // supervisor keeps this process running, or the socket cannot be opened, which is logged as a
  // warning.
  static ControlSocket* of_this_process();
  // Opens a socket in that folder. Errors: it cannot be made or opened there.
  static Expected<std::unique_ptr<ControlSocket>> open(const std::string& folder);
  ~ControlSocket();

  // Adds a session to ask, on the thread of the socket, until it is removed by the number that this
  // returns. Its document becomes one of "sessions", unless it is null. Removing does not wait for
  // an answer under way.
  using Answer = std::function<nlohmann::ordered_json(std::string_view question)>;
  std::uint64_t add_session(Answer answer);
  void remove_session(std::uint64_t number);
  // Sets a field of the document: what the program says about itself. Empty: removes it.
  void note(const std::string& name, const std::string& text);
  // Reports a number of the job, such as its loss. Keeps the newest value of each name, of at most
  // 1,000 names.
  void figure(const std::string& name, double value);

 private:
  struct State;
  explicit ControlSocket(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

// Asks the process at that socket. unavailable: no process serves it; deadline_exceeded: it does
// not answer in time; data_loss: the answer is no document.
Expected<nlohmann::ordered_json> ask_control_socket(const std::string& path,
                                                    std::string_view question, int timeout_ms);
// Whether a process listens at that socket. Connects to it, and asks nothing.
bool is_served(const std::string& path);

}  // namespace troupe
