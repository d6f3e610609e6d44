#include "apps/chaos/soak.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <fstream>

#include "apps/commands/job_look.hpp"
#include "core/number.hpp"

namespace troupe {
namespace {

constexpr std::size_t kMoreDescriptors = 8;
constexpr std::uint64_t kMoreMemory = 16 << 20;

void add_trouble(SoakReport& report, const std::string& text) {
  auto& all = report.trouble;
  if (!text.empty() && std::find(all.begin(), all.end(), text) == all.end()) all.push_back(text);
}

// Those that a job which went on long enough has to survive.
std::vector<Fault> of_soak(const std::vector<Fault>& faults) {
  std::vector<Fault> all;
  for (const Fault& fault : faults)
    if (fault.outcome != Fault::Outcome::ends) all.push_back(fault);
  return all;
}

void disturb_once(ChaosJob& job, const Fault& fault, Random& random, SoakReport& report) {
  const Disturbance what = disturb(job, fault, random);
  if (job.end() && !what.next_step_ms) return;  // it came to its end: judged by that
  report.faults[fault.name].add(what);
  if (!what.injected.ok())
    add_trouble(report, fmt::format("{}: not done: {}", fault.name, what.injected.message()));
  else if (!what.next_step_ms)
    add_trouble(report,
                fmt::format("{}: no step within {} s", fault.name, ChaosJob::kPatience.count()));
}

}  // namespace

Expected<std::chrono::milliseconds> parse_duration(std::string_view text) {
  const auto bad = [&] {
    return invalid_argument(
        fmt::format("'{}' is not a duration such as 90s, 10m or 1.5h, of at most a year", text));
  };
  double unit = 0;
  if (text.ends_with('s')) unit = 1;
  if (text.ends_with('m')) unit = 60;
  if (text.ends_with('h')) unit = 3600;
  if (unit == 0) return bad();
  const auto number = parse_number<double>(text.substr(0, text.size() - 1));
  constexpr double kYear = 365.0 * 24 * 3600;
  if (!number || !(*number * unit >= 0.001 && *number * unit <= kYear)) return bad();
  return std::chrono::milliseconds(std::int64_t(*number * unit * 1000));
}

Holdings holdings_of(pid_t process) {
  Holdings all;
  std::error_code none;
  for (std::filesystem::directory_iterator it(fmt::format("/proc/{}/fd", process), none), end;
       !none && it != end; it.increment(none))
    ++all.descriptors;
  const auto tree = process_tree(process);
  if (!tree.empty()) all.rss_bytes = tree.front().rss_bytes;
  return all;
}

bool SoakReport::good() const {
  const bool any = std::any_of(faults.begin(), faults.end(),
                               [](const auto& each) { return each.second.done > 0; });
  return any && trouble.empty() && same.value_or(true);
}

SoakReport run_soak(const std::vector<Fault>& faults, const ChaosOptions& options,
                    const SoakOptions& soak, Random& random) {
  SoakReport report;
  const std::vector<Fault> chosen = of_soak(faults);
  const bool hold = std::any_of(chosen.begin(), chosen.end(),
                                [](const Fault& fault) { return fault.hold_syncs; });
  ChaosJob job(options.folder + "/soak", options.program, {.hold_syncs = hold});
  const auto until = ChaosJob::Clock::now() + soak.time;
  if (!job.wait_until([&] { return job.step() > 0 && job.has_checkpoint(); })) {
    add_trouble(report, "it did not get to a step and a checkpoint: " + job.said());
    return report;
  }
  report.first = holdings_of(job.supervisor());
  std::uint64_t furthest = 0;
  while (!job.end() && ChaosJob::Clock::now() < until && report.trouble.empty()) {
    if (job.wait(soak.every) != -1) break;
    report.last = holdings_of(job.supervisor());
    disturb_once(job, chosen[random.below(chosen.size())], random, report);
    furthest = std::max(furthest, job.step());
  }
  const bool over = job.end().has_value();
  if (!over) kill(job.supervisor(), SIGTERM);
  const int code = job.wait();
  report.steps = std::max(furthest, job.step());
  report.restarts = std::max<std::int64_t>(0, job.lives() - 1);
  if (code != 0 && (over || code != 128 + SIGTERM))
    add_trouble(report, fmt::format("the job ended with code {}: {}", code, job.said()));
  if (report.last.descriptors > report.first.descriptors + kMoreDescriptors ||
      report.last.rss_bytes > report.first.rss_bytes + kMoreMemory)
    add_trouble(report, "the supervisor holds more and more");
  if (code != 0) return report;
  const auto whole = run_undisturbed(options);
  if (whole.ok())
    report.same = job.tensors_sha256() == whole->tensors_sha256;
  else
    add_trouble(report, whole.status().message());
  if (report.same == false) add_trouble(report, "the result is another one");
  return report;
}

}  // namespace troupe
