// Requests of executors that a resource has not answered yet.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <utility>

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

  // Keeps what an answer needs; the number is our own.
  std::uint64_t remember(const ResourceCall& call) {
    asked_.emplace(next_, Asked{call.request.id, call.request.attempt.id, call.reply_to});
    return next_++;
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
