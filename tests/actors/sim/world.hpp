// A whole cluster on one thread, in virtual time: what runs next follows from a seed.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "actors/interfaces.hpp"
#include "core/hash.hpp"
#include "core/status.hpp"
#include "ops/op.hpp"
#include "tests/actors/sim/client.hpp"
#include "tests/actors/sim/process.hpp"
#include "tests/net/memory_transport.hpp"
#include "tests/serialization/faulty_files.hpp"

namespace troupe::test {

// How many schedules a test tries: TROUPE_SCHEDULES in the environment asks for more than usual.
std::uint64_t schedules(std::uint64_t usual);

// One job: the processes of a master and its workers with the shells, actors, hubs and proxies of
// production, on a network and devices of the simulation (process.hpp). One event at a time: a
// message of one actor, an event of a shell, a delivery, a burst of a device, a client's next call.
// Time passes only with deliveries and when nothing else can happen.
//
// By its seed: how fast each of these is, whether the workers are the master's children or come by
// themselves, and whether threads that bring messages handle them.
class World {
 public:
  struct Options {
    int workers = 2;
    const OpTable* ops = &ops::builtin();  // outlives it
    FileSystem* files = nullptr;           // outlives it; null: empty ones of its own
    // Whether a worker that came by itself and could not join comes again, as a service manager
    // has it.
    bool come_again = false;
    std::optional<bool> children = {};  // of the master: the workers; none: the seed says
    std::vector<TaskId> tasks = {};     // of processes 1, 2, ...: Membership::Options
  };
  World(std::uint64_t seed, const Options& options);
  // With a job that runs.
  explicit World(std::uint64_t seed, int workers = 2, const OpTable& ops = ops::builtin());
  ~World();
  World(const World&) = delete;
  World& operator=(const World&) = delete;

  // Until the job runs, or does not: an error says why, of a failing start or of this world.
  Status start();
  const MasterActor& master() const { return processes_.front()->master()->master(); }
  // Until all clients are finished, or their process, which is the master's, is gone. An error:
  // nothing can happen any more, or too many events did, or a worker was lost without a fault. What
  // a client's calls came back with is in the client.
  Status run(const std::vector<Client*>& clients, std::uint64_t most_events = 200'000);
  // Lets everything happen that does within that time, but for what clients do.
  void pass(MemoryNetwork::Time duration);
  // Ends the job in order. An error: a process does not end by itself, or leaves actors behind.
  Status shut_down();

  // Faults. Processes are named by their order: 0 is the master, then the workers as they came.
  using Index = std::size_t;
  std::size_t processes() const { return processes_.size(); }
  const SimProcess& process(Index index) const { return *processes_[index]; }
  bool alive(Index index) const { return !processes_[index]->ended(); }
  void crash(Index index);
  // Ends by itself after that time.
  void pause(Index index, Instant duration);
  void cut(Index from, Index to, Instant duration, bool both_ways);
  void slow(Index from, Index to, Instant more, Instant duration);
  // Called before each event.
  void before_each_event(std::function<void()> what) { before_event_ = std::move(what); }
  // After that many more events the process with this number in the job is gone, as if killed.
  void crash_after(std::uint64_t events, ProcessId process);
  // After that many more events the connection between two workers breaks, and both live on.
  void break_link_after(std::uint64_t events, ProcessId a, ProcessId b);
  bool crashed() const { return crashed_; }
  bool link_broken() const { return link_broken_; }

  // While true nothing is compiled or imported, as if that took for ever.
  void hold_compilers(bool hold) { hold_compilers_ = hold; }

  bool handles_inline() const { return machine_.handle_inline; }
  bool has_children() const { return children_; }
  MemoryNetwork::Time now() const { return network_.now(); }
  std::uint64_t events() const { return events_; }
  std::size_t timers() const;                     // that actors have set and that have not fired
  std::uint64_t trace() const { return trace_; }  // of every choice made
  std::uint64_t network_trace() const { return network_.trace(); }
  std::string text() const;  // a line for each process

 private:
  SimProcess& add_process(std::string name);
  Expected<pid_t> add_worker(WorkerProcessOptions options);
  SimProcess& holder(ProcessId number) const;
  bool step(const std::vector<Client*>& clients);
  bool pass_time();
  std::optional<MemoryNetwork::Time> next_time();
  std::optional<MemoryNetwork::Time> next_change() const;
  void at(Instant when, std::function<void()> what);
  void inflict_faults();
  void come_again();
  void check_unprovoked();

  const Options options_;
  testing::FaultyFiles own_files_{1};
  Random random_;
  MemoryNetwork network_;
  SimMachine machine_;
  bool children_ = false;                                      // of the master
  std::uint64_t job_weight_, device_weight_, network_weight_;  // how fast each of them is
  std::vector<std::unique_ptr<SimProcess>> processes_;
  std::multimap<Instant, std::function<void()>> later_;  // what is to end: pauses, cuts
  std::map<std::pair<std::string, std::string>, std::pair<int, int>> disturbed_;  // cuts, delays
  std::function<void()> before_event_;
  bool provoked_ = false;  // by a fault
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
