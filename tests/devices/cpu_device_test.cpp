#include "devices/cpu/cpu_device.hpp"

#include <doctest/doctest.h>

#include <atomic>
#include <cfenv>
#include <chrono>
#include <functional>
#include <future>
#include <mutex>
#include <random>
#include <set>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "tests/devices/conformance.hpp"
#include "tests/devices/update_order.hpp"

using namespace troupe;
using conformance::cpu_of;
using conformance::device_name;

TEST_CASE("every lane runs the start hook, first and once") {
  std::mutex mutex;
  std::multiset<std::thread::id> started;
  std::atomic<int> early{0};
  CpuOptions options;
  options.threads = 3;
  options.on_lane_start = [&] {
    std::lock_guard lock(mutex);
    started.insert(std::this_thread::get_id());
  };
  auto device = make_cpu_device(device_name("cpu"), options);
  for (int i = 0; i < 50; ++i)
    device->launch([&](Lanes& lanes) {
      lanes.parallel(10, [&](std::int64_t) {
        std::lock_guard lock(mutex);
        if (started.count(std::this_thread::get_id()) != 1) ++early;
      });
    });
  device.reset();
  CHECK(early == 0);
  CHECK(started.size() == 3);
}

// So that of kernels one after another each lane finds in its cache what it wrote itself.
TEST_CASE("a kernel's lane takes chunks from the front, and one that helps from the back") {
  auto device = cpu_of(2);
  std::promise<std::thread::id> owner;
  std::vector<std::thread::id> by(64);
  device->launch([&](Lanes& lanes) {
    std::atomic<int> inside{0};
    lanes.parallel(64, [&](std::int64_t i) {
      by[std::size_t(i)] = std::this_thread::get_id();
      ++inside;
      while (inside < 2) std::this_thread::yield();
    });
    owner.set_value(std::this_thread::get_id());
  });
  const std::thread::id first = owner.get_future().get();
  CHECK(by.front() == first);
  CHECK(by.back() != first);
  for (std::size_t i = 1; i < by.size(); ++i)
    if (by[i - 1] != first) CHECK(by[i] == by[i - 1]);
}

TEST_CASE("idle lanes take chunks of a running kernel") {
  auto device = cpu_of(3);
  std::promise<void> done;
  device->launch([&](Lanes& lanes) {
    // Each chunk waits for the others: it ends only if three lanes work on it.
    std::atomic<int> inside{0};
    lanes.parallel(3, [&](std::int64_t) {
      ++inside;
      while (inside < 3) std::this_thread::yield();
    });
    done.set_value();
  });
  done.get_future().wait();
}

TEST_CASE("parallel throws what its first chunk throws, and the lanes go on") {
  for (int threads = 1; threads <= 3; ++threads) {
    INFO(threads);
    auto device = cpu_of(threads);
    for (int round = 0; round < 200; ++round) {
      std::promise<std::string> said;
      std::promise<std::int64_t> summed;
      device->launch([&](Lanes& lanes) {
        try {
          lanes.parallel(64, [&](std::int64_t i) {
            if (i % 7 == 3) throw std::runtime_error("chunk " + std::to_string(i));
          });
          said.set_value("nothing");
        } catch (const std::runtime_error& e) {
          said.set_value(e.what());
        }
        std::atomic<std::int64_t> sum{0};
        lanes.parallel(64, [&](std::int64_t i) { sum += i; });
        summed.set_value(sum);
      });
      REQUIRE(said.get_future().get() == "chunk 3");
      REQUIRE(summed.get_future().get() == 2016);
    }
  }
}

TEST_CASE("parallel returns when the last lane is done") {
  auto device = cpu_of(2);
  std::promise<int> result;
  device->launch([&](Lanes& lanes) {
    const auto me = std::this_thread::get_id();
    int early = 0;
    for (int round = 0; round < 20; ++round) {
      std::atomic<int> inside{0}, finished{0};
      lanes.parallel(2, [&](std::int64_t) {
        ++inside;
        while (inside < 2) std::this_thread::yield();  // both lanes have one
        if (std::this_thread::get_id() != me)
          for (int i = 0; i < 1000; ++i) std::this_thread::yield();
        ++finished;
      });
      early += finished != 2;
    }
    result.set_value(early);
  });
  CHECK(result.get_future().get() == 0);
}

TEST_CASE("idle lanes take chunks before new bursts") {
  auto device = cpu_of(2);
  std::atomic<bool> burst_ran{false};
  std::promise<bool> result;
  std::promise<void> busy, go;
  device->launch([&](Lanes&) {  // keeps the second lane busy until there are chunks and a burst
    busy.set_value();
    go.get_future().wait();
  });
  busy.get_future().wait();
  device->launch([&](Lanes& lanes) {
    device->launch([&](Lanes&) { burst_ran = true; });
    std::atomic<int> inside{0};
    bool overtaken = false;
    lanes.parallel(2, [&](std::int64_t) {
      if (inside.fetch_add(1) == 0)
        go.set_value();
      else
        overtaken = burst_ran;  // on the lane that could have run it first
      while (inside < 2) std::this_thread::yield();
    });
    result.set_value(overtaken);
  });
  CHECK_FALSE(result.get_future().get());
  device.reset();
  CHECK(burst_ran);
}

