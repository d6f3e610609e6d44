// Job: a training loop that resumes where it stopped.
#pragma once

#include <cstdint>
#include <functional>
#include <initializer_list>
#include <iterator>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "actors/client/session.hpp"
#include "core/status.hpp"

namespace troupe {

struct CheckpointHeader;  // serialization/checkpoint.hpp
class SummaryWriter;      // serialization/summary_writer.hpp

struct JobOptions {
  // What happens when a run of a step fetches a NaN. Except with `ignore`, the run commits nothing,
  // and no checkpoint with a NaN in a variable is written: `fail` and `skip` then end the job with
  // the last one before, and `back` returns to that.
  enum class NanPolicy : std::uint8_t {
    fail,  // the run throws Error (out_of_range)
    skip,  // the run returns what it fetched; the next step takes the next elements of the datasets
    back,  // as skip, and the variables go back to the newest checkpoint; datasets go on
    ignore,  // nothing: the run commits as any other
  };
  static constexpr double kNever = 1e12;
  // The checkpoint folder of the job that `troupe run` keeps running; empty: there is none.
  static std::string supervised_dir();

  // The folder for checkpoints. Empty: supervised_dir() or, if that is empty, none are written.
  std::string dir;
  std::int64_t checkpoint_steps = 0;  // the interval in steps
  // Or in seconds; kNever: only the last one. If both are 0: as often as takes at most a thirtieth
  // of the time, and at most four times a second.
  double checkpoint_seconds = 0;
  int keep = 3;  // checkpoints in `dir`, 1 to 1000
  // All variables pass through this process, which alone writes and reads them: for a `dir` that
  // the machines of the job do not share. false: each process writes and reads its own there.
  bool gather = false;
  // The interval in seconds at which a state above 64 MiB is kept in files in this machine's memory
  // (/dev/shm), for the session to return to when a worker is lost; each process writes its part.
  // 0: it returns to the newest checkpoint in `dir`. A state up to 64 MiB is kept in this process's
  // memory, at most that often; 0: five times a second. Not for workers on other machines.
  double memory_seconds = 0;
  bool other_graph = false;  // resume from a checkpoint of another graph, too
  bool keep_best = true;     // judge() writes DIR/best.safetensors
  int patience = 0;  // judgements in a row without improvement that end the job; 0: any number
  NanPolicy on_nan = NanPolicy::fail;
  int nan_limit = 3;  // skip: steps in a row; back: returns to one checkpoint. Then the job fails
  // Continues when workers are lost: see Session::keep, which the job calls at most five times a
  // second, for at most a thirtieth of the time. false: the loss ends the program, with exit code
  // 75.
  bool recover = true;
  // The folder for TensorBoard: what report() and summarize() get, and the graph. Empty: none of
  // it.
  std::string logdir = {};
  bool json = false;   // report() prints JSON objects, one a line
  bool quiet = false;  // report() prints nothing
  // SIGINT and SIGTERM end the job after the current step, a second SIGINT at once.
  bool signals = true;
  // Called before each step; true ends the job.
  std::function<bool()> stop = {};
  // `describe` fills in the header of the program's checkpoints; `accept` may refuse one on
  // resuming.
  std::function<void(CheckpointHeader&)> describe = {};
  std::function<Status(const CheckpointHeader&)> accept = {};
  // Called after each try to write a checkpoint, with the newest good one (empty: none) and why the
  // try failed. Without it, a failure is logged as a warning.
  std::function<void(const std::string& newest, const Status& tried)> checkpointed = {};

  // invalid_argument names the field and its range.
  Status check() const;
  // Reads --job-dir DIR, --checkpoint-every N or Ns, --checkpoint-memory Ns, --keep N, --gather,
  // --allow-other-graph, --patience N,
  // --on-nan fail|skip|back|ignore, --nan-limit N, --no-recovery, --logdir DIR,
  // --output text|json and --quiet.
  // Other arguments are ignored as by Cluster::try_from_args.
  static Expected<JobOptions> try_from_args(int argc, char** argv);
  // The same; --help prints these options and those of a cluster, and exits.
  static JobOptions from_args(int argc, char** argv);
  static std::string options_text();
};

class Job;

// One step of a job. Passed as the options of a run, it makes the run carry the job's position.
class JobStep {
 public:
  std::int64_t number() const { return number_; }  // 1, 2, ... in the life of the job
  bool last() const { return last_; }
  // Whether the step is the last one or a multiple of n.
  bool every(std::int64_t n) const { return last_ || (n > 0 && number_ % n == 0); }
  // NOLINTNEXTLINE(google-explicit-constructor): step.run(feeds, s)
  operator const RunOptions&() const { return options_; }

