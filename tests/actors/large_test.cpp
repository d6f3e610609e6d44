// A tensor of more than 2^32 elements through the whole runtime.
#include <doctest/doctest.h>

#include <chrono>
#include <fstream>

#include "actors/session.hpp"
#include "ops/api/constant.hpp"
#include "ops/api/generated.hpp"
#include "ops/api/operators.hpp"
#include "ops/graph_api.hpp"
#include "tests/actors/tcp_workers.hpp"

using namespace troupe;
using troupe::test::kTask0;
using troupe::test::kTask1;
using troupe::test::TcpWorkers;

namespace {

std::uint64_t read_kb(const char* path, std::string_view key) {
  std::ifstream file(path);
  std::string word;
  std::uint64_t kb = 0;
  while (file >> word)
    if (word == key && file >> kb) return kb * 1024;
  return 0;
}

Output op(Graph& g, const char* task, std::string name, std::vector<Output> inputs) {
  auto there = g.with_device(task);
  NodeSpec spec;
  spec.op = std::move(name);
  spec.inputs = std::move(inputs);
  return g.add(std::move(spec)).output();
}

double seconds(std::chrono::steady_clock::duration d) {
  return std::chrono::duration<double>(d).count();
}

}  // namespace

// Made by worker 0, sent to worker 1, reduced there. All of it lives in this process, so that its
// peak of memory tells what is in flight: a tensor here, a tensor there, and next to nothing else.
TEST_CASE("a 5 GB tensor crosses processes within its credits [slow]") {
  constexpr std::int64_t n = 5'000'000'007;
  constexpr std::uint64_t slack = std::uint64_t{512} << 20;
  if (read_kb("/proc/meminfo", "MemAvailable:") < 2 * std::uint64_t(n) + 2 * slack) {
    MESSAGE("skipped: less than 11 GB of memory available");
    return;
  }
  Graph g;
  Output dims = placeholder<std::int64_t>(g, {1}, "dims");
  Output made = op(g, kTask0, "Fill", {dims, constant<std::int8_t>(g, 3)});
  Output two = constant<std::int64_t>(g, {1}, {2});
  Output last = constant<std::int64_t>(g, {1}, {n - 2});
  Output end_here = op(g, kTask0, "Slice", {made, last, two});
  Output end = op(g, kTask1, "Slice", {made, last, two});
  Output sum = op(g, kTask1, "Sum", {made});
  TcpWorkers workers(2);
  Session s(g, workers.cluster());
  std::vector<Tensor> feeds{Tensor::of<std::int64_t>({1}, {n})};

  auto make = s.compile({end_here}, {}, {dims});
  auto step = s.compile({end, sum}, {}, {dims});
  auto began = std::chrono::steady_clock::now();
  CHECK(make.run(feeds)[0].data<std::int8_t>()[1] == 3);
  double made_in = seconds(std::chrono::steady_clock::now() - began);
  began = std::chrono::steady_clock::now();
  auto fetched = step.run(feeds);
  double took = seconds(std::chrono::steady_clock::now() - began);
  REQUIRE(fetched[0].elements() == 2);
  CHECK(fetched[0].data<std::int8_t>()[0] == 3);
  CHECK(fetched[0].data<std::int8_t>()[1] == 3);
  CHECK(fetched[1].item<std::int8_t>() == std::int8_t(3 * n));  // sums of integers wrap around

  std::uint64_t peak = read_kb("/proc/self/status", "VmHWM:");
  CHECK(peak > 2 * std::uint64_t(n));
  CHECK(peak < 2 * std::uint64_t(n) + slack);
  MESSAGE("made in ", made_in, " s; made, sent and summed in ", took,
          " s: ", 1e-9 * double(n) / took, " GB/s; memory at most ", 1e-9 * double(peak), " GB");
}
