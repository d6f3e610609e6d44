#include "tests/graph/toy.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <functional>
#include <set>

#include "graph/control/control_ops.hpp"
#include "graph/control/functions/ops.hpp"

namespace troupe::toy {
namespace {

const External kRead{
    .resource = "variable", .verb = "read", .order = External::Order::read, .sees = true};
const External kWrite{.resource = "variable",
                      .verb = "log",
                      .order = External::Order::write,
                      .commits = true,
                      .changes = true};

Status add_all(OpRegistry& r) {
  auto kernel = [&](OpDef def) {
    def.doc = "A toy.";
    return r.add(std::move(def));
  };
  TROUPE_TRY(kernel(
      {.name = "Const", .out = {"y"}, .types = "f32", .attrs = {"T: type", "value: tensor"}}));
  TROUPE_TRY(kernel({.name = "Placeholder",
                     .out = {"y"},
                     .types = "f32",
                     .attrs = {"T: type"},
                     .role = Role::placeholder}));
  for (const char* name : {"Add", "Mul"})
    TROUPE_TRY(kernel({.name = name,
                       .in = {"a", "b"},
                       .out = {"y"},
                       .types = "f32",
                       .commutative = true,
                       .cheap = true}));
  TROUPE_TRY(kernel({.name = "Sub", .in = {"a", "b"}, .out = {"y"}, .types = "f32"}));
  TROUPE_TRY(kernel(
      {.name = "Product", .in = {"a", "b"}, .out = {"y"}, .types = "f32", .contraction = true}));
  TROUPE_TRY(kernel({.name = "Neg", .in = {"x"}, .out = {"y"}, .types = "f32"}));
  TROUPE_TRY(kernel({.name = "AddN", .in = {"values: T..."}, .out = {"y"}, .types = "f32"}));
  TROUPE_TRY(kernel({.name = "Together",
                     .in = {"parts: T..."},
                     .out = {"y"},
                     .types = "f32",
                     .reduce = {"parts"}}));
  TROUPE_TRY(kernel({.name = "Both", .in = {"x"}, .out = {"up", "double"}, .types = "f32"}));
  TROUPE_TRY(
      kernel({.name = "Scale", .in = {"x", "by"}, .out = {"y"}, .types = "f32", .host = {"by"}}));
  TROUPE_TRY(kernel({.name = "Size", .in = {"x"}, .out = {"n"}, .types = "f32", .host = {"n"}}));
  TROUPE_TRY(kernel({.name = "Draw",
                     .out = {"y"},
                     .types = "f32",
                     .attrs = {"T: type"},
                     .stateful = true,
                     .random = true}));
  for (OpDef& def : control_ops()) TROUPE_TRY(r.add(std::move(def)));
  TROUPE_TRY(kernel({.name = "Identity", .in = {"x"}, .out = {"y"}}));
  TROUPE_TRY(kernel({.name = "NoOp", .role = Role::kernel}));
  TROUPE_TRY(kernel(
      {.name = "Variable",
       .out = {"handle: resource"},
       .types = "f32",
       .attrs = {"T: type", "shape: shape", "container: string = ", "shared_name: string = "},
       .stateful = true,
       .role = Role::handle,
       .external = {.resource = "variable"}}));
  TROUPE_TRY(kernel({.name = "Read",
                     .in = {"var: resource"},
                     .out = {"value"},
                     .types = "f32",
                     .attrs = {"T: type"},
                     .stateful = true,
                     .role = Role::external,
                     .external = kRead}));
  TROUPE_TRY(kernel({.name = "Assign",
                     .in = {"var: resource", "value"},
                     .types = "f32",
                     .stateful = true,
                     .role = Role::external,
                     .external = kWrite}));
  TROUPE_TRY(kernel({.name = "Descend",
                     .in = {"var: resource", "rate", "grad"},
                     .types = "f32",
                     .attrs = {"replicas: int = 1"},
                     .stateful = true,
                     .role = Role::external,
                     .external = kWrite,
                     .reduce = {"grad"}}));
  TROUPE_TRY(kernel({.name = "Queue",
                     .out = {"handle: resource"},
                     .stateful = true,
                     .role = Role::handle,
                     .external = {.resource = "queue"}}));
  TROUPE_TRY(kernel({.name = "Enqueue",
                     .in = {"queue: resource", "value"},
                     .types = "f32",
                     .host = {"value"},
                     .stateful = true,
                     .role = Role::external,
                     .external = {.resource = "queue", .verb = "enqueue", .commits = true}}));
  TROUPE_TRY(
      kernel({.name = "Dequeue",
              .in = {"queue: resource"},
              .out = {"value"},
              .types = "f32",
              .attrs = {"T: type"},
              .host = {"value"},
              .stateful = true,
              .role = Role::external,
              .external = {
                  .resource = "queue", .verb = "dequeue", .per_replica = true, .commits = true}}));
  TROUPE_TRY(kernel({.name = "Dataset",
                     .out = {"handle: resource"},
                     .stateful = true,
                     .role = Role::handle,
                     .external = {.resource = "dataset"}}));
  TROUPE_TRY(kernel({.name = "Next",
                     .in = {"data: resource"},
                     .out = {"value"},
                     .types = "f32",
                     .attrs = {"T: type"},
                     .host = {"value"},
                     .stateful = true,
                     .role = Role::external,
                     .external = {.resource = "dataset", .verb = "next", .per_replica = true}}));
  TROUPE_TRY(kernel({.name = "AssignBoth",
                     .in = {"first: resource", "second: resource", "value"},
                     .types = "f32",
                     .stateful = true,
                     .role = Role::external,
                     .external = kWrite}));
  return ok_status();
}

OpRegistry make_ops() {
  OpRegistry r;
  Status s = add_all(r);
  TROUPE_CHECK(s.ok(), s.text());
  return r;
}

std::uint64_t key_of(const GraphDef& graph, const NodeDef& node) {
  return hash_combine(hash_text(node.name, graph.seed), 0);
}

}  // namespace

const OpRegistry& ops() {
  static const OpRegistry registry = make_ops();
  return registry;
}

KernelIndex kernels_for(std::initializer_list<const char*> types) {
  KernelIndex index;
  for (const OpInfo* op : ops().all())
    for (const char* type : types)
      if (op->def.role == Role::kernel) index.add(op->def.name, type, {DType::f32});
  int rank = 0;
  for (const char* type : types) index.rank(type, rank++);
  return index;
}

Port Maker::add(std::string op, std::string name, std::vector<Port> inputs, NodeOptions options) {
  const OpInfo* info = ops().find(op);
  NodeDef node;
  node.name = std::move(name);
  node.op = std::move(op);
  node.inputs = std::move(inputs);
  node.control = std::move(options.control);
  std::sort(node.control.begin(), node.control.end());
  node.device = std::move(options.device);
  node.colocate = std::move(options.colocate);
  node.attrs = std::move(options.attrs);
  node.site = {"toy.cpp", std::uint32_t(def.nodes.size() + 1)};
  if (info && info->attr("T")) node.attrs.emplace("T", Attr(DType::f32));
  if (info && info->attr("N")) node.attrs.emplace("N", Attr(std::int64_t(node.inputs.size())));
  for (std::size_t i = 0; info && i < info->out.size(); ++i) {
    node.out_types.push_back(is_handle_op(node.op) ? DType::resource : DType::f32);
    node.out_shapes.push_back(PartialShape(Shape{}));
  }
  def.nodes.push_back(std::move(node));
  return {NodeId(def.nodes.size() - 1), 0};
}

bool is_handle_op(std::string_view op) {
  return op == "Variable" || op == "Queue" || op == "Dataset";
}

Port Maker::constant(std::string name, float value, NodeOptions options) {
  options.attrs.emplace("value", Attr(Tensor::scalar(value)));
  return add("Const", std::move(name), {}, std::move(options));
}

Port Maker::variable(std::string name, NodeOptions options) {
  options.attrs.try_emplace("shape", Attr(PartialShape(Shape{})));
  return add("Variable", std::move(name), {}, std::move(options));
}

Target target(std::initializer_list<const char*> devices, const KernelIndex* kernels) {
  Target t;
  for (const char* text : devices) {
    DeviceName name = *DeviceName::parse(text);
    const bool host = name.type == "CPU";
    t.devices.push_back({std::move(name), host ? MemorySpace::host : MemorySpace::device});
  }
  t.ops = &ops();
  t.kernels = kernels;
  return t;
}

CompileRequest request(std::vector<std::string> fetches, std::vector<std::string> targets,
                       std::vector<std::string> feeds) {
  CompileRequest r;
  for (const std::string& f : fetches) r.fetches.push_back(*PortName::parse(f));
  for (const std::string& f : feeds) r.feeds.push_back(*PortName::parse(f));
  r.targets = std::move(targets);
  return r;
}

std::vector<float> compute(const NodeDef& node, const std::vector<float>& in, std::uint64_t key) {
  if (node.op == "Const") return {node.attrs.find("value")->second.get<Tensor>()->item<float>()};
  if (node.op == "Add") return {in[0] + in[1]};
  if (node.op == "Mul" || node.op == "Scale") return {in[0] * in[1]};
  if (node.op == "Sub") return {in[0] - in[1]};
  if (node.op == "Neg") return {-in[0]};
  if (node.op == "Both") return {in[0] + 1, in[0] * 2};
  if (node.op == "Size") return {1};
  if (node.op == "Draw") return {float(key % 1000)};
  if (node.op == "NoOp") return {};
  TROUPE_CHECK(node.op == "AddN" || node.op == "Together", "a toy op that computes");
  float sum = 0;
  for (float x : in) sum += x;
  return {sum};
}

Expected<std::vector<Tensor>> evaluate(const NodeDef& node, const std::vector<Tensor>& inputs) {
  std::vector<float> in;
  for (const Tensor& t : inputs) in.push_back(t.item<float>());
  std::vector<Tensor> out;
  for (float x : compute(node, in, 0)) out.push_back(Tensor::scalar(x));
  return out;
}

namespace {

// Start of every variable, so that reads are worth comparing.
float initial(const std::string& name) { return float(hash_text(name) % 100); }

float after_write(const std::string& op, float old, const std::vector<float>& in) {
  return op == "Assign" ? in[0] : old - in[0] * in[1];
}

// All plans of a step in flight.
class PlanRunner {
 public:
  PlanRunner(const CompiledGraph& compiled, const std::vector<float>& feeds, Random& random)
      : compiled_(compiled), feeds_(feeds), random_(random) {}

