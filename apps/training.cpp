#include "apps/training.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "actors/client/session.hpp"
#include "actors/job/control_socket.hpp"
#include "actors/job/job.hpp"
#include "actors/job/job_folder.hpp"
#include "apps/step_trace.hpp"
#include "apps/training_graph.hpp"
#include "apps/training_summaries.hpp"
#include "core/number.hpp"
#include "serialization/checkpoint.hpp"
#include "serialization/digest.hpp"
#include "serialization/summary_writer.hpp"

namespace troupe {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point t) {
  return std::chrono::duration<double>(Clock::now() - t).count();
}

// Everything one run holds, in the order it is made.
class Training {
 public:
  explicit Training(const TrainOptions& options)
      : options_(options), graph_(options.seed), trace_(trace_of(options)) {}

  Expected<TrainResult> run();

 private:
  StepTrace trace_of(const TrainOptions& options);
  Status build();
  Status begin();
  Status accept(const CheckpointHeader& header) const;
  JobOptions job_options();
  Status loop();
  void report_score(std::string_view name, double score);
  Expected<double> test();
  Status validate();
  Status finish();
  std::vector<std::pair<std::string, Tensor>> trainable(
      const std::vector<std::pair<std::string, Tensor>>& all);

  const TrainOptions& options_;
  Graph graph_;
  TrainingGraph step_;
  std::unique_ptr<Session> session_;
  std::unique_ptr<Job> job_;
  std::optional<CompiledStep> test_;
  std::int64_t steps_ = 0;
  std::string graph_hash_;
  StepTrace trace_;
  std::optional<TrainingSummaries> summaries_;
  std::int64_t first_ = 0;  // the last step before this process
  TrainResult result_;
};

// With a logdir alone one step is recorded, as run metadata.
StepTrace Training::trace_of(const TrainOptions& options) {
  const std::int64_t steps = options.trace.empty() ? 1 : options.trace_steps;
  if (options.logdir.empty()) return StepTrace(options.trace, steps);
  return StepTrace(options.trace, steps, [this](const Timeline& timeline, std::int64_t made) {
    job_->summaries()->add_timeline(timeline, first_ + made + 1, step_.train.name());
  });
}

// Summaries are no part of the program that a checkpoint is of.
Status Training::build() {
  TROUPE_TRY(step_, build_training(graph_, options_));
  graph_hash_ = training_sha256(graph_);
  summaries_.emplace(graph_, step_, options_);
  return ok_status();
}

Status Training::begin() {
  TROUPE_TRY(steps_, planned_steps(options_));
  session_ = std::make_unique<Session>(graph_, options_.cluster);
  const std::string& dir = options_.checkpoint_dir;
  if (options_.resume && dir.empty()) return invalid_argument("--resume needs --checkpoint-dir");
  if (options_.resume) {
    TROUPE_TRY(const auto old, list_checkpoints(dir));
    if (old.empty()) return not_found("no checkpoint in '" + dir + "'");
  } else if (!dir.empty()) {
    const auto old = list_checkpoints(dir);
    if (old.ok() && !old->empty())
      return failed_precondition(
          fmt::format("'{}' holds checkpoints of another run ({}): go on with --resume, or name "
                      "another --checkpoint-dir",
                      dir, old->back().path));
  }
  job_ = std::make_unique<Job>(*session_, job_options());
  if (!dir.empty()) TROUPE_TRY(JobFolder::claim(dir));
  result_.checkpoint = job_->checkpoint();
  if (job_->resumed() && options_.checkpointed) options_.checkpointed(result_.checkpoint, {});
  TROUPE_TRY(const JobPlace place, session_->try_place());
  if (job_->resumed() && !place.fetches.empty()) result_.loss = place.fetches[0].item<float>();
  return ok_status();
}

JobOptions Training::job_options() {
  JobOptions job;
  job.dir = options_.checkpoint_dir;
  job.checkpoint_steps = options_.checkpoint_steps;
  job.checkpoint_seconds = options_.checkpoint_seconds;
  if (job.checkpoint_steps == 0 && job.checkpoint_seconds == 0 && !options_.checkpoint_often)
    job.checkpoint_seconds = JobOptions::kNever;  // the last one only
  job.keep = options_.keep;
  job.patience = options_.patience;
  job.keep_best = false;
  job.on_nan = JobOptions::NanPolicy::ignore;
  job.recover = options_.recover;
  job.gather = options_.gather;
  job.signals = false;  // the command's business
  job.logdir = options_.logdir;
  job.quiet = true;
  job.stop = options_.stop;
  // Data in another folder, or fetched further ahead, is no other graph here.
  job.other_graph = true;
  job.describe = [this](CheckpointHeader& header) {
    header.graph_hash = graph_hash_;
    header.metadata["example"] = options_.example;
  };
  job.accept = [this](const CheckpointHeader& header) { return accept(header); };
  job.checkpointed = [this](const std::string& newest, const Status& tried) {
    result_.checkpoint = newest;
    result_.failed_checkpoints += !tried.ok();
    if (options_.checkpointed) options_.checkpointed(newest, tried);
  };
  return job;
}

