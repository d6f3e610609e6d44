// One process's part of a job: devices and actors, and their end. The actors' side of Session.
#pragma once

#include <caf/actor_system.hpp>
#include <caf/actor_system_config.hpp>
#include <chrono>
#include <functional>
#include <future>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "actors/cluster.hpp"
#include "actors/interfaces.hpp"
#include "core/trace.hpp"
#include "devices/device.hpp"
#include "ops/op.hpp"

namespace troupe {

// The configuration of Troupe's actor systems: work sharing, few threads (actors do not compute).
std::unique_ptr<caf::actor_system_config> actor_config();

// At most how many threads such a system takes, with those that send and receive.
int threads_of_actors();

// Recording in the master's process. begin_recording drops older spans and returns the start time;
// end_recording returns what was recorded.
std::int64_t begin_recording(Trace& trace);
ProcessTimeline end_recording(Trace& trace);

// The devices of one worker, described by the cluster: /job:worker/task:TASK/...
Expected<std::vector<std::unique_ptr<Device>>> make_devices(const Cluster& cluster, TaskId task);

// Owns the master and, unless workers are separate processes, the worker. Its destructor ends them
// and waits until no lane can call them any more.
class Runtime {
 public:
  using OnFault = std::function<void(const std::string&)>;  // see tell_of_faults()
  // Callbacks, on any of its threads.
  struct Hooks {
    OnFault fault;  // only if it has its own actor system (else see Residents)
    std::function<void(const Status&)> lost;  // a process of the job is lost
    // For workers of other machines; 0: any time. Then starting fails with deadline_exceeded.
    std::chrono::milliseconds join_within;
    bool again;  // it replaces one that lost a part: its workers had room
  };
  // Uses `system` if given; otherwise makes one.
  static Expected<std::unique_ptr<Runtime>> start(const Cluster& cluster, caf::actor_system* system,
                                                  Hooks hooks = {});
  // After a fault, the actors cannot be ended in order, nor their resources freed: all of it stays
  // until the process ends. Exception: `actors_end` means that the actors were told to end and do
  // so within some seconds. Other processes of the job are told to leave.
  static void abandon(std::unique_ptr<Runtime> runtime, bool actors_end);
  virtual ~Runtime() = default;
  virtual const MasterActor& master() const = 0;
  // See Session::memory. By default there are no devices.
  virtual std::vector<DeviceMemory> memory(bool) { return {}; }
  // See Session. Called alternately, by one thread at a time.
  virtual void start_trace() = 0;
  virtual Timeline stop_trace() = 0;

 protected:
  // The part of its end that needs no actors.
  virtual void end_other_processes() {}
  // Waits at most that long until only the owner calls it; false if others still may.
  virtual bool left_within(std::chrono::seconds limit) = 0;
};

// The master's side of a job of several processes (master_process.cpp).
Expected<std::unique_ptr<Runtime>> start_cluster(const Cluster& cluster, caf::actor_system* system,
                                                 Runtime::Hooks hooks);

}  // namespace troupe
