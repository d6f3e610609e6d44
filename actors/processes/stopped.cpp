#include "actors/processes/stopped.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <string>

namespace troupe {

// "PID (NAME) STATE ...", where the name may have any characters in it.
bool says_stopped(std::string_view stat) {
  const std::size_t name = stat.rfind(") ");
  if (name == stat.npos || name + 2 >= stat.size()) return false;
  const char state = stat[name + 2];
  return state == 'T' || state == 't';
}

bool is_stopped(pid_t process) {
  const std::string path = "/proc/" + std::to_string(process) + "/stat";
  const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) return false;
  std::array<char, 512> text;
  const ssize_t n = ::read(file, text.data(), text.size());
  ::close(file);
  return n > 0 && says_stopped({text.data(), std::size_t(n)});
}

}  // namespace troupe
