#include "actors/runtime/platform.hpp"

#include <unistd.h>

#include <caf/actor_system.hpp>
#include <mutex>
#include <optional>
#include <random>

#include "actors/net/tcp.hpp"
#include "actors/processes/event_queue.hpp"
#include "actors/processes/proc.hpp"
#include "actors/processes/stopped.hpp"
#include "actors/runtime/runtime.hpp"

namespace troupe {
namespace {

class ThisMachine final : public Platform {
 public:
  explicit ThisMachine(caf::actor_system* system) : system_(system) {}

  Instant now() override { return steady_now(); }
  std::uint64_t random() override { return machine_random(); }
  FileSystem& files() override { return disk(); }

  pid_t process_id() const override { return getpid(); }
  Expected<std::string> program() override {
    auto path = program_of("/proc/self/exe");
    return path.ok() ? path : path.status().in("finding this program to run it as a worker");
  }
  bool is_stopped(pid_t process) override { return troupe::is_stopped(process); }
  std::unique_ptr<ChildProcesses> make_children(ChildProcesses::Ended ended) override {
    return std::make_unique<Children>(std::move(ended));
  }

  Expected<std::shared_ptr<Transport>> make_transport(const Security& security,
                                                      const TransportLimits& limits,
                                                      TransportHandler& handler) override {
    TROUPE_TRY(auto transport, make_tcp_transport(security, limits, handler));
    return std::shared_ptr<Transport>(std::move(transport));
  }
  Expected<std::vector<std::unique_ptr<Device>>> make_devices(const Cluster& cluster,
                                                              TaskId task) override {
    return troupe::make_devices(cluster, task);
  }

  caf::actor_system& actors() override {
    std::lock_guard lock(mutex_);
    if (!system_) {
      config_ = actor_config();
      owned_.emplace(*config_);
      system_ = &*owned_;
    }
    return *system_;
  }
  bool own_threads() const override { return true; }
  bool handle_inline() const override { return true; }

 private:
  std::mutex mutex_;
  std::unique_ptr<caf::actor_system_config> config_;
  std::optional<caf::actor_system> owned_;
  caf::actor_system* system_;
};

}  // namespace

std::uint64_t machine_random() {
  std::random_device device;
  return std::uint64_t{device()} << 32 | device();
}

std::unique_ptr<Platform> this_machine(caf::actor_system* system) {
  return std::make_unique<ThisMachine>(system);
}

}  // namespace troupe
