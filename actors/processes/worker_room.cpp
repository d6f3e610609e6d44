#include "actors/processes/worker_room.hpp"

#include <fmt/format.h>
#include <sys/resource.h>

#include <string>

#include "core/byte_count.hpp"
#include "core/processors.hpp"

namespace troupe {
namespace {

// Measured, and rounded down: 4.1 MiB of a worker alone, and 43 KiB of each of the two ends of a
// link between workers, all of which are linked.
constexpr std::uint64_t kOfAWorker = std::uint64_t{4} << 20, kOfALink = std::uint64_t{40} << 10;
constexpr std::uint64_t kThreads = 8;  // of a worker that has one processor
// In the master a process, its output, and the two connections of a link; 11 are its own.
constexpr std::uint64_t kDescriptors = 4, kOwnDescriptors = 11;

std::uint64_t memory_of(std::uint64_t workers) {
  return workers * (kOfAWorker + (workers > 0 ? workers - 1 : 0) * kOfALink);
}
std::uint64_t threads_of(std::uint64_t workers) { return workers * kThreads; }
std::uint64_t descriptors_of(std::uint64_t workers) {
  return workers * kDescriptors + kOwnDescriptors;
}

// The most below `workers` that there is room for.
template <class Need>
std::uint64_t most(std::uint64_t workers, std::uint64_t room, Need need) {
  std::uint64_t fit = 0, not_fit = workers;
  while (fit + 1 < not_fit) {
    const std::uint64_t middle = fit + (not_fit - fit) / 2;
    (need(middle) <= room ? fit : not_fit) = middle;
  }
  return fit;
}

Status too_many(int workers, const std::string& why, std::uint64_t most) {
  return resource_exhausted(fmt::format(
      "{} workers on this machine need at the least {}: at most {} fit", workers, why, most));
}

}  // namespace

WorkerRoom WorkerRoom::here() {
  WorkerRoom room{usable_memory(), usable_threads(), std::nullopt};
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY)
    room.descriptors = limit.rlim_cur;
  return room;
}

Status check_room(int workers, const WorkerRoom& room) {
  if (workers == 0) return ok_status();
  const auto n = std::uint64_t(workers);
  if (room.memory && memory_of(n) > *room.memory)
    return too_many(workers,
                    fmt::format("{} of memory, and there are {}", byte_count_text(memory_of(n)),
                                byte_count_text(*room.memory)),
                    most(n, *room.memory, memory_of));
  if (room.threads && threads_of(n) > *room.threads)
    return too_many(workers,
                    fmt::format("{} threads, and there may be {} more (see ulimit -u, pids.max of "
                                "the control group, and kernel.pid_max)",
                                threads_of(n), *room.threads),
                    most(n, *room.threads, threads_of));
  if (room.descriptors && descriptors_of(n) > *room.descriptors)
    return too_many(workers,
                    fmt::format("{} descriptors in their master, and there are {} (see ulimit -n)",
                                descriptors_of(n), *room.descriptors),
                    most(n, *room.descriptors, descriptors_of));
  return ok_status();
}

}  // namespace troupe
