// The failure that a step reports.
#pragma once

#include <cstdint>
#include <functional>

#include "actors/burst/loaded_plan.hpp"
#include "core/status.hpp"
#include "graph/graph.hpp"

namespace troupe::burst {

// Keeps the one failure that a step reports, and says which nodes still run after it.
//
// Of several failures of nodes the one of the smallest plan index is kept, so that what is reported
// does not depend on the order in which nodes ran: nodes before the failed one run on, nodes behind
// it do not. After abort() or blame_stream() nothing runs.
//
// Owned by the step; used by the burst in flight, or between bursts.
class Failure {
 public:
  // Called with the node, or kNoNode, at the moment of a failure that will be kept: what is said of
  // it, such as the node's name and iteration.
  using Explain = std::function<Status(std::uint32_t node, const Status& failure)>;

  Failure(const LoadedPlan& program, Explain explain);

  // A new step: no node has failed.
  void reset();
  // `node` failed, or with kNoNode the step itself.
  void add(std::uint32_t node, const Status& failure);
  // The step is ended from outside. Its status holds unless a node failed first, and then also
  // against nodes that fail later.
  void abort(const Status& status);
  // Nothing runs while the node to blame is looked for.
  void stop() { limit_ = 0; }
  // Other work on a stream failed; unless the step was aborted that is the cause, whatever failed.
  void blame_stream(Status failure);

  bool failing() const { return limit_ < nodes_; }
  // False for what is behind the failed node, and for a dead node's entry.
  bool lets_run(std::uint32_t entry) const { return entry < limit_; }
  // The first node that does not run. REQUIRES: failing().
  std::uint32_t first_stopped() const { return limit_; }
  const Status& status() const { return status_; }

 private:
  const Explain explain_;
  const std::uint32_t nodes_;
  std::uint32_t limit_ = 0;  // nodes from here on do not run
  std::uint32_t node_ = kNoNode;
  bool aborted_ = false;
  Status status_;
};

}  // namespace troupe::burst
