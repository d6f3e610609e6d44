// Requests of executors that a resource has not answered yet.
#pragma once

#include <cstdint>
#include <map>
#include <optional>

#include "actors/interfaces.hpp"

namespace troupe {

// Several executors ask one resource, each with numbers of its own; the resource's machine knows
// them by numbers from here. Part of one actor's state.
class AskedRequests {
 public:
  struct Asked {
    std::uint64_t id = 0;  // the executor's
    AttemptId attempt;
    ExecutorActor reply_to;
  };

  // Puts a number of our own into `request`, and keeps what an answer needs.
  template <class Request>
  void remember(Request& request, const ExecutorActor& reply_to) {
    asked_.emplace(next_, Asked{request.id, request.attempt.id, reply_to});
    request.id = next_++;
  }

  // Whom to answer; nobody when it is answered already.
  std::optional<Asked> take(std::uint64_t id) {
    auto asked = asked_.extract(id);
    if (asked.empty()) return {};
    return std::move(asked.mapped());
  }

 private:
  std::map<std::uint64_t, Asked> asked_;
  std::uint64_t next_ = 1;
};

}  // namespace troupe
