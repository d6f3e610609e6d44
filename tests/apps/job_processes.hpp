// The processes of a job that a test runs, and waiting for what they do.
#pragma once

#include <sys/types.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <functional>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

namespace troupe::test {

// The processes that `pid` has started itself.
inline std::vector<pid_t> processes_of(pid_t pid) {
  namespace fs = std::filesystem;
  std::vector<pid_t> all;
  std::error_code none;
  for (const auto& task : fs::directory_iterator("/proc/" + std::to_string(pid) + "/task", none)) {
    std::ifstream children(task.path() / "children");
    for (pid_t child = 0; children >> child;) all.push_back(child);
  }
  return all;
}

// And those that they have.
inline std::vector<pid_t> below(pid_t pid) {
  std::vector<pid_t> all;
  for (pid_t child : processes_of(pid)) {
    all.push_back(child);
    for (pid_t each : below(child)) all.push_back(each);
  }
  return all;
}

// The words of a command line, without quotes.
inline std::vector<std::string> words_of(const std::string& line) {
  std::istringstream words(line);
  std::vector<std::string> all;
  for (std::string word; words >> word;) all.push_back(word);
  return all;
}

// Looks until it is so, each time after `pause`: longer where a look is a process. False: it was
// not within a minute or more.
inline bool wait_until(const std::function<bool()>& there,
                       std::chrono::milliseconds pause = std::chrono::milliseconds(5)) {
  for (auto waited = 0 * pause; waited < std::chrono::minutes(1); waited += pause) {
    if (there()) return true;
    std::this_thread::sleep_for(pause);
  }
  return false;
}

}  // namespace troupe::test
