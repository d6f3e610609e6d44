#include "tests/actors/support/heard.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>

#include "core/check.hpp"

namespace troupe::test {

Heard::Heard() : file_(memfd_create("heard", MFD_CLOEXEC)), taken_(file_) {}

Heard::~Heard() {
  lines();
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
      const ssize_t put = write(taken_.before(), line.data(), line.size());
      TROUPE_CHECK(put == ssize_t(line.size()), "others hear it");
    }
  }
  for (auto& [message, lines] : all) std::sort(lines.begin(), lines.end());
  return all;
}

}  // namespace troupe::test