  Outcome run() {
    out_.fetches.assign(compiled_.fetches, -12345);
    for (const Plan& plan : compiled_.plans) {
      values_.emplace_back(plan.slots.size(), 0.0f);
      pending_.push_back(plan.pending);
      for (const PlanFeed& feed : plan.feeds) values_.back()[feed.slot] = feeds_[feed.feed];
    }
    for (std::uint32_t p = 0; p < compiled_.plans.size(); ++p)
      for (std::uint32_t root : compiled_.plans[p].roots) ready_.push_back({p, root});
    while (step()) {
    }
    std::size_t nodes = 0;
    for (const Plan& plan : compiled_.plans) nodes += plan.nodes.size();
    CHECK(out_.executed == nodes);
    std::vector<bool> got(compiled_.fetches, false);
    for (std::size_t p = 0; p < compiled_.plans.size(); ++p)
      for (const PlanFetch& fetch : compiled_.plans[p].fetches) {
        CHECK(!got[fetch.fetch]);
        CHECK(compiled_.plans[p].slots[fetch.slot].space == MemorySpace::host);
        got[fetch.fetch] = true;
        out_.fetches[fetch.fetch] = values_[p][fetch.slot];
      }
    CHECK(std::count(got.begin(), got.end(), true) == std::ptrdiff_t(compiled_.fetches));
    return std::move(out_);
  }

