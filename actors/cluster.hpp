// What a session runs on.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "core/status.hpp"

namespace troupe {

// The shortest Cluster::silence.
inline constexpr std::chrono::milliseconds kLeastSilence{250};

// A description; nothing starts before a Session takes it. The default is this process, all
// processors that it may use.
struct Cluster {
  int threads = 0;   // lanes of each CPU device, to 1024; 0: one per processor
  int replicas = 1;  // logical replicas of each compiled step (synchronous data parallel), to 1024
  int workers = 0;   // worker processes on this machine, to 4096; 0: this process computes
  // Types, of each worker, 1 to 16: two "CPU" are cpu:0 and cpu:1. "FAKE" is the test device.
  // (No initializer list: g++ 12 fails on one where a template makes a Cluster.)
  std::vector<std::string> devices = std::vector<std::string>(1, "CPU");
  // Of fake devices where this process computes; those of worker processes have the defaults.
  std::uint64_t fake_seed = 0;    // of their delays
  std::uint64_t fake_memory = 0;  // bytes that each of them has; 0: 1 GiB
  // Bytes that a step may hold at a time in a process: what it computed and what reached it from
  // other processes, until nobody needs it, with what its loops save. A step that wants more ends
  // with resource_exhausted, which names who holds the most. 0: as many as there are.
  std::uint64_t step_memory = 0;
  std::string listen;          // "HOST:PORT": wait there for `wait_for` workers started elsewhere
  int wait_for = 0;            // to 4096; goes with `listen`
  std::string secret;          // 16 to 64 bytes shared with those workers; drawn for local ones
  std::string worker_program;  // for local workers; empty: this executable
  // A process of the job that says nothing for so long, or takes so long to introduce itself, is
  // lost. More than this for machines that have far too much to do; 250 ms at least.
  std::chrono::milliseconds silence{2000};
  // Asked while the session waits for its workers; true: give up (cancelled). Called on the
  // session's thread, many times a second.
  std::function<bool()> stop;
  bool soft_placement = true;
  std::vector<std::string> disabled_passes;  // "fold", "cse", or one of the program's own

  // What no session takes: invalid_argument names the field and its range, not_found the pass. A
  // Session asks this first.
  Status check() const;

  // --threads N, --replicas N, --cluster local:W, --step-memory BYTES. Other arguments are left
  // alone, as are those behind "--"; invalid_argument for a value that is none, and for an option
  // that is one or two letters away from one of these.
  static Expected<Cluster> try_from_args(int argc, char** argv);
  // The same, and --help prints these options and ends the program.
  static Cluster from_args(int argc, char** argv);
  // A line for each of them.
  static std::string options_text();
  // "local:2" or "local" into `workers`.
  static Expected<int> parse_workers(const std::string& text);
};

// Memory of one device of this process, in bytes.
struct DeviceMemory {
  std::string device;
  std::uint64_t in_use = 0;
  std::uint64_t peak = 0;
};

}  // namespace troupe
