#include "tests/devices/conformance.hpp"

#include <array>
#include <atomic>
#include <cstring>
#include <mutex>
#include <numeric>
#include <random>
#include <thread>

using namespace troupe;
using namespace troupe::conformance;

namespace {

Tensor numbers(std::int64_t n, float first = 0) {
  Tensor t = Tensor::make(DType::f32, Shape{n}).value();
  std::iota(t.mutable_data<float>(), t.mutable_data<float>() + n, first);
  return t;
}

}  // namespace

TEST_CASE("every device: memory is aligned, counted and in the device's space") {
  on_every_device([](Subject& d) {
    CHECK(d->allocator().space() == d->space());
    CHECK(d->host_allocator().space() == MemorySpace::host);
    CHECK(d->name().full());
    CHECK(d->bytes_in_use() == 0);
    for (std::int64_t n : {0, 1, 100, 10'000, 300'000}) {
      Tensor a = Tensor::make(DType::f32, Shape{n}, d->allocator()).value();
      Tensor b = Tensor::make(DType::f32, Shape{n}, d->allocator()).value();
      CHECK(a.raw() != b.raw());
      CHECK(reinterpret_cast<std::uintptr_t>(a.raw()) % kBufferAlignment == 0);
      CHECK(a.space() == d->space());
      CHECK(d->bytes_in_use() >= 2 * a.bytes());
    }
    CHECK(d->bytes_in_use() == 0);
    CHECK(d->peak_bytes() >= 2'400'000);
    d->reset_peak();
    CHECK(d->peak_bytes() == 0);
  });
}

TEST_CASE("every device: memory is recycled") {
  on_every_device([](Subject& d) {
    const void* first = Tensor::make(DType::f32, Shape{777}, d->allocator()).value().raw();
    for (int i = 0; i < 100; ++i)
      REQUIRE(Tensor::make(DType::f32, Shape{777}, d->allocator()).value().raw() == first);
  });
}

TEST_CASE("every device: bursts run exactly once") {
  on_every_device([](Subject& d) {
    constexpr int kThreads = 4, kEach = 200;
    std::vector<std::atomic<int>> runs(kThreads * kEach);
    std::vector<std::thread> threads;
    for (int t = 0; t < kThreads; ++t)
      threads.emplace_back([&, t] {
        for (int i = 0; i < kEach; ++i)
          d->launch([&runs, index = std::size_t(t * kEach + i)](Lanes&) { ++runs[index]; });
      });
    for (auto& thread : threads) thread.join();
    d.destroy();
    for (auto& n : runs) REQUIRE(n == 1);
  });
}

TEST_CASE("every device: bursts start in the order of their launch") {
  on_every_device([](Subject& d) {
    constexpr int kBursts = 300;
    std::vector<std::atomic<bool>> finished(kBursts);
    std::atomic<int> overtaken{0};
    for (int i = 0; i < kBursts; ++i)
      d->launch([&, i](Lanes& lanes) {
        // An earlier burst that is not finished is running on another lane.
        int before = 0;
        for (int j = 0; j < i; ++j) before += !finished[std::size_t(j)];
        if (before >= lanes.count()) ++overtaken;
        finished[std::size_t(i)] = true;
      });
    d.destroy();
    CHECK(overtaken == 0);
  });
}

TEST_CASE("every device: a burst may launch bursts, also while the device goes") {
  on_every_device([](Subject& d) {
    std::atomic<int> runs{0};
    std::function<void(Lanes&)> chain = [&](Lanes&) {
      if (++runs < 500) d->launch(chain);
    };
    Device* device = &*d;
    std::function<void(Lanes&)> tail = [&, device](Lanes&) {
      if (++runs < 1000) device->launch(tail);
    };
    d->launch(chain);
    d.pump();
    while (runs < 500) std::this_thread::yield();
    d->launch(tail);
    d.destroy();
    CHECK(runs == 1000);
  });
}

