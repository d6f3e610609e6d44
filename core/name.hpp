// Names: of nodes, of their ports, of devices.
#pragma once

#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/status.hpp"

namespace troupe {

// [A-Za-z0-9.][A-Za-z0-9_.\-/]*, at most 1 KiB.
bool valid_node_name(std::string_view name);

// "node:port", "node" (port 0) or "^node" (a control edge).
struct PortName {
  std::string node;
  int port = 0;
  bool control = false;

  static Expected<PortName> parse(std::string_view text);
  std::string text() const;  // "node" for port 0
  friend bool operator==(const PortName&, const PortName&) = default;
};

// A device, or a pattern for devices when parts are missing (paper, sections 3 and 4.3).
// Full: "/job:worker/task:1/cpu:0". Parts in any order; "*" is the same as leaving a part out;
// "/device:CPU:0", "/cpu:0", "/gpu:1" and "CPU:0" are understood; replica is accepted and must be
// 0. Types are kept in upper case ("CPU", "CUDA", "FAKE"; "gpu" means CUDA).
struct DeviceName {
  std::optional<std::string> job;
  std::optional<int> task;
  std::optional<std::string> type;
  std::optional<int> index;

  // invalid_argument on trailing junk, unknown keys, negative or huge numbers.
  static Expected<DeviceName> parse(std::string_view text);
  bool full() const { return job && task && type && index; }
  bool empty() const { return !job && !task && !type && !index; }
  // Every part present here equals the other's part.
  bool matches(const DeviceName& full) const;
  // The conjunction; invalid_argument naming both on a conflict. With `soft`, a conflict of type
  // drops type and index, a conflict of index drops the index; job and task are never dropped.
  static Expected<DeviceName> merge(const DeviceName& a, const DeviceName& b, bool soft = false);
  std::string text() const;  // "/job:worker/task:1/cpu:0"; "" when empty
  friend bool operator==(const DeviceName&, const DeviceName&) = default;
  // By job, task, type, index; numbers as numbers, so gpu:10 follows gpu:2.
  friend std::strong_ordering operator<=>(const DeviceName& a, const DeviceName& b);
};

// invalid_argument for a path with a NUL, of which the system would see no more than what is before
// it.
Status check_path(std::string_view path);

// For a message: 'name', long ones cut, so that an error stays readable.
std::string quoted(std::string_view name);

// The names among `known` nearest to `wanted` by edit distance, for "did you mean". At most `most`.
std::vector<std::string> near_names(std::string_view wanted, const std::vector<std::string>& known,
                                    std::size_t most = 3);

}  // namespace troupe
