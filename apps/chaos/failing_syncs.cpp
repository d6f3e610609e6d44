#include "apps/chaos/failing_syncs.hpp"

#include <fmt/format.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <future>

#include "actors/supervision/start_process.hpp"

namespace troupe {
namespace {

// Puts this thread, and what it starts, under the filter. Negative: it may not be.
int hold_syncs() {
  std::array<sock_filter, 7> program = {{
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, arch)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, AUDIT_ARCH_X86_64, 0, 3),
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_fsync, 2, 0),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_fdatasync, 1, 0),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_USER_NOTIF),
  }};
  const sock_fprog filter{static_cast<unsigned short>(program.size()), program.data()};
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) return -1;
  return int(
      syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_NEW_LISTENER, &filter));
}

bool has_thread(pid_t process, std::uint32_t thread) {
  return access(fmt::format("/proc/{}/task/{}", process, thread).c_str(), F_OK) == 0;
}

}  // namespace

Expected<std::unique_ptr<FailingSyncs>> FailingSyncs::start(
    const std::vector<std::string>& command) {
  std::unique_ptr<FailingSyncs> made(new FailingSyncs);
  made->wake_ = eventfd(0, EFD_CLOEXEC);
  if (made->wake_ < 0)
    return resource_exhausted(fmt::format("no eventfd: {}", std::strerror(errno)));
  // The process has the filter of the thread that starts it, and ends with that thread.
  std::promise<Expected<pid_t>> started;
  made->thread_ = std::thread([&started, &command, syncs = made.get()] {
    const int listener = hold_syncs();
    if (listener < 0)
      return started.set_value(failed_precondition(
          fmt::format("system calls cannot be held back: {}", std::strerror(errno))));
    auto pid = start_process(command, {});
    const bool runs = pid.ok();
    started.set_value(std::move(pid));
    if (runs) syncs->answer(listener);
    close(listener);
  });
  TROUPE_TRY(made->pid_, started.get_future().get());
  return made;
}

FailingSyncs::~FailingSyncs() {
  const std::uint64_t one = 1;
  (void)!::write(wake_, &one, sizeof one);
  if (thread_.joinable()) thread_.join();
  if (wake_ >= 0) close(wake_);
}

void FailingSyncs::answer(int listener) {
  std::array<pollfd, 2> news = {{{listener, POLLIN, 0}, {wake_, POLLIN, 0}}};
  while (poll(news.data(), news.size(), -1) >= 0 || errno == EINTR) {
    if (news[1].revents != 0) return;
    if ((news[0].revents & POLLIN) == 0) continue;
    seccomp_notif call{};
    if (ioctl(listener, SECCOMP_IOCTL_NOTIF_RECV, &call) != 0) continue;  // it is gone
    seccomp_notif_resp reply{};
    reply.id = call.id;
    if (is_to_fail(pid_t(call.pid))) {
      ++failed_;
      reply.error = -EIO;
    } else {
      reply.flags = SECCOMP_USER_NOTIF_FLAG_CONTINUE;
    }
    (void)ioctl(listener, SECCOMP_IOCTL_NOTIF_SEND, &reply);
  }
}

bool FailingSyncs::is_to_fail(pid_t thread) const {
  const pid_t process = failing_;
  if (process == kBelow) return !has_thread(pid_, thread);
  return process != 0 && has_thread(process, thread);
}

}  // namespace troupe
