#include "tests/actors/heard.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>

#include "troupe/core/check.hpp"

// There where a sanitizer is.
extern "C" void __sanitizer_set_report_fd(void*) __attribute__((weak));

namespace troupe::test {
namespace {

constexpr int kStderr = 2;

void report_to(int file) {
  if (__sanitizer_set_report_fd)
    __sanitizer_set_report_fd(reinterpret_cast<void*>(std::intptr_t(file)));
}

}  // namespace

Heard::Heard() : file_(memfd_create("heard", 0)), before_(dup(kStderr)) {
  TROUPE_CHECK(file_ >= 0 && before_ >= 0 && dup2(file_, kStderr) == kStderr, "stderr is heard");
  report_to(before_);
}

Heard::~Heard() {
  lines();
  dup2(before_, kStderr);
  report_to(kStderr);
  close(before_);
  close(file_);
}

Heard::Lines Heard::lines() {
  std::string text(std::size_t(lseek(file_, 0, SEEK_END)), 0);
  const ssize_t got = pread(file_, text.data(), text.size(), 0);
  TROUPE_CHECK(got == ssize_t(text.size()), "what was said is read");
  lseek(file_, 0, SEEK_SET);
  TROUPE_CHECK(ftruncate(file_, 0) == 0, "what was said is forgotten");
  Lines all;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size() - 1) + 1;
    const std::string line = text.substr(at, end - at);
    at = end;
    const std::size_t blank = line.find(' ');
    if (line[0] == '~' && blank != line.npos) {
      all[line.substr(0, blank + 1)].push_back(line.substr(blank + 1, line.size() - blank - 2));
    } else {
      const ssize_t put = write(before_, line.data(), line.size());
      TROUPE_CHECK(put == ssize_t(line.size()), "others hear it");
    }
  }
  for (auto& [message, lines] : all) std::sort(lines.begin(), lines.end());
  return all;
}

}  // namespace troupe::test
