// The process of a master without its threads: its workers, messages and timers.
#pragma once

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "actors/interfaces.hpp"
#include "actors/master/master_actor.hpp"
#include "actors/processes/event_queue.hpp"
#include "actors/processes/gathering.hpp"
#include "actors/processes/membership.hpp"
#include "actors/runtime/in_use.hpp"
#include "actors/runtime/net_hub.hpp"
#include "actors/runtime/platform.hpp"
#include "core/accumulating_clock.hpp"
#include "core/trace.hpp"
#include "ops/op.hpp"

namespace troupe {

// Owns the master's actor, the hub, the worker processes on this machine, and Membership, whose
// outputs it carries out. Has no thread, socket or clock: these come from the Platform.
//
// Events of sockets and children enter one queue from any thread. The pumping thread (one at a
// time) passes them to handle(), and an empty event at next_wakeup() at the latest:
//
//   begin(), pump until started(); pump until over() after leave(); end(), then wait()
//
// REQUIRES: end() and wait() before it is destroyed, if begin() was called.
class MasterShell final : public HubOwner {
 public:
  // `ops` and `platform` outlive it. Ignores Cluster::stop. `tasks`: Membership::Options.
  MasterShell(Cluster cluster, const OpTable& ops, Platform& platform,
              std::vector<TaskId> tasks = {});

  // Makes the actor, listens, and starts the workers on this machine. After an error, only end()
  // and wait() may follow.
  Status begin();

  EventQueue& events() { return events_; }
  // Handles the event, if it is not empty, and then whatever is due.
  void handle(EventQueue::Event event);
  Instant next_wakeup() const;

  // Before begin(): `told` is called for each lost process of the running job, by the pumping
  // thread.
  void tell_of_losses(std::function<void(const Status&)> told) {
    told_of_losses_ = std::move(told);
  }
  // Before begin(): how long it waits for workers of other machines; 0: for ever.
  void wait_at_most(std::chrono::milliseconds within) { join_within_ = within; }
  // ok if the job runs, or why it does not; empty while it starts.
  const std::optional<Status>& started() const { return started_; }
  // Stops a job that is starting: started() follows. Called by the pumping thread.
  void stop();
  // Tells the workers to leave; over() follows. Any thread.
  void leave();
  // Whether all workers have left, or their time for it is up.
  bool over() const { return over_; }
  // Ends the connections and tells the actors to end.
  void end();
  InUse& in_use() { return in_use_; }
  void wait() { in_use_.wait(); }
  // Kills the workers on this machine and closes the connections, without an orderly end.
  void abandon();
  // Whether a worker of the running job was lost. Any thread.
  bool lost_any() const { return lost_any_; }

  const MasterActor& master() const { return master_; }
  NetHub& hub() { return hub_; }
  ChildProcesses& children() { return *children_; }
  const std::shared_ptr<Trace>& trace() const { return trace_; }

  // Makes all workers record; `told` is called by the pumping thread when the order is sent. A run
  // that begins afterwards is recorded from its beginning: its messages follow the order on the
  // same connections.
  void start_recording(std::function<void()> told);
  // Collects what they have recorded, until each has answered, is lost, or has used up its time.
  using Gathered = std::function<void(std::vector<ProcessTimeline>)>;
  void gather(Gathered done);

 private:
  // HubOwner
  Status may_connect(const Join& join) const override { return troupe::may_connect(words_, join); }
  void up(PeerId peer, const Join& join) override;
  void down(PeerId peer, Status why) override;
  void message(ProcessId from, WireMessage message) override;

  // An event for Membership, from any thread.
  template <class Input>
  void tell(Input input) {
    events_.push([this, input = std::move(input)] { input(*membership_, now(), out_); });
  }
  // Time without the periods in which this process was stopped: others are not late because of
  // these.
  Instant now();
  void child_ended(pid_t child, const ChildEnd& end);
  Membership::Options job();
  MasterOptions master_options() const;
  Status listen();
  Status start_workers();
  void carry_out(const Membership::Admit& admit);
  void carry_out(Membership::Close& close);
  void carry_out(const Membership::Send& send);
  void carry_out(const Membership::Up& member);
  void carry_out(const Membership::Lost& lost);
  void carry_out(const Membership::Note& note);
  void carry_out(Membership::Started& started);
  void carry_out(const Membership::Over& over);
  Status with_last_words(Status status) const;
  void begin_gathering();
  void end_gathering();

  const Cluster cluster_;
  const OpTable& ops_;
  Platform& platform_;
  const std::vector<TaskId> tasks_;
  Join words_;  // of this process
  std::string secret_;
  EventQueue events_;
  const std::shared_ptr<Trace> trace_ = std::make_shared<Trace>();
  NetHub hub_;
  std::shared_ptr<Transport> transport_;
  Endpoint endpoint_;
  MasterActor master_;
  InUse in_use_;

  // Of the pumping thread.
  AccumulatingClock clock_;
  Instant looked_{0};  // when the clock was last read
  std::optional<Membership> membership_;
  Membership::Outputs out_;
  std::vector<ProcessActor> proxies_;
  std::map<ProcessId, std::string> members_;  // names of members that are not lost
  std::function<void(const Status&)> told_of_losses_;
  std::chrono::milliseconds join_within_{0};
  Gathering gathering_;
  Gathered gathered_;  // called with the result
  Instant gather_until_ = kNever;
  std::optional<Status> started_;
  bool over_ = false;
  std::atomic<bool> lost_any_ = false;

  std::vector<pid_t> children_here_;
  std::unique_ptr<ChildProcesses> children_;  // reports their ends until it is destroyed
};

}  // namespace troupe
