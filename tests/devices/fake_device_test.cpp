#include "devices/fake/fake_device.hpp"

#include <doctest/doctest.h>

#include <atomic>
#include <cmath>
#include <stdexcept>
#include <thread>

#include "tests/devices/conformance.hpp"
#include "tests/devices/touch.hpp"

using namespace troupe;
using namespace troupe::conformance;

namespace {

Subject fake(FakeOptions options = {}) {
  return Subject("fake", make_fake_device(device_name("fake"), options));
}

// Adds 1 to every element, as a kernel would: on the aliases, made at issue.
Ticket add_one(FakeDevice& device, HostStream& stream, const Tensor& x, const Tensor& y) {
  return stream.enqueue([x = device.alias(x), y = device.alias(y)]() mutable {
    for (std::int64_t i = 0; i < x.elements(); ++i)
      y.mutable_data<float>()[i] = x.data<float>()[i] + 1;
    return ok_status();
  });
}

Tensor full(std::int64_t n, float value) {
  Tensor t = Tensor::make(DType::f32, Shape{n}).value();
  std::fill_n(t.mutable_data<float>(), n, value);
  return t;
}

}  // namespace

TEST_CASE("the host faults on the memory of a fake device") {
  Subject d = fake();
  for (std::int64_t n : {0, 1, 1000, 1'000'000}) {
    Tensor t = Tensor::make(DType::f32, Shape{n}, d->allocator()).value();
    CHECK(t.space() == MemorySpace::device);
    CHECK(test::touch(t.raw(), false) == test::kFaults);
    CHECK(test::touch(t.raw(), true) == test::kFaults);
    CHECK(test::touch(device_alias(*d, t).raw(), false) == 0);
  }
  Tensor host = Tensor::make(DType::f32, Shape{4}, d->host_allocator()).value();
  CHECK(test::touch(host.raw(), true) == 0);
  CHECK(device_alias(*d, host).raw() == host.raw());
}

TEST_CASE("fresh memory of a fake device is not zero, also when it is recycled") {
  Subject d = fake();
  for (int i = 0; i < 2; ++i) {
    Tensor t = Tensor::make(DType::f32, Shape{10}, d->allocator()).value();
    Tensor host = d.to_host(t);
    for (float x : host.span<float>()) CHECK(std::isnan(x));
    CHECK(d.wait(d->copy(full(10, 1), t)).ok());
  }
}

TEST_CASE("a chain of work needs no reference on its memory once it is issued") {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    CAPTURE(seed);
    FakeOptions options;
    options.seed = seed;
    auto device = make_fake_device(device_name("fake"), options);
    FakeDevice& fake = *device;
    Subject d("fake", std::move(device));
    Tensor x = d.to_device(full(300, 0));
    for (int i = 0; i < 30; ++i) {
      Tensor y = Tensor::make(DType::f32, Shape{300}, d->allocator()).value();
      add_one(fake, fake.stream(), x, y);
      x = y;  // the input goes while the work that reads it is pending
    }
    CHECK(Tensor::same(d.to_host(x), full(300, 30)));
  }
}

TEST_CASE("freed memory comes back when the work issued before is done, not earlier") {
  FakeOptions options;
  options.max_delay = std::chrono::microseconds(0);
  Subject d = fake(options);
  std::promise<void> go;
  Tensor t = Tensor::make(DType::f32, Shape{100}, d->allocator()).value();
  const void* address = t.raw();
  Ticket pending = d.enqueue([&] {
    go.get_future().wait();
    return ok_status();
  });
  t = Tensor();
  CHECK(d->bytes_in_use() > 0);
  {
    Tensor other = Tensor::make(DType::f32, Shape{100}, d->allocator()).value();
    CHECK(other.raw() != address);
    go.set_value();
    CHECK(d.wait(pending).ok());
  }
  CHECK(d->bytes_in_use() == 0);
  bool back = false;
  std::vector<Tensor> tensors;
  for (int i = 0; i < 200 && !back; ++i) {
    tensors.push_back(Tensor::make(DType::f32, Shape{100}, d->allocator()).value());
    back = tensors.back().raw() == address;
  }
  CHECK(back);
}