 private:
  // Runs one node that can run; false when there is none left.
  bool step() {
    std::vector<std::size_t> able;
    for (std::size_t i = 0; i < ready_.size(); ++i) {
      const auto [p, n] = ready_[i];
      const Plan& plan = compiled_.plans[p];
      if (plan.nodes[n].role != Role::recv || arrived_.count(plan.info[n].channel))
        able.push_back(i);
    }
    if (able.empty()) return false;
    const std::size_t pick = able[random_.below(able.size())];
    const auto [p, n] = ready_[pick];
    ready_.erase(ready_.begin() + std::ptrdiff_t(pick));
    execute(p, n);
    const PlanNode& node = compiled_.plans[p].nodes[n];
    for (std::uint32_t e = 0; e < node.edges; ++e) {
      const std::uint32_t next = compiled_.plans[p].edges[node.first_edge + e].node;
      CHECK(next > n);  // topological
      if (--pending_[p][next] == 0) ready_.push_back({p, next});
    }
    return true;
  }

  void execute(std::uint32_t p, std::uint32_t n) {
    const Plan& plan = compiled_.plans[p];
    const PlanNode& node = plan.nodes[n];
    const PlanInfo& info = plan.info[n];
    ++out_.executed;
    std::vector<float> in;
    for (std::uint32_t i = 0; i < node.inputs; ++i) {
      const std::uint32_t slot = plan.input_slots[node.first_input + i];
      CHECK(plan.slots[slot].space == info.input_space[i]);
      in.push_back(values_[p][slot]);
    }
    std::vector<float> result = outputs(plan, info, node, in);
    CHECK(result.size() == node.outputs);
    for (std::size_t i = 0; i < result.size(); ++i) values_[p][node.first_slot + i] = result[i];
  }

