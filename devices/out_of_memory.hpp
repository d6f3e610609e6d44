// Errors for want of a device's memory.
#pragma once

#include "devices/device.hpp"

namespace troupe {

// A failure with resource_exhausted also says what holds the memory, where the device knows it.
inline Status tell_holders(Status failure, const Device& device) {
  if (failure.code() != Code::resource_exhausted) return failure;
  const std::string text = device.memory_text();
  if (text.empty()) return failure;
  Status status = resource_exhausted(failure.message() + "; " + text);
  for (const std::string& where : failure.trail()) status = status.in(where);
  return status;
}

}  // namespace troupe