TEST_CASE("a stream waits for the ticket of another") {
  for (std::uint64_t seed = 1; seed <= 10; ++seed) {
    CAPTURE(seed);
    FakeOptions options;
    options.seed = seed;
    options.streams = 3;
    auto device = make_fake_device(device_name("fake"), options);
    FakeDevice& fake = *device;
    Subject d("fake", std::move(device));
    Tensor x = d.to_device(full(100, 0));
    std::vector<Tensor> keep{x};
    Ticket last;
    for (int i = 0; i < 30; ++i) {
      HostStream& stream = fake.stream(i % fake.streams());
      stream.wait(last);
      Tensor y = Tensor::make(DType::f32, Shape{100}, d->allocator()).value();
      last = add_one(fake, stream, keep.back(), y);
      keep.push_back(y);
    }
    CHECK(d.wait(last).ok());
    CHECK(Tensor::same(d.to_host(keep.back()), full(100, 30)));
  }
}

TEST_CASE("a stream that waits for failed work fails, the others go on") {
  FakeOptions options;
  options.streams = 3;
  auto device = make_fake_device(device_name("fake"), options);
  FakeDevice& fake = *device;
  Subject d("fake", std::move(device));
  Ticket bad = fake.stream(0).enqueue([] { return data_loss("gone"); });
  fake.stream(1).wait(bad);
  Ticket waits = fake.stream(1).enqueue([] { return ok_status(); });
  Ticket free = fake.stream(2).enqueue([] { return ok_status(); });
  CHECK(d.wait(bad).code() == Code::data_loss);
  Status status = d.wait(waits);
  CHECK(status.code() == Code::data_loss);
  CHECK(status.text().find("work 1 of stream 0") != std::string::npos);
  CHECK(d.wait(free).ok());
}

TEST_CASE("work that throws fails its stream as work that returns an error does") {
  Subject d = fake();
  Ticket good = d.enqueue([] { return ok_status(); });
  Ticket bad = d.enqueue([]() -> Status { throw std::runtime_error("planted"); });
  Ticket late = d.enqueue([] { return ok_status(); });
  CHECK(d.wait(good).ok());
  CHECK(d.wait(bad).message() == "the kernel threw an exception: planted");
  CHECK(d.wait(late).code() == Code::internal);
}

TEST_CASE("a failure can be injected at any work item") {
  for (std::uint64_t n = 1; n <= 5; ++n) {
    CAPTURE(n);
    FakeOptions options;
    options.fail_at = n;
    Subject d = fake(options);
    std::atomic<std::uint64_t> ran{0};
    std::vector<Ticket> tickets;
    for (int i = 0; i < 5; ++i)
      tickets.push_back(d.enqueue([&] {
        ++ran;
        return ok_status();
      }));
    for (std::uint64_t i = 1; i <= 5; ++i) CHECK(d.wait(tickets[i - 1]).ok() == (i < n));
    CHECK(ran == n - 1);
    CHECK(d.wait(tickets[4]).text().find("work " + std::to_string(n)) != std::string::npos);
  }
}

TEST_CASE("memory of a fake device runs out as a status, and is joined again") {
  FakeOptions options;
  options.memory = 16 << 20;
  Subject d = fake(options);
  for (int round = 0; round < 3; ++round) {
    std::vector<Tensor> tensors;
    for (;;) {
      auto t = Tensor::make(DType::f32, Shape{(round + 1) * 100'000}, d->allocator());
      if (!t.ok()) {
        CHECK(t.status().code() == Code::resource_exhausted);
        break;
      }
      tensors.push_back(std::move(t).value());
    }
    CHECK(tensors.size() >= std::size_t(30 / (round + 1)));
  }
}

TEST_CASE("issuing work does not wait for it") {
  Subject d = fake();
  std::promise<void> go;
  std::atomic<int> done{0};
  d.enqueue([&] {
    go.get_future().wait();
    return ok_status();
  });
  Ticket last;
  for (int i = 0; i < 100; ++i)
    last = d.enqueue([&] {
      ++done;
      return ok_status();
    });
  CHECK(done == 0);
  CHECK_FALSE(last.complete());
  CHECK_FALSE(d->stream().last().complete());
  go.set_value();
  CHECK(d.wait(last).ok());
  CHECK(done == 100);
  CHECK(d->stream().last().complete());
}
