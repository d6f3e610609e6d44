// Runs graphs node by node, the obvious way: what the client's layer is tested with, without a
// runtime.
#pragma once

#include <doctest/doctest.h>

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "core/hash.hpp"
#include "devices/cpu/cpu_device.hpp"
#include "graph/node_query.hpp"
#include "ops/api.hpp"
#include "ops/data/dataset.hpp"
#include "ops/evaluate.hpp"

namespace troupe::test {

class Interpreter {
 public:
  explicit Interpreter(GraphBuilder& g)
      : g_(g), device_(make_cpu_device(DeviceName::parse("/job:local/task:0/cpu:0").value())) {}

  // What Session::init does: every initial value.
  void init() {
    std::vector<Op> targets;
    for (NodeId id : g_.initializers()) targets.emplace_back(&g_, id);
    run({}, targets);
  }

  // One run: fetches are of its snapshot, writes of the targets take effect at its end.
  std::vector<Tensor> run(const std::vector<Output>& fetches, const std::vector<Op>& targets = {},
                          std::map<NodeId, Tensor> feeds = {}) {
    values_.clear();
    writes_.clear();
    for (auto& [id, tensor] : feeds) values_[id] = {tensor};
    std::vector<Tensor> out;
    for (const Output& fetch : fetches) out.push_back(value(fetch.port()));
    for (const Op& target : targets) values(target.node());
    for (NodeId id : writes_) commit(id);
    ++run_;
    return out;
  }
  // What the run of a node fails with; "" if none does.
  std::string failure_of(const std::vector<Output>& fetches, std::map<NodeId, Tensor> feeds = {}) {
    may_fail_ = true;
    std::string text;
    try {
      run(fetches, {}, std::move(feeds));
    } catch (const Error& e) {
      text = e.status().text();
    }
    may_fail_ = false;
    return text;
  }
  float scalar(const Output& fetch, const std::vector<Op>& targets = {}) {
    return run({fetch}, targets)[0].item<float>();
  }

  const Tensor& variable(const Variable& v) { return variables_.at(key(v.handle().node())); }

 private:
  const Tensor& value(Port port) { return values(port.node)[port.index]; }

  const std::vector<Tensor>& values(NodeId id) {
    if (auto done = values_.find(id); done != values_.end()) return done->second;
    const NodeDef& node = g_.node(id);
    for (NodeId before : node.control) values(before);
    const OpInfo& op = *g_.registry().find(node.op);
    std::vector<Tensor> result;
    if (op.is(External::Order::read)) {
      REQUIRE(variables_.count(key(node.inputs[0].node)) == 1);
      result = {variables_[key(node.inputs[0].node)]};
    } else if (op.is(External::Order::write)) {
      for (Port input : operands(node)) value(input);
      writes_.push_back(id);
    } else if (op.def.external.resource == "dataset") {
      result = element(node.inputs[0].node);
    } else {
      result = evaluated(node, node.inputs, node.out_types);
    }
    return values_[id] = std::move(result);
  }

  // Which variable a handle means.
  std::string key(NodeId handle) const { return resource_key(g_.node(handle), g_.registry()); }

  static std::size_t handles(const OpInfo& op) {
    std::size_t n = 0;
    while (n < op.in.size() && op.in[n].dtype == DType::resource) ++n;
    return n;
  }
  std::vector<Port> operands(const NodeDef& node) const {
    const std::size_t n = handles(*g_.registry().find(node.op));
    return {node.inputs.begin() + std::ptrdiff_t(n), node.inputs.end()};
  }

  std::vector<Tensor> evaluated(const NodeDef& node, const std::vector<Port>& inputs,
                                std::vector<DType> out_types) {
    std::vector<Tensor> tensors;
    for (Port input : inputs) tensors.push_back(value(input));
    return call(node, std::move(tensors), std::move(out_types));
  }
  std::vector<Tensor> call(NodeDef node, std::vector<Tensor> inputs, std::vector<DType> out_types) {
    node.out_types = std::move(out_types);
    EvaluateOptions options;
    options.random = {hash_combine(g_.def().seed, hash_text(node.name)), run_};
    auto result = evaluate(*table_, node, std::move(inputs), *device_, options);
    if (may_fail_) throw_if_error(result.status());
    REQUIRE_MESSAGE(result.ok(), result.status().text());
    return std::move(result).value();
  }

  // The rule: current values and operands in, new values out.
  void commit(NodeId id) {
    const NodeDef& node = g_.node(id);
    const std::size_t n = handles(*g_.registry().find(node.op));
    std::vector<Tensor> inputs;
    std::vector<DType> types;
    for (std::size_t i = 0; i < node.inputs.size(); ++i) {
      const NodeId from = node.inputs[i].node;
      inputs.push_back(i < n ? variables_[key(from)] : value(node.inputs[i]));
      if (i < n) types.push_back(*g_.node(from).attrs.at("T").get<DType>());
    }
    auto result = call(node, std::move(inputs), std::move(types));
    for (std::size_t i = 0; i < n; ++i) variables_[key(node.inputs[i].node)] = result[i];
  }

  std::vector<Tensor> element(NodeId dataset) {
    auto [at, added] = pipelines_.try_emplace(dataset);
    if (added)
      at->second = std::make_unique<Pipeline>(
          open_dataset(g_.node(dataset), [](const std::string& path) -> Expected<DataFilePtr> {
            return not_found(path);
          }).value());
    return at->second->element(run_).value();
  }

  GraphBuilder& g_;
  const OpTable* table_ = &ops::builtin();
  std::unique_ptr<Device> device_;
  std::map<std::string, Tensor> variables_;
  std::map<NodeId, std::unique_ptr<Pipeline>> pipelines_;
  std::map<NodeId, std::vector<Tensor>> values_;
  std::vector<NodeId> writes_;
  std::uint64_t run_ = 0;
  bool may_fail_ = false;
};

}  // namespace troupe::test
