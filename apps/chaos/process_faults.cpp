#include <fmt/format.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstring>
#include <fstream>
#include <thread>

#include "apps/chaos/faults.hpp"

namespace troupe {
namespace {

constexpr std::chrono::milliseconds kPauseFor{3000};

Status kill_all(ChaosJob& job, Random&) {
  const auto workers = job.workers();
  TROUPE_TRY(send_signal(job.program(), SIGKILL));
  for (const pid_t worker : workers) kill(worker, SIGKILL);
  return ok_status();
}

Status pause_master(ChaosJob& job, Random&) {
  const pid_t program = job.program();
  TROUPE_TRY(send_signal(program, SIGSTOP));
  job.meanwhile([program](const std::stop_token& stop) {
    pause_for(stop, kPauseFor);
    kill(program, SIGCONT);
  });
  return ok_status();
}

Status rolling_restart(ChaosJob& job, Random&) {
  const std::size_t workers = job.workers().size();
  for (std::size_t k = 0; k < workers; ++k) {
    const auto now = job.workers();
    const std::uint64_t step = job.step();
    if (k < now.size()) TROUPE_TRY(send_signal(now[k], SIGKILL));
    if (!job.wait_until([&] { return job.step() > step; }))
      return failed_precondition("no step after worker " + std::to_string(k) + " was killed");
  }
  return send_signal(job.program(), SIGKILL);
}

Status crash_loop(ChaosJob& job, Random&) {
  pid_t last = 0;
  (void)job.wait_until([&] {
    const pid_t now = job.program();
    if (now > 0 && now != last && kill(now, SIGKILL) == 0) last = now;
    return false;
  });
  return ok_status();
}

// The process gets no more address space than it has.
Status take_memory(ChaosJob& job, Random& random) {
  const pid_t process = any_of(job.all(), random);
  std::uint64_t pages = 0;
  std::ifstream(fmt::format("/proc/{}/statm", process)) >> pages;
  rlimit limit{};
  if (pages == 0 || prlimit(process, RLIMIT_AS, nullptr, &limit) != 0)
    return failed_precondition("there is no such process");
  limit.rlim_cur = std::min<rlim_t>(limit.rlim_max, pages * rlim_t(sysconf(_SC_PAGESIZE)));
  if (prlimit(process, RLIMIT_AS, &limit, nullptr) != 0)
    return failed_precondition(fmt::format("prlimit: {}", std::strerror(errno)));
  return ok_status();
}

// Whether the process has a handler of its own for a signal.
bool catches(pid_t process, int number) {
  std::ifstream status(fmt::format("/proc/{}/status", process));
  for (std::string word; status >> word;) {
    std::uint64_t caught = 0;
    if (word == "SigCgt:" && status >> std::hex >> caught) return (caught >> (number - 1) & 1) != 0;
  }
  return false;
}

// A NaN can come only from a program's own data or numbers, so the program has to help.
Status ask_for_nan(ChaosJob& job, Random&) {
  const pid_t program = job.program();
  if (program > 0 && !catches(program, SIGUSR2))
    return unimplemented("the program does not catch SIGUSR2, at which it is to make a NaN");
  return send_signal(program, SIGUSR2);
}

}  // namespace

std::vector<Fault> process_faults() {
  using Outcome = Fault::Outcome;
  return {
      {"kill-worker", "a worker is killed",
       [](ChaosJob& job, Random& random) {
         return send_signal(any_of(job.workers(), random), SIGKILL);
       }},
      {"kill-master", "the program is killed",
       [](ChaosJob& job, Random&) { return send_signal(job.program(), SIGKILL); }},
      {"kill-all", "the program and its workers are killed", kill_all},
      {"stop", "a worker is stopped for good",
       [](ChaosJob& job, Random& random) {
         return send_signal(any_of(job.workers(), random), SIGSTOP);
       }},
      {"pause-master", "the program is stopped for 3 s", pause_master},
      {"rolling-restart", "each worker is killed in turn, and the program at last",
       rolling_restart},
      {"oom",
       "the program or a worker gets no more memory from the kernel",
       take_memory,
       Outcome::either,
       {"memory", "bad_alloc", "resource_exhausted"}},
      {"crash-loop",
       "each life is killed before it has made a step",
       crash_loop,
       Outcome::ends,
       {"without getting further"}},
      {.name = "nan",
       .about = "the program gets SIGUSR2, at which it is to make a NaN; only if it is named",
       .inject = ask_for_nan,
       .of_all = false},
  };
}

}  // namespace troupe
