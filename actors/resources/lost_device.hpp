// A process whose device has failed.
#pragma once

#include "core/status.hpp"
#include "devices/device.hpp"

namespace troupe {

// Why a process leaves its job: without its device it is of no use, and another process may take
// its place. `failure` names nodes.
inline Status without(const Device& device, const Status& failure) {
  return unavailable(device.name().text() + " has failed: " + failure.text());
}

}  // namespace troupe
