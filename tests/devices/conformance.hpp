// One suite for every device: what devices/device.hpp promises. A new device adds a line to
// all_devices().
#pragma once

#include <doctest/doctest.h>

#include <functional>
#include <future>
#include <memory>
#include <string>
#include <vector>

#include "devices/cpu/cpu_device.hpp"
#include "devices/device.hpp"
#include "devices/fake/fake_device.hpp"
#include "tests/devices/cuda/cuda_subject.hpp"
#include "tests/devices/sim_device.hpp"

namespace troupe::conformance {

// A device, and what tests do with one. Simulated devices are pumped on the test's thread.
class Subject {
 public:
  using Enqueue = std::function<Ticket(std::function<Status()>)>;

  // `enqueue` is for devices whose streams run no host functions.
  Subject(std::string text, std::unique_ptr<Device> device, Enqueue enqueue = {})
      : text_(std::move(text)),
        device_(std::move(device)),
        sim_(dynamic_cast<test::SimDevice*>(device_.get())),
        enqueue_(std::move(enqueue)) {
    if (HostStream* stream = host())
      enqueue_ = [stream](std::function<Status()> work) {
        return stream->enqueue(std::move(work));
      };
  }

  const std::string& text() const { return text_; }
  Device& operator*() { return *device_; }
  Device* operator->() { return device_.get(); }
  void destroy() { device_.reset(); }

  // Runs what was launched, on a device where nobody else does.
  void pump() {
    while (sim_ && sim_->run_one()) {
    }
  }
  // Launches and waits for the end.
  void run(std::function<void(Lanes&)> burst) {
    std::promise<void> done;
    device_->launch([&](Lanes& lanes) {
      burst(lanes);
      done.set_value();
    });
    pump();
    done.get_future().wait();
  }
  // What runs host functions on its stream; null on a device that runs nothing but kernels.
  HostStream* host() { return dynamic_cast<HostStream*>(&device_->stream()); }
  // Work on the device's stream, whichever way it takes it.
  Ticket enqueue(std::function<Status()> work) { return enqueue_(std::move(work)); }
  Status wait(Ticket ticket) {
    std::promise<Status> done;
    device_->on_complete(ticket, [&](Status status) { done.set_value(std::move(status)); });
    return done.get_future().get();
  }
  Tensor to_device(const Tensor& host) {
    Tensor t = Tensor::make(host.dtype(), host.shape(), device_->allocator()).value();
    TROUPE_CHECK(wait(device_->copy(host, t)).ok(), "copy to the device");
    return t;
  }
  Tensor to_host(const Tensor& tensor) {
    Tensor t = Tensor::make(tensor.dtype(), tensor.shape(), device_->host_allocator()).value();
    TROUPE_CHECK(wait(device_->copy(tensor, t)).ok(), "copy to the host");
    return t;
  }

 private:
  std::string text_;
  std::unique_ptr<Device> device_;
  test::SimDevice* sim_;
  Enqueue enqueue_;
};

inline DeviceName device_name(const std::string& type) {
  return DeviceName::parse("/job:test/task:0/" + type + ":0").value();
}

inline std::unique_ptr<Device> cpu_of(int threads) {
  CpuOptions options;
  options.threads = threads;
  return make_cpu_device(device_name("cpu"), options);
}

inline Subject cuda_on_fake(const std::string& fake, bool spin) {
  CudaOptions options;
  options.spin = spin;
  auto device = test::make_cuda_on_fake(device_name("cuda"), fake, options).value();
  test::HostKernels kernels(*device);
  return Subject(
      "cuda on the fake driver", std::move(device),
      [kernels](std::function<Status()> work) mutable { return kernels.enqueue(std::move(work)); });
}

struct Maker {
  std::string text;
  std::function<Subject()> make;
};

inline std::vector<Maker> all_devices() {
  const auto cpu = [](int threads) {
    return [threads] {
      CpuOptions options;
      options.threads = threads;
      return Subject("cpu", make_cpu_device(device_name("cpu"), options));
    };
  };
  const auto fake = [](int streams, std::uint64_t seed) {
    return [streams, seed] {
      FakeOptions options;
      options.streams = streams;
      options.seed = seed;
      return Subject("fake", make_fake_device(device_name("fake"), options));
    };
  };
  return {
      {"cpu with 1 lane", cpu(1)},
      {"cpu with 3 lanes", cpu(3)},
      {"inline", [] { return Subject("inline", make_inline_device(device_name("cpu"))); }},
      {"sim", [] { return Subject("sim", std::make_unique<test::SimDevice>(device_name("cpu"))); }},
      {"fake", fake(1, 5)},
      {"fake with 2 streams", fake(2, 6)},
      {"cuda on the fake driver", [] { return cuda_on_fake("", false); }},
      {"cuda on a slow fake driver", [] { return cuda_on_fake("delay_us=100,seed=7", true); }}};
}

// Calls `test` with a fresh one of every device.
template <class Test>
void on_every_device(Test&& test) {
  for (const Maker& maker : all_devices()) {
    Subject subject = maker.make();
    CAPTURE(maker.text);
    test(subject);
  }
}

}  // namespace troupe::conformance