Status Training::accept(const CheckpointHeader& header) const {
  const auto example = header.metadata.find("example");
  if (example != header.metadata.end() && example->second != options_.example)
    return invalid_argument(
        fmt::format("it is a checkpoint of {}, not of {}", example->second, options_.example));
  if (!header.graph_hash.empty() && header.graph_hash != graph_hash_ && !options_.other_graph)
    return failed_precondition(
        "it is a checkpoint of another graph: of another batch size, learning rate or data, or of "
        "another version of this program; to go on from it all the same, give "
        "--allow-other-graph");
  return ok_status();
}

Status Training::loop() {
  TROUPE_TRY(CompiledStep step, session_->try_compile({step_.loss}, {step_.train}));
  first_ = job_->step();
  summaries_->begin(*session_, *job_);
  Clock::time_point begin = Clock::now(), shown = begin;
  for (const JobStep& s : job_->steps(steps_)) {
    trace_.before_step(*session_, result_.steps_here, steps_ - first_);
    const bool showing = summaries_->wants(s, result_.steps_here == 0);
    TROUPE_TRY(std::vector<Tensor> fetched,
               showing ? summaries_->step(step, s) : step.try_run({}, s));
    result_.loss = fetched[0].item<float>();
    if (++result_.steps_here == 1) begin = Clock::now();
    if (result_.steps_here > 1)
      result_.steps_per_second = double(result_.steps_here - 1) / seconds_since(begin);
    if (showing) TROUPE_TRY(summaries_->show(fetched));
    if (options_.progress && (s.last() || seconds_since(shown) > 0.25)) {
      shown = Clock::now();
      if (ControlSocket* socket = ControlSocket::of_this_process())
        socket->figure("loss", result_.loss);
      options_.progress({s.number(), steps_, result_.loss, result_.steps_per_second});
    }
    if (learns_text(options_) && s.every(options_.validate_steps)) TROUPE_TRY(validate());
  }
  result_.steps = job_->step();
  result_.stopped = job_->stopped();
  result_.last_checkpoint = job_->last_checkpoint();
  return ok_status();
}

// The score of the whole test set, once, whatever the number of replicas: the mean over labels.
Expected<double> Training::test() {
  if (!test_) {
    TROUPE_TRY(test_,
               session_->try_compile({step_.score, step_.test_labels}, {}, {}, {.replicas = 1}));
  }
  TROUPE_TRY(test_->try_rewind());
  double score = 0, tested = 0;
  for (;;) {
    TROUPE_TRY(auto fetched, test_->try_next());
    if (!fetched) break;
    score += (*fetched)[0].item<float>();
    tested += double((*fetched)[1].elements());
  }
  return score / tested;
}

Status Training::validate() {
  TROUPE_TRY(result_.last_validation_loss, test());
  job_->judge(result_.last_validation_loss);
  report_score("validation_loss", result_.last_validation_loss);
  job_->set_note(fmt::format("{}", result_.last_validation_loss));
  return ok_status();
}

// What is known of the network when it has learned.
Status Training::finish() {
  if (learns_text(options_)) {
    TROUPE_TRY(result_.sample, step_.text.writer->write(*session_, options_.sample, options_.seed));
    return result_.steps_here > 0 ? summaries_->show_sample(result_.sample) : ok_status();
  }
  TROUPE_TRY(result_.test_accuracy, test());
  report_score("test_accuracy", result_.test_accuracy);
  return ok_status();
}

// Of this process's steps: what an earlier one had to say is there.
void Training::report_score(std::string_view name, double score) {
  if (job_->summaries() && result_.steps_here > 0) job_->report({{name, score}});
}

std::vector<std::pair<std::string, Tensor>> Training::trainable(
    const std::vector<std::pair<std::string, Tensor>>& all) {
  std::vector<std::pair<std::string, Tensor>> chosen;
  for (const Variable& v : trainable_variables(graph_))
    for (const auto& entry : all)
      if (entry.first == v.name()) chosen.push_back(entry);
  return chosen;
}

