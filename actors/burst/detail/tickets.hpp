// The work that a step issued on streams and that may not be done, and the nodes that wait for it.
#pragma once

#include <cstdint>
#include <vector>

#include "actors/burst/detail/failure.hpp"
#include "actors/burst/step_state.hpp"

namespace troupe::burst {

// The tickets of one step on an asynchronous device.
//
// Records which node issued which work, and what is known to be done. A node that needs unfinished
// work waits for its ticket: the wait goes to the executor (take_waits), and the answer determines
// the nodes that go on. When work fails, its stream reports that for every later ticket; further
// waits then find the node that failed, which is added to the failure; on a device that does not
// locate failures, the first and the last node that it may be.
//
// It neither touches values nor runs nodes. Owned by the step; used by the burst in flight, or
// between bursts. Empty on a synchronous device.
class Tickets {
 public:
  // Both live as long as this.
  Tickets(const LoadedPlan& program, Failure& failure);

  // Starts a new step. Answers to older waits are ignored from now on.
  void reset();

  // Whether the work of a ticket is known to be done.
  bool done(const Ticket& ticket);
  // `node` issued the work of `ticket`; `before` is the last earlier ticket of the same stream.
  // `follows`: work of another stream that is done when this is.
  void issued(std::uint32_t node, Ticket ticket, std::uint64_t before, Ticket follows = {});
  // Work of this step waits for everything on the ticket's stream up to the ticket.
  void follow(Ticket ticket);
  // A ticket issued by this step that is neither done nor failed; a complete one if there is none.
  Ticket unfinished() const;

  // The node goes on when the ticket is done; kNoNode: only the step waits.
  void wait_for(Ticket ticket, std::uint32_t node);
  // The waits made since the last call.
  std::vector<StepWait> take_waits();
  // Returns the nodes that go on; none after a failure.
  std::vector<std::uint32_t> answered(const WaitAnswer& answer);
  // Moves the waiting nodes to the end of `to`; answers no longer return them.
  void take_waiting(std::vector<std::uint32_t>& to);
  // Whether all issued work is done; adds waits for what is not.
  bool idle();

  // Drops records of finished work, which would grow with the number of iterations.
  void forget_done();
  // The same for calls, but only when the records have doubled: it looks at all of them.
  void forget_done_at_times();

 private:
  // A wait that was handed out, and the nodes that go on after it.
  struct Wait {
    Ticket ticket;
    std::vector<std::uint32_t> nodes;
    bool open = false;
  };
  struct Issued {
    Ticket ticket;
    std::uint32_t node = 0;
    std::uint64_t before = 0;  // the stream's last ticket before the node's, by any step; 0: none
    Ticket follows;            // of another stream, which is done when this is
  };
  // One stream as this step sees it.
  struct StreamView {
    std::uint32_t stream = 0;
    std::uint64_t last = 0;      // the last ticket the step uses
    std::uint64_t complete = 0;  // known to be done
    std::uint64_t failed = 0;    // the stream failed at or before this ticket; 0: not known to
    Status failure;
  };

  StreamView& view(std::uint32_t stream);
  void find_failure(StreamView& stream, const Status& failure);
  void blame_range(const Status& failure);

  const LoadedPlan& program_;
  Failure& failure_;
  std::uint32_t first_wait_ = 0;  // ids below are of earlier steps
  std::vector<Wait> waits_;
  std::vector<StepWait> new_waits_;
  std::vector<Issued> issued_;  // in order of issue
  std::vector<StreamView> streams_;
  std::size_t forget_at_ = 0;  // number of records at which a call drops finished ones
};

}  // namespace troupe::burst
