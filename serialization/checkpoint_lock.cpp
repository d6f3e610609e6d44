#include "serialization/checkpoint_lock.hpp"

#include <fcntl.h>
#include <sys/file.h>

#include <cerrno>
#include <cstring>

#include "core/log.hpp"

namespace troupe {

Expected<CheckpointLock> CheckpointLock::take(const std::string& dir) {
  const std::string path = dir + "/.lock";
  Descriptor file(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666));
  // Of another user of the folder.
  const bool others = !file && errno == EACCES;
  if (others) file = Descriptor(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file) return failed_precondition("cannot open '" + path + "': " + std::strerror(errno));
  if (::flock(file.get(), LOCK_EX | LOCK_NB) != 0) {
    if (errno == EWOULDBLOCK)
      return failed_precondition("somebody else writes checkpoints into '" + dir + "' now");
    if (others)  // NFS locks what is open for writing
      return failed_precondition("cannot lock '" + path +
                                 "', which is another user's: " + std::strerror(errno));
    TROUPE_LOG(warning, "serialization/checkpoint_lock",
               "cannot lock '" + path + "': " + std::strerror(errno));
  }
  return CheckpointLock(std::move(file));
}

}  // namespace troupe
