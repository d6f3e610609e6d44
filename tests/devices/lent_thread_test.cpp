#include "devices/lent_thread.hpp"

#include <doctest/doctest.h>

#include <atomic>
#include <cfenv>
#include <future>
#include <thread>
#include <vector>

#include "tests/devices/conformance.hpp"

using namespace troupe;
using conformance::cpu_of;
using conformance::device_name;

namespace {

// Launches and lends this thread meanwhile; true when it ran the burst.
bool run_lending(Device& device, std::function<void(Lanes&)> burst) {
  const auto me = std::this_thread::get_id();
  std::atomic<bool> done{false};
  bool mine = false;
  LentThread here;
  device.launch([&](Lanes& lanes) {
    mine = std::this_thread::get_id() == me;
    burst(lanes);
    done = true;
  });
  here.work([&] { return done.load(); });
  while (!done) std::this_thread::yield();
  return mine;
}

// As soon as a lane of the device sleeps, this thread has its place.
void run_here(Device& device, std::function<void(Lanes&)> burst) {
  const auto me = std::this_thread::get_id();
  const auto only_here = [&](Lanes& lanes) {
    if (std::this_thread::get_id() == me) burst(lanes);
  };
  while (!run_lending(device, only_here)) {
  }
}

}  // namespace

TEST_CASE("a thread that lends itself runs what it launches, once a lane sleeps") {
  for (int threads : {1, 3}) {
    auto device = cpu_of(threads);
    std::vector<int> ran;
    for (int i = 0; i < 5; ++i)
      run_here(*device, [&](Lanes& lanes) { ran.push_back(lanes.count()); });
    CHECK(ran == std::vector<int>(5, threads));
  }
}

TEST_CASE("what a burst launches on a lent thread runs there, too, when there is one lane") {
  auto device = cpu_of(1);
  const auto me = std::this_thread::get_id();
  int here = 0;
  run_here(*device, [&](Lanes&) {
    for (int i = 0; i < 10; ++i)
      device->launch([&](Lanes&) { here += std::this_thread::get_id() == me; });
  });
  // The lane is given back at the end of the first one, which was all that this thread waited for.
  std::promise<void> last;
  device->launch([&](Lanes&) { last.set_value(); });
  last.get_future().wait();
  CHECK(here == 0);

  for (here = 0; here == 0;) {
    std::atomic<int> left{10};
    LentThread lent;
    device->launch([&](Lanes&) {
      for (int i = 0; i < 10; ++i)
        device->launch([&](Lanes&) {
          here += std::this_thread::get_id() == me;
          --left;
        });
    });
    lent.work([&] { return left == 0; });
    while (left > 0) std::this_thread::yield();
    CHECK((here == 0 || here == 10));
  }
}

TEST_CASE("never do more threads work than there are lanes, and every burst runs once") {
  constexpr int kClients = 3, kRounds = 400;
  for (int threads : {1, 2, 3}) {
    auto device = cpu_of(threads);
    std::atomic<int> working{0}, too_many{0}, lent{0};
    std::vector<std::atomic<int>> runs(std::size_t(kClients) * kRounds);
    std::vector<std::thread> clients;
    for (int c = 0; c < kClients; ++c)
      clients.emplace_back([&, c] {
        for (int i = 0; i < kRounds; ++i)
          lent += run_lending(*device, [&](Lanes& lanes) {
            ++runs[std::size_t(c * kRounds + i)];
            lanes.parallel(3, [&](std::int64_t) {
              if (++working > threads) ++too_many;
              std::this_thread::yield();
              --working;
            });
          });
      });
    for (auto& client : clients) client.join();
    MESSAGE(threads, " lanes: ", lent.load(), " of ", kClients * kRounds,
            " bursts on their clients");
    CHECK(too_many == 0);
    for (auto& n : runs) REQUIRE(n == 1);
  }
}

TEST_CASE("lent threads and lanes help each other with kernels") {
  auto device = cpu_of(2);
  run_here(*device, [&](Lanes& lanes) {
    std::atomic<int> inside{0};
    lanes.parallel(2, [&](std::int64_t) {
      ++inside;
      while (inside < 2) std::this_thread::yield();
    });
  });
}

TEST_CASE("a thread that does not wait after all leaves what it launched to the lanes") {
  auto device = cpu_of(1);
  for (int i = 0; i < 200; ++i) {
    std::promise<std::thread::id> ran;
    {
      LentThread here;
      device->launch([&](Lanes&) { ran.set_value(std::this_thread::get_id()); });
    }
    CHECK(ran.get_future().get() != std::this_thread::get_id());
  }
}

