// The processes and devices of a session.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "core/status.hpp"

namespace troupe {

// The minimum of Cluster::silence.
inline constexpr std::chrono::milliseconds kLeastSilence{250};

// Describes a cluster; a Session starts it. Default: this process, with all processors that it may
// use.
struct Cluster {
  int threads = 0;   // compute threads of each CPU device, at most 1024; 0: one per processor
  int replicas = 1;  // replicas of each compiled step (synchronous data parallel), 1 to 1024
  // Worker processes on this machine, at most 4096; 0: this process computes. More than it can hold
  // are resource_exhausted where the session is made (actors/processes/worker_room.hpp).
  int workers = 0;
  // Device types of each worker, 1 to 16: two "CPU" are cpu:0 and cpu:1. "FAKE" is for tests.
  // (No initializer list: g++ 12 fails on one where a template makes a Cluster.)
  std::vector<std::string> devices = std::vector<std::string>(1, "CPU");
  // Fake devices of this process; those of worker processes have the defaults.
  std::uint64_t fake_seed = 0;    // seed of their delays
  std::uint64_t fake_memory = 0;  // bytes of memory of each; 0: 1 GiB
  // Memory limit of a step in each process, in bytes; 0: none. It counts values computed and
  // received that are still needed, including those saved by loops. A step above it ends with
  // resource_exhausted, which names the largest values.
  std::uint64_t step_memory = 0;
  // Waits for each kernel and copy of a GPU, so that an error of the GPU names the node. Slow.
  // TROUPE_CUDA_SYNC=1 asks a process for the same.
  bool cuda_sync = false;
  std::string listen;  // "HOST:PORT" at which `wait_for` workers of other machines join
  int wait_for = 0;    // number of those workers, at most 4096; needs `listen`
  // Workers beyond `wait_for` that may stay connected and wait, to replace lost ones, at most 4096;
  // others are told that the job has all its workers. Needs `wait_for`.
  int spares = 0;
  // How long a session that goes on after a loss (Session::keep) waits for workers of other
  // machines; then the loss ends it. at least 1 s.
  std::chrono::seconds replace_within{60};
  // "HOST:PORT" of a master elsewhere, of which this process is a worker: where it makes its
  // Session it becomes the worker instead, and ends with it. It uses `secret`, `silence`,
  // `step_memory`, `stop` and the next two.
  std::string join;
  std::string announce;  // host by which other workers reach it; empty: the address facing `join`
  // How long it waits for a master that is not there yet, or was lost; 0: it ends at once.
  std::chrono::seconds orphan_timeout{60};
  std::string secret;          // 16 to 64 bytes that those workers have, too; random for local ones
  std::string worker_program;  // program of local workers; empty: this executable
  // A process of the job that sends nothing for this long, or does not join in this time, is lost.
  // Raise it on overloaded machines; minimum 250 ms.
  std::chrono::milliseconds silence{2000};
  // A run in which no node has begun or ended for this long is named in a warning, with what it
  // waits for; not while it waits for a queue. 0: never.
  std::chrono::milliseconds stands_still{60'000};
  // Polled while the session waits for its workers, also for those that replace lost ones, on a
  // thread for which the calling one waits; true: give up (cancelled). What it throws is the
  // session's error. The session is locked meanwhile: its methods that wait, and
  // CompiledStep::start, are refused there (failed_precondition); in other threads they wait.
  std::function<bool()> stop;
  bool soft_placement = true;
  std::vector<std::string> disabled_passes;  // "fold", "cse", or passes of the program's own

  // Validates the description, as a Session does first. invalid_argument names the field and its
  // range; not_found names an unknown pass.
  Status check() const;

  // Reads the options of options_text(): of the processes (docs/launching.md), --threads N,
  // --replicas N, --device TYPE, --step-memory BYTES and --cuda-sync. Ignores other arguments and
  // all after "--". invalid_argument for a malformed value, for one without another that it needs,
  // and for an option that differs from one of these by one or two letters. With --cluster slurm or
  // torchrun the launcher's environment decides; invalid_argument names what is wrong with it.
  static Expected<Cluster> try_from_args(int argc, char** argv);
  // The same; --help prints these options and exits.
  static Cluster from_args(int argc, char** argv);
  // Help text of these options, one line each.
  static std::string options_text();
  // The number of workers in "local:2" or "local" (0).
  static Expected<int> parse_workers(const std::string& text);
};

// Allocated memory of one device of this process, in bytes.
struct DeviceMemory {
  std::string device;
  std::uint64_t in_use = 0;
  std::uint64_t peak = 0;
};

}  // namespace troupe
