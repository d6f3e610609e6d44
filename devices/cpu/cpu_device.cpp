#include "devices/cpu/cpu_device.hpp"

#include <deque>
#include <mutex>
#include <utility>

#include "core/processors.hpp"
#include "devices/arena.hpp"
#include "devices/cpu/sync_stream.hpp"
#include "devices/detail/host_copy.hpp"
#include "devices/detail/lane_pool.hpp"

namespace troupe {
namespace {

// A CPU without its lanes: memory that the host can read, and work that is done when issued.
class HostDevice : public Device {
 public:
  HostDevice(DeviceName name, std::size_t memory_cap)
      : name_(std::move(name)), arena_(make_arena(memory_cap)), stream_(name_) {
    TROUPE_CHECK(name_.full(), "a device has a full name");
  }

  const DeviceName& name() const override { return name_; }
  MemorySpace space() const override { return MemorySpace::host; }
  Allocator& allocator() override { return *arena_; }
  Allocator& host_allocator() override { return *arena_; }
  Stream& stream() override { return stream_; }

  Ticket copy(const Tensor& src, Tensor dst) override {
    detail::check_copy(src, dst);
    return stream_.enqueue([&] {
      detail::copy_elements(src, dst);
      return ok_status();
    });
  }
  void on_complete(Ticket ticket, std::function<void(Status)> done) override {
    done(ticket.complete() ? ok_status() : stream_.status());
  }

  std::size_t bytes_in_use() const override { return arena_->bytes_in_use(); }
  std::size_t peak_bytes() const override { return arena_->peak_bytes(); }
  void reset_peak() override { arena_->reset_peak(); }

 private:
  const DeviceName name_;
  const ArenaPtr arena_;
  SyncStream stream_;
};

class CpuDevice final : public HostDevice {
 public:
  CpuDevice(DeviceName name, CpuOptions options)
      : HostDevice(std::move(name), options.memory_cap),
        lanes_(options.threads > 0 ? options.threads : usable_processors(),
               std::move(options.on_lane_start)) {}

  void launch(std::function<void(Lanes&)> burst) override { lanes_.launch(std::move(burst)); }
  void launch_update(std::function<void(Lanes&)> update) override {
    lanes_.launch_update(std::move(update));
  }

 private:
  detail::LanePool lanes_;  // last: its bursts use everything else
};

// A burst that is launched while another runs waits until that one ends.
class InlineDevice final : public HostDevice {
 public:
  using HostDevice::HostDevice;

  void launch(std::function<void(Lanes&)> burst) override {
    {
      std::lock_guard lock(mutex_);
      bursts_.push_back(std::move(burst));
      if (std::exchange(draining_, true)) return;
    }
    while (run_next()) {
    }
  }

 private:
  bool run_next() {
    std::function<void(Lanes&)> burst;
    {
      std::lock_guard lock(mutex_);
      if (bursts_.empty()) return draining_ = false;
      burst = std::move(bursts_.front());
      bursts_.pop_front();
    }
    InlineLanes lanes;
    burst(lanes);
    return true;
  }

  std::mutex mutex_;
  std::deque<std::function<void(Lanes&)>> bursts_;
  bool draining_ = false;
};

}  // namespace

std::unique_ptr<Device> make_cpu_device(DeviceName name, CpuOptions options) {
  return std::make_unique<CpuDevice>(std::move(name), std::move(options));
}

std::unique_ptr<Device> make_inline_device(DeviceName name, std::size_t memory_cap) {
  return std::make_unique<InlineDevice>(std::move(name), memory_cap);
}

}  // namespace troupe