TEST_CASE("an update does not wait for the bursts that have all lanes") {
  for (int threads : {1, 2}) {
    INFO(threads);
    auto device = cpu_of(threads);
    std::promise<void> ran, go;
    const std::shared_future<void> gone = go.get_future().share();
    std::vector<std::promise<void>> busy{std::size_t(threads)};
    for (std::promise<void>& lane : busy)
      device->launch([&lane, gone](Lanes&) {
        lane.set_value();
        gone.wait();
      });
    for (std::promise<void>& lane : busy) lane.get_future().wait();
    for (int i = 0; i < 3; ++i) {
      std::promise<int> count;
      device->launch_update([&](Lanes& lanes) {
        std::atomic<int> chunks{0};
        lanes.parallel(10, [&](std::int64_t) { ++chunks; });
        count.set_value(chunks);
      });
      auto counted = count.get_future();
      const bool there = counted.wait_for(std::chrono::seconds(20)) == std::future_status::ready;
      CHECK(there);
      if (!there) go.set_value();
      REQUIRE(counted.get() == 10);
    }
    go.set_value();
  }
}

TEST_CASE("a lane that is free helps with an update") {
  auto device = cpu_of(2);
  std::promise<void> busy[2], go[2], done;
  for (int i = 0; i < 2; ++i)
    device->launch([&, i](Lanes&) {
      busy[i].set_value();
      go[i].get_future().wait();
    });
  for (auto& lane : busy) lane.get_future().wait();
  device->launch_update([&](Lanes& lanes) {
    std::atomic<int> inside{0};
    lanes.parallel(2, [&](std::int64_t) {
      if (inside.fetch_add(1) == 0) go[0].set_value();
      while (inside < 2) std::this_thread::yield();
    });
    done.set_value();
  });
  done.get_future().wait();
  go[1].set_value();
}

TEST_CASE("a lane runs updates before bursts that were launched earlier, each in their order") {
  CHECK(test::order_of_updates(cpu_of(1)) ==
        std::vector<std::string>{"update 1", "update 2", "burst 1", "burst 2"});
}

TEST_CASE("updates see the start hook, and the floating-point environment of a lane") {
  std::atomic<int> hooks{0};
  thread_local bool hooked = false;
  CpuOptions options;
  options.threads = 1;
  options.on_lane_start = [&] {
    ++hooks;
    hooked = true;
  };
  auto device = make_cpu_device(device_name("cpu"), options);
  std::promise<void> busy, go;
  device->launch([&](Lanes&) {
    busy.set_value();
    go.get_future().wait();
  });
  busy.get_future().wait();
  std::promise<bool> seen;
  std::fesetround(FE_UPWARD);
  device->launch_update(
      [&](Lanes&) { seen.set_value(hooked && std::fegetround() == FE_TONEAREST); });
  std::fesetround(FE_TONEAREST);
  CHECK(seen.get_future().get());
  go.set_value();
  device.reset();
  CHECK(hooks == 2);
}

TEST_CASE("bursts and updates that launch others all run once, also while the device ends") {
  for (std::uint32_t seed = 1; seed <= 200; ++seed) {
    CAPTURE(seed);
    std::mt19937 random(seed);
    auto device = cpu_of(1 + int(random() % 3));
    Device& all = *device;
    std::atomic<int> launched{0}, ran{0};
    std::function<void(std::uint32_t, int)> launch = [&](std::uint32_t drawn, int depth) {
      ++launched;
      auto work = [&, drawn, depth](Lanes& lanes) {
        std::mt19937 next(drawn);
        lanes.parallel(std::int64_t(next() % 4), [](std::int64_t) {});
        if (depth > 0)
          for (auto n = next() % 3; n > 0; --n) launch(std::uint32_t(next()), depth - 1);
        ++ran;
      };
      if (drawn % 2 == 0)
        all.launch(work);
      else
        all.launch_update(work);
    };
    for (int i = 0; i < 20; ++i) launch(std::uint32_t(random()), 5);
    device.reset();
    CHECK(ran == launched);
  }
}

TEST_CASE("the memory cap of a cpu is a status") {
  CpuOptions options;
  options.threads = 1;
  options.memory_cap = 1 << 20;
  auto device = make_cpu_device(device_name("cpu"), options);
  auto fits = Tensor::make(DType::f32, Shape{200'000}, device->allocator());
  CHECK(fits.ok());
  auto too_much = Tensor::make(DType::f32, Shape{200'000}, device->allocator());
  CHECK(too_much.status().code() == Code::resource_exhausted);
}

TEST_CASE("strings are copied by value") {
  auto device = make_inline_device(device_name("cpu"));
  Tensor source = Tensor::of<std::string>(Shape{2}, {"a", std::string(100, 'b')});
  Tensor copy = Tensor::make(DType::string, Shape{2}, device->allocator()).value();
  CHECK(device->copy(source, copy).complete());
  CHECK(Tensor::same(source, copy));
}

TEST_CASE("an inline device runs a burst before launch returns, and does not recurse") {
  auto device = make_inline_device(device_name("cpu"));
  std::vector<std::string> order;
  device->launch([&](Lanes&) {
    device->launch([&](Lanes&) { order.push_back("inner"); });
    order.push_back("outer");
  });
  CHECK(order == std::vector<std::string>{"outer", "inner"});
  int depth = 0;
  std::function<void(Lanes&)> chain = [&](Lanes&) {
    if (++depth < 100'000) device->launch(chain);
  };
  device->launch(chain);
  CHECK(depth == 100'000);
}

TEST_CASE("a simulated device runs one burst when told") {
  auto device = std::make_unique<test::SimDevice>(device_name("cpu"));
  int ran = 0;
  CHECK_FALSE(device->run_one());
  for (int i = 1; i <= 3; ++i) device->launch([&, i](Lanes&) { ran = i; });
  CHECK(device->pending() == 3);
  CHECK(ran == 0);
  CHECK(device->run_one());
  CHECK(ran == 1);
  CHECK(device->pending() == 2);
  device.reset();  // the rest runs
  CHECK(ran == 3);
}