TEST_CASE(
    "a lent thread leaves others' bursts to other lanes, and the only one to the lane's own") {
  for (int threads : {1, 2}) {
    auto device = cpu_of(threads);
    std::promise<void> left, ran;
    for (bool tried = false; !tried;) {
      std::atomic<bool> first{false};
      LentThread here;
      device->launch([&, me = std::this_thread::get_id()](Lanes&) {
        if (std::this_thread::get_id() == me) {
          tried = true;
          const NamedBursts anothers(1);
          device->launch([&](Lanes&) {  // never ends where it keeps this thread
            left.get_future().wait();
            ran.set_value();
          });
        }
        first = true;
      });
      here.work([] { return false; });
      while (!first) std::this_thread::yield();
    }
    left.set_value();
    ran.get_future().wait();
  }
}

TEST_CASE("a lent thread runs what others launch for it") {
  for (int threads : {1, 2}) {
    auto device = cpu_of(threads);
    const auto me = std::this_thread::get_id();
    for (std::thread::id ran_on; ran_on != me;) {
      std::atomic<bool> done{false};
      LentThread here;
      here.wait_for(7);
      const NamedBursts of_seven(7);
      device->launch([&](Lanes&) {
        std::thread other([&] {
          const NamedBursts of_seven(7);
          device->launch([&](Lanes&) {
            ran_on = std::this_thread::get_id();
            done = true;
          });
        });
        other.join();
      });
      here.work([&] { return done.load(); });
      while (!done) std::this_thread::yield();
    }
  }
}

TEST_CASE("for another's burst a lane is woken") {
  auto device = cpu_of(1);
  const NamedBursts of_seven(7);
  for (int i = 0; i < 200; ++i) REQUIRE_FALSE(run_lending(*device, [](Lanes&) {}));
}

TEST_CASE("a lent thread that helps with a kernel leaves it when its own wait is over") {
  auto device = cpu_of(2);
  const auto me = std::this_thread::get_id();
  for (bool tried = false; !tried;) {
    std::atomic<bool> first{false}, inside{false}, done{false}, over{false};
    std::atomic<int> helped{0};
    LentThread here;
    device->launch([&](Lanes&) {
      if (std::this_thread::get_id() == me) {
        tried = true;
        const NamedBursts anothers(1);
        device->launch([&](Lanes& lanes) {
          lanes.parallel(1000, [&](std::int64_t) {
            inside = true;
            if (std::this_thread::get_id() == me) {
              ++helped;
              done = true;
            }
            while (!done) std::this_thread::yield();
          });
          over = true;
        });
        while (!inside) std::this_thread::yield();
      }
      first = true;
    });
    here.work([&] { return done.load(); });
    while (!first || (tried && !over)) std::this_thread::yield();
    CHECK(helped == int(tried));
  }
}

TEST_CASE("a device that goes waits for the threads that lend themselves to it") {
  for (int i = 0; i < 50; ++i) {
    auto device = cpu_of(1 + i % 2);
    run_here(*device, [](Lanes&) {});  // a lane sleeps
    std::atomic<bool> launched{false}, started{false}, going{false};
    std::atomic<int> ran{0};
    std::thread client([&, d = device.get()] {
      LentThread here;
      d->launch([&, d](Lanes&) {
        started = true;
        while (!going) std::this_thread::yield();
        d->launch([&](Lanes&) { ++ran; });
        ++ran;
      });
      launched = true;
      here.work([&] { return ran == 2; });
    });
    while (!launched || !started) std::this_thread::yield();
    going = true;
    device.reset();
    CHECK(ran == 2);
    client.join();
  }
}

TEST_CASE("a thread that waits for a second device in a kernel of the first lends itself to both") {
  auto first = cpu_of(1), second = cpu_of(1);
  bool inner = false;
  run_here(*first, [&](Lanes&) { run_here(*second, [&](Lanes&) { inner = true; }); });
  CHECK(inner);
}

TEST_CASE("lanes that run a hook first are never replaced") {
  CpuOptions options;
  options.threads = 1;
  options.on_lane_start = [] {};
  auto device = make_cpu_device(device_name("cpu"), options);
  for (int i = 0; i < 200; ++i) REQUIRE_FALSE(run_lending(*device, [](Lanes&) {}));
}

TEST_CASE("bursts round to nearest whatever their thread does, which has its own way again") {
  const auto rounding_in_burst = [](Device& device) {
    std::promise<int> mode;
    device.launch([&](Lanes&) { mode.set_value(std::fegetround()); });
    return mode.get_future().get();
  };
  REQUIRE(std::fesetround(FE_UPWARD) == 0);
  auto device = cpu_of(1);
  const int on_lane = rounding_in_burst(*device);
  int on_lent = -1;
  run_here(*device, [&](Lanes&) { on_lent = std::fegetround(); });
  const int after = std::fegetround();
  std::fesetround(FE_TONEAREST);
  CHECK(on_lane == FE_TONEAREST);
  CHECK(on_lent == FE_TONEAREST);
  CHECK(after == FE_UPWARD);
}
