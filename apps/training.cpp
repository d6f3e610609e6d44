#include "apps/training.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>

#include "actors/runtime/worker_process.hpp"
#include "apps/checkpoints.hpp"
#include "apps/step_trace.hpp"
#include "apps/training_graph.hpp"
#include "core/log.hpp"
#include "serialization/digest.hpp"

namespace troupe {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point t) {
  return std::chrono::duration<double>(Clock::now() - t).count();
}

// Everything one job holds, in the order it is made.
class Job {
 public:
  explicit Job(const TrainOptions& options)
      : options_(options),
        graph_(options.seed),
        checkpoints_({.directory = options.checkpoint_dir,
                      .steps = options.checkpoint_steps,
                      .seconds = options.checkpoint_seconds,
                      .keep = options.keep}),
        trace_(options.trace, options.trace_steps) {}

  Expected<TrainResult> run();

 private:
  Status build();
  Status begin();
  Status loop();
  Expected<double> test();
  Status validate();
  bool gives_up() const;
  Status finish();
  Status resume();
  Status checkpoint();
  void tell(const Status& tried);
  std::vector<std::pair<std::string, Tensor>> trainable(
      const std::vector<std::pair<std::string, Tensor>>& all);

  const TrainOptions& options_;
  Graph graph_;
  TrainingGraph step_;
  std::unique_ptr<Session> session_;
  std::optional<CompiledStep> test_;
  int worse_ = 0;  // tests since the best one
  std::int64_t first_step_ = 0, steps_ = 0;
  std::string graph_hash_;
  Checkpoints checkpoints_;
  StepTrace trace_;
  TrainResult result_;
};

Status Job::build() {
  TROUPE_TRY(step_, build_training(graph_, options_));
  graph_hash_ = training_sha256(graph_);
  return ok_status();
}

Status Job::begin() {
  TROUPE_TRY(steps_, planned_steps(options_));
  session_ = std::make_unique<Session>(graph_, options_.cluster);
  if (!options_.resume && !options_.checkpoint_dir.empty()) {
    auto old = list_checkpoints(options_.checkpoint_dir);
    if (old.ok() && !old->empty())
      return failed_precondition(
          fmt::format("'{}' holds checkpoints of another run ({}): go on with --resume, or name "
                      "another --checkpoint-dir",
                      options_.checkpoint_dir, old->back().path));
  }
  // Before hours of computing, rather than after them.
  if (checkpoints_.wanted() && !options_.resume)
    TROUPE_TRY(disk().make_dirs(options_.checkpoint_dir));
  checkpoints_.begin(0, "", Clock::now());
  return options_.resume ? resume() : session_->try_init();
}

Status Job::resume() {
  if (options_.checkpoint_dir.empty()) return invalid_argument("--resume needs --checkpoint-dir");
  TROUPE_TRY(CheckpointInfo newest, latest_checkpoint(options_.checkpoint_dir));
  TROUPE_TRY(CheckpointData data, read_checkpoint(newest.path));
  if (data.seed != options_.seed)
    return invalid_argument(
        fmt::format("the checkpoint is of seed {}, not {}", data.seed, options_.seed));
  auto example = data.metadata.find("example");
  if (example != data.metadata.end() && example->second != options_.example)
    return invalid_argument(fmt::format("'{}' is a checkpoint of {}, not of {}", newest.path,
                                        example->second, options_.example));
  if (!data.graph_hash.empty() && data.graph_hash != graph_hash_ && !options_.other_graph)
    return failed_precondition(fmt::format(
        "'{}' is a checkpoint of another graph: of another batch size, learning rate or data, or "
        "of another version of this program; to go on from it all the same, give "
        "--allow-other-graph",
        newest.path));
  if (std::string here = profile_text(numeric_profile());
      !data.numeric_profile.empty() && data.numeric_profile != here)
    TROUPE_LOG(warning, "train",
               fmt::format("the checkpoint was computed with {}; here it is {}: the bits will "
                           "differ from those of a run without a stop",
                           data.numeric_profile, here));
  TROUPE_TRY(session_->try_restore(
      {data.commit, {data.tensors.begin(), data.tensors.end()}, data.datasets, data.resources}));
  first_step_ = std::int64_t(data.step);
  checkpoints_.begin(first_step_, newest.path, Clock::now());
  tell(ok_status());
  return ok_status();
}

void Job::tell(const Status& tried) {
  result_.checkpoint = checkpoints_.newest();
  result_.failed_checkpoints = checkpoints_.failures();
  if (options_.checkpointed) options_.checkpointed(result_.checkpoint, tried);
}

