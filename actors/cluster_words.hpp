// What a program was told of its processes.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "actors/cluster.hpp"
#include "core/status.hpp"

namespace troupe {

inline constexpr std::int64_t kMostOrphanTimeout = 1'000'000'000;  // seconds
inline constexpr std::int64_t kMostReplaceWithin = 1'000'000'000;

// The values of options that `troupe train` and programs written with the library share.
struct ClusterWords {
  std::string cluster = "local";  // --cluster
  std::string listen, secret_file;
  std::vector<std::string> devices;  // --device, each; none: a CPU
  int wait_for = 0, spares = 0;
  std::int64_t orphan_timeout = 60, replace_within = 60;
};

// Sets what these words mean, in the environment of this process. invalid_argument: they are
// malformed, or need each other, or the environment is not that of the launcher they name; an error
// of read_secret() in actors/runtime/worker_process.hpp.
Status understand(const ClusterWords& words, Cluster& cluster);

}  // namespace troupe
