#include "actors/worker/device_actor.hpp"

#include <caf/actor_system.hpp>
#include <caf/typed_event_based_actor.hpp>

#include "actors/inline_send.hpp"
#include "actors/spawn.hpp"
#include "devices/lent_thread.hpp"

namespace troupe {
namespace {

struct DeviceState {
  static constexpr const char* name = "device";
  static constexpr InlineWork kInline = InlineWork::passes_on;
  Device* device = nullptr;
  std::shared_ptr<void> alive;
};

// Bursts start in the order of arrival, when lanes become free; updates before them.
DeviceActor::behavior_type device_behavior(DeviceActor::stateful_pointer<DeviceState> self,
                                           Device* device, std::shared_ptr<void> alive) {
  self->state.device = device;
  self->state.alive = std::move(alive);
  return {[self](RunOnLanes& message) {
    const NamedBursts of_the_run(burst_name(message.run));
    Device& device = *self->state.device;
    if (message.update)
      device.launch_update(std::move(message.work));
    else
      device.launch(std::move(message.work));
  }};
}

}  // namespace

DeviceActor spawn_device(caf::actor_system& system, Device& device, std::shared_ptr<void> alive) {
  return spawn_actor<DeviceActor>(system, DeviceState::name, device_behavior, &device,
                                  std::move(alive));
}

}  // namespace troupe
