// A CPU whose bursts run when a test or a simulation says so.
#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <utility>

#include "devices/cpu/cpu_device.hpp"

namespace troupe::test {

// An inline device but for its bursts: they wait in a queue, to which any thread may add, and run
// on the thread that asks for one. Its destructor runs those that are left.
class SimDevice final : public Device {
 public:
  explicit SimDevice(DeviceName name) : memory_(make_inline_device(std::move(name))) {}
  ~SimDevice() override {
    while (run_one()) {
    }
  }

  // Runs the oldest burst that was launched and not run; false when there is none.
  bool run_one() {
    std::function<void(Lanes&)> burst;
    {
      std::lock_guard lock(mutex_);
      if (bursts_.empty()) return false;
      burst = std::move(bursts_.front());
      bursts_.pop_front();
    }
    InlineLanes lanes;
    burst(lanes);
    return true;
  }
  std::size_t pending() const {
    std::lock_guard lock(mutex_);
    return bursts_.size();
  }

  void launch(std::function<void(Lanes&)> burst) override {
    std::lock_guard lock(mutex_);
    bursts_.push_back(std::move(burst));
  }

  const DeviceName& name() const override { return memory_->name(); }
  MemorySpace space() const override { return memory_->space(); }
  Allocator& allocator() override { return memory_->allocator(); }
  Allocator& host_allocator() override { return memory_->host_allocator(); }
  Stream& stream() override { return memory_->stream(); }
  Ticket copy(const Tensor& src, Tensor dst) override { return memory_->copy(src, std::move(dst)); }
  void on_complete(Ticket ticket, std::function<void(Status)> done) override {
    memory_->on_complete(ticket, std::move(done));
  }
  std::size_t bytes_in_use() const override { return memory_->bytes_in_use(); }
  std::size_t peak_bytes() const override { return memory_->peak_bytes(); }
  void reset_peak() override { memory_->reset_peak(); }

 private:
  const std::unique_ptr<Device> memory_;  // and the stream
  mutable std::mutex mutex_;
  std::deque<std::function<void(Lanes&)>> bursts_;
};

}  // namespace troupe::test
