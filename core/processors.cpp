#include "core/processors.hpp"

#include <sched.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <fstream>
#include <iterator>
#include <string>
#include <string_view>
#include <thread>

#include "core/number.hpp"

namespace troupe {
namespace {

std::optional<std::string> read_file(const std::string& path) {
  std::ifstream in(path);
  if (!in) return std::nullopt;
  return std::string(std::istreambuf_iterator<char>(in), {});
}

std::optional<std::int64_t> number(std::string_view line) {
  return parse_number<std::int64_t>(line.substr(0, line.find('\n')));
}

void bound(std::optional<int>& most, std::optional<std::int64_t> quota,
           std::optional<std::int64_t> period) {
  if (!quota || !period || *quota <= 0 || *period <= 0) return;
  const std::int64_t whole = *quota / *period + (*quota % *period != 0);
  const int here = int(std::min<std::int64_t>(whole, 1 << 20));
  most = most ? std::min(*most, here) : here;
}

// The group itself and those above it. A container may see its group as the root, under whatever
// name the outside has for it: what is not there is passed over.
template <class Look>
void upwards(std::string group, Look look) {
  if (group.find("..") != group.npos) group.clear();
  for (;;) {
    while (!group.empty() && group.back() == '/') group.pop_back();
    look(group);
    if (group.empty()) return;
    group.resize(group.rfind('/') == group.npos ? 0 : group.rfind('/'));
  }
}

// The two words of "QUOTA PERIOD"; the first may be "max".
void bound_by_max(std::optional<int>& most, const std::string& text) {
  const std::size_t space = text.find(' ');
  if (space == text.npos) return;
  const std::string_view line = text;
  bound(most, number(line.substr(0, space)), number(line.substr(space + 1)));
}

bool has_controller(std::string_view controllers, std::string_view wanted) {
  while (!controllers.empty()) {
    const std::size_t comma = std::min(controllers.find(','), controllers.size());
    if (controllers.substr(0, comma) == wanted) return true;
    controllers.remove_prefix(std::min(comma + 1, controllers.size()));
  }
  return false;
}

// Calls one of the two with the folder of each group that has a say about what the controller
// counts: its files are of version 2, or of version 1.
template <class Look2, class Look1>
void for_each_group(const ReadFile& read, std::string_view controller, Look2 of_version_2,
                    Look1 of_version_1) {
  const std::string groups = read("/proc/self/cgroup").value_or("");
  // "HIERARCHY:CONTROLLERS:PATH", without controllers in version 2.
  for (std::size_t at = 0; at < groups.size();) {
    const std::string line = groups.substr(at, groups.find('\n', at) - at);
    at += line.size() + 1;
    const std::size_t first = line.find(':');
    const std::size_t second = first == line.npos ? line.npos : line.find(':', first + 1);
    if (second == line.npos) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1);
    const std::string group = line.substr(second + 1);
    if (controllers.empty()) {
      upwards(group, [&](const std::string& above) { of_version_2("/sys/fs/cgroup" + above); });
    } else if (has_controller(controllers, controller)) {
      for (const std::string& mount : {std::string(controller), controllers})
        upwards(group,
                [&](const std::string& above) { of_version_1("/sys/fs/cgroup/" + mount + above); });
    }
  }
}

void bound(std::optional<std::uint64_t>& most, std::optional<std::int64_t> limit) {
  if (!limit || *limit < 0) return;
  most = most ? std::min(*most, std::uint64_t(*limit)) : std::uint64_t(*limit);
}

int affinity() {
  // A mask too small for the machine is refused.
  for (std::size_t processors = 1024; processors <= 1 << 20; processors *= 4) {
    cpu_set_t* set = CPU_ALLOC(processors);
    if (set == nullptr) break;
    const std::size_t size = CPU_ALLOC_SIZE(processors);
    const int result = sched_getaffinity(0, size, set);
    const int error = errno;
    const int count = result == 0 ? CPU_COUNT_S(size, set) : 0;
    CPU_FREE(set);
    if (result == 0) return count;
    if (error != EINVAL) break;
  }
  return int(std::thread::hardware_concurrency());
}

}  // namespace

std::optional<int> processors_by_cgroup(const ReadFile& read) {
  std::optional<int> most;
  for_each_group(
      read, "cpu",
      [&](const std::string& folder) {
        bound_by_max(most, read(folder + "/cpu.max").value_or(""));
      },
      [&](const std::string& folder) {
        bound(most, number(read(folder + "/cpu.cfs_quota_us").value_or("")),
              number(read(folder + "/cpu.cfs_period_us").value_or("")));
      });
  return most;
}

std::optional<std::uint64_t> memory_by_cgroup(const ReadFile& read) {
  std::optional<std::uint64_t> most;
  const auto look = [&](const char* file) {
    return [&most, &read, file](const std::string& folder) {
      bound(most, number(read(folder + file).value_or("")));
    };
  };
  for_each_group(read, "memory", look("/memory.max"), look("/memory.limit_in_bytes"));
  return most;
}

std::optional<std::uint64_t> threads_by_cgroup(const ReadFile& read) {
  std::optional<std::uint64_t> most;
  const auto look = [&](const std::string& folder) {
    const auto limit = number(read(folder + "/pids.max").value_or(""));
    const auto there = number(read(folder + "/pids.current").value_or(""));
    if (limit && there) bound(most, std::max<std::int64_t>(*limit - *there, 0));
  };
  for_each_group(read, "pids", look, look);
  return most;
}

std::optional<std::uint64_t> usable_memory() {
  auto most = memory_by_cgroup(read_file);
  std::ifstream all("/proc/meminfo");
  std::int64_t kilobytes = 0;
  for (std::string word; all >> word;)
    if (word == "MemAvailable:" && all >> kilobytes) bound(most, kilobytes << 10);
  return most;
}

std::optional<std::uint64_t> usable_threads() {
  auto most = threads_by_cgroup(read_file);
  for (const char* file : {"/proc/sys/kernel/threads-max", "/proc/sys/kernel/pid_max"})
    bound(most, number(read_file(file).value_or("")));
  rlimit of_user{};
  if (geteuid() != 0 && getrlimit(RLIMIT_NPROC, &of_user) == 0 && of_user.rlim_cur < INT32_MAX)
    bound(most, std::int64_t(of_user.rlim_cur));
  return most;
}

int usable_processors() {
  const int allowed = std::max(1, affinity());
  return std::min(allowed, std::max(1, processors_by_cgroup(read_file).value_or(allowed)));
}

}  // namespace troupe
