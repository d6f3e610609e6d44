#include "actors/runtime/runtime.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <caf/send.hpp>
#include <caf/thread_hook.hpp>
#include <cfenv>
#include <exception>
#include <map>
#include <new>
#include <thread>

#include "actors/master/master_actor.hpp"
#include "actors/processes/worker_room.hpp"
#include "actors/runtime/faults.hpp"
#include "actors/runtime/in_use.hpp"
#include "actors/runtime/worker_process.hpp"
#include "actors/worker/worker_actor.hpp"
#include "core/processors.hpp"
#include "core/threads.hpp"
#include "ops/isa.hpp"

namespace troupe {
namespace {

// At most two threads: actors do not compute, and most of a short step is waking an idle thread.
std::size_t actor_threads() { return std::size_t(std::min(2, usable_processors())); }

// Everything in one process: the master and its one worker need no network.
class LocalRuntime final : public Runtime {
 public:
  LocalRuntime(std::vector<std::unique_ptr<Device>> devices,
               std::unique_ptr<caf::actor_system_config> config, caf::actor_system* system,
               OnFault on_fault)
      : devices_(std::move(devices)), config_(std::move(config)), system_(system) {
    if (system_) return;
    owned_.emplace(*config_);
    system_ = &*owned_;
    if (on_fault) tell_of_faults(*system_, std::move(on_fault));
  }

  void spawn(const Cluster& cluster, const OpTable& ops) {
    MasterOptions options;
    options.ops = &ops;
    options.soft_placement = cluster.soft_placement;
    options.replicas = cluster.replicas;
    options.disabled_passes = cluster.disabled_passes;
    options.trace = trace_;
    options.stands_still = cluster.stands_still;
    master_ = spawn_master(*system_, std::move(options));
    WorkerOptions worker;
    for (auto& device : devices_) worker.devices.push_back(device.get());
    worker.ops = &ops;
    worker.coordinator = master_;
    worker.trace = trace_;
    worker.step_memory = cluster.step_memory;
    worker.master = master_;
    worker.alive = in_use_.token();
    TaskUp up;
    up.name = fmt::format("0 (process {})", getpid());
    for (auto& device : devices_) up.devices.push_back({device->name(), device->space()});
    worker_ = spawn_worker(*system_, std::move(worker));
    up.actor = worker_;
    caf::anon_send(master_, std::move(up));
  }

  // Actors first, then the lanes they used, then the system.
  ~LocalRuntime() override {
    if (owned_) end_at_faults(*owned_);
    caf::anon_send(worker_, Leave{});
    caf::anon_send_exit(master_, caf::exit_reason::user_shutdown);
    worker_ = nullptr;
    master_ = nullptr;
    in_use_.release();
    in_use_.wait();
    devices_.clear();
  }

  bool left_within(std::chrono::seconds limit) override {
    in_use_.release();
    return in_use_.gone_within(limit);
  }
  const MasterActor& master() const override { return master_; }
  std::vector<DeviceMemory> memory(bool reset_peak) override {
    std::vector<DeviceMemory> all;
    for (auto& device : devices_) {
      all.push_back({device->name().text(), device->bytes_in_use(), device->peak_bytes()});
      if (reset_peak) device->reset_peak();
    }
    return all;
  }
  void start_trace() override { timeline_.begin_ns = begin_recording(*trace_); }
  Timeline stop_trace() override {
    timeline_.processes = {end_recording(*trace_)};
    timeline_.end_ns = Trace::now_ns();
    return std::move(timeline_);
  }

