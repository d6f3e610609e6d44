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

// Each client sends one question, gets one answer, and its connection is closed. Clients that are
// slow, many or talk nonsense are dropped; nobody but the thread waits for any of them.
class AnswerServer {
 public:
  struct Options {
    // How many of the bytes that came so far are the question; std::string_view::npos: more have to
    // come.
    std::function<std::size_t(std::string_view bytes)> whole;
    // Called by the thread, once for clients that have asked the same by now.
    std::function<std::string(std::string_view question)> answer;
    std::size_t most_question = 64;  // bytes that a client may send before it is whole
  };
  // Serves connections to that listening socket. resource_exhausted: there is no thread or no
  // descriptor.
  static Expected<std::unique_ptr<AnswerServer>> start(Descriptor listening, Options options);
  // At an address, of which `at` gets the port if it has none. unavailable: others listen there, or
  // it is none of this machine.
  static Expected<std::unique_ptr<AnswerServer>> start(Endpoint& at, Options options);
  // Ends the thread and all connections.
  ~AnswerServer();

 private:
  struct State;
  explicit AnswerServer(std::unique_ptr<State> state);
  const std::unique_ptr<State> state_;
};

}  // namespace troupe
