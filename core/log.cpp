#include "core/log.hpp"

#include <fmt/format.h>

#include <atomic>
#include <chrono>
#include <ctime>

#include "core/log_writer.hpp"

namespace troupe {
namespace {

std::atomic<LogLevel> threshold{LogLevel::warning};

}  // namespace

void set_log_level(LogLevel level) { threshold.store(level, std::memory_order_relaxed); }
LogLevel log_level() { return threshold.load(std::memory_order_relaxed); }

void log_line(LogLevel level, std::string_view where, std::string_view message) {
  using namespace std::chrono;
  if (level >= LogLevel::off) return;
  auto now = system_clock::now();
  std::time_t seconds = system_clock::to_time_t(now);
  auto millis = duration_cast<milliseconds>(now.time_since_epoch()).count() % 1000;
  std::tm local{};
  localtime_r(&seconds, &local);
  std::string line = fmt::format("{} {:02}:{:02}:{:02}.{:03} {}: {}", "DIWE"[int(level)],
                                 local.tm_hour, local.tm_min, local.tm_sec, millis, where, message);
  for (char& c : line)
    if (c == '\n' || c == '\r') c = ' ';
  line += '\n';
  write_log(line);
}

}  // namespace troupe
