// What a process of a job uses of its machine.
#pragma once

#include <sys/types.h>

#include <caf/fwd.hpp>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "actors/cluster.hpp"
#include "actors/net/transport.hpp"
#include "actors/processes/children.hpp"
#include "core/status.hpp"
#include "core/transaction.hpp"
#include "devices/device.hpp"
#include "serialization/file.hpp"

namespace troupe {

// The time, randomness, files, connections, child processes, devices and actors of one process. The
// shells (master_shell.hpp, worker_shell.hpp) use the machine only through this, so a simulation
// that implements it runs them unchanged. Outlives the shell. Any thread may call it.
class Platform {
 public:
  virtual ~Platform() = default;

  virtual Instant now() = 0;  // monotonic
  // Uniformly distributed and unpredictable.
  virtual std::uint64_t random() = 0;
  virtual FileSystem& files() = 0;

  virtual pid_t process_id() const = 0;
  // The file of this process's program, for children that run the same.
  virtual Expected<std::string> program() = 0;
  // Whether a process on this machine is stopped (SIGSTOP, a debugger).
  virtual bool is_stopped(pid_t process) = 0;
  virtual std::unique_ptr<ChildProcesses> make_children(ChildProcesses::Ended ended) = 0;

  virtual Expected<std::shared_ptr<Transport>> make_transport(const Security& security,
                                                              const TransportLimits& limits,
                                                              TransportHandler& handler) = 0;
  // The devices of one worker, see troupe::make_devices().
  virtual Expected<std::vector<std::unique_ptr<Device>>> make_devices(const Cluster& cluster,
                                                                      TaskId task) = 0;

  // The process's actor system, made on the first call.
  virtual caf::actor_system& actors() = 0;
  // Whether actors with long work get their own threads.
  virtual bool own_threads() const = 0;
  // Whether a thread that brings a message may handle it (inline_send.hpp).
  virtual bool handle_inline() const = 0;
};

// An unpredictable number from this machine's source of randomness.
std::uint64_t machine_random();

// This machine. Uses `system` if given; otherwise it makes and owns one.
std::unique_ptr<Platform> this_machine(caf::actor_system* system = nullptr);

}  // namespace troupe
