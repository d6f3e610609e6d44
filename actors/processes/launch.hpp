// The place of a process among those that a launcher has started, from its environment.
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/status.hpp"

namespace troupe {

// Rank 0 is the master, and runs its program; all others are its workers.
struct Launch {
  enum class Role : std::uint8_t { master, worker } role = Role::master;
  int rank = 0;
  int workers = 0;          // that the master waits for; 0: this process is alone
  std::string listen;       // of the master: HOST:PORT
  std::string join;         // of a worker: the master's HOST:PORT
  std::string announce;     // of a worker: its host, for others; empty: the address facing `join`
  std::string secret_file;  // empty only for a process that is alone
};

// What the user requested.
struct LaunchWords {
  std::string by;           // "slurm", "torchrun"
  std::string listen;       // HOST:PORT of the master, for all; empty: as the launcher says
  std::string secret_file;  // empty: the variable TROUPE_SECRET_FILE
};

bool is_launcher(std::string_view by);

// The value of a variable; none: it is not set.
using Variables = std::function<std::optional<std::string>(const std::string& name)>;

// `host`: the name of this machine.
//
//   slurm     SLURM_PROCID, SLURM_NTASKS, and the first host of SLURM_STEP_NODELIST (or
//             SLURM_NODELIST), at a port that SLURM_JOB_ID and SLURM_STEP_ID decide
//   torchrun  RANK, WORLD_SIZE, MASTER_ADDR, MASTER_PORT. If the launcher itself listens at that
//             port (TORCHELASTIC_USE_AGENT_STORE), the master takes the next one.
//
// invalid_argument names the variable and what is wrong with it: it is missing, no number, out of
// range, or contradicts another one; there is no secret.
Expected<Launch> launch_by(const LaunchWords& words, const Variables& variables,
                           const std::string& host);

// The hosts of a list as Slurm writes it, in order: "node[1-3,07-09],gpu5,r[1-2]n[0-3]".
// invalid_argument: malformed, with the position; more than `most` hosts, and then none is made.
Expected<std::vector<std::string>> hosts_of(std::string_view list, std::size_t most);

}  // namespace troupe
