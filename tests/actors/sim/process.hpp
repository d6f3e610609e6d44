// One process of a simulated cluster.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "actors/processes/farewell.hpp"
#include "actors/runtime/master_shell.hpp"
#include "actors/runtime/platform.hpp"
#include "actors/runtime/worker_shell.hpp"
#include "core/hash.hpp"
#include "devices/cpu/cpu_device.hpp"
#include "tests/devices/sim_device.hpp"
#include "tests/net/memory_transport.hpp"

namespace troupe::test {

class SimProcess;

// What the processes of a simulated cluster share.
struct SimMachine {
  MemoryNetwork* network = nullptr;
  FileSystem* files = nullptr;
  const OpTable* ops = nullptr;
  bool handle_inline = false;
  std::uint64_t early = 0;  // Arrivals::limit_early
  // A master wants a worker started with these settings; its process, once it runs.
  std::function<Expected<pid_t>(SimProcess& parent, const std::string& settings)> start;
  std::function<SimProcess*(pid_t)> find;
};

// A process whose shell is production's, on a machine of the simulation: its own actor system under
// CAF's test scheduler, devices whose bursts wait to be run, and files and a network that are gone
// for it once it is. Whoever owns it decides what it does next, one thing at a time. All of one
// thread.
//
//   running --pause--> paused --resume--> running --shell ends--> leaving --actors gone--> ended
//      '-----------------'------------------'------ crash ---------'----------------------> ended
class SimProcess final : public Platform {
 public:
  // `seed`: of its random numbers.
  SimProcess(SimMachine& machine, std::string name, pid_t pid, std::uint64_t seed);
  ~SimProcess() override;
  SimProcess(const SimProcess&) = delete;
  SimProcess& operator=(const SimProcess&) = delete;

  // One of the two, once. An error: it ends at once.
  Status become_master(Cluster cluster, std::vector<TaskId> tasks = {});
  Status become_worker(WorkerProcessOptions options);

  const std::string& name() const { return name_; }
  MasterShell* master() const { return master_.get(); }
  WorkerShell* worker() const { return worker_.get(); }
  SimProcess* parent() const { return parent_; }
  void be_child_of(SimProcess& parent) { parent_ = &parent; }

  // What it can do now: things of three kinds, each of which takes one event.
  std::size_t jobs(bool compilers) const;  // messages of actors, of compilers too or not
  std::size_t events() const;              // of its shell
  std::size_t bursts() const;              // of its devices
  void run_job(std::size_t index, bool compilers);
  void run_event();
  void run_burst(std::size_t index);

  // When it wants to look at the clock, and what it does then.
  Instant next_wakeup() const;
  void look();
  std::size_t timers() const;

  // The master's program is over: its workers are told to leave, and waited for.
  void leave();
  void pause();
  void resume();
  // Killed: nothing of it happens any more, and who is connected to it learns that.
  void crash();
  bool running() const { return state_ == State::running || state_ == State::leaving; }
  bool paused() const { return state_ == State::paused; }
  bool ended() const { return state_ == State::ended; }
  // Once it has ended.
  const ChildEnd& end() const { return end_; }
  // Of a process that ended by itself: ok, or what of it did not end.
  const Status& left_behind() const { return left_behind_; }
  // Whether it had to kill workers, which were told to leave and did not.
  int killed() const { return killed_; }

  // Platform
  Instant now() override { return machine_.network->now(); }
  std::uint64_t random() override { return random_(); }
  FileSystem& files() override;
  pid_t process_id() const override { return pid_; }
  Expected<std::string> program() override { return std::string("simulated"); }
  bool is_stopped(pid_t process) override;
  std::unique_ptr<ChildProcesses> make_children(ChildProcesses::Ended ended) override;
  Expected<std::shared_ptr<Transport>> make_transport(const Security& security,
                                                      const TransportLimits& limits,
                                                      TransportHandler& handler) override;
  Expected<std::vector<std::unique_ptr<Device>>> make_devices(const Cluster& cluster,
                                                              TaskId task) override;
  caf::actor_system& actors() override;
  bool own_threads() const override { return false; }
  bool handle_inline() const override { return machine_.handle_inline; }

 private:
  enum class State : std::uint8_t { running, paused, leaving, ended };
  struct System;
  class Files;
  class Workers;

  void set_clock();
  void settle();
  void look_after_workers();
  void end_with(ChildEnd end);
  void bury();
  Status drain();

  SimMachine& machine_;
  const std::string name_;
  const pid_t pid_;
  Random random_;
  std::unique_ptr<Files> files_;
  std::unique_ptr<System> system_;
  std::vector<SimDevice*> devices_;  // of the worker
  std::unique_ptr<MasterShell> master_;
  std::unique_ptr<WorkerShell> worker_;
  Workers* workers_ = nullptr;  // of the master; its shell's
  SimProcess* parent_ = nullptr;
  State state_ = State::running;
  bool leaving_ = false;  // before the pause
  std::optional<Farewell> farewell_;
  Instant next_farewell_ = kNever;
  int killed_ = 0;
  ChildEnd end_;
  Status left_behind_;
};

}  // namespace troupe::test
