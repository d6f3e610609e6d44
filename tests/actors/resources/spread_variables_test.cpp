// The variables of a job with replicas, spread over its workers whoever compiles first.
#include <doctest/doctest.h>

#include <algorithm>
#include <map>

#include "actors/client/session.hpp"
#include "actors/client/shipped_graph.hpp"
#include "actors/master/session_graphs.hpp"
#include "ops/api.hpp"
#include "ops/graph_api.hpp"
#include "tests/actors/support/tcp_workers.hpp"

using namespace troupe;

namespace {

constexpr int kWorkers = 4, kVariables = 8;
constexpr std::int64_t kSide = 512;  // of a variable: 1 MiB of f32

Tensor zeros(const Shape& shape) {
  Tensor t = *Tensor::make(DType::f32, shape);
  std::fill_n(t.mutable_data<float>(), t.elements(), 0.f);
  return t;
}

struct Program {
  Graph g;
  std::vector<Variable> variables;
  Output loss;
  Op train;

  Program() {
    Output x = constant(g, zeros({1, kSide}));
    Output h = x;
    for (int i = 0; i < kVariables; ++i) {
      variables.push_back(variable(g, "v" + std::to_string(i), zeros({kSide, kSide})));
      h = mat_mul(h, variables.back().value());
    }
    loss = mean(h);
    train = optim::Momentum{.lr = 0.1}.minimize(loss);
  }

  CompileRequest init() const {
    CompileRequest request;
    for (NodeId node : g.initializers()) request.targets.push_back(g.node(node).name);
    return request;
  }
  CompileRequest step() const {
    CompileRequest request;
    request.targets = {train.name()};
    request.replicas = kWorkers;
    return request;
  }
  CompileRequest read_of_one() const {
    CompileRequest request;
    for (const NodeDef& node : g.def().nodes)
      if (node.op == "ReadVariable" && request.fetches.empty())
        request.fetches.push_back({node.name, 0, false});
    return request;
  }
};

// What a master makes of requests, one after the other.
class Jobs {
 public:
  Jobs(const GraphDef& graph) : graphs_(ops::builtin()) {
    ExtendSession message;
    message.session = 1;
    message.graph = std::make_shared<const GraphDef>(graph);
    REQUIRE(graphs_.extend(message).ok());
  }

  void compile(CompileRequest request) {
    SessionGraphs::Work work;
    work.session = 1;
    work.request = std::move(request);
    work.replicas = kWorkers;
    for (int task = 0; task < kWorkers; ++task) {
      const std::string name = "/job:worker/task:" + std::to_string(task) + "/cpu:0";
      work.target.devices.push_back({*DeviceName::parse(name), MemorySpace::host});
      work.versions[TaskId(task)] = 0;
    }
    work.target.fixed = fixed_;
    const CompiledStepDraft draft = graphs_.compile(std::move(work));
    REQUIRE_MESSAGE(draft.status.ok(), draft.status.text());
    for (const Plan& plan : draft.graph.plans)
      for (const ResourceRef& resource : plan.resources) {
        auto [at, added] = fixed_.emplace(resource.def.name, *DeviceName::parse(plan.device));
        CHECK(at->second.text() == plan.device);
        if (added) bytes_[*at->second.task] += bytes_of(resource.def);
      }
  }
  // What there is of it, by task.
  std::map<int, std::uint64_t> bytes() const { return bytes_; }

 private:
  static std::uint64_t bytes_of(const NodeDef& handle) {
    return std::uint64_t(handle.attrs.at("shape").get<PartialShape>()->shape().elements()) * 4;
  }
  SessionGraphs graphs_;
  std::map<std::string, DeviceName> fixed_;
  std::map<int, std::uint64_t> bytes_;
};

}  // namespace

TEST_CASE("variables are spread over four workers, whatever step is compiled first") {
  const Program p;
  ShippedGraph shipping(p.g);
  std::vector<std::pair<std::string, Tensor>> values;
  for (const NodeDef& node : p.g.def().nodes)
    if (node.op == "Variable")
      values.emplace_back(node.name, zeros(node.attrs.at("shape").get<PartialShape>()->shape()));
  CompileRequest restore = value_or_throw(shipping.add_assignments(values));
  const std::map<std::string, CompileRequest> first = {
      {"init", p.init()}, {"a step", p.step()}, {"a read", p.read_of_one()}, {"restore", restore}};
  for (const auto& [what, request] : first) {
    const std::string& name = what;
    CAPTURE(name);
    Jobs job(shipping.whole());
    job.compile(request);
    job.compile(p.init());
    job.compile(p.step());
    std::string text;
    for (const auto& [task, bytes] : job.bytes())
      text += "  task " + std::to_string(task) + ": " + std::to_string(bytes);
    MESSAGE("after " << name << ":" << text);
    REQUIRE(job.bytes().size() == kWorkers);
    for (const auto& [task, bytes] : job.bytes())  // two parameters, each with its slot
      CHECK(bytes == 2 * kVariables / kWorkers * (std::uint64_t(1) << 20));
  }
}

TEST_CASE("a job trains the same variables whether they were initialised or restored first") {
  auto trained = [](bool restored) {
    Graph g;
    Variable a = variable(g, "a", Tensor::of<float>({2}, {1, 2}));
    Variable b = variable(g, "b", Tensor::of<float>({2}, {3, 4}));
    Op step = optim::Sgd{.lr = 0.5}.minimize(mean(a.value() * b.value()));
    test::TcpWorkers workers(2);
    Cluster cluster = workers.cluster();
    cluster.replicas = 2;
    Session s(g, cluster);
    if (restored)
      throw_if_error(s.try_restore(
          {{"a", Tensor::of<float>({2}, {1, 2})}, {"b", Tensor::of<float>({2}, {3, 4})}}, 1));
    else
      s.init();
    s.run({}, {step});
    std::vector<std::vector<float>> values;
    for (auto& [name, value] : s.variables()) {
      const auto x = value.span<float>();
      values.emplace_back(x.begin(), x.end());
    }
    return values;
  };
  CHECK(trained(false) == trained(true));
}
