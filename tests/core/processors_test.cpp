#include "core/processors.hpp"

#include <doctest/doctest.h>
#include <sched.h>

#include <map>
#include <thread>

using namespace troupe;

namespace {

using Files = std::map<std::string, std::string>;

ReadFile among(const Files& files) {
  return [&](const std::string& path) -> std::optional<std::string> {
    auto found = files.find(path);
    if (found == files.end()) return std::nullopt;
    return found->second;
  };
}

std::optional<int> bound(const Files& files) { return processors_by_cgroup(among(files)); }

}  // namespace

TEST_CASE("the processors of a process are those of its affinity mask") {
  cpu_set_t before;
  REQUIRE(sched_getaffinity(0, sizeof before, &before) == 0);
  CHECK(usable_processors() >= 1);
  CHECK(usable_processors() <= CPU_COUNT(&before));
  int first = 0;
  while (!CPU_ISSET(first, &before)) ++first;
  // Of a thread of its own, whose mask the others do not have.
  std::thread([&] {
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(first, &one);
    REQUIRE(sched_setaffinity(0, sizeof one, &one) == 0);
    CHECK(usable_processors() == 1);
  }).join();
}

TEST_CASE("a quota of control groups of version 2 bounds the processors, rounded up") {
  const std::string self = "0::/user/job\n";
  const auto with = [&](const std::string& max) {
    return bound({{"/proc/self/cgroup", self}, {"/sys/fs/cgroup/user/job/cpu.max", max}});
  };
  CHECK(with("200000 100000\n") == 2);
  CHECK(with("150000 100000\n") == 2);
  CHECK(with("1000 100000\n") == 1);
  CHECK(with("max 100000\n") == std::nullopt);
  for (const char* broken : {"", "200000", "0 100000", "200000 0", "-1 100000", "x y"})
    CHECK(with(broken) == std::nullopt);
}

TEST_CASE("the groups above bound the processors, too, as does a container's own at the root") {
  CHECK(bound({{"/proc/self/cgroup", "0::/a/b/c\n"},
               {"/sys/fs/cgroup/a/b/c/cpu.max", "800000 100000\n"},
               {"/sys/fs/cgroup/a/b/cpu.max", "max 100000\n"},
               {"/sys/fs/cgroup/a/cpu.max", "300000 100000\n"}}) == 3);
  CHECK(bound({{"/proc/self/cgroup", "0::/\n"}, {"/sys/fs/cgroup/cpu.max", "100000 100000\n"}}) ==
        1);
  CHECK(bound({{"/proc/self/cgroup", "0::/../../x\n"},
               {"/sys/fs/cgroup/cpu.max", "400000 100000\n"}}) == 4);
}

TEST_CASE("a quota of control groups of version 1 bounds the processors") {
  const std::string self = "12:memory:/docker/abc\n4:cpu,cpuacct:/docker/abc\n1:name=systemd:/x\n";
  CHECK(bound({{"/proc/self/cgroup", self},
               {"/sys/fs/cgroup/cpu,cpuacct/docker/abc/cpu.cfs_quota_us", "250000\n"},
               {"/sys/fs/cgroup/cpu,cpuacct/docker/abc/cpu.cfs_period_us", "100000\n"}}) == 3);
  // Seen from inside, where the group is the root.
  CHECK(bound({{"/proc/self/cgroup", self},
               {"/sys/fs/cgroup/cpu/cpu.cfs_quota_us", "100000\n"},
               {"/sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000\n"}}) == 1);
  CHECK(bound({{"/proc/self/cgroup", self},
               {"/sys/fs/cgroup/cpu/cpu.cfs_quota_us", "-1\n"},
               {"/sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000\n"}}) == std::nullopt);
  // The group of another controller says nothing of processors.
  CHECK(bound({{"/proc/self/cgroup", "3:cpuset:/x\n"},
               {"/sys/fs/cgroup/cpu/cpu.cfs_quota_us", "100000\n"},
               {"/sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000\n"}}) == std::nullopt);
}

TEST_CASE("where there are no control groups nothing bounds the processors") {
  CHECK(bound({}) == std::nullopt);
  CHECK(bound({{"/proc/self/cgroup", "nonsense\n:\n\n"}}) == std::nullopt);
}

TEST_CASE("control groups bound the memory, and the threads that may begin") {
  const Files two = {{"/proc/self/cgroup", "0::/user/job\n"},
                     {"/sys/fs/cgroup/user/job/memory.max", "max\n"},
                     {"/sys/fs/cgroup/user/memory.max", "4096\n"},
                     {"/sys/fs/cgroup/memory.max", "8192\n"},
                     {"/sys/fs/cgroup/user/job/pids.max", "100\n"},
                     {"/sys/fs/cgroup/user/job/pids.current", "30\n"},
                     {"/sys/fs/cgroup/user/pids.max", "max\n"},
                     {"/sys/fs/cgroup/user/pids.current", "31\n"}};
  CHECK(memory_by_cgroup(among(two)) == 4096);
  CHECK(threads_by_cgroup(among(two)) == 70);
  const Files one = {{"/proc/self/cgroup", "4:memory:/a\n8:pids:/b\n"},
                     {"/sys/fs/cgroup/memory/a/memory.limit_in_bytes", "65536\n"},
                     {"/sys/fs/cgroup/pids/b/pids.max", "5\n"},
                     {"/sys/fs/cgroup/pids/b/pids.current", "9\n"}};
  CHECK(memory_by_cgroup(among(one)) == 65536);
  CHECK(threads_by_cgroup(among(one)) == 0);
  CHECK(memory_by_cgroup(among({})) == std::nullopt);
  CHECK(threads_by_cgroup(among({})) == std::nullopt);
  CHECK(usable_memory().value_or(1) > 0);
  CHECK(usable_threads().value_or(1) > 0);
}
