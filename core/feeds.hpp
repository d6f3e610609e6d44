// What a step is fed.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "core/dtype.hpp"
#include "core/shape.hpp"
#include "core/status.hpp"
#include "core/tensor.hpp"

namespace troupe {

// What a step was compiled for; its kernels rely on it.
struct FeedSpec {
  std::string name;
  DType dtype = DType::invalid;
  PartialShape shape;
};

// invalid_argument, naming the feed and what it should be. A client's own process checks what it
// feeds; a worker checks again what came from another process.
Status check_feeds(const std::vector<FeedSpec>& specs, const std::vector<Tensor>& feeds);
// Their number alone, where no more is known.
inline Status check_feed_count(std::size_t wanted, std::size_t got) {
  if (wanted == got) return ok_status();
  return invalid_argument("the step takes " + std::to_string(wanted) + " feeds, not " +
                          std::to_string(got));
}

}  // namespace troupe
