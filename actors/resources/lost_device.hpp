// A process whose device has failed.
#pragma once

#include "core/status.hpp"
#include "devices/device.hpp"

namespace troupe {

// Whether the device has failed, as `status` may show: data_loss is that of a commit that cannot be
// applied. Others, such as that of an attempt that was called off, do not ask the driver.
inline bool shows_failure(const Status& status, const Device& device) {
  const bool may = status.code() == Code::internal || status.code() == Code::resource_exhausted ||
                   status.code() == Code::data_loss;
  return may && !device.failure().ok();
}

// Why a process leaves its job: without its device it is of no use, and another process may take
// its place. `failure` names nodes.
inline Status without(const Device& device, const Status& failure) {
  return unavailable(device.name().text() + " has failed: " + failure.text());
}

}  // namespace troupe
