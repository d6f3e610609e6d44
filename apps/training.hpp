// Training one of the known networks, as a library: `troupe train` and `troupe demo` are thin.
//
// A network for pictures is tested once, at the end; one for text every so many steps, too.
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <string>

#include "actors/cluster.hpp"
#include "core/status.hpp"
#include "ops/nn/recurrent.hpp"

namespace troupe {

struct TrainOptions {
  std::string example = "mnist-conv";
  // Folder with MNIST's IDX files or CIFAR-10's binary ones, or a text file; empty: drawn.
  std::string data;
  std::int64_t examples = 20'000;  // drawn pictures to train on
  std::int64_t test_examples = 4'000;
  double epochs = 0;         // 0: as steps says
  std::int64_t steps = 0;    // 0: as epochs says; both 0: one epoch, of text two
  std::int64_t batch = 64;   // of each replica
  double learning_rate = 0;  // 0: the example's own
  std::uint64_t seed = 1;
  std::int64_t validate_steps = 500;  // of text
  int patience = 0;  // ends after so many tests in a row that were no better; 0: goes on
  nn::OverTime over_time = nn::OverTime::fused;  // of layers that go through text
  std::int64_t sample = 400;  // characters that a network for text writes at the end
  Cluster cluster;
  std::string checkpoint_dir;
  std::int64_t checkpoint_steps = 0;  // every so many steps
  double checkpoint_seconds = 0;      // or so many seconds
  int keep = 3;
  bool checkpoint_often = false;  // or as often as costs little
  bool resume = false;
  bool other_graph = false;  // resume although the checkpoint is of another graph
  std::string trace;         // a file for what all processes do in some steps (step_trace.hpp)
  std::int64_t trace_steps = 10;
  // A folder for TensorBoard (training_summaries.hpp); empty: nothing of it.
  std::string logdir;
  std::int64_t summary_steps = 100;  // what changes, after the first step and then every so many
  // Called at most a few times a second, and after the last step.
  struct Progress {
    std::int64_t step = 0, steps = 0;
    float loss = 0;
    double steps_per_second = 0;
  };
  std::function<void(const Progress&)> progress;
  // Asked at each step boundary; true: checkpoint and stop. (Cluster::stop is asked before.)
  std::function<bool()> stop;
  bool recover = true;  // see JobOptions
  bool gather = false;
  // After each try to write a checkpoint: the newest good one (empty without any), and why the try
  // failed. Training goes on either way.
  std::function<void(const std::string& newest, const Status& tried)> checkpointed;

  // `dir`, if not empty, is the folder of the job that `troupe run` keeps running: it begins there,
  // or goes on. So it does in `checkpoint_dir`, if that was named, once a life of the job wrote
  // there.
  void go_on(const std::string& dir);
};

// Whether it learns from text, and is tested while it learns.
bool learns_text(const TrainOptions& options);

struct TrainResult {
  static constexpr double kUntested = std::numeric_limits<double>::infinity();
  std::int64_t steps = 0;       // of the whole job, resumed ones included
  std::int64_t steps_here = 0;  // of this process: 0 when the checkpoint was the end already
  double steps_per_second = 0;  // of this process, without the first step
  float loss = 0;               // of the last step, also if that was resumed; 0 without one
  double test_accuracy = 0;     // of pictures
  // Of text, in nats a character of the part that is held out: the best, after which step, and that
  // of the last test. Infinite without a test.
  double validation_loss = kUntested, last_validation_loss = kUntested;
  std::int64_t best_step = 0;
  std::string sample;
  std::string params_sha256;
  bool drawn = false;      // on what the program draws
  bool stopped = false;    // by `stop`
  std::string checkpoint;  // the newest good one, written or resumed, or empty
  int failed_checkpoints = 0;
  Status last_checkpoint;  // why that of the last step could not be written
  std::int64_t traced_steps = 0;
  Status trace;  // why it could not be written
  std::int64_t lost_summaries = 0;
  Status summaries;  // why the last that was lost could not be written; ok if later ones could
};

// What train() refuses of the options' own values, whatever the data: invalid_argument names the
// option and its range, or the other option that it goes with.
Status check(const TrainOptions& options);

// Builds, trains, tests. Errors: those of check(), those of the session, not_found for data that is
// not there, and failed_precondition for a checkpoint of another program; for a trace file that
// cannot be written those of StepTrace::open, and for a logdir those of SummaryWriter::open. A
// checkpoint that cannot be written is none: the older ones stay, the next interval tries again.
Expected<TrainResult> train(const TrainOptions& options);

}  // namespace troupe
