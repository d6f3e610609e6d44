// An update rule's kernel reads memory by the op's signature, so what it gets must be of those
// types.
#include <doctest/doctest.h>

#include "actors/resources/update_rules.hpp"
#include "core/log.hpp"
#include "devices/cpu/cpu_device.hpp"
#include "tests/actors/support/sessions.hpp"
#include "tests/actors/worker/hostile_job.hpp"

using namespace troupe;
using namespace troupe::testing;
using test::node;

namespace {

const char* kHere = "/job:worker/task:0";

struct RuleCase {
  const char* op;
  std::vector<const char*> variables, operands;
};
const RuleCase kAdam{
    "ApplyAdam", {"var", "m", "v", "step"}, {"lr", "beta1", "beta2", "epsilon", "grad"}};
const RuleCase kMomentum{"ApplyMomentum", {"var", "accum"}, {"lr", "grad", "momentum"}};
const RuleCase kSgd{"ApplyGradientDescent", {"var"}, {"lr", "grad"}};
const RuleCase kSgdWhen{"ApplyGradientDescentWhen", {"var"}, {"lr", "grad", "when"}};

DType right_type(std::string_view argument) {
  return argument == "step" ? DType::i64 : argument == "when" ? DType::bool_ : DType::f32;
}

// One variable or operand of another type than the rule wants.
struct Wrong {
  const RuleCase* rule;
  std::size_t place;
  DType dtype;
  std::string argument() const {
    std::size_t n = rule->variables.size();
    return place < n ? rule->variables[place] : rule->operands[place - n];
  }
};

std::vector<Wrong> all_wrong() {
  std::vector<Wrong> out;
  for (const RuleCase* rule : {&kAdam, &kMomentum, &kSgd, &kSgdWhen})
    for (std::size_t i = 0; i < rule->variables.size() + rule->operands.size(); ++i)
      for (DType dtype : {DType::f32, DType::f64, DType::i64, DType::string})
        if (Wrong w{rule, i, dtype}; dtype != right_type(w.argument())) out.push_back(w);
  return out;
}

Output handle(Graph& g, DType dtype) {
  AttrMap attrs{{"T", dtype}, {"shape", PartialShape::scalar()}};
  return node(g, kHere, "Variable", {}, attrs).output();
}

void names(const Status& status, std::initializer_list<std::string_view> parts) {
  CHECK(status.code() == Code::invalid_argument);
  for (std::string_view part : parts)
    CHECK_MESSAGE(status.text().find(part) != std::string::npos, status.text());
}

Output operand(Graph& g, const char* name) {
  return right_type(name) == DType::bool_ ? constant(g, true) : constant(g, 1.0f);
}

// The rule with all its variables and operands right, as a node of `g`.
Op right_node(Graph& g, const RuleCase& rule) {
  std::vector<Output> inputs;
  for (const char* name : rule.variables) inputs.push_back(handle(g, right_type(name)));
  for (const char* name : rule.operands) inputs.push_back(operand(g, name));
  return node(g, kHere, rule.op, inputs);
}

}  // namespace

TEST_CASE("a handle of another type than an update wants is refused when the op is added") {
  for (const Wrong& wrong : all_wrong()) {
    if (wrong.place == 0 || wrong.place >= wrong.rule->variables.size()) continue;
    Graph g;
    NodeSpec spec{.op = wrong.rule->op, .name = "update"};
    for (std::size_t i = 0; i < wrong.rule->variables.size(); ++i)
      spec.inputs.push_back(
          handle(g, i == wrong.place ? wrong.dtype : right_type(wrong.rule->variables[i])));
    for (const char* name : wrong.rule->operands) spec.inputs.push_back(operand(g, name));
    const std::string handle_name = spec.inputs[wrong.place].name();
    Status status = g.try_add(spec).status();
    names(status, {wrong.argument(), "'update'", handle_name.substr(0, handle_name.find(':')),
                   dtype_name(right_type(wrong.argument())), dtype_name(wrong.dtype)});
  }
}

TEST_CASE("a handle of another type than an update wants is refused when a step is loaded") {
  LogLevel before = log_level();
  set_log_level(LogLevel::off);
  HostileJob job;
  REQUIRE(job.join(HostileJob::welcome()));
  std::uint64_t session = 50;
  for (const Wrong& wrong : all_wrong()) {
    if (wrong.place >= wrong.rule->variables.size()) continue;
    Graph g;
    Op update = right_node(g, *wrong.rule);
    GraphDef graph = g.def();
    NodeDef& source = graph.nodes[graph.nodes[update.node()].inputs[wrong.place].node];
    source.attrs["T"] = wrong.dtype;
    ++session;
    REQUIRE(
        job.send(LoadGraph{session, graph.nodes.size(), std::make_shared<const GraphDef>(graph)}));
    LoadStep load = JobProgram().steps[1].load;
    load.session = session;
    load.version = graph.nodes.size();
    load.compiled = 1000 + session;
    load.request = {};
    load.request.targets = {graph.nodes[update.node()].name};
    load.fixed.clear();
    REQUIRE(job.send(load));
    auto m = job.await([&](const WireMessage& m) {
      auto* loaded = std::get_if<StepLoaded>(&m);
      return loaded && loaded->compiled == load.compiled;
    });
    REQUIRE(m);
    INFO(wrong.rule->op << " " << wrong.argument() << " of " << dtype_name(wrong.dtype));
    names(std::get<StepLoaded>(*m).status,
          {wrong.rule->op, graph.nodes[update.node()].name, source.name, dtype_name(wrong.dtype),
           dtype_name(right_type(wrong.argument()))});
  }
  CHECK(job.answers());
  set_log_level(before);
}

TEST_CASE("an update checks what its variables and operands really are") {
  auto device = make_inline_device(DeviceName::parse("/job:worker/task:0/cpu:0").value());
  for (const Wrong& wrong : all_wrong()) {
    INFO(wrong.rule->op << " " << wrong.argument() << " of " << dtype_name(wrong.dtype));
    Graph g;
    Op update = right_node(g, *wrong.rule);
    auto rule = make_rule(ops::builtin(), g.node(update.node()),
                          {wrong.rule->variables.begin(), wrong.rule->variables.end()}, *device);
    REQUIRE(rule.ok());
    const std::size_t n = wrong.rule->variables.size();
    auto check = [&](bool spoilt) {
      std::vector<VariableMeta> targets;
      LoggedWrite write;
      write.rule = *rule;
      for (std::size_t i = 0; i < n + wrong.rule->operands.size(); ++i) {
        const char* name = i < n ? wrong.rule->variables[i] : wrong.rule->operands[i - n];
        DType type = spoilt && i == wrong.place ? wrong.dtype : right_type(name);
        if (i < n)
          targets.push_back({name, type, PartialShape::scalar(), true, Shape{}});
        else
          write.operands.push_back(Tensor::make(type, Shape{}).value());
      }
      return OpRules(*device).check(write, targets);
    };
    CHECK_MESSAGE(check(false).ok(), check(false).text());
    names(check(true), {g.node(update.node()).name, wrong.argument(), dtype_name(wrong.dtype),
                        dtype_name(right_type(wrong.argument()))});
  }
}
