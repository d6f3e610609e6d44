#include <algorithm>

#include "apps/bench/executor_bench.hpp"
#include "apps/bench/graph_gen.hpp"
#include "apps/bench/loop_bench.hpp"
#include "tests/protocol/step_fixture.hpp"

using namespace troupe;

TEST_CASE("layered graphs are a function of their arguments, with hubs of any fan-in") {
  for (bool data : {false, true}) {
    const Plan a = layered_graph(16, 64, data), b = layered_graph(16, 64, data);
    const Plan other = layered_graph(16, 64, data, 7);
    CHECK(a.nodes.size() == b.nodes.size());
    CHECK(a.input_slots == b.input_slots);
    CHECK(a.pending == b.pending);
    CHECK(a.pending != other.pending);
    CHECK(a.nodes.size() > 64 * 4);
    CHECK(a.nodes.size() < 64 * 17 + 16);
    CHECK(a.slots.size() == (data ? a.nodes.size() : 0));
    CHECK(*std::max_element(a.pending.begin(), a.pending.end()) > 4);
  }
}

TEST_CASE("the executor's benchmark gives one row per graph, filtered by name") {
  auto device = make_inline_device(test_device_name());
  auto rows = bench_executor(*device, {.rounds = 1, .seconds = 0, .only = "16x1024"});
  REQUIRE(rows.ok());
  REQUIRE(rows->size() == 2);
  CHECK((*rows)[0].name == "executor.noop.16x1024");
  CHECK((*rows)[1].name == "executor.identity.16x1024");
  for (const ExecutorRow& row : *rows) {
    CHECK(row.value > 0);
    CHECK(row.unit == "ns/node");
  }
  CHECK(device->bytes_in_use() == 0);
}

TEST_CASE("the benchmark of loops gives one row per loop") {
  auto device = make_inline_device(test_device_name());
  auto rows = bench_loops(*device, {.rounds = 1, .seconds = 0, .only = "loop.count"});
  REQUIRE_MESSAGE(rows.ok(), rows.status().text());
  REQUIRE(rows->size() == 1);
  CHECK(rows->front().value > 0);
  CHECK(rows->front().unit == "ns/iteration");
  CHECK(device->bytes_in_use() == 0);
}
