// The failure that a step reports.
#pragma once

#include <cstdint>
#include <functional>

#include "actors/burst/loaded_plan.hpp"
#include "core/status.hpp"
#include "graph/graph.hpp"

namespace troupe::burst {

// Keeps the failure that a step reports, and decides which nodes still run after it.
//
// Of several failures, that of the node with the smallest plan index is kept, so the report does
// not depend on the order in which nodes ran: only nodes before the failed one still run. After
// abort() or blame_stream() nothing runs.
//
// Owned by the step; used by the burst in flight, or between bursts.
class Failure {
 public:
  // Called when a failure is kept, with its node or kNoNode: adds the node's name, iteration and
  // so on.
  using Explain = std::function<Status(std::uint32_t node, const Status& failure)>;

  Failure(const LoadedPlan& program, Explain explain);

  // Starts a new step: no node has failed.
  void reset();
  // `node` failed; kNoNode: the step itself.
  void add(std::uint32_t node, const Status& failure);
  // Ends the step from outside. `status` is kept unless a node failed before; nodes that fail later
  // do not replace it.
  void abort(const Status& status);
  // Stops all nodes while the failed node is being searched for.
  void stop() { limit_ = 0; }
  // Work of others on a stream failed: this replaces any failure of a node, unless the step was
  // aborted.
  void blame_stream(Status failure);

  bool failing() const { return limit_ < nodes_; }
  // False for nodes from the failed one on, and for the entry of a dead node.
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
