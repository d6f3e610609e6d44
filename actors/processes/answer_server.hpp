// A thread that answers short questions at a socket.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "actors/net/transport.hpp"
#include "core/descriptor.hpp"
#include "core/status.hpp"

namespace troupe {

// Each client sends one question and gets one answer; then its connection is closed. Clients that
// are slow, too many or send nonsense are dropped; only the thread waits for them.
class AnswerServer {
 public:
  struct Options {
    // Returns how many of the bytes received so far are the question; std::string_view::npos: more
    // have to come.
    std::function<std::size_t(std::string_view bytes)> whole;
    // Called by the thread, once for all clients that have asked the same by then. If it throws or
    // says nothing, their connections are closed.
    std::function<std::string(std::string_view question)> answer;
    std::size_t most_question = 64;  // bytes that a client may send before its question is whole
  };
  // Serves connections to that listening socket. resource_exhausted: no thread or descriptor is
  // left.
  static Expected<std::unique_ptr<AnswerServer>> start(Descriptor listening, Options options);
  // Serves an address; `at` gets the port if it has none. unavailable: it is in use, or not one of
  // this machine.
  static Expected<std::unique_ptr<AnswerServer>> start(Endpoint& at, Options options);
  // Ends the thread and all connections.
  ~AnswerServer();

 private:
  struct State;
  explicit AnswerServer(std::unique_ptr<State> state);
  const std::unique_ptr<State> state_;
};

}  // namespace troupe
