// A worker process: joins a master, computes for it, leaves with it.
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

// The profile of this build on this machine, as far as it decides bits.
NumericProfile numeric_profile();
// "x86-64-v3, oneDNN 2.6.3, Eigen 3.4.0, compiler 12.2.0, ... caches 49152/1048576/33554432".
std::string profile_text(const NumericProfile& profile);

struct WorkerProcessOptions {
  Endpoint master;
  // Where other workers reach this one. Without a host: the address that faces the master.
  Endpoint listen{"127.0.0.1", 0};
  std::string announce;  // the host by which they do; empty: that of `listen`
  std::string secret;    // 16 to 64 bytes; empty: plaintext, loopback only
  std::string job;
  std::chrono::milliseconds silence{2000};  // see Cluster
  std::uint64_t step_memory = 0;            // of this process, where the job does not say less
  // The master's process, when it started this worker on its machine; else 0. It may be stopped
  // (SIGSTOP, a debugger) for as long as its user likes, and is silent meanwhile.
  pid_t parent = 0;
};

class NetHub;
class Platform;

// Of the transport of a master or worker. invalid_argument: `silence` is too short.
Expected<TransportLimits> limits_with(std::chrono::milliseconds silence);
// That transport, which tells the hub what arrives. Without a secret it is plaintext.
Expected<std::shared_ptr<Transport>> open_transport(Platform& platform, const std::string& secret,
                                                    std::chrono::milliseconds silence, NetHub& hub);

// Runs until the master says Leave (ok), or is lost (unavailable). Everything it started is gone
// when it returns.
Status run_worker(const WorkerProcessOptions& options);

// How it waits for its master.
struct OrphanOptions {
  std::chrono::seconds limit{0};  // 0: not at all
  // Asked while it waits; true: it ends with cancelled.
  std::function<bool()> stop = {};
  // What was read from its standard input, which it finds there again when it begins anew.
  std::string input = {};
};
// The same, but waits for a master that is not there yet, at most for `limit`; then unavailable
// with its address. Once the worker was connected to a master that is lost, this process becomes
// what it was at its start: it runs its program anew, with the same arguments, and so waits again.
// Only for a process whose program is this worker.
Status run_waiting_worker(const WorkerProcessOptions& options, const OrphanOptions& orphan);
// The address of this machine from which it reaches `to`, at a free port. Sends nothing.
// not_found: `to` is not known; unavailable: there is no way to it.
Expected<Endpoint> listen_towards(const Endpoint& to);

struct Cluster;
// Of a cluster with Cluster::join: works for that master, and ends the process. Returns only if the
// description is wrong, or Cluster::stop says so.
Status become_worker_of(const Cluster& cluster);

// Exit code of a process that ended because another one was lost: it may be run again.
inline constexpr int kTryAgain = 75;
// 0, kTryAgain when the master was lost, else 1.
int worker_exit_code(const Status& status);

// The secret in a file ("-": standard input), a final newline left out; empty for an empty path.
// failed_precondition when others than its owner may read or write the file.
Expected<std::string> read_secret(const std::string& path);

// The text that goes through the pipe.
std::string worker_settings_text(const WorkerProcessOptions& options);
Expected<WorkerProcessOptions> parse_worker_settings(const std::string& text);

}  // namespace troupe
