#include <fmt/format.h>

#include <array>
#include <cstdlib>

#include "actors/job/job.hpp"
#include "actors/job/job_folder.hpp"
#include "actors/program_options.hpp"

namespace troupe {
namespace {

constexpr std::int64_t kMany = 1'000'000'000;
constexpr int kMostKept = 1000;

constexpr std::array<ProgramOption, 13> kJobOptions = {
    {{"--job-dir", "DIR", "folder for checkpoints; a job that is there goes on"},
     {"--checkpoint-every", "N|Ns",
      "a checkpoint every N steps, or seconds (default: as cheap as 3 %)"},
     {"--checkpoint-memory", "Ns",
      "keep a large state in this machine's memory every N seconds, for lost workers"},
     {"--keep", "N", "number of checkpoints to keep (default 3)"},
     {"--allow-other-graph", "", "go on although the program's graph has changed"},
     {"--patience", "N", "end after N judgements without improvement (default 0: never)"},
     {"--on-nan", "WHAT", "fail, skip the step, go back to the newest checkpoint, or ignore"},
     {"--nan-limit", "N", "how often in a row (default 3)"},
     {"--gather", "",
      "checkpoints pass through this process: for a folder that machines do not share"},
     {"--no-recovery", "", "end with exit code 75 when a worker is lost"},
     {"--logdir", "DIR", "folder for TensorBoard: curves, pictures, the graph"},
     {"--output", "FORMAT", "of reports: text or json"},
     {"--quiet", "", "print no reports"}}};

Status parse_every(std::string_view text, JobOptions& options) {
  std::string_view digits = text;
  const bool seconds = digits.ends_with('s');
  if (seconds) digits.remove_suffix(1);
  const auto n = parse_count("--checkpoint-every", digits, 1, kMany);
  if (!n.ok())
    return invalid_argument(fmt::format(
        "--checkpoint-every wants a number of steps, such as 200, or of seconds, such as 30s, "
        "not '{}'",
        text));
  options.checkpoint_steps = seconds ? 0 : *n;
  options.checkpoint_seconds = seconds ? double(*n) : 0;
  return ok_status();
}

Status parse_memory(std::string_view text, JobOptions& options) {
  const auto n = text.ends_with('s')
                     ? parse_count("--checkpoint-memory", text.substr(0, text.size() - 1), 1, kMany)
                     : Expected<std::int64_t>(invalid_argument(""));
  if (!n.ok())
    return invalid_argument(
        fmt::format("--checkpoint-memory wants a number of seconds, such as 1s, not '{}'", text));
  options.memory_seconds = double(*n);
  return ok_status();
}

// The place of `text` among these words.
Expected<std::size_t> parse_word(std::string_view option, std::string_view text,
                                 std::initializer_list<std::string_view> words) {
  std::size_t at = 0;
  for (std::string_view word : words) {
    if (word == text) return at;
    ++at;
  }
  return invalid_argument(
      fmt::format("{} wants one of {}, not '{}'", option, fmt::join(words, ", "), text));
}

Status set(std::string_view option, const std::string& text, JobOptions& options) {
  const auto count = [&](int& field, int low, std::int64_t high) {
    TROUPE_TRY(const std::int64_t n, parse_count(option, text, low, high));
    field = int(n);
    return ok_status();
  };
  if (option == "--job-dir") {
    if (text.empty()) return invalid_argument("--job-dir wants a folder, not ''");
    options.dir = text;
  } else if (option == "--logdir") {
    if (text.empty()) return invalid_argument("--logdir wants a folder, not ''");
    options.logdir = text;
  } else if (option == "--checkpoint-every") {
    return parse_every(text, options);
  } else if (option == "--checkpoint-memory") {
    return parse_memory(text, options);
  } else if (option == "--keep") {
    return count(options.keep, 1, kMostKept);
  } else if (option == "--allow-other-graph") {
    options.other_graph = true;
  } else if (option == "--patience") {
    return count(options.patience, 0, kMany);
  } else if (option == "--gather") {
    options.gather = true;
  } else if (option == "--no-recovery") {
    options.recover = false;
  } else if (option == "--on-nan") {
    TROUPE_TRY(const std::size_t at, parse_word(option, text, {"fail", "skip", "back", "ignore"}));
    options.on_nan = JobOptions::NanPolicy(at);
  } else if (option == "--nan-limit") {
    return count(options.nan_limit, 0, kMany);
  } else if (option == "--output") {
    TROUPE_TRY(const std::size_t at, parse_word(option, text, {"text", "json"}));
    options.json = at == 1;
  } else {
    options.quiet = true;
  }
  return ok_status();
}

}  // namespace

Status JobOptions::check() const {
  const auto within = [](std::string_view what, std::int64_t value, std::int64_t low,
                         std::int64_t high) {
    if (value >= low && value <= high) return ok_status();
    return invalid_argument(
        fmt::format("JobOptions::{} is a number from {} to {}, not {}", what, low, high, value));
  };
  TROUPE_TRY(within("keep", keep, 1, kMostKept));
  TROUPE_TRY(within("patience", patience, 0, kMany));
  TROUPE_TRY(within("nan_limit", nan_limit, 0, kMany));
  TROUPE_TRY(within("checkpoint_steps", checkpoint_steps, 0, std::int64_t{1} << 62));
  if (!(checkpoint_seconds >= 0 && checkpoint_seconds <= kNever))
    return invalid_argument(fmt::format(
        "JobOptions::checkpoint_seconds is a number from 0 to 1e12, not {}", checkpoint_seconds));
  if (!(memory_seconds >= 0 && memory_seconds <= kNever))
    return invalid_argument(fmt::format(
        "JobOptions::memory_seconds is a number from 0 to 1e12, not {}", memory_seconds));
  if (on_nan == NanPolicy::back && dir.empty())
    return invalid_argument("JobOptions::on_nan 'back' wants checkpoints to go back to: dir");
  return ok_status();
}

std::string JobOptions::supervised_dir() {
  const std::string folder = JobFolder::of_this_process();
  return folder.empty() ? folder : folder + "/" + JobFolder::kCheckpoints;
}

std::string JobOptions::options_text() { return troupe::options_text(kJobOptions); }

Expected<JobOptions> JobOptions::try_from_args(int argc, char** argv) {
  TROUPE_TRY(const auto given, options_given(argc, argv, kJobOptions));
  JobOptions options;
  for (const auto& [option, text] : given) TROUPE_TRY(set(option, text, options));
  if (options.dir.empty()) options.dir = supervised_dir();
  return options;
}

JobOptions JobOptions::from_args(int argc, char** argv) {
  answer_help(argc, argv, options_text() + Cluster::options_text());
  return value_or_throw(try_from_args(argc, argv));
}

}  // namespace troupe
