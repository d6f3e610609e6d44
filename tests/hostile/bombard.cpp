#include "tests/hostile/bombard.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <set>

#include "core/log.hpp"

extern "C" int __lsan_do_recoverable_leak_check() __attribute__((weak));

namespace troupe::test {
namespace {

// What parent and child both see: where the child is, and what it has found.
struct Seen {
  std::uint64_t item = 0;  // under way
  std::uint64_t cases = 0;
  std::array<std::uint64_t, kHostileEnds> ends{};
  bool computed = false;  // a case of the op at hand
};

// One child runs the cases of so many ops. What it leaks or keeps ends with it.
constexpr std::size_t kOpsOfChild = 16;

class Parent {
 public:
  Parent(const OpTable& table, const Bombardment& how)
      : table_(table),
        how_(how),
        folder_(std::filesystem::temp_directory_path() / fmt::format("hostile.{}", getpid())) {
    make_hostile_rows();
    std::filesystem::create_directory(folder_);
    void* shared = mmap(nullptr, sizeof(Seen) + kOpsOfChild, PROT_READ | PROT_WRITE,
                        MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (shared == MAP_FAILED) throw Error(internal_error("no shared memory"));
    seen_ = new (shared) Seen;
    computed_ = static_cast<char*>(shared) + sizeof(Seen);
  }
  ~Parent() {
    munmap(seen_, sizeof(Seen) + kOpsOfChild);
    std::error_code ignored;
    std::filesystem::remove_all(folder_, ignored);
  }

  void all(const std::vector<const OpInfo*>& ops) {
    for (std::size_t i = 0; i < ops.size(); i += kOpsOfChild)
      some({ops.begin() + std::ptrdiff_t(i),
            ops.begin() + std::ptrdiff_t(std::min(ops.size(), i + kOpsOfChild))});
    done_.cases = seen_->cases;
    done_.ends = seen_->ends;
  }
  Bombarded done_;

 private:
  // Item i is case i % cases of op i / cases. After a child that came down the next one goes on
  // behind its last case, or with the next op where many did.
  void some(const std::vector<const OpInfo*>& ops) {
    std::memset(computed_, 0, kOpsOfChild);
    found_.assign(ops.size(), 0);
    const std::uint64_t items = ops.size() * how_.cases;
    for (std::uint64_t from = 0; from < items;) {
      const int ended = child(ops, from, items);
      read_findings(ops);
      if (ended == 0) break;
      const std::uint64_t at = seen_->item, op = at / how_.cases;
      add(ops, at, describe(ended));
      from = found_[op] >= kFindingsEach ? (op + 1) * how_.cases : at + 1;
    }
    for (std::size_t k = 0; k < ops.size(); ++k)
      if (!computed_[k] && ops[k]->def.role == Role::kernel && found_[k] == 0)
        done_.never_computed.push_back(ops[k]->def.name);
  }

  std::uint64_t seed_of(std::uint64_t item) const { return how_.first + item % how_.cases; }

  int child(const std::vector<const OpInfo*>& ops, std::uint64_t from, std::uint64_t items) {
    std::ofstream(folder_ / "findings", std::ios::trunc);
    std::fflush(nullptr);
    const pid_t pid = fork();
    if (pid == 0) {
      run(ops, from, items);
      std::_Exit(0);
    }
    int status = 0;
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {
    }
    return status;
  }

  // --- in the child ---

  void run(const std::vector<const OpInfo*>& ops, std::uint64_t from, std::uint64_t items) {
    for (int signal : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGTERM, SIGINT})
      std::signal(signal, SIG_DFL);
    const rlimit no_core{0, 0};
    setrlimit(RLIMIT_CORE, &no_core);
    set_log_level(LogLevel::off);
    // Ops that write files do so here.
    if (chdir(folder_.c_str()) != 0) std::_Exit(99);
    const int said = open("said", O_CREAT | O_TRUNC | O_WRONLY | O_APPEND, 0600);
    if (!how_.show && (dup2(said, 1) < 0 || dup2(said, 2) < 0)) std::_Exit(99);
    std::FILE* findings = std::fopen("findings", "w");
    HostileRunner runner(table_);
    for (std::uint64_t item = from; item < items; ++item) {
      const OpInfo& op = *ops[item / how_.cases];
      if (found_[item / how_.cases] >= kFindingsEach) continue;
      seen_->item = item;
      limit_time();
      if (lseek(said, 0, SEEK_END) > (1 << 20) && ftruncate(said, 0) != 0) std::_Exit(99);
      const HostileCase drawn = draw_hostile_case(table_, op, seed_of(item));
      if (how_.show)
        std::fprintf(stderr, "%s seed %llu: %s\n", op.def.name.c_str(),
                     static_cast<unsigned long long>(seed_of(item)), drawn.text().c_str());
      const HostileOutcome outcome = runner.run(drawn);
      if (how_.show)
        std::fprintf(stderr, "  end %d %s\n", int(outcome.end), outcome.status.c_str());
      ++seen_->cases;
      ++seen_->ends[std::size_t(outcome.end)];
      if (outcome.end == HostileEnd::computed) computed_[item / how_.cases] = 1;
      if (outcome.fault.empty()) continue;
      ++found_[item / how_.cases];
      std::string line = outcome.fault.substr(0, 1'000);
      for (char& c : line)
        if (c == '\n') c = '|';
      std::fprintf(findings, "%llu %s\n", static_cast<unsigned long long>(item), line.c_str());
      std::fflush(findings);
    }
    std::fclose(findings);
    if (__lsan_do_recoverable_leak_check && __lsan_do_recoverable_leak_check() != 0) std::_Exit(23);
  }

  // A loop that does not end uses up CPU time; a lock that nobody frees only time.
  void limit_time() const {
    itimerval cpu{};
    cpu.it_value.tv_sec = how_.most_ms / 1000;
    cpu.it_value.tv_usec = how_.most_ms % 1000 * 1000;
    setitimer(ITIMER_PROF, &cpu, nullptr);
    alarm(1 + how_.most_ms / 50);
  }

  // --- in the parent ---

  void add(const std::vector<const OpInfo*>& ops, std::uint64_t item, const std::string& what) {
    const std::size_t k = item / how_.cases;
    if (found_[k]++ >= kFindingsEach) return;
    const HostileCase drawn = draw_hostile_case(table_, *ops[k], seed_of(item));
    done_.findings.push_back({ops[k]->def.name, seed_of(item), what + "; " + drawn.text()});
  }

  void read_findings(const std::vector<const OpInfo*>& ops) {
    std::ifstream file(folder_ / "findings");
    std::uint64_t item = 0;
    for (std::string what; file >> item && std::getline(file, what);) add(ops, item, what);
  }

  // How a child came down: its signal, and what a sanitizer or the library said of it.
  std::string describe(int status) const {
    std::string what;
    if (WIFSIGNALED(status) && (WTERMSIG(status) == SIGPROF || WTERMSIG(status) == SIGALRM))
      return fmt::format("takes more than {} ms", how_.most_ms);
    if (WIFSIGNALED(status))
      what = fmt::format("ends the process: {}", strsignal(WTERMSIG(status)));
    else
      what = fmt::format("ends the process with {}", WEXITSTATUS(status));
    std::ifstream said(folder_ / "said");
    int frames = 0;
    for (std::string line; std::getline(said, line);) {
      const bool report = line.find("runtime error:") != line.npos ||
                          line.find("ERROR: ") != line.npos || line.find("what():") != line.npos ||
                          line.find("terminate called") != line.npos ||
                          line.find("fault") != line.npos || line.find("heck failed") != line.npos;
      const bool frame =
          line.find("    #") != line.npos && line.find("troupe") != line.npos && ++frames <= 3;
      if (report || frame) what += " | " + line.substr(0, 300);
    }
    return what.substr(0, 1'200);
  }

  const OpTable& table_;
  const Bombardment how_;
  const std::filesystem::path folder_;
  Seen* seen_ = nullptr;
  char* computed_ = nullptr;  // by op of the child
  std::vector<std::size_t> found_;
};

}  // namespace

Bombarded bombard(const OpTable& table, const std::vector<const OpInfo*>& ops,
                  const Bombardment& how) {
  Parent parent(table, how);
  parent.all(ops);
  return std::move(parent.done_);
}

}  // namespace troupe::test
