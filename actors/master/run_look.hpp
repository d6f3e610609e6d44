// A run that is not answered, as the coordinator sees it.
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
    bool moves_tensors = false;  // is fed, or fetched from: its messages may take long
  };
  RunId run;
  AttemptId attempt;
  Instant age{}, attempt_age{};               // since the request; since the newest attempt began
  std::optional<Instant> left;                // until its deadline
  bool computes = false;                      // an attempt is under way: see `parts`
  std::vector<Part> parts;                    // those that have not ended
  std::string turn;                           // else: what it waits for of others, in words
  std::string node = {}, op = {}, site = {};  // and for whose sake, if it is one node's
};

}  // namespace troupe
