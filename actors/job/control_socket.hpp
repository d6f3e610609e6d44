// How a program under `troupe run` is asked what it does: a socket in the folder of its job.
#pragma once

#include <functional>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

#include "core/status.hpp"

namespace troupe {

// The socket JOB/control.PID of this process, with a thread that serves it. Whoever may open it
// (its owner: mode 0600, in a folder of mode 0700) sends one line and gets a JSON document:
//
//   waits    what runs wait for
//   status   that, memory, tasks, and what was told with note() and figure()
//
// Anything else gets {"error": ...}. Clients that are slow, many or talk nonsense are dropped; the
// program does not wait for any of them. It lives until the process ends, and is never destroyed.
// Thread-safe.
class ControlSocket {
 public:
  static constexpr const char* kPrefix = "control.";
  static constexpr std::string_view kWaits = "waits", kStatus = "status";

  // That of this process: opened when it is first asked for, in the folder of its job. Null:
  // nobody keeps this process running, or the socket cannot be opened, which a warning says.
  static ControlSocket* of_this_process();
  // In that folder. Errors: it cannot be made or opened there.
  static Expected<std::unique_ptr<ControlSocket>> open(const std::string& folder);
  ~ControlSocket();

  // One more to ask, called by the thread of the socket. Its document becomes one of "sessions"; a
  // null one says that it is gone for good.
  using Answer = std::function<nlohmann::ordered_json(std::string_view question)>;
  void add_session(Answer answer);
  // What the program has to say of itself until it says otherwise: a field of the document. Empty:
  // nothing any more.
  void note(const std::string& name, const std::string& text);
  // What the program reports of its job, such as its loss: the newest value of each name, of 1,000
  // names at most.
  void figure(const std::string& name, double value);

 private:
  struct State;
  explicit ControlSocket(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

// Asks the process whose socket that is. unavailable: nobody serves it; deadline_exceeded: it does
// not answer in time; data_loss: what it answers is no document.
Expected<nlohmann::ordered_json> ask_control_socket(const std::string& path,
                                                    std::string_view question, int timeout_ms);

}  // namespace troupe
