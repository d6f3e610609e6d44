#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>

#include "apps/commands/command_line.hpp"
#include "apps/commands/plan_text.hpp"
#include "apps/commands/print.hpp"
#include "apps/compile_here.hpp"
#include "apps/training_graph.hpp"
#include "core/name.hpp"
#include "graph/print.hpp"

namespace troupe {
namespace {

using nlohmann::json;

struct GraphOptions {
  std::string example = "mnist-mlp";
  std::string stage = "plan";   // or a stage of compile()
  std::string format = "text";  // or dot
  std::int64_t batch = 64;
  int replicas = 1;
  std::vector<std::string> devices = {"/job:worker/task:0/cpu:0"};
  bool explain = false;
};

// The step after each stage, in order; "built" is what the client made, "plan" the result, whose
// graph is that of the stage before it.
struct Compiled {
  std::vector<std::string> stages;
  std::vector<GraphDef> graphs;
  CompiledGraph result;
};

CompileRequest training_request(const TrainingGraph& step, int replicas) {
  CompileRequest request;
  request.fetches.push_back(
      {step.loss.graph().node(step.loss.node()).name, int(step.loss.port().index), false});
  request.targets.push_back(step.train.name());
  request.replicas = replicas;
  return request;
}

Expected<Compiled> compile_example(const GraphOptions& options) {
  TrainOptions train;
  train.example = options.example;
  train.batch = options.batch;
  train.cluster.replicas = options.replicas;
  Graph graph(train.seed);
  TROUPE_TRY(TrainingGraph step, build_training(graph, train));
  Compiled out;
  auto keep = [&](std::string_view stage, const GraphDef& now) {
    out.stages.emplace_back(stage);
    out.graphs.push_back(now);
  };
  keep("built", graph.def());
  TROUPE_TRY(out.result,
             compile_here(graph, training_request(step, options.replicas), options.devices, keep));
  out.graphs.push_back(out.graphs.back());
  out.stages.emplace_back("plan");
  return out;
}

Status unknown_stage(const std::string& wanted, const std::vector<std::string>& stages) {
  std::string message = "there is no stage '" + wanted + "'; known are";
  for (const std::string& stage : stages) message += " " + stage;
  auto near = near_names(wanted, stages, 1);
  if (!near.empty()) message += "; did you mean " + near.front() + "?";
  return not_found(message);
}

void print_stages(const Compiled& compiled, const Printing& printing) {
  if (printing.json) {
    print_json(json(compiled.stages));
  } else {
    for (const std::string& stage : compiled.stages) print_out("{}\n", stage);
  }
}

void print_stage(const GraphOptions& options, const Compiled& compiled, std::size_t stage,
                 const Printing& printing) {
  const GraphDef& graph = compiled.graphs[stage];
  bool plan = options.stage == "plan" && options.format == "text";
  auto text = [&] {
    return plan                      ? plan_text(compiled.result)
           : options.format == "dot" ? to_dot(graph)
                                     : to_text(graph);
  };
  if (printing.json) {
    json out = {
        {"example", options.example}, {"stage", options.stage}, {"nodes", graph.nodes.size()}};
    if (plan)
      out["plan"] = plan_json(compiled.result);
    else
      out[options.format] = text();
    if (options.explain) out["notes"] = compiled.result.notes;
    print_json(out);
    return;
  }
  print_out("{}", text());
  if (!options.explain) return;
  // A comment in either format, so that the output still feeds Graphviz.
  for (const std::string& note : compiled.result.notes)
    print_out("{} {}\n", options.format == "dot" ? "//" : "#", note);
}

int run_graph(const GraphOptions& options, const Printing& printing) {
  if (Status known = known_model(options.example); !known.ok())
    return report_usage(known, printing);
  try {
    auto compiled = compile_example(options);
    if (!compiled.ok()) return report_error(compiled.status(), printing);
    if (options.stage == "stages") return print_stages(*compiled, printing), 0;
    auto found = std::find(compiled->stages.begin(), compiled->stages.end(), options.stage);
    if (found == compiled->stages.end())
      return report_usage(unknown_stage(options.stage, compiled->stages), printing);
    print_stage(options, *compiled, std::size_t(found - compiled->stages.begin()), printing);
    return 0;
  } catch (const Error& error) {
    return report_error(error.status(), printing);
  }
}

}  // namespace

void add_graph(CommandLine& line) {
  auto options = std::make_shared<GraphOptions>();
  Command c = line.command("graph", "Print a training step after a stage of compiling");
  c.option("example", options->example, "a network of `troupe train`");
  c.option("--stage", options->stage,
           "stage of compiling after which to print; `plan`; or `stages` to list their names");
  c.option("--format", options->format, "output format: text, or dot for Graphviz")
      .one_of({"text", "dot"});
  c.option("--batch", options->batch, "examples per replica and step").within(1, 1'000'000);
  c.option("--replicas", options->replicas, "data-parallel copies of the step").within(1, 1024);
  c.option("--device", options->devices,
           "full names of the devices to place on, e.g. /job:worker/task:0/cpu:0");
  c.flag("--explain", options->explain, "print what each pass did");
  c.runs([options, &line] { return run_graph(*options, line.printing()); });
}

}  // namespace troupe
