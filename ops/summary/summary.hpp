// Summaries: what TensorBoard shows, as nodes (paper, section 9.1).
//
//   summary::scalar("loss", loss);
//   summary::image("digits", images);
//   Output all = summary::merge_all(g);
//   ...
//   if (step.every(100)) job.summarize(watched.run<std::string>());   // of session.compile({all})
//
// Each is a node whose output is a string scalar: a serialized Summary protocol buffer, with values
// that have tags. A tag is the name given here behind the name scope that is open: "mlp/loss". An
// event file keeps a summary under the number of a step (Job::summarize, SummaryWriter). With
// replicas, a summary that depends on a replica's data is that of replica 0. docs/summaries.md says
// what TensorBoard makes of each.
//
// All functions throw Error, with the caller's line, for an empty value, an empty name, one that is
// no UTF-8, and for what the op says.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "ops/api/generated.hpp"
#include "ops/api/variable.hpp"
#include "ops/optim/gradients.hpp"

namespace troupe::summary {

// A number: x has one element, of any numeric dtype. Kept as f32; NaN and infinities, too.
Output scalar(std::string_view name, Output x, Site site = Site::here());

// How the elements of x are distributed. Fails its run for a NaN or an infinity.
Output histogram(std::string_view name, Output x, Site site = Site::here());

// Images [batch,height,width,channels] of 1, 3 or 4 channels; by default the first three. u8, or
// floats, which are scaled as ImageSummary says.
Output image(std::string_view name, Output x, const ImageSummaryOptions& options = {},
             Site site = Site::here());

// Sound [batch,frames] or [batch,frames,channels] in [-1,1]; `sample_rate` in hertz.
Output audio(std::string_view name, Output x, double sample_rate,
             const AudioSummaryOptions& options = {}, Site site = Site::here());

// Strings, of any shape, or one that is known now: shown as Markdown.
Output text(std::string_view name, Output x, Site site = Site::here());
Output text(GraphBuilder& g, std::string_view name, std::string markdown, Site site = Site::here());

// The distribution "parameters/NAME" and the Euclidean norm "norms/NAME" of each variable, as of
// the beginning of the run. Merged.
Output parameters(const std::vector<Variable>& variables, Site site = Site::here());
// Those of all trainable variables of the graph.
Output parameters(GraphBuilder& g, Site site = Site::here());
// The distribution "gradients/NAME" of each gradient, and "norms/gradients" of all. Merged.
Output gradients(const optim::Gradients& gradients, Site site = Site::here());

// The values of several summaries as one. already_exists for a tag that two of them have, where
// that can be told now; else it fails the run.
Output merge(const std::vector<Output>& summaries, Site site = Site::here());
// Of all that the graph has now, but for those in bodies of functions and loops.
// failed_precondition: there is none.
Output merge_all(GraphBuilder& g, Site site = Site::here());

}  // namespace troupe::summary
