// Measures of predictions and labels whose shapes differ: refused, never broadcast.
#include <doctest/doctest.h>

#include <functional>

#include "ops/evaluate.hpp"
#include "tests/ops/api_interpreter.hpp"

using namespace troupe;
using troupe::test::Interpreter;

namespace {

struct Measure {
  const char* name;
  DType predictions;
  std::function<metrics::Metric(Graph&, Output, Output)> make;
};

const Measure kMeasures[] = {
    {"accuracy", DType::i64,
     [](Graph& g, Output p, Output l) { return metrics::accuracy(g.scope("m"), p, l); }},
    {"confusion", DType::i64,
     [](Graph& g, Output p, Output l) { return metrics::confusion(g.scope("m"), p, l, 3); }},
    {"auc", DType::f64,
     [](Graph& g, Output p, Output l) { return metrics::auc(g.scope("m"), p, l); }},
};

// What a run of the update says, node by node: "" when all is well.
std::string update_error(Graph& g, const metrics::Metric& metric,
                         const std::map<NodeId, Tensor>& feeds) {
  auto device = make_cpu_device(DeviceName::parse("/job:local/task:0/cpu:0").value());
  std::vector<std::vector<Tensor>> values(g.def().nodes.size());
  std::vector<bool> needed(g.def().nodes.size(), false);
  needed[metric.update.node()] = true;
  for (NodeId id = metric.update.node() + 1; id-- > 0;)
    if (needed[id]) {
      for (Port p : g.node(id).inputs) needed[p.node] = true;
      for (NodeId c : g.node(id).control) needed[c] = true;
    }
  for (NodeId id = 0; id <= metric.update.node(); ++id) {
    const NodeDef& node = g.node(id);
    if (auto fed = feeds.find(id); fed != feeds.end()) values[id] = {fed->second};
    if (!needed[id] || g.registry().find(node.op)->def.role != Role::kernel) continue;
    std::vector<Tensor> inputs;
    for (Port p : node.inputs) inputs.push_back(values[p.node][p.index]);
    auto out = evaluate(ops::builtin(), node, std::move(inputs), *device);
    if (!out.ok()) return out.status().text();
    values[id] = std::move(out).value();
  }
  return "";
}

Tensor zeros_of(DType dtype, const Shape& shape) { return Tensor::zeros(dtype, shape).value(); }

}  // namespace

TEST_CASE("a measure refuses predictions and labels of different shapes, with the line") {
  const std::pair<PartialShape, PartialShape> known[] = {
      {{4}, {4, 1}}, {{4}, {3}}, {{2, 2}, {4}}, {{-1}, {-1, 1}}, {PartialShape::scalar(), {1}}};
  for (const Measure& m : kMeasures)
    for (const auto& [p, l] : known) {
      CAPTURE(m.name);
      Graph g;
      const Output predictions = placeholder(g, m.predictions, p),
                   labels = placeholder(g, DType::i64, l);
      std::string error;
      try {
        m.make(g, predictions, labels);
      } catch (const Error& e) {
        error = e.status().text();
      }
      CHECK_MESSAGE(error.find("metrics_shapes_test.cpp") != std::string::npos, error);
      CHECK_MESSAGE(error.find(m.name) != std::string::npos, error);
    }
}

TEST_CASE("a measure refuses different shapes in the run where the graph does not know them") {
  for (const Measure& m : kMeasures) {
    CAPTURE(m.name);
    for (const auto& [p, l] : {std::pair{PartialShape{-1}, PartialShape::unknown()},
                               std::pair{PartialShape::unknown(), PartialShape::unknown()}}) {
      Graph g;
      const Output predictions = placeholder(g, m.predictions, p),
                   labels = placeholder(g, DType::i64, l);
      const metrics::Metric metric = m.make(g, predictions, labels);
      const auto error = [&](const Shape& predicted, const Shape& right) {
        return update_error(g, metric,
                            {{predictions.node(), zeros_of(m.predictions, predicted)},
                             {labels.node(), zeros_of(DType::i64, right)}});
      };
      CHECK(error({4}, {4}) == "");
      for (const Shape& other : {Shape{4, 1}, Shape{1}, Shape{}, Shape{1, 4}}) {
        const std::string text = error({4}, other);
        CHECK_MESSAGE(text.find(PartialShape(other).text()) != std::string::npos, text);
        CHECK_MESSAGE(text.find("metrics_shapes_test.cpp") != std::string::npos, text);
      }
    }
  }
}