 private:
  friend class Job;
  std::int64_t number_ = 0;
  bool last_ = false;
  RunOptions options_;
};

// Runs a loop whose state outlives its process:
//
//   Session session{g, Cluster::from_args(argc, argv)};
//   Job job{session, JobOptions::from_args(argc, argv)};
//   for (const JobStep& step : job.steps(10'000)) {
//     auto [l] = train.run<float>(step);
//     if (step.every(100)) job.report({{"loss", l}});
//   }
//   return job.exit_code();
//
// Between two steps it takes checkpoints of all state of the session and of its own position, and
// writes them while the next steps run. Evaluation, judging and reporting belong to the step in
// which they are done. A job that is started again in the same folder resumes after the step of the
// newest checkpoint, with the same bits as without the interruption; with other devices and another
// number of workers, too, as far as those compute the same bits.
//
// Make variables, datasets and queues before the Job, which restores them. With a folder, the next
// step throws failed_precondition with the line of one that is made later.
//
// If a checkpoint cannot be written, the job warns, tries again after the next interval, and
// continues. Nor does it stop if best.safetensors or summaries cannot be written. A resumed job
// shows each step once in TensorBoard. One thread. The session outlives it. A run with the options
// of a step must end before the step does.
class Job {
 public:
  // Restores the newest intact checkpoint of `options.dir`, if there is one, and initialises
  // everything that has no value. Call before the session's first run. Throws Error: those of
  // JobOptions::check() and Session::restore; failed_precondition for a checkpoint of another
  // graph; data_loss for one that no Job has written; not_found if there are checkpoints and none
  // is intact; failed_precondition if another Job, of any process, writes its checkpoints there.
  explicit Job(Session& session, JobOptions options = {});
  // Waits for a checkpoint that is being written.
  ~Job();
  Job(const Job&) = delete;
  Job& operator=(const Job&) = delete;

  class Steps;
  // The remaining steps up to this number. The loop ends earlier after stop() or a signal, or when
  // patience is over. Unless `break` or an exception ends it, a last checkpoint is written and
  // waited for.
  Steps steps(std::int64_t until);

  // For a program that answers requests instead of counting steps: other threads run steps, and
  // this one writes checkpoints until stop(), JobOptions::stop (called 20 times a second) or a
  // signal; then it writes the last one. It writes one when durable runs wait
  // (RunOptions::durable), and as JobOptions says if something was committed since. The step of a
  // checkpoint is the commit number, or a later one after steps that committed nothing.
  // failed_precondition without a folder. Throws Error as steps() does, and the cause if the
  // session ends by itself, as it does when it cannot go on after a lost worker.
  void serve();

  std::int64_t step() const;  // the last completed one
  bool resumed() const;       // the job continues an earlier one
  // Tells how good the network is now: less is better. True if it is better than ever; its
  // variables then become DIR/best.safetensors (keep_best). Belongs to the step in which it is
  // called.
  bool judge(double loss);
  std::optional<double> best() const;
  std::int64_t best_step() const;  // in which it was judged; 0: none
  // The program's own bytes, restored when the job resumes; at most 60 KiB.
  const std::string& note() const;
  void set_note(std::string note);
  // "step 100/10000  loss 0.1234  10.5 steps/s", or a JSON object, as a line on stdout. With a
  // logdir these numbers, and steps_per_second, become curves of TensorBoard.
  void report(std::initializer_list<std::pair<std::string_view, double>> values) const;
  // Writes a serialized Summary, as the summary ops return it (ops/summary/summary.hpp), for this
  // step. Does nothing without a logdir. Throws Error (invalid_argument) for other bytes.
  void summarize(std::string_view summary) const;
  // The writer of the summaries, for anything else that TensorBoard shows; null without a logdir.
  SummaryWriter* summaries() const;
  // Ends the loop after the current step, or serve(). Any thread.
  void stop();
  // Whether it ends, or has ended, before its last step: by stop() or a signal, not by patience.
  bool stopped() const;

  // The newest good checkpoint, written or resumed; empty: there is none.
  std::string checkpoint() const;
  // Why the last try to write one failed; ok if it did not.
  Status last_checkpoint() const;
  std::int64_t dropped() const;  // runs with a NaN
  // For main: 0; 1 if the last checkpoint could not be written; 128 + N after signal N.
  int exit_code() const;

 private:
  struct State;
  bool next();
  void step_over();
  const JobStep& current() const;
  std::unique_ptr<State> state_;
};

// The range that Job::steps returns. For one iteration.
class Job::Steps {
 public:
  class Iterator {
   public:
    explicit Iterator(Job& job) : job_(&job) {}
    const JobStep& operator*() const { return job_->current(); }
    void operator++() { job_->step_over(); }
    bool operator==(std::default_sentinel_t) const { return !job_->next(); }

   private:
    Job* job_;
  };
  explicit Steps(Job& job) : job_(&job) {}
  ~Steps();
  Steps(const Steps&) = delete;
  Steps& operator=(const Steps&) = delete;
  Iterator begin() const { return Iterator(*job_); }
  std::default_sentinel_t end() const { return {}; }

 private:
  Job* job_;
};

}  // namespace troupe