 private:
  const std::shared_ptr<Trace> trace_ = std::make_shared<Trace>();
  Timeline timeline_;  // under way
  std::vector<std::unique_ptr<Device>> devices_;
  std::unique_ptr<caf::actor_system_config> config_;
  std::optional<caf::actor_system> owned_;
  caf::actor_system* system_;
  MasterActor master_;
  WorkerActor worker_;
  InUse in_use_;
};

// Threads inherit the floating-point environment of the thread that starts them.
class DefaultArithmetic final : public caf::thread_hook {
  void init(caf::actor_system&) override {}
  void thread_started() override { std::fesetenv(FE_DFL_ENV); }
  void thread_terminates() override {}
};

}  // namespace

int threads_of_actors() { return int(actor_threads()) + 10; }

std::unique_ptr<caf::actor_system_config> actor_config() {
  auto config = std::make_unique<caf::actor_system_config>();
  config->add_thread_hook<DefaultArithmetic>();
  config->set("scheduler.policy", caf::atom("sharing"));
  config->set("scheduler.max-threads", actor_threads());
  config->set("scheduler.max-throughput", std::size_t{300});
  return config;
}

std::int64_t begin_recording(Trace& trace) {
  trace.collect();
  trace.enable(true);
  return Trace::now_ns();
}

ProcessTimeline end_recording(Trace& trace) {
  trace.enable(false);
  Trace::Recording recording = trace.collect();
  ProcessTimeline timeline;
  timeline.name = fmt::format("master (pid {})", getpid());
  timeline.tracks = std::move(recording.tracks);
  timeline.dropped = recording.dropped;
  return timeline;
}

Expected<std::vector<std::unique_ptr<Device>>> make_devices(const Cluster& cluster, TaskId task) {
  std::vector<std::unique_ptr<Device>> devices;
  const DeviceTypes& types = ops::builtin().devices;
  std::map<std::string, int> of_type;
  for (const std::string& type : cluster.devices) {
    auto text =
        fmt::format("/job:worker/task:{}/device:{}:{}", number(task), type, of_type[type]++);
    TROUPE_TRY(DeviceName name, DeviceName::parse(text));
    TROUPE_TRY(auto device, unless_no_thread([&] {
                 return types.make(name, {cluster.threads, cluster.fake_seed, cluster.fake_memory,
                                          cluster.cuda_sync});
               }));
    devices.push_back(std::move(device));
  }
  if (devices.empty()) return invalid_argument("a worker needs a device");
  TROUPE_TRY(threads_can_start(threads_of_actors()));
  return devices;
}

namespace {

Expected<std::unique_ptr<Runtime>> start_here(const Cluster& cluster, caf::actor_system* system,
                                              Runtime::Hooks hooks) {
  TROUPE_TRY(ops::ready());
  if (!hooks.again) TROUPE_TRY(check_room(cluster.workers, WorkerRoom::here()));
  if (cluster.workers > 0 || cluster.wait_for > 0) {
    TROUPE_TRY(threads_can_start(threads_of_actors()));
    return start_cluster(cluster, system, std::move(hooks));
  }
  TROUPE_TRY(auto devices, make_devices(cluster, TaskId{0}));
  auto runtime = std::make_unique<LocalRuntime>(
      std::move(devices), system ? nullptr : actor_config(), system, std::move(hooks.fault));
  ops::settle();
  runtime->spawn(cluster, ops::builtin());
  return std::unique_ptr<Runtime>(std::move(runtime));
}

// The same, with what the program's own code in it (Cluster::stop, a device of its own) throws.
Expected<std::unique_ptr<Runtime>> start_or_say(const Cluster& cluster, caf::actor_system* system,
                                                Runtime::Hooks hooks) try {
  return unless_no_thread([&] { return start_here(cluster, system, std::move(hooks)); });
} catch (const Error& error) {
  return error.status();
} catch (const std::bad_alloc&) {
  return resource_exhausted("no memory to start a session");
} catch (const std::exception& error) {
  return internal_error(fmt::format("starting a session threw: {}", error.what()));
}

}  // namespace

// A thread that makes a system, or spawns in it, keeps a reference to the system's logger until it
// ends, and the system's destructor waits for that. So a temporary thread does this: then any other
// thread may destroy the runtime, or the system that it was given.
Expected<std::unique_ptr<Runtime>> Runtime::start(const Cluster& cluster, caf::actor_system* system,
                                                  Hooks hooks) {
  become_worker_if_started_as_one();
  if (!cluster.join.empty()) return become_worker_of(cluster);
  TROUPE_TRY(cluster.check());
  using Started = Expected<std::unique_ptr<Runtime>>;
  return unless_no_thread([&]() -> Started {
    Started started = cancelled("not started");
    std::thread([&] { started = start_or_say(cluster, system, std::move(hooks)); }).join();
    return started;
  });
}

void Runtime::abandon(std::unique_ptr<Runtime> runtime, bool actors_end) {
  constexpr std::chrono::seconds kEndWithin{10};
  if (!runtime) return;
  runtime->end_other_processes();
  if (!actors_end || !runtime->left_within(kEndWithin)) (void)runtime.release();
}

}  // namespace troupe