  std::vector<float> outputs(const Plan& plan, const PlanInfo& info, const PlanNode& node,
                             const std::vector<float>& in) {
    switch (node.role) {
      case Role::send: {
        CHECK(arrived_.emplace(info.channel, in.empty() ? 0 : in[0]).second);
        CHECK(compiled_.channels[info.channel].from ==
              std::uint32_t(&plan - compiled_.plans.data()));
        return {};
      }
      case Role::recv:
        CHECK(compiled_.channels[info.channel].to == std::uint32_t(&plan - compiled_.plans.data()));
        return {arrived_.at(info.channel)};
      case Role::copy:
        return in;
      case Role::external: {
        if (info.external->order == External::Order::read)
          return {history(plan, info).at(info.epoch)};
        auto& values = history(plan, info);
        CHECK(values.size() == info.epoch + 1);  // in the order of the epochs
        values.push_back(after_write(info.def.op, values.back(), in));
        return {};
      }
      default:
        return compute(info.def, in, info.random_key);
    }
  }

  std::vector<float>& history(const Plan& plan, const PlanInfo& info) {
    const std::string& name = plan.resources.at(info.resource).name;
    auto [at, added] = out_.variables.try_emplace(name);
    if (added) at->second = {initial(name)};
    return at->second;
  }

