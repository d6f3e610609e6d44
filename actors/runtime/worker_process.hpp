// A worker process: joins a master, computes for it, and leaves with it.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <functional>
#include <memory>
#include <string>

#include "actors/net/transport.hpp"
#include "actors/runtime/inherited_worker.hpp"
#include "core/status.hpp"
#include "serialization/messages.hpp"

namespace troupe {

// The profile of this build on this machine: everything that affects the bits of results.
NumericProfile numeric_profile();
// "x86-64-v3, oneDNN 2.6.3, Eigen 3.4.0, compiler 12.2.0, ... caches 49152/1048576/33554432".
std::string profile_text(const NumericProfile& profile);

struct WorkerProcessOptions {
  Endpoint master;
  // Where other workers reach this one. Without a host: the address on the route to the master.
  Endpoint listen{"127.0.0.1", 0};
  std::string announce;  // the host that they use; empty: that of `listen`
  std::string secret;    // 16 to 64 bytes; empty: plaintext, loopback only
  std::string job;
  std::chrono::milliseconds silence{2000};  // see Cluster
  std::uint64_t step_memory = 0;            // limit of this process; the job's may be lower
  // The master's process if it started this worker on its machine, else 0. While it is stopped
  // (SIGSTOP, a debugger), its silence is allowed.
  pid_t parent = 0;
};

class NetHub;
class Platform;

// The limits for the transport of a master or worker. invalid_argument if `silence` is too short.
Expected<TransportLimits> limits_with(std::chrono::milliseconds silence);
// That transport, with the hub as its handler. Without a secret it is plaintext.
Expected<std::shared_ptr<Transport>> open_transport(Platform& platform, const std::string& secret,
                                                    std::chrono::milliseconds silence, NetHub& hub);

// Runs until the master sends Leave (ok) or is lost (unavailable). Everything that it started has
// ended when it returns.
Status run_worker(const WorkerProcessOptions& options);

// How a worker waits for its master.
struct OrphanOptions {
  std::chrono::seconds limit{0};  // 0: not at all
  // Called while it waits, and when its master is lost; true ends it with cancelled.
  std::function<bool()> stop = {};
  // What was read from standard input; provided there again when the program is restarted.
  std::string input = {};
};
// The same, but waits at most `limit` for a master that is not there yet; then unavailable, with
// its address. If a master is lost after the worker was connected, the process executes its program
// again, with the same arguments. Only for a process whose program is this worker.
Status run_waiting_worker(const WorkerProcessOptions& options, const OrphanOptions& orphan);
// The address of this machine on the route to `to`, with a free port. Sends nothing. not_found if
// the name `to` is unknown, unavailable if there is no route.
Expected<Endpoint> listen_towards(const Endpoint& to);

struct Cluster;
// For a cluster with Cluster::join: works for that master, then ends the process. SIGTERM and
// SIGINT end it only when it has no master, unless the program handles them. Returns only if the
// description is wrong, or, without a master, after such a signal or if Cluster::stop returns true.
Status become_worker_of(const Cluster& cluster);

// Exit code of a process that ended because another one was lost: running it again may help.
inline constexpr int kTryAgain = 75;
// 0, kTryAgain if the master was lost, else 1.
int worker_exit_code(const Status& status);

// The secret in a file ("-": standard input) without a final newline; empty for an empty path.
// failed_precondition if others than the owner may read or write the file.
Expected<std::string> read_secret(const std::string& path);

// The text that is sent through the pipe.
std::string worker_settings_text(const WorkerProcessOptions& options);
Expected<WorkerProcessOptions> parse_worker_settings(const std::string& text);

}  // namespace troupe
