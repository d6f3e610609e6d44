// A training program whose processes die, stop and lose each other, job after job.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

namespace troupe::test {

enum class Fault : std::uint8_t { crash, pause, cut, one_way_cut, slow_link };
inline constexpr std::array<const char*, 5> kFaultNames = {"crash", "pause", "cut", "one-way cut",
                                                           "slow link"};

// What became of one seed.
struct FaultyJobs {
  std::array<std::uint64_t, kFaultNames.size()> faults{};  // how often each happened
  std::uint64_t events = 0;
  std::uint64_t jobs = 0;
  std::uint64_t finished = 0;     // jobs that came to their end
  std::uint64_t gave_up = 0;      // that ended because somebody was lost, as exit code 75 says
  std::uint64_t not_begun = 0;    // that did not start, likewise
  std::uint64_t masters = 0;      // whose master was killed
  std::uint64_t resumed = 0;      // that went on from a file of an earlier one
  std::uint64_t undisturbed = 0;  // of those finished: with faults that nobody may be lost by
  std::uint64_t inlined = 0;      // in which threads that bring messages handle them
  std::uint64_t history = 0;      // a hash of every choice, delivery and answer
  std::vector<std::string> wrong;
};

// Runs jobs of the program until there were so many events, each from the files of those before.
// A job adds to two variables on two workers, and saves both now and then.
//
// Wrong is: a call that is not answered, a job that ends for another reason than that somebody was
// lost, or although nobody can have been; a value that is not that of all runs that were answered
// ok; a process that does not end when its job does, or ends with another code than is said of it;
// an actor that outlives its process.
FaultyJobs play(std::uint64_t seed, std::uint64_t events);

}  // namespace troupe::test
