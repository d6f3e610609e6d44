// A program with an op whose kernel throws, as no kernel should: one of its sessions fails, and the
// others go on.
#include "apps/troupe.hpp"
#include "ops/op.hpp"
using namespace troupe;

namespace {

void with_throwing_op(OpTable& table) {
  table
      .add({.name = "Throw",
            .out = {"y: f32"},
            .shape =
                [](InferenceContext& c) {
                  c.set(0, PartialShape::scalar());
                  return ok_status();
                },
            .stateful = true,
            .cheap = true})
      .cpu(kernel<[](KernelContext&) -> Status { throw std::runtime_error("planted"); }>);
}

}  // namespace

int main() {
  throw_if_error(ops::extend(with_throwing_op));
  Cluster cluster;
  cluster.threads = 1;
  Graph g, h;
  Output three = constant(h, 1.0f) + constant(h, 2.0f), four = constant(g, 4.0f);
  Output queue = fifo_queue(g, {DType::f32});
  Output never = dequeue(queue, {DType::f32})[0];
  Output y = g.add(NodeSpec{.op = "Throw"}).output();
  Session other{h, cluster};
  {
    Session session{g, cluster};
    PendingRun waits = session.compile({never}).start();
    const CompiledStep fine = session.compile({four});
    print("run: {}\n", session.try_run({y}).status().text());
    print("waiting run: {}\n", waits.try_get().status().text());
    print("later run: {}\n", fine.try_run().status().text());
    print("compile: {}\n", session.try_compile({three}).status().text());
    print("trace: {}\n", session.try_start_trace().text());
    print("close: {}\n", session.try_close().text());
    print("after it: {}\n", fine.try_run().status().text());
  }
  print("other session: {}\n", other.run({three})[0].item<float>());
  Session next{g, cluster};
  print("next session: {}\n", next.run({four})[0].item<float>());
}
