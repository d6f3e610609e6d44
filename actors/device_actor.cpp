#include "actors/device_actor.hpp"

#include <caf/actor_system.hpp>
#include <caf/typed_event_based_actor.hpp>

#include "actors/inline_send.hpp"

namespace troupe {
namespace {

struct DeviceState {
  static constexpr const char* name = kDevice;
  Device* device = nullptr;
};

// Work runs in the order it came, as lanes become free (Device::launch).
DeviceActor::behavior_type device_behavior(DeviceActor::stateful_pointer<DeviceState> self,
                                           Device* device) {
  self->state.device = device;
  return {[self](RunOnLanes& message) { self->state.device->launch(std::move(message.work)); }};
}

}  // namespace

DeviceActor spawn_device(caf::actor_system& system, Device& device) {
  return system.spawn(device_behavior, &device);
}

}  // namespace troupe
