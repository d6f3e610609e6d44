// The first words of a process that connects.
#pragma once

#include <cstdint>
#include <string>

#include "core/ids.hpp"

namespace troupe {

// The settings that decide bits, the numeric profile. Fixed by the master, sent
// in Welcome; a worker that cannot compute like that refuses to join.
struct NumericProfile {
  std::uint32_t isa = 0;                // x86-64 level of the kernels
  std::string kernels;                  // versions of oneDNN, Eigen, compiler and C library
  std::int64_t l1 = 0, l2 = 0, l3 = 0;  // cache sizes given to Eigen, bytes
  friend bool operator==(const NumericProfile&, const NumericProfile&) = default;
};

// Hashes of what a program registered. A graph means the same to two processes only when they agree
// in all three, so a worker that differs is refused.
struct Registered {
  std::uint64_t ops = 0, passes = 0, devices = 0;
  friend bool operator==(const Registered&, const Registered&) = default;
};

// First words of a process that connects, in the transport's hello. `process` is 0 to the master,
// which gives the numbers. Sender: any worker. Receiver: master, or a worker with a lower number.
struct Join {
  std::uint32_t version = 4;  // of this protocol; another one is refused
  ProcessId process = 0;
  std::uint64_t incarnation = 0;  // random, new per process start
  std::string job;
  std::string listen_host;  // where other workers reach it
  std::uint16_t listen_port = 0;
  std::uint32_t cpus = 0;  // lanes of its cpu:0
  NumericProfile profile;  // what it can do at best
  Registered registered;
};

}  // namespace troupe
