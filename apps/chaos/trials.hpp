// Jobs with one fault each, beside an undisturbed one.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "apps/chaos/disturbance.hpp"

namespace troupe {

struct ChaosOptions {
  std::vector<std::string> program;
  std::string folder;  // for the jobs
  std::int64_t trials = 5;
  std::uint64_t seed = 0;
};

// What a program comes to when nobody disturbs it.
struct Undisturbed {
  std::string tensors_sha256;
  std::uint64_t steps = 0;
};
// failed_precondition: it fails, or leaves no checkpoint.
Expected<Undisturbed> run_undisturbed(const ChaosOptions& options);

// The trials of one fault.
struct TrialRow {
  std::string fault;
  Fault::Outcome outcome = Fault::Outcome::goes_on;
  Figures figures;
  int went_on = 0, same = 0;
  std::int64_t restarts = 0;
  std::string trouble;  // the first

  bool good() const { return figures.done > 0 && trouble.empty(); }
};
// Keeps the folders of jobs that went wrong.
TrialRow run_trials(const Fault& fault, const ChaosOptions& options, const Undisturbed& whole,
                    Random& random);

// How a job ended that a fault was injected into.
struct TrialEnd {
  int code = 0;  // -1: it did not
  bool same = false;
  std::string said;
};
// What is wrong with it; empty: nothing.
std::string judge(const Fault& fault, const TrialEnd& end);

}  // namespace troupe
