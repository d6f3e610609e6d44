// A device constraint inside another one.
#pragma once

#include <string>
#include <string_view>

#include "core/name.hpp"
#include "core/status.hpp"

namespace troupe::detail {

// The device in the words of whoever wrote `written`, who may call CUDA "gpu".
inline std::string device_text(const DeviceName& device, std::string_view written) {
  std::string text = device.text();
  const bool says_gpu =
      written.find("gpu:") != written.npos || written.find("GPU:") != written.npos;
  if (const std::size_t at = text.find("/cuda:"); says_gpu && at != text.npos)
    text.replace(at, std::string_view("/cuda:").size(), "/gpu:");
  return text;
}

// The parts of `inner` over those of `outer`. Another type makes the outer index meaningless.
inline Expected<std::string> device_over(std::string_view outer, std::string_view inner) {
  if (inner.empty()) return std::string(outer);
  TROUPE_TRY(DeviceName in, DeviceName::parse(inner));
  TROUPE_TRY(DeviceName out, DeviceName::parse(outer));
  if (in.job) out.job = in.job;
  if (in.task) out.task = in.task;
  if (in.type && in.type != out.type) out.index.reset();
  if (in.type) out.type = in.type;
  if (in.index) out.index = in.index;
  return device_text(out, in.type ? inner : outer);
}

}  // namespace troupe::detail
