#include "actors/worker/device_actor.hpp"

#include <doctest/doctest.h>

#include <caf/send.hpp>
#include <functional>
#include <future>
#include <memory>
#include <utility>

#include "devices/cpu/cpu_device.hpp"
#include "tests/actors/support/actor_system.hpp"

using namespace troupe;
using namespace troupe::testing;

namespace {

// Whose work is done, and gone with all that it held, before launch() returns. `then` is called in
// between.
class QuickDevice final : public Device {
 public:
  explicit QuickDevice(std::function<void()> then) : then_(std::move(then)) {}

  void launch(std::function<void(Lanes&)> burst) override {
    inner_->launch(std::exchange(burst, nullptr));
    then_();
  }
  const DeviceName& name() const override { return inner_->name(); }
  MemorySpace space() const override { return inner_->space(); }
  Allocator& allocator() override { return inner_->allocator(); }
  Allocator& host_allocator() override { return inner_->host_allocator(); }
  Stream& stream() override { return inner_->stream(); }
  Ticket copy(const Tensor& src, Tensor dst) override { return inner_->copy(src, dst); }
  void on_complete(Ticket ticket, std::function<void(Status)> done) override {
    inner_->on_complete(ticket, std::move(done));
  }
  std::size_t bytes_in_use() const override { return inner_->bytes_in_use(); }
  std::size_t peak_bytes() const override { return inner_->peak_bytes(); }
  void reset_peak() override { inner_->reset_peak(); }

 private:
  std::unique_ptr<Device> inner_ = make_inline_device(DeviceName{"worker", 0, "CPU", 0});
  std::function<void()> then_;
};

}  // namespace

TEST_CASE("the device stays until its actor is done with it, not only until the work is done") {
  auto alive = std::make_shared<int>();
  std::weak_ptr<int> held = alive;
  std::promise<bool> stays;
  QuickDevice device([&] { stays.set_value(!held.expired()); });
  System system;
  DeviceActor actor =
      system.make([&](caf::actor_system& s) { return spawn_device(s, device, alive); });
  caf::anon_send(actor, RunOnLanes{[last = std::exchange(alive, nullptr)](Lanes&) {}, {}});
  CHECK(stays.get_future().get());
  caf::anon_send_exit(actor, caf::exit_reason::user_shutdown);
}
