// How much of the machine this process may use.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

namespace troupe {

// The processors that this process may run on: those of its affinity mask (taskset), and no more
// than its control groups give it time for (cpu.max, or cpu.cfs_quota_us in version 1), rounded up.
// At least 1. Asked anew each time.
int usable_processors();

// The bound of the control groups alone, by the files of /proc and /sys that `read` gives; none
// where they set no bound. `read` answers nothing for a file that does not exist.
using ReadFile = std::function<std::optional<std::string>(const std::string& path)>;
std::optional<int> processors_by_cgroup(const ReadFile& read);

// The bytes that its control groups let it have in all (memory.max, or memory.limit_in_bytes in
// version 1), and the threads of which they let more begin (pids.max). None: they set no bound.
std::optional<std::uint64_t> memory_by_cgroup(const ReadFile& read);
std::optional<std::uint64_t> threads_by_cgroup(const ReadFile& read);
// Of the machine as it is now, for more processes: the bytes that they can have, and the threads.
// None: nothing bounds them, or it cannot be known.
std::optional<std::uint64_t> usable_memory();
std::optional<std::uint64_t> usable_threads();

}  // namespace troupe
