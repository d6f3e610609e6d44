#include "core/log.hpp"

#include <doctest/doctest.h>
#include <unistd.h>

#include "core/log_writer.hpp"

using namespace troupe;

namespace {

// What one line is written as.
std::string written(LogFormat format, std::string_view where, std::string_view message) {
  std::string line;
  set_log_writer([&](std::string_view text) { line += text; });
  const LogFormat before = log_format();
  set_log_format(format);
  log_line(LogLevel::warning, where, message);
  set_log_format(before);
  set_log_writer({});
  return line;
}

}  // namespace

TEST_CASE(
    "a log line for programs is one JSON object with time, level, process, place and message") {
  const std::string line = written(LogFormat::json, "master", "worker \"1\" is lost\n");
  CAPTURE(line);
  CHECK(line.starts_with("{\"time\":\"20"));
  CHECK(line.ends_with(",\"level\":\"warning\",\"process\":" + std::to_string(getpid()) +
                       ",\"where\":\"master\",\"message\":\"worker \\\"1\\\" is lost\\u000a\"}\n"));
  CHECK(line.find("Z\",\"level\"") == std::string("{\"time\":\"2026-11-27T12:34:56.789").size());
  CHECK(written(LogFormat::text, "master", "worker\n").ends_with(" master: worker \n"));
}

TEST_CASE("a log line for programs is UTF-8, whatever the message is") {
  CHECK(written(LogFormat::json, "a", "gr\xC3\xBC\xC3\x9F").ends_with("\"gr\xC3\xBC\xC3\x9F\"}\n"));
  for (const char* bad : {"\xC3", "\xFF", "\xED\xA0\x80", "\xC0\x80", "\xF5\x80\x80\x80"}) {
    CAPTURE(bad);
    const std::string line = written(LogFormat::json, "a", bad);
    CHECK(line.find("\"\xEF\xBF\xBD") != std::string::npos);
  }
}