  const CompiledGraph& compiled_;
  const std::vector<float>& feeds_;
  Random& random_;
  Outcome out_;
  std::vector<std::vector<float>> values_;
  std::vector<std::vector<std::uint32_t>> pending_;
  std::vector<std::pair<std::uint32_t, std::uint32_t>> ready_;
  std::map<ChannelId, float> arrived_;
};

}  // namespace

Outcome run_plans(const CompiledGraph& compiled, const std::vector<float>& feeds, Random& random) {
  return PlanRunner(compiled, feeds, random).run();
}

Outcome run_graph(const GraphDef& graph, const CompileRequest& request,
                  const std::vector<float>& feeds) {
  Outcome out;
  std::map<Port, float> values;
  std::map<Port, float> fed;
  for (std::size_t i = 0; i < request.feeds.size(); ++i)
    fed[{graph.find(request.feeds[i].node), std::uint32_t(request.feeds[i].port)}] = feeds[i];

  std::set<NodeId> needed;
  std::function<void(NodeId)> need = [&](NodeId id) {
    if (!needed.insert(id).second) return;
    for (Port in : graph.nodes[id].inputs)
      if (!fed.count(in)) need(in.node);
    for (NodeId c : graph.nodes[id].control) need(c);
  };
  for (const PortName& f : request.fetches) need(graph.find(f.node));
  for (const std::string& t : request.targets) need(graph.find(t));

  // Which writes of `variable`, counted from 1, are among the ancestors of a node: the last one.
  std::map<NodeId, std::vector<NodeId>> writes;
  for (NodeId id : needed)
    if (graph.nodes[id].op == "Assign" || graph.nodes[id].op == "Descend")
      writes[graph.nodes[id].inputs[0].node].push_back(id);
  auto last_write = [&](NodeId from, NodeId variable) {
    std::set<NodeId> seen;
    std::size_t last = 0;
    std::function<void(NodeId)> visit = [&](NodeId id) {
      if (!seen.insert(id).second) return;
      const auto& list = writes[variable];
      for (std::size_t i = 0; i < list.size(); ++i)
        if (list[i] == id) {
          last = std::max(last, i + 1);
        }
      // Writes of one variable are ordered, also where the client did not say so.
      for (auto& [v, all] : writes)
        for (std::size_t i = 1; i < all.size(); ++i)
          if (all[i] == id) visit(all[i - 1]);
      for (Port in : graph.nodes[id].inputs)
        if (!fed.count(in)) visit(in.node);
      for (NodeId c : graph.nodes[id].control) visit(c);
    };
    visit(from);
    return last;
  };

  for (NodeId id : needed) {
    const NodeDef& node = graph.nodes[id];
    if (is_handle_op(node.op)) {
      continue;
    }
    std::vector<float> in;
    for (Port p : node.inputs)
      if (graph.nodes[p.node].out_types[p.index] != DType::resource)
        in.push_back(fed.count(p) ? fed[p] : values.at(p));
    std::vector<float> result;
    if (node.op == "Read" || node.op == "Assign" || node.op == "Descend") {
      const NodeId variable = node.inputs[0].node;
      const std::string& name = graph.nodes[variable].name;
      auto [at, added] = out.variables.try_emplace(name);
      if (added) at->second = {initial(name)};
      if (node.op == "Read")
        result = {at->second.at(last_write(id, variable))};
      else
        at->second.push_back(after_write(node.op, at->second.back(), in));
    } else {
      result = compute(node, in, key_of(graph, node));
    }
    for (std::size_t i = 0; i < result.size(); ++i) values[{id, std::uint32_t(i)}] = result[i];
  }
  for (const PortName& f : request.fetches)
    out.fetches.push_back(values.at({graph.find(f.node), std::uint32_t(f.port)}));
  return out;
}

Found find(const CompiledGraph& compiled, std::string_view name) {
  for (const Plan& plan : compiled.plans)
    for (std::uint32_t i = 0; i < plan.info.size(); ++i)
      if (plan.info[i].name == name) return {&plan, i};
  FAIL("no plan has the node " << std::string(name));
  return {};
}

std::size_t count_op(const CompiledGraph& compiled, std::string_view op) {
  std::size_t n = 0;
  for (const Plan& plan : compiled.plans)
    for (const PlanInfo& info : plan.info) n += info.def.op == op;
  return n;
}

}  // namespace troupe::toy
