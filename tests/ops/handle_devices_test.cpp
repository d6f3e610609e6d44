// What takes a handle is on the device of its resource (paper, 4.3): every op, every kind of
// resource, each pair of devices.
#include <doctest/doctest.h>

#include <set>

#include "graph/builder.hpp"
#include "graph/node_query.hpp"
#include "ops/api.hpp"
#include "ops/compile_host.hpp"

using namespace troupe;

namespace {

const char* const kDevices[] = {"/job:worker/task:0/cpu:0", "/job:worker/task:0/cpu:1",
                                "/job:worker/task:1/cpu:0"};

// A resource of the kind that handle `arg` of `op` wants, of dtype `T` where the op says one.
Output make_handle(Graph& g, const OpInfo& op, const ArgSpec& arg, std::size_t i,
                   const char* device) {
  auto here = g.with_device(device);
  const std::string name = "resource" + std::to_string(i);
  const std::string& kind = op.def.external.resource;
  NodeSpec spec{.name = name, .site = {"made.cpp", 1}};
  if (kind == "variable") {
    const DType dtype = arg.held == DType::invalid ? DType::f32 : arg.held;
    spec.op = "Variable";
    spec.attrs = {{"T", dtype},
                  {"shape", arg.held == DType::invalid ? PartialShape{4} : PartialShape::scalar()}};
  } else if (kind == "queue" || kind == "*") {
    spec.op = "FIFOQueue";
    spec.attrs = {{"types", std::vector<DType>{DType::f32}},
                  {"shapes", std::vector<PartialShape>{PartialShape{4}}}};
  } else if (kind == "mutex") {
    spec.op = "Mutex";
  } else {
    REQUIRE(kind == "dataset");
    data::digits().batch(2).outputs(g);
    for (NodeId id = NodeId(g.def().nodes.size()); id-- > 0;)
      if (role_of(g.node(id), g.registry()) == Role::handle) return {&g, {id, 0}};
  }
  return g.add(std::move(spec)).output();
}

// The op with handles on resources of `resource_device`, under `device`.
Op make_user(Graph& g, const OpInfo& op, const char* resource_device, const char* device) {
  NodeSpec spec{.op = op.def.name, .name = "user", .site = {"used.cpp", 2}};
  for (std::size_t i = 0; i < op.in.size(); ++i) {
    const ArgSpec& arg = op.in[i];
    if (arg.dtype == DType::resource) {
      spec.inputs.push_back(make_handle(g, op, arg, i, resource_device));
      continue;
    }
    DType dtype = arg.kind == ArgSpec::Kind::fixed ? arg.dtype : DType::f32;
    if (arg.kind == ArgSpec::Kind::attr && arg.type_attr != "T")
      dtype = op.attr(arg.type_attr)->types.front();
    spec.inputs.push_back(
        g.add(NodeSpec{.op = "Placeholder", .attrs = {{"T", dtype}, {"shape", PartialShape()}}})
            .output());
  }
  for (const AttrSpec& attr : op.attrs) {
    if (attr.fallback) continue;
    const bool examples = op.def.external.resource == "dataset";
    if (attr.name == "types")
      spec.attrs.emplace("types", examples ? std::vector<DType>{DType::f32, DType::i64}
                                           : std::vector<DType>{DType::f32});
    if (attr.name == "shapes") spec.attrs.emplace("shapes", std::vector<PartialShape>(2));
    if (attr.name == "T" && op.in.size() == 1) spec.attrs.emplace("T", DType::f32);
  }
  auto here = g.with_device(device);
  return g.add(std::move(spec));
}

struct Compiler {
  CompileHost host{ops::builtin()};
  Expected<CompiledGraph> operator()(const Graph& g, const Op& user, std::int32_t replicas,
                                     bool soft = true) const {
    Target target = host.target();
    for (const char* device : kDevices) target.devices.push_back({*DeviceName::parse(device)});
    target.soft_placement = soft;
    CompileRequest request;
    request.replicas = replicas;
    for (const NodeDef& node : g.def().nodes)
      if (node.op == "Placeholder") request.feeds.push_back({{node.name, 0}, {}, {}});
    request.targets = {user.name()};
    return compile(g.def(), request, target);
  }
};

std::set<std::string> devices_of(const CompiledGraph& graph, std::string_view name) {
  std::set<std::string> found;
  for (const Plan& plan : graph.plans) {
    for (const PlanInfo& node : plan.info)
      if (std::string_view(node.name).substr(0, name.size()) == name) found.insert(plan.device);
    for (const ResourceRef& resource : plan.resources)
      if (!resource.name.empty()) found.insert(plan.device);
  }
  return found;
}

}  // namespace

TEST_CASE("every op that takes a handle is where its resource is, or refused with both lines") {
  const Compiler compiled;
  int ops = 0;
  for (const OpInfo* op : ops::builtin().ops.all()) {
    if (!op->takes_handles()) continue;
    ++ops;
    for (const char* of_resource : {"", kDevices[0], kDevices[1], kDevices[2]})
      for (const char* of_user : {"", kDevices[0], kDevices[1], kDevices[2]})
        for (bool soft : {true, false}) {
          INFO(op->def.name << " of a resource on '" << std::string(of_resource) << "' under '"
                            << std::string(of_user) << "'");
          Graph g;
          const Op user = make_user(g, *op, of_resource, of_user);
          auto made = compiled(g, user, 1, soft);
          const std::string resource = of_resource, wanted = of_user;
          if (!resource.empty() && !wanted.empty() && resource != wanted) {
            REQUIRE_FALSE(made.ok());
            CHECK(made.status().code() == Code::invalid_argument);
            const bool dataset =
                op->def.external.resource == "dataset";  // its line is the source's
            for (const char* text :
                 {dataset ? "devices_test.cpp" : "made.cpp:1", "used.cpp:2", of_resource, of_user})
              CHECK(made.status().text().find(text) != std::string::npos);
            continue;
          }
          REQUIRE_MESSAGE(made.ok(), made.status().text());
          const std::string want = !resource.empty() ? resource : wanted;
          const auto devices = devices_of(*made, "user");
          CHECK(devices == std::set<std::string>{want.empty() ? kDevices[0] : want});
        }
  }
  CHECK(ops > 15);
}

TEST_CASE("with replicas, what takes a handle is where its resource is") {
  const Compiler compiled;
  for (const OpInfo* op : ops::builtin().ops.all()) {
    if (!op->takes_handles() || op->def.external.per_replica) continue;
    for (const char* of_resource : kDevices) {
      INFO(op->def.name << " of a resource on '" << std::string(of_resource) << "'");
      Graph g;
      const Op user = make_user(g, *op, of_resource, "");
      auto made = compiled(g, user, 2);
      REQUIRE_MESSAGE(made.ok(), made.status().text());
      CHECK(devices_of(*made, "user") == std::set<std::string>{of_resource});
    }
  }
}
