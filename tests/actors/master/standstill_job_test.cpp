// A job in which one connection stands still while all processes live.
#include <doctest/doctest.h>

#include <chrono>
#include <future>
#include <optional>

#include "tests/actors/support/sessions.hpp"
#include "tests/net/proxy.hpp"

using namespace troupe;
using namespace troupe::test;
using namespace troupe::testing;
using namespace std::chrono_literals;

TEST_CASE("a run whose data connection stands still ends with the length of the standstill") {
  ReservedPort master;
  Proxy wire({"127.0.0.1", master.number()});
  WorkerProcessOptions options;
  options.master = {"127.0.0.1", wire.port()};
  options.silence = 1000ms;
  std::future<Status> worker =
      std::async(std::launch::async, [options] { return run_worker(options); });
  Cluster cluster = one_thread();
  cluster.listen = "127.0.0.1:" + std::to_string(master.number());
  cluster.wait_for = 1;
  cluster.silence = 1000ms;
  {
    Graph g;
    Output x, y;
    {
      auto there = g.with_device(kTask0);
      x = placeholder<float>(g, {-1}, "x");
      y = sum(x);
    }
    Session session(g, cluster);
    const CompiledStep step = session.compile({y}, {}, {x});
    const Tensor large = Tensor::zeros(DType::f32, {1 << 20}).value();
    CHECK(step.try_run({large}).ok());
    wire.stop(1);  // the second connection is for data
    const Status status = step.try_run({large}).status();
    CAPTURE(status.text());
    CHECK(status.code() == Code::unavailable);
    CHECK(status.text().find("stood still for") != std::string::npos);
  }
  CHECK(worker.get().code() == Code::unavailable);
}
