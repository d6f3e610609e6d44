// What `troupe train --logdir` shows beside loss, rate and speed.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "actors/client/session.hpp"
#include "actors/job/job.hpp"
#include "apps/training.hpp"
#include "apps/training_graph.hpp"

namespace troupe {

// Pictures of batches, the distribution and norm of each parameter, the options, the text that a
// network writes, and the graph with the devices of its nodes. Nothing of it changes what is
// trained: what is computed beside the step only reads variables. Belongs to one training loop, and
// borrows its job.
class TrainingSummaries {
 public:
  // With a logdir, adds nodes behind all that trains. Throws Error where the graph does.
  TrainingSummaries(Graph& graph, const TrainingGraph& step, const TrainOptions& options);

  // Shows the graph. Without a logdir neither this nor the rest does anything.
  void begin(Session& session, Job& job);
  // Is what changes to be shown after this step?
  bool wants(const JobStep& step, bool first) const;
  // Such a step of training: `plain`, whose fetch is the loss, or one like it that also fetches
  // what is shown of the batch. Where that one fails, `plain` does the step. The last step is a
  // plain one: what it fetches is in its checkpoint.
  Expected<std::vector<Tensor>> step(const CompiledStep& plain, const JobStep& step);
  // What that fetched; the parameters; the first time the options, too. Errors: those of a session
  // that cannot go on. A summary that cannot be made is warned about, once, and counted.
  Status show(const std::vector<Tensor>& fetched);
  // The text that the network has written.
  Status show_sample(const std::string& text);
  // Summaries that could not be made.
  std::int64_t lost() const { return lost_; }

 private:
  Expected<std::vector<Tensor>> step_shown(const JobStep& step);
  Status show(const Output& summary, const Output& fed = {}, const Tensor& value = {});
  void lose(const Status& why);

  const TrainingGraph& step_;
  const TrainOptions& options_;
  Graph& graph_;
  Output pictures_, parameters_, about_, sample_, written_;
  Session* session_ = nullptr;
  Job* job_ = nullptr;
  std::optional<CompiledStep> shown_;
  bool plain_only_ = false;  // the step that fetches more failed
  bool told_options_ = false;
  std::int64_t lost_ = 0;
};

}  // namespace troupe
