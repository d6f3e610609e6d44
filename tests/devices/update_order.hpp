// In which order a lane takes what was launched.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "devices/device.hpp"

namespace troupe::test {

// The names of two bursts and two updates, launched in turns on the device's one lane, in the order
// in which they ran.
inline std::vector<std::string> order_of_updates(std::unique_ptr<Device> device) {
  Device& lane = *device;
  std::vector<std::string> order;
  const auto note = [&](const char* what) {
    return [&order, what](Lanes&) { order.push_back(what); };
  };
  lane.launch([&](Lanes&) {
    lane.launch(note("burst 1"));
    lane.launch_update(note("update 1"));
    lane.launch(note("burst 2"));
    lane.launch_update(note("update 2"));
  });
  device.reset();
  return order;
}

}  // namespace troupe::test
