#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <system_error>

#include "apps/commands/command_line.hpp"
#include "apps/commands/plan_text.hpp"
#include "apps/commands/print.hpp"
#include "apps/compile_here.hpp"
#include "apps/training_graph.hpp"
#include "core/name.hpp"
#include "graph/print.hpp"
#include "serialization/graph_io.hpp"

namespace troupe {
namespace {

using nlohmann::json;

struct GraphOptions {
  std::string graph = "mnist-mlp";  // a network of `troupe train`, or a file
  std::string stage;                // of compile(), "built" or "plan"; empty: chosen()
  std::string format = "text";      // or dot
  std::int64_t batch = 64;
  int replicas = 1;
  std::vector<std::string> devices = {"/job:worker/task:0/cpu:0"};
  bool explain = false;
  std::vector<std::string> fetches, targets, feeds;  // of a file: what a step of it is compiled for

  bool of_file = false;  // chosen()

  bool asks() const { return !fetches.empty() || !targets.empty(); }
};

// With what was left open. Names of networks are none of files; of a saved graph that nothing is
// asked of there is no step.
GraphOptions chosen(GraphOptions options) {
  std::error_code none;
  options.of_file =
      !known_model(options.graph).ok() && (options.graph.find_first_of("/.") != std::string::npos ||
                                           std::filesystem::exists(options.graph, none));
  if (options.stage.empty()) options.stage = options.of_file && !options.asks() ? "built" : "plan";
  return options;
}

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

Expected<Compiled> compile_stages(const GraphOptions& options, const Graph& graph,
                                  const CompileRequest& request) {
  Compiled out;
  auto keep = [&](std::string_view stage, const GraphDef& now) {
    out.stages.emplace_back(stage);
    out.graphs.push_back(now);
  };
  keep("built", graph.def());
  TROUPE_TRY(out.result, compile_here(graph, request, options.devices, keep));
  out.graphs.push_back(out.graphs.back());
  out.stages.emplace_back("plan");
  return out;
}

Expected<Compiled> compile_example(const GraphOptions& options) {
  TrainOptions train;
  train.example = options.graph;
  train.batch = options.batch;
  train.cluster.replicas = options.replicas;
  Graph graph(train.seed);
  TROUPE_TRY(TrainingGraph step, build_training(graph, train));
  return compile_stages(options, graph, training_request(step, options.replicas));
}

// A saved graph as it is, whether or not it could run here, or a step of it.
Expected<Compiled> compile_file(const GraphOptions& options) {
  TROUPE_TRY(GraphDef saved, read_graph(options.graph));
  if (!options.asks()) return Compiled{{"built"}, {std::move(saved)}, {}};
  CompileRequest request;
  request.targets = options.targets;
  request.replicas = options.replicas;
  for (const auto& [names, ports] :
       {std::pair(&options.fetches, &request.fetches), std::pair(&options.feeds, &request.feeds)})
    for (const std::string& name : *names) {
      TROUPE_TRY(PortName port, PortName::parse(name));
      ports->push_back(std::move(port));
    }
  const Graph graph(std::move(saved));
  return compile_stages(options, graph, request);
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
    json out = {{options.of_file ? "file" : "example", options.graph},
                {"stage", options.stage},
                {"nodes", graph.nodes.size()}};
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

// What is asked of the wrong kind of graph.
Status check_options(const GraphOptions& options) {
  if (!options.of_file) {
    TROUPE_TRY(known_model(options.graph));
    if (options.asks() || !options.feeds.empty())
      return invalid_argument("--fetch, --target and --feed are for the graph of a file");
    return ok_status();
  }
  if (!options.asks() && !options.feeds.empty())
    return invalid_argument("--feed is for a step: --fetch or --target says which");
  if (!options.asks() && options.stage != "built" && options.stage != "stages")
    return invalid_argument("stage '" + options.stage +
                            "' is of a step, and the file has a graph: --fetch or --target says "
                            "what the step is to compute");
  return ok_status();
}

int run_graph(const GraphOptions& options, const Printing& printing) {
  if (Status status = check_options(options); !status.ok()) return report_usage(status, printing);
  try {
    auto compiled = options.of_file ? compile_file(options) : compile_example(options);
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
  Command c = line.command("graph", "Print a graph, or a step after a stage of compiling");
  c.option("graph", options->graph,
           "a network of `troupe train`, whose training step is printed, or the file of a saved "
           "graph");
  c.option("--stage", options->stage,
           "stage of compiling after which to print; `plan`; or `stages` to list their names "
           "(default: plan; built for a file without --fetch and --target)");
  c.option("--fetch", options->fetches, "of a file: outputs that the step computes").list();
  c.option("--target", options->targets, "of a file: nodes that the step runs").list();
  c.option("--feed", options->feeds, "of a file: outputs that are fed to the step").list();
  c.option("--format", options->format, "output format: text, or dot for Graphviz")
      .one_of({"text", "dot"});
  c.option("--batch", options->batch, "examples per replica and step").within(1, 1'000'000);
  c.option("--replicas", options->replicas, "data-parallel copies of the step").within(1, 1024);
  c.option("--device", options->devices,
           "full names of the devices to place on, e.g. /job:worker/task:0/cpu:0");
  c.flag("--explain", options->explain, "print what each pass did");
  c.runs([options, &line] { return run_graph(chosen(*options), line.printing()); });
}

}  // namespace troupe
