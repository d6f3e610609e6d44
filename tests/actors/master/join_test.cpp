// How a worker finds its way into a job.
#include <doctest/doctest.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include <chrono>
#include <future>
#include <stdexcept>

#include "actors/client/session.hpp"
#include "actors/runtime/registered.hpp"
#include "actors/runtime/worker_process.hpp"
#include "ops/api/constant.hpp"
#include "ops/graph_api.hpp"
#include "serialization/wire.hpp"
#include "tests/actors/support/line.hpp"
#include "tests/actors/support/sessions.hpp"
#include "tests/actors/support/tcp_workers.hpp"
#include "tests/net/raw_client.hpp"
#include "tests/serialization/temporary.hpp"

using namespace troupe;
using namespace troupe::test;

namespace {

// A job that starts this text as its worker.
Status session_of_script(const std::string& script) {
  testing::TemporaryDir dir;
  dir.write("worker", "#!/bin/sh\n" + script + "\n");
  chmod(dir.path("worker").c_str(), 0700);
  Cluster cluster;
  cluster.workers = 1;
  cluster.worker_program = dir.path("worker");
  return open_session(cluster);
}

}  // namespace

TEST_CASE("a worker whose connection breaks while it joins tries again") {
  // Without a secret the worker has said who it is as soon as it is connected.
  ReservedPort port;
  REQUIRE(listen(port.socket(), 1) == 0);
  WorkerProcessOptions options;
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

// It is called on a thread of the session's, where nobody of the program's would catch it.
TEST_CASE("what Cluster::stop throws is the error of the session that waits for workers") {
  ReservedPort port;
  Cluster cluster;
  cluster.listen = Endpoint{"127.0.0.1", port.number()}.text();
  cluster.wait_for = 1;
  cluster.stop = []() -> bool { throw std::runtime_error("no idea"); };
  says(open_session(cluster), Code::internal, "no idea");
  cluster.stop = []() -> bool { throw Error(aborted("not today")); };
  says(open_session(cluster), Code::aborted, "not today");
}

TEST_CASE("a joiner that breaks off does not end a job that waits for workers") {
  ReservedPort port;
  WorkerProcessOptions options;
  options.master = {"127.0.0.1", port.number()};
  Cluster cluster;
  cluster.listen = options.master.text();
  cluster.wait_for = 2;
  auto session = std::async(std::launch::async, [&] { return open_session(cluster); });
  // One that says who it is, is let in, and hangs up.
  for (bool joined = false; !joined;) {
    testing::Line control(port.number(), nullptr);
    Join join;
    join.incarnation = 5;
    join.registered = registered();
    control.send(
        FrameType::hello,
        encode(Greeting{1u << 20, 1u << 20, false, {}, value_or_throw(encode_join(join))}));
    auto answer = control.frame();
    joined = answer && answer->type == FrameType::welcome;
    if (!joined) continue;
    testing::Line data(port.number(), nullptr);
    Token token = decode_greeting(as_bytes(answer->payload)).value().token;
    data.send(FrameType::attach, std::string(testing::text_view(token)));
    while ((answer = control.frame()) && answer->type != FrameType::message) {
    }
    REQUIRE(answer);  // Welcome
  }
  std::future<Status> workers[2];
  for (auto& worker : workers)
    worker = std::async(std::launch::async, [options] { return run_worker(options); });
  CHECK(session.get().text() == "ok");
  for (auto& worker : workers) CHECK(worker.get().text() == "ok");
}

TEST_CASE("a worker that comes too late is told that the job has all its workers") {
  TcpWorkers workers(1);
  Graph g;
  Session s(g, workers.cluster());
  WorkerProcessOptions options;
  options.master = value_or_throw(parse_endpoint(workers.cluster().listen));
  options.secret = workers.cluster().secret;
  says(run_worker(options), Code::unavailable,
       "this worker cannot join its master: the job has all its workers");
}

TEST_CASE("a worker that ends before it joined is named with its last words") {
  Status status = session_of_script("echo 'no such option' >&2; exit 3");
  says(status, Code::failed_precondition, "ended with exit code 3, having said 'no such option'");
  says(session_of_script("echo hello"), Code::failed_precondition, "makes its Session");
  says(session_of_script("kill -9 $$"), Code::unavailable, "signal 9");
}

TEST_CASE("a worker that cannot be run is no reason to run the job again") {
  Cluster cluster;
  cluster.workers = 1;
  cluster.worker_program = "/no/such/program";
  says(open_session(cluster), Code::not_found, "cannot run '/no/such/program'");
}

TEST_CASE("a job that cannot listen is no reason to run it again") {
  ReservedPort port;
  REQUIRE(listen(port.socket(), 1) == 0);
  Cluster cluster;
  cluster.wait_for = 1;
  cluster.listen = "127.0.0.1:" + std::to_string(port.number());
  says(open_session(cluster), Code::failed_precondition, "127.0.0.1");
}

TEST_CASE("what a program registered is the same each time it is asked") {
  CHECK(registered() == registered());
  CHECK(registered().ops != 0);
  CHECK(registered().passes != 0);
  CHECK(registered().devices != 0);
}
