#include "core/log.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <ctime>

#include "core/log_writer.hpp"
#include "core/utf8.hpp"

namespace troupe {
namespace {

std::atomic<LogLevel> threshold{LogLevel::warning};

std::atomic<int> chosen_format{-1};  // -1: as the environment says

std::string quoted(std::string_view text) {
  std::string out = "\"";
  while (!text.empty()) {
    const std::size_t size = utf8_character(text);
    if (size == 0)
      out += "\xEF\xBF\xBD";  // U+FFFD
    else if (text[0] == '"' || text[0] == '\\')
      (out += '\\') += text[0];
    else if ((unsigned char)text[0] < 0x20)
      out += fmt::format("\\u{:04x}", (unsigned char)text[0]);
    else
      out += text.substr(0, size);
    text.remove_prefix(size == 0 ? 1 : size);
  }
  return out + "\"";
}

std::string json_line(LogLevel level, std::string_view where, std::string_view message,
                      std::time_t seconds, long millis) {
  static const char* const kLevels[] = {"debug", "info", "warning", "error"};
  std::tm utc{};
  gmtime_r(&seconds, &utc);
  return fmt::format(
      "{{\"time\":\"{:04}-{:02}-{:02}T{:02}:{:02}:{:02}.{:03}Z\",\"level\":\"{}\",\"process\":{},"
      "\"where\":{},\"message\":{}}}\n",
      utc.tm_year + 1900, utc.tm_mon + 1, utc.tm_mday, utc.tm_hour, utc.tm_min, utc.tm_sec, millis,
      kLevels[int(level)], getpid(), quoted(where), quoted(message));
}

}  // namespace

void set_log_format(LogFormat format) { chosen_format = int(format); }

LogFormat log_format() {
  if (const int chosen = chosen_format; chosen >= 0) return LogFormat(chosen);
  static const bool json = [] {
    const char* said = std::getenv("TROUPE_LOG_FORMAT");
    return said != nullptr && std::string_view(said) == "json";
  }();
  return json ? LogFormat::json : LogFormat::text;
}

void set_log_level(LogLevel level) { threshold.store(level, std::memory_order_relaxed); }
LogLevel log_level() { return threshold.load(std::memory_order_relaxed); }

void log_line(LogLevel level, std::string_view where, std::string_view message) {
  using namespace std::chrono;
  if (level >= LogLevel::off) return;
  auto now = system_clock::now();
  std::time_t seconds = system_clock::to_time_t(now);
  auto millis = duration_cast<milliseconds>(now.time_since_epoch()).count() % 1000;
  if (log_format() == LogFormat::json)
    return write_log(json_line(level, where, message, seconds, long(millis)));
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
