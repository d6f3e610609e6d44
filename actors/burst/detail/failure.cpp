#include "actors/burst/detail/failure.hpp"

#include <algorithm>
#include <utility>

namespace troupe::burst {

Failure::Failure(const LoadedPlan& program, Explain explain)
    : explain_(std::move(explain)), nodes_(std::uint32_t(program.nodes().size())) {}

void Failure::reset() {
  limit_ = nodes_;
  node_ = kNoNode;
  aborted_ = false;
  status_ = {};
}

void Failure::add(std::uint32_t node, const Status& failure) {
  if (status_.ok() || (node < node_ && !aborted_)) {
    status_ = explain_(node, failure);
    node_ = node;
  }
  limit_ = node == kNoNode ? 0 : std::min(limit_, node);
}

void Failure::abort(const Status& status) {
  aborted_ = aborted_ || !failing();
  add(kNoNode, status);
}

void Failure::blame_stream(Status failure) {
  limit_ = node_ = 0;
  if (!aborted_) status_ = std::move(failure);
}

}  // namespace troupe::burst
