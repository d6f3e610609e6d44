// Hostile cases of many ops, in child processes: one that a case brings down is a finding, and the
// next goes on behind it.
#pragma once

#include <array>
#include <functional>
#include <string>
#include <vector>

#include "tests/hostile/hostile_run.hpp"

namespace troupe::test {

struct HostileFinding {
  std::string op;
  std::uint64_t seed = 0;
  std::string what;
};

struct Bombarded {
  std::uint64_t cases = 0;
  std::array<std::uint64_t, kHostileEnds> ends{};  // by HostileEnd
  std::vector<HostileFinding> findings;            // at most kFindingsEach of an op
  std::vector<std::string> never_computed;         // ops with kernels of which no case got a value
};

inline constexpr std::size_t kFindingsEach = 4;

struct Bombardment {
  std::uint64_t first = 1, cases = 30;  // seeds of each op
  unsigned most_ms = 10'000;            // CPU time of a case
  bool show = false;                    // prints each case
};

Bombarded bombard(const OpTable& table, const std::vector<const OpInfo*>& ops,
                  const Bombardment& how);

}  // namespace troupe::test
