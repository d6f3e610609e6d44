// The worker's side of joining, membership and loss.
#pragma once

#include <deque>
#include <map>
#include <set>
#include <string>
#include <variant>
#include <vector>

#include "actors/net/transport.hpp"
#include "serialization/messages.hpp"

namespace troupe {

// The state machine of a worker: it joins its master, connects to the other workers, and reports
// which of these connections break. The master decides what follows.
//
// Owned by one thread of the worker's process. No I/O, no lock, no clock: inputs append to `out`
// what has to be done, which is done in order; events of one peer come in the order in which they
// happened.
//
// Of two workers the one with the higher number connects. A process that connects here claims to be
// a member; it is one when Members names that number with that incarnation and it has no other
// connection. Until then the claim is kept: Members may be under way, or the end of the previous
// connection.
class Mesh {
 public:
  // Answered by connecting(), with the peer or the error.
  struct Connect {
    Member to;
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
  // Make what the master requests. Answered by hosting(), with the names of the devices.
  struct Host {
    Welcome welcome;
  };
  // The process hosts the task: messages for the task go to it from now on.
  struct Place {
    TaskId task{};
    ProcessId process = 0;
  };
  struct Report {
    std::variant<Ready, LinkLost> message;  // to the master
  };
  // Once: the worker's part is over; ok if the master ended it. Nothing follows.
  struct End {
    Status status;
  };
  using Output = std::variant<Connect, Admit, Close, Host, Place, Report, End>;
  using Outputs = std::deque<Output>;

  // `words`: the Join of this process. `master`: the connection that it opened.
  Mesh(Join words, PeerId master) : words_(std::move(words)), master_(master) {}

  void up(PeerId peer, const Join& join, Outputs& out);
  void down(PeerId peer, const Status& why, Outputs& out);
  void welcome(const Welcome& message, Outputs& out);
  void hosting(Expected<std::vector<std::string>> devices, Outputs& out);
  void members(const Members& message, Outputs& out);
  void connecting(ProcessId process, Expected<PeerId> peer, Outputs& out);
  void leave(Outputs& out);

  ProcessId self() const { return self_; }
  // Whether the master has given this process a number, or lets it wait for one.
  bool connected() const { return connected_; }

 private:
  struct Link {
    PeerId peer = 0;
    bool up = false;
  };
  struct Claim {
    PeerId peer = 0;
    Join join;
  };

  Status check(const Members& message) const;
  void settle_claims(Outputs& out);
  void link_broke(ProcessId other, const Status& why, Outputs& out);
  void say_ready(Outputs& out);
  void give_up(Status why, Outputs& out);
  void end(Status status, Outputs& out);

  Join words_;
  PeerId master_ = 0;
  ProcessId self_ = 0;                // none before Welcome
  std::vector<std::string> devices_;  // none before they are made
  std::uint64_t view_ = 0, ready_view_ = 0;
  std::map<ProcessId, Member> members_;  // without this process
  std::map<ProcessId, Link> links_;
  std::deque<Claim> claims_;
  bool connected_ = false, over_ = false;
};

}  // namespace troupe