TEST_CASE("every device: parallel covers all chunks once") {
  on_every_device([](Subject& d) {
    for (int chunks : {0, 1, 2, 3, 7, 64, 1000}) {
      std::vector<std::atomic<int>> calls(std::size_t(chunks) + 1);
      d.run([&](Lanes& lanes) {
        CHECK(lanes.count() >= 1);
        lanes.parallel(chunks, [&](std::int64_t i) { ++calls[std::size_t(i)]; });
        // All are done when it returns.
        for (int i = 0; i < chunks; ++i)
          if (calls[std::size_t(i)] != 1) calls[std::size_t(chunks)] = 1;
      });
      CHECK(calls[std::size_t(chunks)] == 0);
    }
  });
}

TEST_CASE("every device: a split inside a chunk runs inline") {
  on_every_device([](Subject& d) {
    std::atomic<int> calls{0}, elsewhere{0};
    d.run([&](Lanes& lanes) {
      lanes.parallel(8, [&](std::int64_t) {
        const auto me = std::this_thread::get_id();
        lanes.parallel(8, [&](std::int64_t) {
          ++calls;
          if (std::this_thread::get_id() != me) ++elsewhere;
        });
      });
    });
    CHECK(calls == 64);
    CHECK(elsewhere == 0);
  });
}

TEST_CASE("every device: many bursts split at the same time") {
  on_every_device([](Subject& d) {
    constexpr int kBursts = 200;
    std::vector<std::int64_t> sums(kBursts);
    for (int b = 0; b < kBursts; ++b)
      d->launch([&, b](Lanes& lanes) {
        for (int round = 0; round < 20; ++round) {
          std::array<std::int64_t, 13> parts{};  // plain: the join must publish them
          lanes.parallel(13, [&](std::int64_t i) { parts[std::size_t(i)] = i + round; });
          for (auto p : parts) sums[std::size_t(b)] += p;
        }
      });
    d.destroy();
    for (auto sum : sums) REQUIRE(sum == 20 * 78 + 13 * 190);
  });
}

