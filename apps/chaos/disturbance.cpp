#include "apps/chaos/disturbance.hpp"

#include <algorithm>

#include "apps/bench/statistics.hpp"

namespace troupe {

Disturbance disturb(ChaosJob& job, const Fault& fault, Random& random) {
  Disturbance result;
  const std::uint64_t before = job.step();
  const auto moment = ChaosJob::Clock::now();
  result.injected = fault.inject(job, random);
  if (!result.injected.ok() || fault.outcome == Fault::Outcome::ends) return result;
  // A life that goes on from a checkpoint shows its step.
  std::uint64_t lowest = job.step();
  if (job.wait_until([&] {
        lowest = std::min(lowest, job.step());
        return job.step() > before;
      }))
    result.next_step_ms =
        std::chrono::duration<double, std::milli>(ChaosJob::Clock::now() - moment).count();
  result.twice = before - std::min(before, lowest);
  return result;
}

void Figures::add(const Disturbance& one) {
  if (!one.injected.ok()) return;
  ++done;
  if (one.next_step_ms) next_step_ms.push_back(*one.next_step_ms);
  twice.push_back(double(one.twice));
}

double percentile_or_zero(const std::vector<double>& of, double share) {
  return of.empty() ? 0 : percentile(of, share);
}

bool names_one(const std::string& text, const std::vector<std::string>& causes) {
  return std::any_of(causes.begin(), causes.end(),
                     [&](const std::string& cause) { return text.find(cause) != text.npos; });
}

}  // namespace troupe