// Only what has to do with the session is an error: files are told of, and tried again.
Status Job::checkpoint() {
  if (!checkpoints_.wanted() || checkpoints_.have(result_.steps)) return ok_status();
  TROUPE_TRY(JobState state, session_->try_state());
  CheckpointData data;
  data.step = std::uint64_t(result_.steps);
  data.commit = state.committed;
  data.seed = options_.seed;
  data.graph_hash = graph_hash_;
  data.numeric_profile = profile_text(numeric_profile());
  data.datasets = std::move(state.datasets);
  data.resources = std::move(state.resources);
  for (auto& [name, value] : state.variables) data.tensors[name] = value;
  data.metadata["example"] = options_.example;
  tell(checkpoints_.write(result_.steps, data, Clock::now()));
  return ok_status();
}

Status Job::loop() {
  TROUPE_TRY(CompiledStep step, session_->try_compile({step_.loss}, {step_.train}));
  result_.steps = first_step_;
  Clock::time_point begin = Clock::now(), shown = begin;
  while (result_.steps < steps_) {
    if (options_.stop && options_.stop()) {
      result_.stopped = true;
      break;
    }
    trace_.before_step(*session_, result_.steps_here, steps_ - first_step_);
    TROUPE_TRY(std::vector<Tensor> fetched, step.try_run());
    result_.loss = fetched[0].item<float>();
    ++result_.steps;
    if (++result_.steps_here == 1) begin = Clock::now();
    if (result_.steps_here > 1)
      result_.steps_per_second = double(result_.steps_here - 1) / seconds_since(begin);
    bool last = result_.steps == steps_;
    if (options_.progress && (last || seconds_since(shown) > 0.25)) {
      shown = Clock::now();
      options_.progress({result_.steps, steps_, result_.loss, result_.steps_per_second});
    }
    if (checkpoints_.due(result_.steps, Clock::now())) TROUPE_TRY(checkpoint());
    const bool test_now = last || result_.steps % options_.validate_steps == 0;
    if (learns_text(options_) && test_now) TROUPE_TRY(validate());
    if (gives_up()) break;
  }
  TROUPE_TRY(checkpoint());
  if (checkpoints_.wanted() && !checkpoints_.have(result_.steps))
    result_.last_checkpoint = checkpoints_.last();
  return ok_status();
}

// The score of the whole test set, once, whatever the number of replicas: the mean over labels.
Expected<double> Job::test() {
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

Status Job::validate() {
  TROUPE_TRY(result_.last_validation_loss, test());
  const bool better = result_.last_validation_loss < result_.validation_loss;
  worse_ = better ? 0 : worse_ + 1;
  if (!better) return ok_status();
  result_.validation_loss = result_.last_validation_loss;
  result_.best_step = result_.steps;
  return ok_status();
}

bool Job::gives_up() const { return options_.patience > 0 && worse_ >= options_.patience; }

// What is known of the network when it has learned.
Status Job::finish() {
  if (learns_text(options_)) {
    // Nothing was left to do: the checkpoint was the end already.
    if (result_.steps_here == 0) TROUPE_TRY(validate());
    TROUPE_TRY(result_.sample, step_.text.writer->write(*session_, options_.sample, options_.seed));
    return ok_status();
  }
  TROUPE_TRY(result_.test_accuracy, test());
  return ok_status();
}

std::vector<std::pair<std::string, Tensor>> Job::trainable(
    const std::vector<std::pair<std::string, Tensor>>& all) {
  std::vector<std::pair<std::string, Tensor>> chosen;
  for (const Variable& v : trainable_variables(graph_))
    for (const auto& entry : all)
      if (entry.first == v.name()) chosen.push_back(entry);
  return chosen;
}

Expected<TrainResult> Job::run() {
  result_.drawn = options_.data.empty();
  TROUPE_TRY(trace_.open());
  TROUPE_TRY(build());
  TROUPE_TRY(begin());
  const Status looped = loop();
  trace_.finish(*session_);
  result_.traced_steps = trace_.steps();
  result_.trace = trace_.written();
  TROUPE_TRY(looped);
  if (!result_.stopped) TROUPE_TRY(finish());
  TROUPE_TRY(auto variables, session_->try_variables());
  result_.params_sha256 = params_sha256(trainable(variables));
  TROUPE_TRY(session_->try_close());
  return result_;
}

}  // namespace

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
  if (options.steps > 0 && options.epochs > 0)
    return invalid_argument("steps and epochs both say how long to train: give one of them");
  return options.cluster.check();
}

Expected<TrainResult> train(const TrainOptions& options) {
  try {
    TROUPE_TRY(check(options));
    return Job(options).run();
  } catch (const Error& error) {  // building the graph, starting the cluster: the client's edge
    return error.status();
  }
}

}  // namespace troupe
