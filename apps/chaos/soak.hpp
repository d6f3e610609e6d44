// One long job with a fault every few seconds.
#pragma once

#include <chrono>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "apps/chaos/trials.hpp"

namespace troupe {

// "90s", "10m", "1.5h". invalid_argument: anything else, and what is not above 0 or above a year.
Expected<std::chrono::milliseconds> parse_duration(std::string_view text);

struct SoakOptions {
  std::chrono::milliseconds time{}, every{std::chrono::seconds(5)};
};

// What a process holds.
struct Holdings {
  std::uint64_t rss_bytes = 0;
  std::size_t descriptors = 0;
};
Holdings holdings_of(pid_t process);

struct SoakReport {
  std::map<std::string, Figures> faults;  // by name
  Holdings first, last;                   // of the supervisor
  std::uint64_t steps = 0;
  std::int64_t restarts = 0;
  std::optional<bool> same;          // if the program came to its end
  std::vector<std::string> trouble;  // of each kind once

  bool good() const;
};
// Disturbs one job until the time is over or the program has ended. A job that is still there is
// then asked to end (SIGTERM), and must. One that has ended is compared with an undisturbed one.
SoakReport run_soak(const std::vector<Fault>& faults, const ChaosOptions& options,
                    const SoakOptions& soak, Random& random);

}  // namespace troupe
