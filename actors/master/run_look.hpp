// An unanswered run, as the coordinator sees it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/transaction.hpp"

namespace troupe {

struct RunLook {
  struct Part {
    std::uint32_t partition = 0;
    TaskId task{};
    std::string device;
    bool moves_tensors = false;  // has feeds or fetches: its messages may take long
  };
  RunId run;
  AttemptId attempt;
  Instant age{}, attempt_age{};               // since the request; since its newest attempt
  std::optional<Instant> left;                // until its deadline
  bool computes = false;                      // an attempt is under way: see `parts`
  std::vector<Part> parts;                    // partitions that are not done
  std::string turn;                           // if it does not compute: what it waits for
  std::string node = {}, op = {}, site = {};  // the node that needs it, if it is one
  std::vector<TaskId> unanswered = {};        // tasks whose answer `turn` waits for
};

}  // namespace troupe
