// How a worker finds its way into a job.
#include <doctest/doctest.h>
#include <sys/socket.h>

#include <chrono>
#include <future>

#include "actors/node.hpp"
#include "actors/session.hpp"
#include "ops/api/constant.hpp"
#include "ops/graph_api.hpp"
#include "tests/actors/tcp_workers.hpp"
#include "tests/net/raw_client.hpp"

using namespace troupe;
using namespace troupe::test;

TEST_CASE("a worker whose connection breaks while it joins tries again") {
  // Without a secret the worker has said who it is as soon as it is connected.
  ReservedPort port;
  REQUIRE(listen(port.socket(), 1) == 0);
  NodeOptions options;
  options.master = {"127.0.0.1", port.number()};
  auto worker = std::async(std::launch::async, [options] { return run_worker(options); });
  {
    testing::RawClient connection = testing::RawClient::accepted_by(port.socket());
    FrameType type{};
    connection.frame(&type);
    REQUIRE(type == FrameType::hello);
    port.close();
  }

  Graph g;
  Cluster cluster;
  cluster.listen = options.master.text();
  cluster.wait_for = 1;
  cluster.stop = [&] {
    return worker.wait_for(std::chrono::seconds(0)) == std::future_status::ready;
  };
  {
    Session s(g, cluster);
    CHECK(s.run({constant(g, 3.0f)})[0].item<float>() == 3);
  }
  CHECK(worker.get().text() == "ok");
}