Expected<TrainResult> Training::run() {
  result_.drawn = options_.data.empty();
  TROUPE_TRY(trace_.open());
  TROUPE_TRY(build());
  TROUPE_TRY(begin());
  const Status looped = loop();
  trace_.finish(*session_);
  result_.traced_steps = trace_.steps();
  result_.trace = trace_.written();
  TROUPE_TRY(looped);
  if (learns_text(options_) && job_->best()) {
    result_.validation_loss = *job_->best();
    result_.best_step = job_->best_step();
    result_.last_validation_loss =
        parse_number<double>(job_->note()).value_or(TrainResult::kUntested);
  }
  if (!result_.stopped) TROUPE_TRY(finish());
  if (SummaryWriter* summaries = job_->summaries()) {
    summaries->flush();
    result_.lost_summaries = summaries->lost() + summaries_->lost();
    result_.summaries = summaries->failure();
  }
  TROUPE_TRY(auto variables, session_->try_variables());
  result_.params_sha256 = params_sha256(trainable(variables));
  TROUPE_TRY(session_->try_close());
  return result_;
}

}  // namespace

void TrainOptions::go_on(const std::string& dir) {
  if (dir.empty()) return;
  const bool own =
      checkpoint_dir.empty();  // else that of the program: ours once a life wrote there
  if (own) checkpoint_dir = dir;
  if (own) checkpoint_often = checkpoint_steps == 0 && checkpoint_seconds == 0;
  const auto old = list_checkpoints(checkpoint_dir);
  const bool there = old.ok() && !old->empty();
  // A job of an earlier version has claimed none, and told where its last checkpoint was.
  const auto folder_of = [](const std::string& path) {
    std::error_code none;
    return std::filesystem::weakly_canonical(path, none);
  };
  const std::string told = JobFolder::position(JobFolder::of_this_process()).checkpoint;
  resume = there && (own || resume || JobFolder::claims(checkpoint_dir) ||
                     (!told.empty() && folder_of(told).parent_path() == folder_of(checkpoint_dir)));
}

bool learns_text(const TrainOptions& options) { return options.example == "char-lstm"; }

Status check(const TrainOptions& options) {
  const auto number = [](std::string_view what, double value, double most) {
    if (value >= 0 && value <= most) return ok_status();  // which NaN is not
    return invalid_argument(fmt::format("{} is a number from 0 to {}, not {}", what, most, value));
  };
  const auto count = [](std::string_view what, std::int64_t value, std::int64_t low,
                        std::int64_t high) {
    if (value >= low && value <= high) return ok_status();
    return invalid_argument(
        fmt::format("{} is a number from {} to {}, not {}", what, low, high, value));
  };
  constexpr std::int64_t kMany = 1'000'000'000;
  TROUPE_TRY(number("the number of epochs", options.epochs, 1e6));
  TROUPE_TRY(number("the learning rate", options.learning_rate, 1e6));
  TROUPE_TRY(number("the time between checkpoints", options.checkpoint_seconds, 1e12));
  TROUPE_TRY(count("the number of examples", options.examples, 1, 10'000'000));
  TROUPE_TRY(count("the number of test examples", options.test_examples, 1, 10'000'000));
  TROUPE_TRY(count("the number of steps", options.steps, 0, kMany));
  TROUPE_TRY(count("the batch", options.batch, 1, 1'000'000));
  TROUPE_TRY(count("the number of steps between validations", options.validate_steps, 1, kMany));
  TROUPE_TRY(count("the patience", options.patience, 0, 1'000'000));
  TROUPE_TRY(count("the number of characters to write", options.sample, 0, kMany));
  TROUPE_TRY(count("the number of steps between checkpoints", options.checkpoint_steps, 0,
                   std::numeric_limits<std::int64_t>::max()));
  TROUPE_TRY(count("the number of checkpoints to keep", options.keep, 1, 1000));
  TROUPE_TRY(count("the number of traced steps", options.trace_steps, 1, 1'000'000));
  TROUPE_TRY(count("the number of steps between summaries", options.summary_steps, 1, kMany));
  if (options.steps > 0 && options.epochs > 0)
    return invalid_argument("steps and epochs both say how long to train: give one of them");
  return options.cluster.check();
}

Expected<TrainResult> train(const TrainOptions& options) {
  try {
    TROUPE_TRY(check(options));
    return Training(options).run();
  } catch (const Error& error) {  // building the graph, starting the cluster: the client's edge
    return error.status();
  }
}

}  // namespace troupe