TEST_CASE("every device: copies keep the bits") {
  const unsigned seed = 3;
  MESSAGE("seed ", seed);
  std::mt19937 random(seed);
  on_every_device([&](Subject& d) {
    for (std::int64_t n : {0, 1, 1000, 100'000}) {
      Tensor host = Tensor::make(DType::u8, Shape{n}).value();
      for (std::int64_t i = 0; i < n; ++i) host.mutable_data<std::uint8_t>()[i] = random() & 255;
      CHECK(Tensor::same(d.to_host(d.to_device(host)), host));
    }
    // Rows of a larger tensor, and between two tensors of the device.
    Tensor rows = numbers(1000).reshaped(Shape{10, 100});
    Tensor on_device = d.to_device(rows);
    CHECK(Tensor::same(d.to_host(on_device.rows(3, 7)), rows.rows(3, 7)));
    Tensor other = Tensor::make(DType::f32, Shape{10, 100}, d->allocator()).value();
    CHECK(d.wait(d->copy(on_device, other)).ok());
    CHECK(Tensor::same(d.to_host(other), rows));
  });
}

TEST_CASE("every device: copies to the host are done in order, those of nothing, too") {
  on_every_device([](Subject& d) {
    Tensor x = d.to_device(numbers(5000));
    Tensor nothing = Tensor::make(DType::f32, Shape{0}, d->allocator()).value();
    Tensor back = Tensor::make(DType::f32, Shape{5000}, d->host_allocator()).value();
    Tensor none = Tensor::make(DType::f32, Shape{0}, d->host_allocator()).value();
    d->copy(x, back);
    CHECK(d.wait(d->copy(nothing, none)).ok());
    CHECK(Tensor::same(back, numbers(5000)));
  });
}

TEST_CASE("every device: a copy holds on to both tensors") {
  on_every_device([](Subject& d) {
    Tensor back = Tensor::make(DType::f32, Shape{5000}, d->host_allocator()).value();
    Ticket ticket;
    {
      Tensor device = Tensor::make(DType::f32, Shape{5000}, d->allocator()).value();
      Ticket up = d->copy(numbers(5000), device);  // the source goes at once
      d->stream().wait(up);
      ticket = d->copy(device, back);
    }
    // Fresh memory must not be what the pending copies use.
    std::vector<Tensor> others;
    for (int i = 0; i < 4; ++i) {
      others.push_back(Tensor::make(DType::f32, Shape{5000}, d->allocator()).value());
      d->copy(numbers(5000, 1e6f), others.back());
    }
    CHECK(d.wait(ticket).ok());
    CHECK(Tensor::same(back, numbers(5000)));
  });
}

TEST_CASE("every device: work of a stream runs in order, and tickets complete in order") {
  on_every_device([](Subject& d) {
    std::vector<int> order;      // written where work runs
    std::vector<int> completed;  // written where callbacks run, another thread of some devices
    std::atomic<int> ran{0}, callbacks{0};
    std::mutex mutex;  // of completed: what is complete already calls back on this thread
    constexpr int kWork = 200;
    for (int i = 0; i < kWork; ++i) {
      Ticket t = d.enqueue([&, i] {
        order.push_back(i);
        ++ran;
        return ok_status();
      });
      if (i % 3 == 0)
        d->on_complete(t, [&, i](Status s) {
          std::lock_guard lock(mutex);
          if (s.ok()) completed.push_back(ran > i ? i : -1);
          ++callbacks;
        });
    }
    CHECK(d.wait(d->stream().last()).ok());
    d.destroy();  // the callbacks that are still under way
    std::vector<int> all(kWork);
    std::iota(all.begin(), all.end(), 0);
    CHECK(order == all);
    CHECK(callbacks == (kWork + 2) / 3);
    CHECK(completed.size() == (kWork + 2) / 3);
    CHECK(std::is_sorted(completed.begin(), completed.end()));
    CHECK((completed.empty() || completed.front() == 0));
  });
}

TEST_CASE("every device: a mark is complete when everything issued before is done") {
  on_every_device([](Subject& d) {
    for (int round = 0; round < 20; ++round) {
      std::atomic<int> done{0};
      const int kWork = round % 4;
      for (int i = 0; i < kWork; ++i)
        d.enqueue([&] {
          ++done;
          return ok_status();
        });
      const Ticket mark = d->stream().mark();
      CHECK(d.wait(mark).ok());
      CHECK(done == kWork);
      CHECK(d->stream().last().complete());
    }
  });
}

TEST_CASE("every device: callbacks come in ticket order, however they were asked for") {
  on_every_device([](Subject& d) {
    std::promise<void> asked;
    const bool later = !d.enqueue([] { return ok_status(); }).complete();
    // Holds back the stream until all callbacks are there.
    if (later)
      d.enqueue([&] {
        asked.get_future().wait();
        return ok_status();
      });
    std::vector<Ticket> tickets;
    for (int i = 0; i < 20; ++i) tickets.push_back(d.enqueue([] { return ok_status(); }));
    std::vector<int> order;
    for (int i = 19; i >= 0; --i)
      d->on_complete(tickets[std::size_t(i)], [&order, i](Status) { order.push_back(i); });
    asked.set_value();
    d.destroy();
    CHECK(order.size() == 20);
    if (later) CHECK(std::is_sorted(order.begin(), order.end()));
  });
}

TEST_CASE("every device: a complete ticket calls back at once") {
  on_every_device([](Subject& d) {
    int calls = 0;
    d->on_complete(Ticket{}, [&](Status s) { calls += s.ok(); });
    CHECK(calls == 1);
    CHECK(d->stream().last().complete());
  });
}

TEST_CASE("every device: a failure sticks to its ticket and all later ones") {
  on_every_device([](Subject& d) {
    if (!d.host()) return;  // whose statuses are not the work's own
    Ticket before = d.enqueue([] { return ok_status(); });
    Ticket failed = d.enqueue([] { return data_loss("the cable is out").in("in node 'a'"); });
    std::atomic<bool> ran{false};
    Ticket after = d.enqueue([&] {
      ran = true;
      return ok_status();
    });
    CHECK(d.wait(before).ok());
    for (Ticket t : {failed, after, d->stream().last()}) {
      CHECK_FALSE(t.complete());
      Status status = d.wait(t);
      CHECK(status.code() == Code::data_loss);
      CHECK(status.text().find("the cable is out") != std::string::npos);
      CHECK(status.text().find("in node 'a'") != std::string::npos);
      CHECK(status.text().find("work 2 of stream 0") != std::string::npos);
      CHECK(status.text().find(d->name().text()) != std::string::npos);
    }
    CHECK_FALSE(ran);
    Tensor host = numbers(4);
    Tensor device = Tensor::make(DType::f32, Shape{4}, d->allocator()).value();
    CHECK(d.wait(d->copy(host, device)).code() == Code::data_loss);
    // Bursts go on: it is they who report.
    d.run([](Lanes&) {});
  });
}

TEST_CASE("every device: pending work is done when the device goes, and what follows from it") {
  on_every_device([](Subject& d) {
    std::atomic<int> works{0}, callbacks{0}, bursts{0};
    Device* device = &*d;
    // A burst issues work, whose callback launches a burst, and so on.
    std::function<void(int)> chain = [&, device](int left) {
      device->launch([&, device, left](Lanes&) {
        ++bursts;
        if (left == 0) return;
        // Long enough for a device that thinks it has nothing left to do.
        for (int i = 0; i < 200; ++i) std::this_thread::yield();
        Ticket t = d.enqueue([&] {
          ++works;
          return ok_status();
        });
        device->on_complete(t, [&, left](Status) {
          ++callbacks;
          chain(left - 1);
        });
      });
    };
    for (int i = 0; i < 20; ++i) chain(5);
    d.destroy();
    CHECK(works == 100);
    CHECK(callbacks == 100);
    CHECK(bursts == 120);
  });
}

TEST_CASE("every device: a tensor may outlive it") {
  on_every_device([](Subject& d) {
    Tensor kept = d.to_host(d.to_device(numbers(100)));
    Tensor device = d.to_device(numbers(100'000));
    d.enqueue([] { return ok_status(); });
    d.destroy();
    CHECK(Tensor::same(kept, numbers(100)));
  });
}

TEST_CASE("every device: threads use everything at once") {
  on_every_device([](Subject& d) {
    constexpr int kThreads = 4, kRounds = 40;
    std::atomic<int> wrong{0}, callbacks{0};
    std::vector<std::thread> threads;
    for (int t = 0; t < kThreads; ++t)
      threads.emplace_back([&, t] {
        for (int i = 0; i < kRounds; ++i) {
          Tensor host = numbers(500 + i, float(t * 1000 + i));
          Tensor device = Tensor::make(DType::f32, host.shape(), d->allocator()).value();
          Tensor back = Tensor::make(DType::f32, host.shape(), d->host_allocator()).value();
          d->stream().wait(d->copy(host, device));
          Ticket done = d->copy(device, back);
          device = Tensor();
          d->launch([&](Lanes& lanes) { lanes.parallel(5, [](std::int64_t) {}); });
          std::promise<Status> status;
          d->on_complete(done, [&](Status s) {
            ++callbacks;
            status.set_value(std::move(s));
          });
          if (!status.get_future().get().ok() || !Tensor::same(host, back)) ++wrong;
        }
      });
    for (auto& thread : threads) thread.join();
    d.destroy();
    CHECK(wrong == 0);
    CHECK(callbacks == kThreads * kRounds);
  });
}
