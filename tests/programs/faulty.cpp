// A program with an op whose kernel throws, which fails runs, and with a kind of resource that
// throws, as none should: one of its sessions fails, and the others go on. With the argument `own`
// they live in an actor system of the program's, and all of them fail.
#include <caf/all.hpp>
#include <optional>
#include <string_view>

#include "actors/resources/resource.hpp"
#include "apps/troupe.hpp"
#include "ops/op.hpp"
using namespace troupe;

namespace {

class Trap final : public Resource {
 public:
  void ask(std::uint64_t, ResourceRequest&, Outputs&) override {
    throw std::runtime_error("planted");
  }
  void stage(const StageRequest&, Outputs&) override {}
  void live(const LiveList&, Outputs&) override {}
};

Status scalar_out(InferenceContext& c) {
  c.set(0, PartialShape::scalar());
  return ok_status();
}

void with_throwing_ops(OpTable& table) {
  table.add({.name = "Throw", .out = {"y: f32"}, .shape = scalar_out, .stateful = true})
      .cpu(kernel<[](KernelContext& c) -> Status {
        c.parallel(8, [](std::int64_t chunk) {
          if (chunk > 0) throw std::runtime_error("chunk " + std::to_string(chunk));
        });
        return ok_status();
      }>);
  table.add({.name = "Trap",
             .out = {"handle: resource"},
             .attrs = {"container: string = ", "shared_name: string = "},
             .shape = scalar_out,
             .stateful = true,
             .role = Role::handle,
             .external = {.resource = "trap"}});
  table.add({.name = "StepOn",
             .in = {"handle: resource"},
             .out = {"y: f32"},
             .shape = scalar_out,
             .host = {"y"},
             .stateful = true,
             .role = Role::external,
             .external = {.resource = "trap", .verb = "step_on", .sees = true}});
}

}  // namespace

int main(int argc, char** argv) {
  throw_if_error(ops::extend(with_throwing_ops));
  throw_if_error(add_resource_kind({.name = "trap", .make = [](const ResourceRef&) {
                                      return Expected<std::unique_ptr<Resource>>(
                                          std::make_unique<Trap>());
                                    }}));
  Cluster cluster;
  cluster.threads = 2;
  caf::actor_system_config config;
  config.set("scheduler.policy", caf::atom("sharing"));
  config.set("scheduler.max-threads", std::size_t{2});
  std::optional<caf::actor_system> own;
  if (argc > 1 && std::string_view(argv[1]) == "own") own.emplace(config);
  const auto open = [&](Graph& graph) {
    return own ? std::make_unique<Session>(graph, *own, cluster)
               : std::make_unique<Session>(graph, cluster);
  };
  Graph g, h;
  Output three = constant(h, 1.0f) + constant(h, 2.0f), four = constant(g, 4.0f);
  Output queue = fifo_queue(g, {DType::f32});
  Output never = dequeue(queue, {DType::f32})[0];
  Output bad = g.add(NodeSpec{.op = "Throw", .name = "bad"}).output();
  Output trap = g.add(NodeSpec{.op = "Trap"}).output();
  Output y = g.add(NodeSpec{.op = "StepOn", .inputs = {trap}}).output();
  const auto other = open(h);
  const CompiledStep of_other = other->compile({three});
  {
    const auto session = open(g);
    PendingRun waits = session->compile({never}).start();
    const CompiledStep fine = session->compile({four});
    for (int i = 0; i < 20; ++i) {
      print("kernel: {}\n", session->try_run({bad}).status().text());
      print("beside it: {}\n", fine.run()[0].item<float>());
    }
    print("run: {}\n", session->try_run({y}).status().text());
    print("waiting run: {}\n", waits.try_get().status().text());
    print("later run: {}\n", fine.try_run().status().text());
    print("compile: {}\n", session->try_compile({three}).status().text());
    print("trace: {}\n", session->try_start_trace().text());
    print("close: {}\n", session->try_close().text());
    print("after it: {}\n", fine.try_run().status().text());
  }
  const auto of_three = of_other.try_run();
  print("other session: {}\n",
        of_three.ok() ? std::to_string((*of_three)[0].item<float>()) : of_three.status().text());
  if (own) {
    caf::scoped_actor self{*own};
    self->request(own->spawn([] { return caf::behavior{[](int x) { return x + 1; }}; }),
                  caf::infinite, 6)
        .receive([](int x) { print("the program's actor: {}\n", x); }, [](const caf::error&) {});
  }
  const auto next = open(g);
  print("next session: {}\n", next->run({four})[0].item<float>());
  const auto left_open = open(h);
  print("left open: {}\n", left_open->run({three})[0].item<float>());
}
