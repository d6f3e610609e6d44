// What a step issued on streams that may not be done yet, and who waits for it.
#pragma once

#include <cstdint>
#include <vector>

#include "actors/burst/detail/failure.hpp"
#include "actors/burst/step_state.hpp"

namespace troupe::burst {

// The tickets of one step on an asynchronous device.
//
// Remembers which node issued what, and what of that is known to be done. A node that needs
// something done that is not waits for its ticket: the wait goes to the executor (take_waits), and
// the answer names the nodes that go on. When work fails, its stream reports that for every later
// ticket; the node to blame is then searched for, with further waits, and added to the failure.
//
// It touches no values and runs no nodes. Owned by the step; used by the burst in flight, or
// between bursts. On a synchronous device it stays empty.
class Tickets {
 public:
  // Both live as long as this.
  Tickets(const LoadedPlan& program, Failure& failure);

  // Forgets the last step. Answers to its waits are ignored from now on.
  void reset();

  // Whether the work of a ticket is known to be done.
  bool done(const Ticket& ticket);
  // `node` issued the work of `ticket`, which others of the same stream precede up to `before`.
  // `follows`: work of another stream that is done when this is.
  void issued(std::uint32_t node, Ticket ticket, std::uint64_t before, Ticket follows = {});
  // Something of this step waits for all that the ticket's stream was given before it.
  void follow(Ticket ticket);
  // A ticket that is not done although this step issued it, and has not failed; a complete one if
  // there is none.
  Ticket unfinished() const;

  // The node goes on when the ticket is done; kNoNode: nobody does, but the step wants to know.
  void wait_for(Ticket ticket, std::uint32_t node);
  // The waits that were made since the last call.
  std::vector<StepWait> take_waits();
  // Returns the nodes that go on, none after a failure.
  std::vector<std::uint32_t> answered(const WaitAnswer& answer);
  // Moves the nodes that wait to the end of `to`: the answers name them no more.
  void take_waiting(std::vector<std::uint32_t>& to);
  // Whether all that the step issued is done; asks for what is not.
  bool idle();

  // Forgets what is known to be done: else it would grow with the number of iterations.
  void forget_done();
  // The same for calls: looks at all issued work, so once for twice as much.
  void forget_done_at_times();

 private:
  // A wait that was handed out, and who goes on after it.
  struct Wait {
    Ticket ticket;
    std::vector<std::uint32_t> nodes;
    bool open = false;
  };
  struct Issued {
    Ticket ticket;
    std::uint32_t node = 0;
    std::uint64_t before = 0;  // of the stream, by anybody, just before the node's; 0: all was well
    Ticket follows;            // of another stream, which is done when this is
  };
  // One stream as this step sees it.
  struct StreamView {
    std::uint32_t stream = 0;
    std::uint64_t last = 0;      // the last ticket the step got of it
    std::uint64_t complete = 0;  // known to be done
    std::uint64_t failed = 0;    // known to have failed at or before it; 0: not
    Status failure;
  };

  StreamView& view(std::uint32_t stream);
  void find_failure(StreamView& stream, const Status& failure);

  const LoadedPlan& program_;
  Failure& failure_;
  std::uint32_t first_wait_ = 0;  // ids below are of earlier steps
  std::vector<Wait> waits_;
  std::vector<StepWait> new_waits_;
  std::vector<Issued> issued_;  // in order of issue
  std::vector<StreamView> streams_;
  std::size_t forget_at_ = 0;  // waits and issued work that a call looks through
};

}  // namespace troupe::burst
