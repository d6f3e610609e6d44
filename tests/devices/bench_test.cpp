// What an allocation and a fork cost. Printed, not judged: the machine may be busy.
#include <doctest/doctest.h>

#include <algorithm>
#include <chrono>
#include <future>
#include <vector>

#include "core/tensor.hpp"
#include "devices/arena.hpp"
#include "devices/cpu/cpu_device.hpp"

using namespace troupe;

namespace {

// Median over 9 rounds, in nanoseconds per call.
template <class F>
double nanoseconds(int calls, F&& f) {
  std::vector<double> rounds;
  for (int round = 0; round < 9; ++round) {
    const auto start = std::chrono::steady_clock::now();
    for (int i = 0; i < calls; ++i) f();
    const std::chrono::duration<double, std::nano> spent = std::chrono::steady_clock::now() - start;
    rounds.push_back(spent.count() / calls);
  }
  std::nth_element(rounds.begin(), rounds.begin() + 4, rounds.end());
  return rounds[4];
}

}  // namespace

TEST_CASE("cost of memory [slow]") {
  ArenaPtr arena = make_arena();
  int empty = 0;
  for (std::size_t bytes : {64u, 4096u, 100'000u, 1'000'000u}) {
    const double block = nanoseconds(200'000, [&] {
      void* p = arena->allocate(bytes);
      arena->deallocate(p, bytes);
    });
    const double buffer =
        nanoseconds(200'000, [&] { empty += !Buffer::allocate(*arena, bytes).ok(); });
    MESSAGE(bytes, " bytes: block ", block, " ns, buffer ", buffer, " ns");
  }
  CHECK(empty == 0);
  CHECK(arena->bytes_in_use() == 0);
}

TEST_CASE("cost of a fork and join, and of a launch [slow]") {
  for (int threads : {1, 2}) {
    auto device = make_cpu_device(DeviceName::parse("/job:a/task:0/cpu:0").value(),
                                  {.threads = threads, .memory_cap = 0, .on_lane_start = {}});
    std::promise<double> forks;
    device->launch([&](Lanes& lanes) {
      forks.set_value(nanoseconds(20'000, [&] { lanes.parallel(2, [](std::int64_t) {}); }));
    });
    MESSAGE(threads, " lanes: fork and join of 2 empty chunks ", forks.get_future().get(), " ns");
    const double launch = nanoseconds(2'000, [&] {
      std::promise<void> done;
      device->launch([&](Lanes&) { done.set_value(); });
      done.get_future().wait();
    });
    MESSAGE(threads, " lanes: launch and wait ", launch, " ns");
  }
}
