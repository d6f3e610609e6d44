// Which nodes of a plan may run on an actor's thread.
#include <doctest/doctest.h>

#include <algorithm>
#include <iterator>
#include <optional>
#include <string>
#include <vector>

#include "ops/api.hpp"
#include "ops/compile_host.hpp"

using namespace troupe;

namespace {

std::vector<Plan> plans_of(const Graph& g, const std::vector<Output>& fetches,
                           const std::vector<Output>& feeds, const std::vector<Op>& targets,
                           const std::vector<const char*>& devices) {
  CompileHost host(ops::builtin());
  Target target = host.target();
  for (const char* device : devices) target.devices.push_back({*DeviceName::parse(device)});
  CompileRequest request;
  for (const Output& o : fetches) request.fetches.push_back(*PortName::parse(o.name()));
  for (const Output& o : feeds) request.feeds.push_back(*PortName::parse(o.name()));
  for (const Op& o : targets) request.targets.push_back(o.name());
  return value_or_throw(compile(g.def(), request, target)).plans;
}

Plan plan_of(const Graph& g, const std::vector<Output>& fetches, const std::vector<Output>& feeds) {
  return plans_of(g, fetches, feeds, {}, {"/job:local/task:0/cpu:0"}).at(0);
}

bool is_cheap(const Plan& plan, const Output& output) {
  const std::string name = PortName::parse(output.name())->node;
  const auto at = std::find_if(plan.info.begin(), plan.info.end(),
                               [&](const PlanInfo& info) { return info.name == name; });
  REQUIRE_MESSAGE(at != plan.info.end(), name);
  return plan.nodes[std::size_t(at - plan.info.begin())].cheap;
}

}  // namespace

TEST_CASE("an elementwise node is cheap where it is known to have few elements, and no strings") {
  Graph g;
  Output few = placeholder<float>(g, {4}), many = placeholder<float>(g, {1000}),
         unknown = placeholder<float>(g, {-1}), words = placeholder<std::string>(g, {4});
  const std::vector<Output> cheap{few + 1.0f, exp(few), select(few < 0.0f, few, -few),
                                  cast<double>(few)};
  const std::vector<Output> costly{many + 1.0f, reshape(few, {4, 1}) + reshape(many, {1, 1000}),
                                   exp(unknown), equal(words, words),
                                   mat_mul(reshape(few, {2, 2}), reshape(few, {2, 2}))};
  std::vector<Output> all = cheap;
  all.insert(all.end(), costly.begin(), costly.end());
  const Plan plan = plan_of(g, all, {few, many, unknown, words});
  for (const Output& o : cheap) CHECK_MESSAGE(is_cheap(plan, o), o.name());
  for (const Output& o : costly) CHECK_FALSE_MESSAGE(is_cheap(plan, o), o.name());
}

TEST_CASE("requests are cheap where a partition only serves others, as that of their variables") {
  const char* const kTasks[] = {"/job:local/task:0/cpu:0", "/job:local/task:1/cpu:0"};
  for (const bool elsewhere : {false, true}) {
    for (const bool computes : {false, true}) {
      CAPTURE(elsewhere);
      CAPTURE(computes);
      Graph g;
      const Variable v = variable(g, "v", zeros(g, {100, 100}));
      Output seen = v.value();
      if (computes) seen = mat_mul(seen, seen);
      std::optional<Output> grown;
      {
        const auto there = g.with_device(kTasks[elsewhere ? 1 : 0]);
        grown = mat_mul(seen, seen);
      }
      const std::vector<Plan> plans =
          plans_of(g, {}, {}, {assign_add(v, *grown)}, {std::begin(kTasks), std::end(kTasks)});
      REQUIRE(plans.size() == (elsewhere ? 2 : 1));
      std::size_t requests = 0;
      for (const Plan& plan : plans)
        for (const PlanNode& node : plan.nodes) {
          if (node.role != Role::external) continue;
          ++requests;
          CHECK(node.cheap == (elsewhere && !computes));
        }
      CHECK(requests == 2);
    }
  }
}

TEST_CASE("a loop whose nodes are cheap is cheap as a whole") {
  Graph g;
  Output last = while_loop(
      constant(g, 0), [](Output i) { return i < 10; }, [](Output i) { return i + 1; });
  const Plan plan = plan_of(g, {last}, {});
  for (std::size_t n = 0; n < plan.nodes.size(); ++n)
    if (plan.nodes[n].role != Role::loop_body)
      CHECK_MESSAGE(plan.nodes[n].cheap, plan.info[n].name);
}
