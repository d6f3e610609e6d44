#include "core/log_writer.hpp"

#include <unistd.h>

#include <mutex>
#include <utility>

#include "core/held_signal.hpp"
#include "core/standard_descriptors.hpp"

namespace troupe {
namespace {

struct Writer {
  std::mutex mutex;
  std::function<void(std::string_view)> write;
};
Writer& writer() {
  static Writer* const one = new Writer;  // threads log until the process ends
  return *one;
}

// Before the program opens anything.
[[maybe_unused]] const bool filled = (fill_standard_descriptors(), true);

}  // namespace

void set_log_writer(std::function<void(std::string_view line)> write) {
  std::lock_guard lock(writer().mutex);
  writer().write = std::move(write);
}

void write_log(std::string_view line) {
  std::lock_guard lock(writer().mutex);
  if (writer().write) return writer().write(line);
  const HeldSignal limit(SIGXFSZ);
  [[maybe_unused]] auto written = ::write(STDERR_FILENO, line.data(), line.size());
}

}  // namespace troupe
