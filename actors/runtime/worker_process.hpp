// A worker process: joins a master, computes for it, leaves with it.
#pragma once

#include <sys/types.h>

#include <chrono>
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
  Endpoint listen{"127.0.0.1", 0};  // where other workers reach this one
  std::string secret;               // 16 to 64 bytes; empty: plaintext, loopback only
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

// Exit code of a process that ended because another one was lost: it may be run again.
inline constexpr int kTryAgain = 75;
// 0, kTryAgain when the master was lost, else 1.
int worker_exit_code(const Status& status);

// The secret in a file, a final newline left out; empty for an empty path. failed_precondition when
// others than its owner may read or write the file.
Expected<std::string> read_secret(const std::string& path);

// The text that goes through the pipe.
std::string worker_settings_text(const WorkerProcessOptions& options);
Expected<WorkerProcessOptions> parse_worker_settings(const std::string& text);

}  // namespace troupe
