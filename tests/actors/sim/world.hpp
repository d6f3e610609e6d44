// A whole cluster on one thread, in virtual time: what runs next follows from a seed.
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "actors/interfaces.hpp"
#include "actors/net/memory_transport.hpp"
#include "core/hash.hpp"
#include "core/status.hpp"
#include "graph/builder.hpp"
#include "ops/op.hpp"

namespace troupe::test {

// How many schedules a test tries: TROUPE_SCHEDULES in the environment asks for more than usual.
std::uint64_t schedules(std::uint64_t usual);

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
  Client& close();

  bool finished() const { return !status_.ok() || (!call_ && script_.empty()); }
  // There is an answer to take or a call to begin.
  bool ready() const { return !finished() && (!call_ || call_->done()); }
  // REQUIRES: ready().
  void step();

  const Status& status() const { return status_; }
  // Of each run so far, in order: how it ended, and its fetches.
  const std::vector<Status>& ended() const { return ended_; }
  const std::vector<std::vector<Tensor>>& fetched() const { return fetched_; }
  std::string text() const;  // what it waits for

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
  std::uint64_t next_run_ = 1;
  std::map<std::string, CompiledId> compiled_;
  std::deque<Action> script_;
  std::shared_ptr<Call> call_;  // of script_.front()
  Status status_;
  std::vector<Status> ended_;
  std::vector<std::vector<Tensor>> fetched_;
};

// The actors, hubs and proxies of a master and its workers, as in production, on a network and on
// devices of the simulation and under CAF's test scheduler. One event at a time: a message of one
// actor, a delivery, a burst of a device, a client's next call. Time passes only with deliveries
// and when nothing else can happen.
class World {
 public:
  // `ops` outlives it.
  explicit World(std::uint64_t seed, int workers = 2, const OpTable& ops = ops::builtin());
  ~World();
  World(const World&) = delete;
  World& operator=(const World&) = delete;

  const MasterActor& master() const { return master_; }
  // Until all clients are finished. An error: nothing can happen any more, or too many events did,
  // or a
  // connection was lost without a crash. What a client's calls came back with is in the client.
  Status run(const std::vector<Client*>& clients, std::uint64_t most_events = 200'000);
  // Lets everything happen that does within that time, but for what clients do.
  void pass(MemoryNetwork::Time duration);
  // After that many more events the process is gone, as if killed.
  void crash_after(std::uint64_t events, ProcessId process);
  // After that many more events the connection between two workers breaks, and both live on.
  void break_link_after(std::uint64_t events, ProcessId a, ProcessId b);
  bool crashed() const { return crashed_; }
  bool link_broken() const { return link_broken_; }
  // Ends every actor. An error: some did not end, or hold on to the process.
  Status shut_down();

  // While true nothing is compiled or imported, as if that took for ever.
  void hold_compilers(bool hold) { hold_compilers_ = hold; }

  MemoryNetwork::Time now() const { return network_.now(); }
  std::uint64_t events() const { return events_; }
  std::size_t timers() const;                     // that actors have set and that have not fired
  std::uint64_t trace() const { return trace_; }  // of every choice made
  std::uint64_t network_trace() const { return network_.trace(); }

 private:
  struct Process;
  struct Master;
  struct Worker;
  struct System;

  bool step(const std::vector<Client*>& clients);
  bool pass_time();
  std::optional<MemoryNetwork::Time> next_time();
  void run_job(std::size_t index);
  void set_clock();
  Instant next_timer() const;
  void inflict_faults();

  const OpTable& ops_;
  Random random_;
  MemoryNetwork network_;
  std::uint64_t early_;                                        // Arrivals::limit_early
  std::uint64_t job_weight_, device_weight_, network_weight_;  // how fast each of them is
  std::unique_ptr<System> system_;
  std::unique_ptr<Master> job_;
  std::vector<std::unique_ptr<Worker>> workers_;  // once the job runs: by number, from 1
  MasterActor master_;
  std::shared_ptr<void> alive_;
  std::size_t running_before_ = 0;
  std::optional<Status> started_;
  std::uint64_t events_ = 0, trace_ = 0;
  std::uint64_t crash_at_ = ~std::uint64_t{0};
  ProcessId crash_ = 0;
  bool crashed_ = false;
  std::uint64_t break_at_ = ~std::uint64_t{0};
  std::pair<ProcessId, ProcessId> break_;
  bool link_broken_ = false;
  bool hold_compilers_ = false;
  bool leaving_ = false;
  Status lost_;
};

}  // namespace troupe::test
