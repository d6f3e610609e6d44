#include "apps/chaos/trials.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

namespace troupe {
namespace {

// What is wrong with the trial; empty: nothing.
std::string run_trial(const Fault& fault, ChaosJob& job, const Undisturbed& whole, Random& random,
                      TrialRow& row) {
  // Any moment between the first checkpoint and the half of its steps.
  const std::uint64_t from = 1 + random.below(std::max<std::uint64_t>(1, whole.steps / 2));
  if (!job.wait_until([&] { return job.step() >= from && job.has_checkpoint(); }))
    return fmt::format("it did not get to step {} and a checkpoint: {}", from, job.said());
  const Disturbance what = disturb(job, fault, random);
  if (!what.injected.ok()) return "not done: " + what.injected.message();
  row.figures.add(what);
  const TrialEnd end{job.wait(), job.tensors_sha256() == whole.tensors_sha256, job.said()};
  row.went_on += end.code == 0;
  row.restarts += std::max<std::int64_t>(0, job.lives() - 1);
  row.same += end.same;
  return judge(fault, end);
}

}  // namespace

Expected<Undisturbed> run_undisturbed(const ChaosOptions& options) {
  ChaosJob job(options.folder + "/whole", options.program);
  const int code = job.wait(std::chrono::hours(24 * 365));
  Undisturbed whole{job.tensors_sha256(), job.step()};
  if (code == 0 && !whole.tensors_sha256.empty()) return whole;
  return failed_precondition(fmt::format(
      "undisturbed, the program ends with code {} and {}:\n{}", code,
      whole.tensors_sha256.empty() ? "leaves no checkpoint" : "its checkpoint", job.said()));
}

std::string judge(const Fault& fault, const TrialEnd& end) {
  using Outcome = Fault::Outcome;
  if (end.code == -1) return fmt::format("it did not end within {} s", ChaosJob::kPatience.count());
  if (end.code == 0) {
    if (fault.outcome == Outcome::ends) return "the job went on";
    return end.same ? std::string() : "the result is another one";
  }
  if (fault.outcome == Outcome::goes_on)
    return fmt::format("it ended with code {}: {}", end.code, end.said);
  return names_one(end.said, fault.causes) ? std::string()
                                           : "the job did not say why it ended: " + end.said;
}

TrialRow run_trials(const Fault& fault, const ChaosOptions& options, const Undisturbed& whole,
                    Random& random) {
  TrialRow row;
  row.fault = fault.name;
  row.outcome = fault.outcome;
  for (std::int64_t k = 0; k < options.trials; ++k) {
    const std::string folder = fmt::format("{}/{}-{}", options.folder, fault.name, k);
    std::string trouble;
    try {
      ChaosJob job(folder, options.program,
                   {.run = {"--max-restarts", "4"}, .hold_syncs = fault.hold_syncs});
      trouble = run_trial(fault, job, whole, random, row);
      if (!trouble.empty()) trouble += "; see " + folder;
    } catch (const Error& error) {
      trouble = "not done: " + error.status().message();
    }
    if (row.trouble.empty()) row.trouble = trouble;
    std::error_code none;
    if (trouble.empty()) std::filesystem::remove_all(folder, none);
  }
  return row;
}

}  // namespace troupe
