// A client of a simulated cluster.
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "actors/interfaces.hpp"
#include "core/status.hpp"
#include "graph/builder.hpp"

namespace troupe::test {

// A client that sends what Session sends, one call after the other, and never waits: each call
// begins when the simulation says so, after the answer to the one before. Stops at a failure.
class Client {
 public:
  Client(MasterActor master, std::uint64_t session, GraphBuilder& graph, int replicas = 1);

  // The calls to make, after OpenSession and ExtendSession.
  Client& init();  // every initial value
  Client& compile(std::string name, std::vector<Output> fetches, std::vector<Op> targets,
                  int replicas = 0);  // 0: as the client
  Client& run(std::string name, int times = 1);
  // One run that may fail: the client goes on. kNever: no deadline.
  Client& try_run(std::string name, Instant timeout);
  Client& reset(std::vector<std::string> containers);
  // Calls `what`, which must not wait, once everything before it is answered.
  Client& then(std::function<void()> what);
  Client& close();

  bool finished() const { return !status_.ok() || (!call_ && script_.empty()); }
  // There is an answer to take or a call to begin.
  bool ready() const { return !finished() && (!call_ || call_->done()); }
  // REQUIRES: ready().
  void step();

  // The thread that asks for a run handles the message as well, as that of a Session does.
  void handle_inline(bool on) { inline_ = on; }

  const Status& status() const { return status_; }
  // Of each run so far, in order: how it ended, and its fetches.
  const std::vector<Status>& ended() const { return ended_; }
  const std::vector<std::vector<Tensor>>& fetched() const { return fetched_; }
  std::string fetched_bytes() const;  // of all of them, in order
  std::string text() const;           // what it waits for

 private:
  struct Action {
    std::string what;
    std::function<std::shared_ptr<Call>()> begin;
    std::function<void(CallResult&)> end;
    bool may_fail = false;
  };
  Action make_run(std::string name, Instant timeout);
  template <class Message>
  std::shared_ptr<Call> send(Message message);

  MasterActor master_;
  std::uint64_t session_;
  GraphBuilder& graph_;
  int replicas_;
  bool inline_ = false;
  std::uint64_t next_run_ = 1;
  std::map<std::string, CompiledId> compiled_;
  std::deque<Action> script_;
  std::shared_ptr<Call> call_;  // of script_.front()
  Status status_;
  std::vector<Status> ended_;
  std::vector<std::vector<Tensor>> fetched_;
};

}  // namespace troupe::test
