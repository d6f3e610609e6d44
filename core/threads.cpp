#include "core/threads.hpp"

#include <latch>
#include <string>
#include <thread>
#include <vector>

namespace troupe {
namespace {

constexpr const char* kWhereLimits = " (see ulimit -u and -v, and pids.max of the control group)";

}  // namespace

Status threads_can_start(int count) {
  std::latch all_tried(1);
  std::vector<std::thread> threads;
  Status status = ok_status();
  try {
    while (int(threads.size()) < count) threads.emplace_back([&] { all_tried.wait(); });
  } catch (const std::system_error& error) {
    status = resource_exhausted(std::to_string(count) + " more threads are needed, of which " +
                                std::to_string(threads.size()) +
                                " could start: " + error.code().message() + kWhereLimits);
  }
  all_tried.count_down();
  for (std::thread& thread : threads) thread.join();
  return status;
}

Status no_thread(const std::system_error& error) {
  return resource_exhausted("a thread cannot start: " + error.code().message() + kWhereLimits);
}

}  // namespace troupe
