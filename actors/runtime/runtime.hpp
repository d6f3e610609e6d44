// One process's share of a job: devices, actors, and how to end them. The actors' side of Session.
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

// An actor system set up as Troupe wants it: policy sharing, few threads (actors never compute).
std::unique_ptr<caf::actor_system_config> actor_config();

// Of the master's process: what was left from before is forgotten, and the moment it begins; what
// it recorded.
std::int64_t begin_recording(Trace& trace);
ProcessTimeline end_recording(Trace& trace);

// The devices of one worker, as the cluster describes them: /job:worker/task:TASK/...
Expected<std::vector<std::unique_ptr<Device>>> make_devices(const Cluster& cluster, TaskId task);

// Master and, unless workers are processes of their own, the worker. Owns them; destroying it ends
// them and waits until no lane can call them any more.
class Runtime {
 public:
  using OnFault = std::function<void(const std::string&)>;  // see tell_of_faults()
  // Whom it tells what, on any of its threads.
  struct Hooks {
    OnFault fault;  // only if it has an actor system of its own (Residents tells of others)
    std::function<void(const Status&)> lost;  // a process of the job
  };
  // `system` is used when given, else one is made.
  static Expected<std::unique_ptr<Runtime>> start(const Cluster& cluster, caf::actor_system* system,
                                                  Hooks hooks = {});
  // After a fault nobody can end its actors in order, nor free what they use: all of it stays until
  // the process ends, unless `actors_end`: the actors, which somebody else has told to, within some
  // seconds. Other processes of the job are told to leave.
  static void abandon(std::unique_ptr<Runtime> runtime, bool actors_end);
  virtual ~Runtime() = default;
  virtual const MasterActor& master() const = 0;
  // See Session::memory. This one has no devices.
  virtual std::vector<DeviceMemory> memory(bool) { return {}; }
  // See Session. One thread at a time; both are called for every recording, in turn.
  virtual void start_trace() = 0;
  virtual Timeline stop_trace() = 0;

 protected:
  // The part of its end that needs no actor.
  virtual void end_other_processes() {}
  // Whether nobody calls it any more but who owns it; waits for that.
  virtual bool left_within(std::chrono::seconds limit) = 0;
};

// The master's side of a job of several processes (master_process.cpp).
Expected<std::unique_ptr<Runtime>> start_cluster(const Cluster& cluster, caf::actor_system* system,
                                                 Runtime::Hooks hooks);

}  // namespace troupe
