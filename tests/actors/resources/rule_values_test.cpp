// Update rules by value: what a process makes of a rule that another one compiled.
#include "actors/resources/rule_values.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <random>

#include "actors/resources/update_rules.hpp"
#include "core/hash.hpp"
#include "devices/cpu/cpu_device.hpp"
#include "ops/api.hpp"
#include "serialization/resource_state.hpp"
#include "tests/actors/support/sessions.hpp"

using namespace troupe;
using namespace troupe::test;

namespace {

using Rule = std::shared_ptr<const UpdateRule>;

// The rules of a program's writes, as a step that is loaded makes them.
struct CompiledRules {
  std::unique_ptr<Device> device =
      make_inline_device(*DeviceName::parse("/job:worker/task:0/cpu:0"));
  std::vector<Rule> all;

  CompiledRules() {
    Graph g;
    const Variable w = variable(g, "w", Tensor::of<float>({2}, {1, 2}));
    const Variable i = variable(g, "i", Tensor::of<std::int64_t>({2}, {1, 2}));
    const Output rate = constant(g, 0.5f);
    assign_add(i, i.value());
    optim::Sgd{.lr = rate}.minimize(mean(square(w.value())));
    optim::Adam{.lr = 0.1}.minimize(mean(square(w.value())));
    optim::Momentum{.lr = 0.1, .nesterov = true}.minimize(mean(square(w.value())));
    for (NodeId id = 0; id < g.def().nodes.size(); ++id) {
      NodeDef node = g.node(id);
      const OpInfo* op = g.registry().find(node.op);
      if (!op || !op->is(External::Order::write)) continue;
      std::vector<std::string> targets;
      for (Port in : node.inputs)
        if (g.node(in.node).out_types[in.index] == DType::resource)
          targets.push_back(g.node(in.node).name);
      all.push_back(value_or_throw(make_rule(ops::builtin(), node, targets, *device)));
      node.attrs.insert_or_assign("replicas", Attr(std::int64_t{3}));
      all.push_back(value_or_throw(make_rule(ops::builtin(), node, targets, *device)));
      node.attrs.insert_or_assign("_some_replicas", Attr(true));
      all.push_back(value_or_throw(make_rule(ops::builtin(), node, targets, *device)));
    }
  }
};

}  // namespace

TEST_CASE("a rule that comes by value is the rule that was compiled") {
  CompiledRules compiled;
  CHECK(compiled.all.size() > 20);
  const OpRules here(*compiled.device);
  ToldRules told;
  KnownRules known(here);
  std::set<std::string> ops;
  for (int again = 0; again < 2; ++again)
    for (const Rule& rule : compiled.all) {
      INFO(rule->op << " '" << rule->node << "'");
      StateWriter out;
      told.write(*rule, out);
      const ResourceState state = out.take();
      StateReader in(state);
      const auto back = known.read(in);
      REQUIRE_MESSAGE(back.ok(), back.status().text());
      CHECK(in.end().ok());
      const UpdateRule& made = **back;
      CHECK(made.op == rule->op);
      CHECK(made.node == rule->node);
      CHECK(made.attrs == rule->attrs);
      CHECK(made.combine == rule->combine);
      CHECK(made.replicas == rule->replicas);
      CHECK(made.some_replicas == rule->some_replicas);
      CHECK(made.targets == rule->targets);
      CHECK(made.hash == rule->hash);
      CHECK(static_cast<const RuleWithKernel&>(made).kernel);
      if (again == 1) CHECK(state.words.size() == 16);
      ops.insert(made.op);
    }
  CHECK(ops.count("Assign") + ops.count("AssignAdd") + ops.count("ApplyAdam") == 3);
}

TEST_CASE("hostile rules are refused, or are rules that can be checked like any other") {
  CompiledRules compiled;
  const OpRules here(*compiled.device);
  const std::uint64_t seed = std::random_device{}();
  INFO("seed " << seed);
  Random random(seed);
  int refused = 0, taken = 0;
  for (int i = 0; i < 3000; ++i) {
    UpdateRule rule = *compiled.all[random.below(compiled.all.size())];
    rule.hash = 0;
    switch (random.below(9)) {
      case 0:
        rule.op = std::array{"ReadVariable", "Enqueue", "Relu", "Nothing",
                             "ApplyAdam",    "Assign",  "Cond"}[random.below(7)];
        break;
      case 1:
        if (!rule.attrs.empty())
          std::next(rule.attrs.begin(), std::ptrdiff_t(random.below(rule.attrs.size())))->second =
              Attr(std::int64_t(random()));
        break;
      case 2:
        if (!rule.attrs.empty()) rule.attrs.erase(rule.attrs.begin());
        break;
      case 3:
        rule.attrs["_some"] = Attr(true);
        break;
      case 4:
        rule.targets.push_back("more");
        break;
      case 5:
        rule.combine = Combine(random.below(4));
        break;
      case 6:
        rule.replicas = std::uint32_t(random.below(5));
        break;
      case 7:
        rule.attrs["T"] = Attr(DType(random.below(20)));
        break;
      default:
        rule.targets = {"other"};
    }
    ToldRules told;
    KnownRules known(here);
    StateWriter out;
    told.write(rule, out);
    ResourceState state = out.take();
    if (random.below(3) == 0)
      state.words[random.below(state.words.size())] ^= std::byte(1 + random.below(255));
    StateReader in(state);
    const auto made = known.read(in);
    if (!made.ok()) {
      ++refused;
      continue;
    }
    ++taken;
    // Operands of any kind are told apart from those that fit, without a fault.
    LoggedWrite write{{1, 0, {}}, *made, {}};
    for (std::uint64_t n = random.below(6); n > 0; --n)
      write.operands.push_back(random.below(2) == 0 ? Tensor::of<float>({2}, {1, 2})
                                                    : Tensor::scalar<std::int64_t>(1));
    std::vector<VariableMeta> metas;
    for (const std::string& target : (*made)->targets)
      metas.push_back({target, DType::f32, PartialShape{2}, true, Shape{2}});
    (void)here.check(write, metas).ok();
  }
  CHECK(refused > 500);
  CHECK(taken > 100);
}
