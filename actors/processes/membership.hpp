// The master's side of joining, membership and loss.
#pragma once

#include <deque>
#include <map>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "actors/net/transport.hpp"
#include "core/transaction.hpp"
#include "serialization/messages.hpp"

namespace troupe {

// Whether processes with the words `theirs` and `mine` are of one job and speak one protocol. A
// pure function, so that a transport can refuse a peer at once.
Status may_connect(const Join& mine, const Join& theirs);

// The state machine that admits workers to a job, waits until all can compute, and reports losses.
//
// Owned by one thread at a time of the master's process. No I/O, no lock and no clock: inputs
// append to `out` what has to be done, `now` is the caller's monotonic time, and the caller calls
// tick() at next_wakeup(). Events of one peer come in the order in which they happened, those of
// different peers in any order.
//
//   joining --all have devices--> meshing --all are connected--> running --+--> leaving --> over
//      ^------------- one is lost ----+         joining, meshing --fail----+
//
// A process is a peer until it has a number; the number is free again once the peer is down, so
// that no message of an old holder is taken for one of a new holder. Nothing is announced before
// the job runs: each announced process is lost at most once, and one that was not announced is
// never lost.
//
// While the job starts, a worker that disconnects, or does not answer in time, only frees its place
// for one that waits or comes: workers beyond the number wanted wait until the job runs, and are
// told then. A worker that this master started itself is not replaced, and fails the start.
//
// While the job runs, `spares` workers stay connected and wait; others are refused. They have no
// part in it: once it has lost a worker, its program may begin another job at the same address,
// which they join. At the end they are told to leave, as members are.
//
// With its number a worker gets the task that it hosts, which names it in errors.
//
// A broken link between two workers is evidence against both: the master waits a moment for one of
// them to go, or until both have reported it. If both live on, the one with the higher number is
// lost, with a reason that names both.
class Membership {
 public:
  struct Options {
    std::size_t workers = 0;  // that the job waits for
    std::size_t spares = 0;   // that may wait while it runs
    Join words;               // of the master itself
    Welcome welcome;          // for everyone, without number and task
    // The tasks that the processes 1, 2, ... host: one each, as many as `workers`. Empty: process 1
    // has task 0, and so on.
    std::vector<TaskId> tasks = {};
    Instant start_until = kNever;
    Instant start_within{};                                 // for the error past `start_until`
    Instant answer_within = std::chrono::seconds(20);       // to Welcome, and to Members
    Instant proof_within = std::chrono::milliseconds(500);  // after a link broke, or a child's end
    Instant leave_within = std::chrono::seconds(2);
  };

  // The peer is that process: messages for the process go to it from now on.
  struct Admit {
    PeerId peer = 0;
    ProcessId process = 0;
  };
  struct Close {
    PeerId peer = 0;
    Status why;
  };
  struct Send {
    ProcessId to = 0;
    WireMessage message;
  };
  // A member of a running job.
  struct Up {
    ProcessId process = 0;
    TaskId task{};     // that it hosts
    std::string name;  // of task and address: "1 at 127.0.0.1:4711"
    std::vector<DeviceName> devices;
  };
  struct Lost {
    ProcessId process = 0;
    Status why;
  };
  // A place is free again; the reason, for the log.
  struct Note {
    std::string text;
  };
  // Once: the job runs (after the last Up), or the error why it does not.
  struct Started {
    Status status;
  };
  // Once, after leave(): all have left, or their time for it is over.
  struct Over {};
  using Output = std::variant<Admit, Close, Send, Up, Lost, Note, Started, Over>;
  using Outputs = std::deque<Output>;

  explicit Membership(Options options) : options_(std::move(options)) {}

  void up(PeerId peer, const Join& join, Instant now, Outputs& out);
  void down(PeerId peer, const Status& why, Instant now, Outputs& out);
  void ready(ProcessId from, const Ready& message, Instant now, Outputs& out);
  void link_lost(ProcessId from, const LinkLost& message, Instant now, Outputs& out);
  // A worker process that this master started has ended. `how`: includes its last words.
  void child_ended(Status how, Instant now, Outputs& out);
  // Cancels the job while it starts.
  void stop(Instant now, Outputs& out);
  void leave(Instant now, Outputs& out);
  void tick(Instant now, Outputs& out);
  Instant next_wakeup() const;

  std::size_t members() const { return members_.size(); }

 private:
  enum class Phase : std::uint8_t { joining, meshing, running, failed, leaving, over };
  struct Waiting {
    PeerId peer = 0;
    Join join;
  };
  struct Member : Waiting {
    TaskId task{};                    // that it hosts
    std::vector<DeviceName> devices;  // none: it has not made them yet
    bool connected = false;           // to the others of the view
    bool closing = false;             // refused or given up: only its end is waited for
    Instant answer_until{};           // to what it was told last
    // Started by this master: no other worker replaces it.
    bool started_here() const { return !join.job.empty(); }
  };
  struct BrokenLink {
    ProcessId low = 0, high = 0, said_by = 0;
    Status why;
    Instant at{};  // judged then
  };

  bool starting() const { return phase_ == Phase::joining || phase_ == Phase::meshing; }
  Status over() const;
  Status may_join(const Join& join) const;
  TaskId task_for(ProcessId process) const;
  ProcessId free_number() const;
  void seat(Waiting joiner, Instant now, Outputs& out);
  std::string name(ProcessId process) const;
  void drop(ProcessId process, Status why, Outputs& out);
  void lost_while_starting(ProcessId process, const Member& member, const Status& why, Instant now,
                           Outputs& out);
  bool owes_answer(const Member& member) const;
  Instant answer_until() const;
  void drop_late(Instant now, Outputs& out);
  void advance(Instant now, Outputs& out);
  void judge(const BrokenLink& link, Outputs& out);
  void fail(Status why, Outputs& out);

  Options options_;
  Phase phase_ = Phase::joining;
  std::uint64_t view_ = 0;
  std::map<ProcessId, Member> members_;
  std::deque<Waiting> waiting_;  // for a place
  std::vector<BrokenLink> broken_;
  // The end of a worker started here, whose last words may follow.
  std::optional<Status> failing_;
  Instant failing_at_ = kNever, leave_until_ = kNever;
  bool may_come_back_ = false;  // the job, whose workers or links were lost
};

}  // namespace troupe
