// troupe stop: asks a job under troupe run to end in order, and waits.
#include <fmt/format.h>
#include <poll.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>
#include <memory>
#include <nlohmann/json.hpp>

extern "C" {  // which the header forgets in glibc 2.36
#include <sys/pidfd.h>
}

#include "apps/commands/command_line.hpp"
#include "apps/commands/job_look.hpp"
#include "apps/commands/print.hpp"
#include "core/descriptor.hpp"

namespace troupe {
namespace {

constexpr int kStillThere = 75;  // ask again

struct StopWords {
  std::string folder = "troupe-job";
  double timeout = 0;
};

// A process that no other one is taken for when it ends.
class ProcessHandle {
 public:
  explicit ProcessHandle(pid_t pid) : descriptor_(pidfd_open(pid, 0)) {}

  // Negative: it has ended, or may not be asked.
  int signal(int number) const { return pidfd_send_signal(descriptor_.get(), number, nullptr, 0); }
  // Whether it ends within `seconds`; 0: for ever.
  bool ends_within(double seconds) const {
    using Clock = std::chrono::steady_clock;
    const auto until = Clock::now() + std::chrono::duration_cast<Clock::duration>(
                                          std::chrono::duration<double>(seconds));
    for (;;) {
      const auto left = std::chrono::ceil<std::chrono::milliseconds>(until - Clock::now()).count();
      pollfd end{descriptor_.get(), POLLIN, 0};
      const int n =
          ::poll(&end, 1, seconds == 0 ? -1 : int(std::clamp<std::int64_t>(left, 0, 1 << 30)));
      if (n > 0) return true;
      if (n == 0 && left <= 0) return false;
    }
  }

 private:
  const Descriptor descriptor_;
};

int stop_job(const StopWords& words, const Printing& printing) {
  const auto known = read_lives(words.folder);
  if (!known.ok()) return report_error(known.status(), printing);
  const pid_t pid = supervisor_of(words.folder);
  const auto over = [&] {
    return report_error(not_found(fmt::format("no job is running in '{}'", words.folder)),
                        printing);
  };
  if (pid == 0) return over();
  const ProcessHandle supervisor(pid);
  // It may have ended before it was taken hold of, and another process have its number.
  if (supervisor_of(words.folder) != pid) return over();
  if (supervisor.signal(SIGTERM) != 0) {
    if (errno == ESRCH) return over();
    return report_error(failed_precondition(fmt::format("cannot ask process {} to end: {}", pid,
                                                        std::strerror(errno))),
                        printing);
  }
  supervisor.signal(SIGCONT);  // one that is stopped would not hear it
  if (!supervisor.ends_within(words.timeout)) {
    if (printing.json)
      print_json({{"stopped", false}});
    else
      print_err("error: the job in '{}' has not ended within {:g} s; it still ends in order\n",
                words.folder, words.timeout);
    return kStillThere;
  }
  if (printing.json) print_json({{"stopped", true}});
  return 0;
}

}  // namespace

void add_stop(CommandLine& line) {
  auto words = std::make_shared<StopWords>();
  Command c = line.command(
      "stop", "Ask a job under troupe run to end after a last checkpoint, and wait until it has");
  c.option("job", words->folder, "folder of the job (default: troupe-job)");
  c.option("--timeout", words->timeout,
           "seconds to wait; exit code 75 if the job has not ended then (default: 0, for ever)")
      .within_numbers(0, 1e9);
  c.runs([words, &line] { return stop_job(*words, line.printing()); });
}

}  // namespace troupe
