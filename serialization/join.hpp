// The first message of a process that connects.
#pragma once

#include <cstdint>
#include <string>

#include "core/ids.hpp"

namespace troupe {

// The settings on which the bits of results depend. Chosen by the master and sent in Welcome; a
// worker that cannot apply them refuses to join.
struct NumericProfile {
  std::uint32_t isa = 0;                // level of the kernels, as ops::isa_level() has it
  std::string kernels;                  // versions of oneDNN, Eigen, compiler and C library
  std::int64_t l1 = 0, l2 = 0, l3 = 0;  // cache sizes given to Eigen, bytes
  friend bool operator==(const NumericProfile&, const NumericProfile&) = default;
};

// Hashes of what a program registered. A graph has the same meaning in two processes only if all
// three agree, so a worker with other hashes is refused.
struct Registered {
  std::uint64_t ops = 0, passes = 0, devices = 0;
  friend bool operator==(const Registered&, const Registered&) = default;
};

// Sent in the transport's hello. `process` is 0 to the master, which assigns the numbers. Sender:
// any worker. Receiver: master, or a worker with a lower number.
struct Join {
  std::uint32_t version = 5;  // of this protocol; others are refused
  ProcessId process = 0;
  std::uint64_t incarnation = 0;  // random, new per process start
  std::string job;
  std::string listen_host;  // where other workers reach it
  std::uint16_t listen_port = 0;
  std::uint32_t cpus = 0;  // lanes of its cpu:0
  NumericProfile profile;  // the best that it supports
  Registered registered;
};

}  // namespace troupe
