// troupe chaos: what a program under troupe run makes of faults.
#include <fmt/format.h>
#include <stdlib.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>

#include "apps/chaos/soak.hpp"
#include "apps/chaos/trials.hpp"
#include "apps/commands/command_line.hpp"
#include "apps/commands/print.hpp"

namespace troupe {
namespace {

namespace fs = std::filesystem;

struct ChaosWords {
  ChaosOptions options;
  std::vector<std::string> faults;
  std::string soak, every = "5s";
};

nlohmann::ordered_json as_json(const Figures& figures) {
  return {{"next_step_ms_p50", percentile_or_zero(figures.next_step_ms, 0.5)},
          {"next_step_ms_p99", percentile_or_zero(figures.next_step_ms, 0.99)},
          {"steps_done_twice_p50", percentile_or_zero(figures.twice, 0.5)}};
}

// ------------------------------------------------------------------ a table of faults

nlohmann::ordered_json as_json(const TrialRow& row) {
  nlohmann::ordered_json json = {{"fault", row.fault},
                                 {"trials", row.figures.done},
                                 {"went_on", row.went_on},
                                 {"hash_equal", row.same}};
  json.update(as_json(row.figures));
  json["restarts"] = row.restarts;
  json["good"] = row.good();
  json["trouble"] = row.trouble;
  return json;
}

void print_row(const TrialRow& row) {
  const Figures& figures = row.figures;
  print_out("{:<20}{:>8}{:>9}{:>6}{:>11.0f}{:>11.0f}{:>13.0f}{:>10}{}\n", row.fault, figures.done,
            row.went_on, row.same, percentile_or_zero(figures.next_step_ms, 0.5),
            percentile_or_zero(figures.next_step_ms, 0.99), percentile_or_zero(figures.twice, 0.5),
            row.restarts, row.good() ? "" : "  BAD " + row.trouble);
}

int print_trials(const std::vector<Fault>& chosen, const ChaosOptions& options,
                 const Printing& printing) {
  const auto whole = run_undisturbed(options);
  if (!whole.ok()) {
    print_err("error: {}\n", whole.status().message());
    return 1;
  }
  bool good = true;
  if (!printing.json)
    print_out("{:<20}{:>8}{:>9}{:>6}{:>11}{:>11}{:>13}{:>10}\n", "fault", "trials", "went on",
              "same", "p50 ms", "p99 ms", "steps twice", "restarts");
  nlohmann::ordered_json rows = nlohmann::ordered_json::array();
  Random random(options.seed);
  for (const Fault& fault : chosen) {
    const TrialRow row = run_trials(fault, options, *whole, random);
    good = good && row.good();
    if (printing.json)
      rows.push_back(as_json(row));
    else
      print_row(row);
    std::fflush(stdout);
  }
  if (printing.json) print_json(rows);
  return good ? 0 : 1;
}

// ------------------------------------------------------------------ a soak

nlohmann::ordered_json as_json(const Holdings& holdings) {
  return {{"rss_bytes", holdings.rss_bytes}, {"descriptors", holdings.descriptors}};
}

nlohmann::ordered_json as_json(const SoakReport& report) {
  nlohmann::ordered_json rows = nlohmann::ordered_json::array();
  for (const auto& [fault, figures] : report.faults) {
    nlohmann::ordered_json row = {{"fault", fault}, {"times", figures.done}};
    row.update(as_json(figures));
    rows.push_back(std::move(row));
  }
  return {{"faults", std::move(rows)},
          {"steps", report.steps},
          {"restarts", report.restarts},
          {"supervisor_first", as_json(report.first)},
          {"supervisor_last", as_json(report.last)},
          {"hash_equal", report.same ? nlohmann::ordered_json(*report.same) : nullptr},
          {"good", report.good()},
          {"trouble", report.trouble}};
}

void print_soak(const SoakReport& report) {
  print_out("{:<20}{:>8}{:>11}{:>11}{:>13}\n", "fault", "times", "p50 ms", "p99 ms", "steps twice");
  for (const auto& [fault, figures] : report.faults)
    print_out("{:<20}{:>8}{:>11.0f}{:>11.0f}{:>13.0f}\n", fault, figures.done,
              percentile_or_zero(figures.next_step_ms, 0.5),
              percentile_or_zero(figures.next_step_ms, 0.99),
              percentile_or_zero(figures.twice, 0.5));
  print_out("step {}, {} restarts, {}\n", report.steps, report.restarts,
            !report.same   ? "not at its end yet"
            : *report.same ? "with the result of an undisturbed run"
                           : "with another result than an undisturbed run");
  const auto holds = [](const char* when, const Holdings& held) {
    print_out("supervisor, {}: {:.1f} MiB, {} descriptors\n", when,
              double(held.rss_bytes) / (1 << 20), held.descriptors);
  };
  holds("at first", report.first);
  holds("at last", report.last);
  for (const std::string& text : report.trouble) print_out("BAD {}\n", text);
}

int soak(const std::vector<Fault>& chosen, const ChaosOptions& options, const SoakOptions& times,
         const Printing& printing) {
  Random random(options.seed);
  const SoakReport report = run_soak(chosen, options, times, random);
  if (printing.json)
    print_json(as_json(report));
  else
    print_soak(report);
  return report.good() ? 0 : 1;
}

// ------------------------------------------------------------------ the command

// Those of these names; of none: those that a command has without being told.
Expected<std::vector<Fault>> choose(const std::vector<std::string>& wanted) {
  const std::vector<Fault> all = faults();
  std::vector<Fault> chosen;
  for (const std::string& name : wanted) {
    const auto it = std::find_if(all.begin(), all.end(),
                                 [&](const Fault& fault) { return fault.name == name; });
    if (it == all.end()) {
      std::vector<std::string> names;
      for (const Fault& fault : all) names.emplace_back(fault.name);
      return invalid_argument(
          fmt::format("there is no fault '{}': they are {}", name, fmt::join(names, ", ")));
    }
    chosen.push_back(*it);
  }
  if (wanted.empty())
    std::copy_if(all.begin(), all.end(), std::back_inserter(chosen),
                 [](const Fault& fault) { return fault.of_all; });
  return chosen;
}

// What was typed of a soak; of no time: there is none.
Expected<SoakOptions> soak_options(const ChaosWords& words, const std::vector<Fault>& chosen) {
  SoakOptions times;
  if (words.soak.empty()) return times;
  TROUPE_TRY(times.time, parse_duration(words.soak));
  TROUPE_TRY(times.every, parse_duration(words.every));
  const bool one = std::any_of(chosen.begin(), chosen.end(), [](const Fault& fault) {
    return fault.outcome != Fault::Outcome::ends;
  });
  if (!one) return invalid_argument("--soak wants a fault after which a job goes on");
  return times;
}

int run_chaos(ChaosWords words, const Printing& printing) {
  const auto chosen = choose(words.faults);
  if (!chosen.ok()) return report_usage(chosen.status(), printing);
  const auto times = soak_options(words, *chosen);
  if (!times.ok()) return report_usage(times.status(), printing);
  ChaosOptions& options = words.options;
  if (options.seed == 0)
    options.seed = std::uint64_t(std::chrono::steady_clock::now().time_since_epoch().count());
  std::string made = fs::temp_directory_path() / "troupe-chaos-XXXXXX";
  if (options.folder.empty()) {
    if (mkdtemp(made.data()) == nullptr)
      return report_error(failed_precondition("cannot make a folder " + made), printing);
    options.folder = made;
  }
  if (!printing.json) print_out("seed {}, folder {}\n", options.seed, options.folder);
  std::fflush(stdout);
  int code = 1;
  try {
    code = words.soak.empty() ? print_trials(*chosen, options, printing)
                              : soak(*chosen, options, *times, printing);
  } catch (const Error& error) {  // a job cannot be started
    code = report_error(error.status(), printing);
  }
  std::error_code none;
  if (code == 0 && options.folder == made) fs::remove_all(made, none);
  return code;
}

}  // namespace

void add_chaos(CommandLine& line) {
  auto words = std::make_shared<ChaosWords>();
  Command c =
      line.command("chaos",
                   "Run a program again and again under troupe run, with a fault in each run, and "
                   "compare its result with that of a run without: troupe chaos -- PROGRAM [ARGS]");
  std::string names;
  for (const Fault& fault : faults())
    names += fmt::format("{}{} ({})", names.empty() ? "" : ", ", fault.name, fault.about);
  c.option("--faults", words->faults, "faults, with commas between them (default: all): " + names)
      .list();
  Option trials = c.option("--trials", words->options.trials, "runs for each fault (default: 5)")
                      .within(1, 10'000);
  Option soaks =
      c.option("--soak", words->soak,
               "disturb one run for so long, e.g. 10m, by faults that follow one another")
          .not_with(trials);
  c.option("--every", words->every, "time between the faults of --soak (default: 5s)")
      .only_with(soaks);
  c.option("--seed", words->options.seed,
           "seed of moments and processes (default: another each time)");
  c.option("--folder", words->options.folder, "folder for the jobs (default: a temporary one)");
  c.rest(words->options.program, "the program and its arguments");
  c.runs([words, &line] { return run_chaos(*words, line.printing()); });
}

}  // namespace troupe
