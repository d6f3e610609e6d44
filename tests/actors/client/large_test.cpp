// A tensor of more than 2^32 elements through the whole runtime.
#include <doctest/doctest.h>

#include <chrono>
#include <fstream>

#include "tests/actors/support/sessions.hpp"

using namespace troupe;
using namespace troupe::test;

namespace {

std::uint64_t read_kb(const char* path, std::string_view key) {
  std::ifstream file(path);
  std::string word;
  std::uint64_t kb = 0;
  while (file >> word)
    if (word == key && file >> kb) return kb * 1024;
  return 0;
}

}  // namespace

// Made by worker 0, sent to worker 1, reduced there. All of it lives in this process, so that its
// peak of memory tells what is in flight: a tensor here, a tensor there, and next to nothing else.
TEST_CASE("a 5 GB tensor crosses processes [slow]") {
  constexpr std::int64_t n = 5'000'000'007;
  constexpr std::uint64_t slack = std::uint64_t{512} << 20;
  if (read_kb("/proc/meminfo", "MemAvailable:") < 2 * std::uint64_t(n) + 2 * slack) {
    MESSAGE("skipped: less than 11 GB of memory available");
    return;
  }
  Graph g;
  Output dims = placeholder<std::int64_t>(g, {1}, "dims");
  Output made = node(g, kTask0, "Fill", {dims, constant<std::int8_t>(g, 3)}).output();
  Output two = constant<std::int64_t>(g, {1}, {2});
  Output last = constant<std::int64_t>(g, {1}, {n - 2});
  Output end_here = node(g, kTask0, "Slice", {made, last, two}).output();
  Output end = node(g, kTask1, "Slice", {made, last, two}).output();
  Output sum = node(g, kTask1, "Sum", {made}).output();
  TcpWorkers workers(2);
  Session s(g, workers.cluster());
  std::vector<Tensor> feeds{Tensor::of<std::int64_t>({1}, {n})};

  auto make = s.compile({end_here}, {}, {dims});
  auto step = s.compile({end, sum}, {}, {dims});
  auto began = std::chrono::steady_clock::now();
  CHECK(make.run(feeds)[0].data<std::int8_t>()[1] == 3);
  double made_in = seconds_since(began);
  began = std::chrono::steady_clock::now();
  auto fetched = step.run(feeds);
  double took = seconds_since(began);
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
