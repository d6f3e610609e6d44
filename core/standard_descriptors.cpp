#include "core/standard_descriptors.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <initializer_list>

namespace troupe {

void fill_standard_descriptors() {
  for (int number : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO})
    if (fcntl(number, F_GETFD) < 0 && errno == EBADF)
      // The lowest number that is free. Of the other direction, so that using it is an error.
      (void)::open("/dev/null", number == STDIN_FILENO ? O_WRONLY : O_RDONLY);
}

}  // namespace troupe
