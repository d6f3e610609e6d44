#include "apps/training_summaries.hpp"

#include <fmt/format.h>

#include <map>
#include <utility>

#include "apps/compile_here.hpp"
#include "core/log.hpp"
#include "serialization/summary_writer.hpp"

namespace troupe {
namespace {

std::string options_table(const TrainOptions& options) {
  std::string out = "| Option | Value |\n|---|---|\n";
  const auto row = [&](std::string_view name, const auto& value) {
    out += fmt::format("| {} | {} |\n", name, value);
  };
  row("example", options.example);
  row("data", options.data.empty() ? "generated" : options.data);
  row("batch", options.batch);
  row("replicas", options.cluster.replicas);
  row("seed", options.seed);
  if (options.steps > 0) row("steps", options.steps);
  if (options.epochs > 0) row("epochs", options.epochs);
  if (options.learning_rate > 0) row("learning rate", options.learning_rate);
  return out;
}

// Text as it stands, in Markdown.
std::string as_block(const std::string& text) {
  std::string out = "    ";
  for (const char c : text) out += c == '\n' ? std::string("\n    ") : std::string(1, c);
  return out;
}

// The devices of workers that were started here.
std::vector<std::string> devices_of(const Cluster& cluster) {
  std::vector<std::string> all;
  if (!cluster.listen.empty() || !cluster.join.empty()) return all;
  for (int task = 0; task < std::max(cluster.workers, 1); ++task) {
    std::map<std::string, int> numbers;
    for (std::string type : cluster.devices) {
      for (char& c : type)
        if (c >= 'A' && c <= 'Z') c = char(c - 'A' + 'a');
      all.push_back(fmt::format("/job:worker/task:{}/{}:{}", task, type, numbers[type]++));
    }
  }
  return all;
}

// The name in the program of what a step has several copies of: that of the first.
std::string in_program(std::string name) {
  constexpr std::string_view kFirst = "/replica_0";
  if (name.ends_with(kFirst)) name.resize(name.size() - kFirst.size());
  return name;
}

// Where the nodes of a training step are computed, by name. Empty where that cannot be told here.
std::map<std::string, std::string, std::less<>> places(const Graph& graph,
                                                       const TrainingGraph& step,
                                                       const TrainOptions& options) {
  std::map<std::string, std::string, std::less<>> out;
  const std::vector<std::string> devices = devices_of(options.cluster);
  if (devices.empty()) return out;
  CompileRequest request;
  request.fetches.push_back(
      {step.loss.graph().node(step.loss.node()).name, int(step.loss.port().index), false});
  request.targets.push_back(step.train.name());
  request.replicas = options.cluster.replicas;
  const auto look = [&](std::string_view stage, const GraphDef& placed) {
    if (stage != "place") return;
    for (const NodeDef& node : placed.nodes) out.emplace(in_program(node.name), node.device);
  };
  if (const auto compiled = compile_here(graph, request, devices, look); !compiled.ok())
    out.clear();
  return out;
}

}  // namespace

TrainingSummaries::TrainingSummaries(Graph& graph, const TrainingGraph& step,
                                     const TrainOptions& options)
    : step_(step), options_(options), graph_(graph) {
  if (options.logdir.empty()) return;
  auto inside = graph.with_scope("summaries");
  if (!step.images.empty()) pictures_ = image_summary(step.images, "batch");
  parameters_ = summary::parameters(graph);
  about_ = text_summary(constant(graph, Tensor::scalar(options_table(options))), "options");
  if (!learns_text(options)) return;
  sample_ = placeholder<std::string>(graph, PartialShape::scalar());
  written_ = text_summary(sample_, "sample");
}

void TrainingSummaries::begin(Session& session, Job& job) {
  if (options_.logdir.empty()) return;
  session_ = &session;
  job_ = &job;
  job.summaries()->add_graph(graph_.def(), places(graph_, step_, options_));
}

bool TrainingSummaries::wants(const JobStep& step, bool first) const {
  return job_ != nullptr && (first || step.every(options_.summary_steps));
}

Expected<std::vector<Tensor>> TrainingSummaries::step(const CompiledStep& plain,
                                                      const JobStep& step) {
  if (step.last() || plain_only_) return plain.try_run({}, step);
  auto shown = step_shown(step);
  if (shown.ok() || shown.status().code() == Code::unavailable) return shown;
  auto fetched = plain.try_run({}, step);  // of one that fails nothing is left
  plain_only_ = fetched.ok();
  if (plain_only_) lose(shown.status());
  return fetched;
}

Expected<std::vector<Tensor>> TrainingSummaries::step_shown(const JobStep& step) {
  if (!shown_) {
    std::vector<Output> fetches = {step_.loss};
    if (!step_.text.rate.empty()) fetches.push_back(step_.text.rate);
    if (!pictures_.empty()) fetches.push_back(pictures_);
    TROUPE_TRY(shown_, session_->try_compile(fetches, {step_.train}));
  }
  return shown_->try_run({}, step);
}

Status TrainingSummaries::show(const std::vector<Tensor>& fetched) {
  const double loss = fetched[0].item<float>();
  if (learns_text(options_) && fetched.size() > 1)
    job_->report({{"loss", loss}, {"learning_rate", fetched[1].item<double>()}});
  else if (learns_text(options_))
    job_->report({{"loss", loss}});
  else
    job_->report({{"loss", loss}, {"learning_rate", step_.rate}});
  if (!pictures_.empty() && fetched.size() > 1) job_->summarize(fetched[1].item<std::string>());
  if (!std::exchange(told_options_, true)) TROUPE_TRY(show(about_));
  return show(parameters_);
}

Status TrainingSummaries::show_sample(const std::string& text) {
  return job_ == nullptr ? ok_status() : show(written_, sample_, Tensor::scalar(as_block(text)));
}

// A parameter with a NaN, and a worker that is out of memory, cost the summary alone.
Status TrainingSummaries::show(const Output& summary, const Output& fed, const Tensor& value) {
  std::vector<Output> ports;
  std::vector<Tensor> values;
  if (!fed.empty()) ports = {fed}, values = {value};
  const Status shown = [&]() -> Status {
    TROUPE_TRY(const CompiledStep step,
               session_->try_compile({summary}, {}, ports, {.replicas = 1}));
    TROUPE_TRY(const std::vector<Tensor> made, step.try_run(std::move(values)));
    job_->summarize(made[0].item<std::string>());
    return ok_status();
  }();
  if (shown.ok() || shown.code() == Code::unavailable) return shown;
  lose(shown);
  return ok_status();
}

void TrainingSummaries::lose(const Status& why) {
  if (lost_++ == 0)
    TROUPE_LOG(warning, "train",
               fmt::format("{}: training goes on without this summary", why.text()));
}

}  // namespace troupe
