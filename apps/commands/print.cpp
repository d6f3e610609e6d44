#include "apps/commands/print.hpp"

#include <unistd.h>

#include <cerrno>
#include <cstdio>

namespace troupe {

void write_out(std::string_view text) { (void)std::fwrite(text.data(), 1, text.size(), stdout); }

void write_err(std::string_view text) {
  while (!text.empty()) {
    const ssize_t n = ::write(STDERR_FILENO, text.data(), text.size());
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return;
    text.remove_prefix(std::size_t(n));
  }
}

}  // namespace troupe
