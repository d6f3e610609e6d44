// The requests of executors that a resource has not answered.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <utility>

#include "actors/interfaces.hpp"

namespace troupe {

// Executors number their requests independently; this table gives each request to a resource a
// number of its own. Part of one actor's state.
class AskedRequests {
 public:
  struct Asked {
    std::uint64_t id = 0;  // the executor's
    AttemptId attempt;
    ExecutorActor reply_to;
  };

  // Keeps what the answer needs; returns the request's number here.
  std::uint64_t remember(const ResourceCall& call) {
    asked_.emplace(next_, Asked{call.request.id, call.request.attempt.id, call.reply_to});
    return next_++;
  }

  // The request to answer; none if it is already answered.
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
