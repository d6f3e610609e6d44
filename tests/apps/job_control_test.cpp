// What a shell does to a whole job, and what happens to single processes of it.
#include <doctest/doctest.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>
#include <thread>

#include "tests/actors/support/tcp_workers.hpp"
#include "tests/apps/running_command.hpp"
#include "tests/serialization/temporary.hpp"

using namespace troupe;
using namespace troupe::testing;

namespace {

// Limits of a test that failed, on a slow build too.
constexpr std::chrono::seconds kPatience{120};
// Longer than a silent process of a job is waited for.
constexpr std::chrono::seconds kLongStop{4};

// Fields of /proc/PID/stat behind the name: state and parent. Nothing: no such process.
struct ProcessState {
  char state = 0;
  pid_t parent = 0;
};
ProcessState state_of(pid_t process) {
  std::ifstream file("/proc/" + std::to_string(process) + "/stat");
  std::string text((std::istreambuf_iterator<char>(file)), {});
  ProcessState found;
  if (std::size_t name = text.rfind(')'); name != text.npos)
    std::istringstream(text.substr(name + 1)) >> found.state >> found.parent;
  return found;
}

// Or nothing but a number that nobody has asked for yet.
void wait_until_gone(pid_t process) {
  const auto until = std::chrono::steady_clock::now() + kPatience;
  for (char state = 'R'; state != 0 && state != 'Z'; state = state_of(process).state) {
    REQUIRE(std::chrono::steady_clock::now() < until);
    std::this_thread::yield();
  }
}

std::vector<pid_t> children_of(pid_t parent) {
  std::vector<pid_t> children;
  for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
    const std::string name = entry.path().filename();
    if (name.find_first_not_of("0123456789") != name.npos) continue;
    if (state_of(pid_t(std::stoi(name))).parent == parent) children.push_back(std::stoi(name));
  }
  return children;
}

void wait_until_stopped(pid_t process) {
  const auto until = std::chrono::steady_clock::now() + kPatience;
  while (state_of(process).state != 'T') {
    REQUIRE(std::chrono::steady_clock::now() < until);
    std::this_thread::yield();
  }
}

// Connections that say nothing. One that is closed comes again, until the listener is gone.
class Crowd {
 public:
  Crowd(std::uint16_t port, std::size_t size) : port_(port) {
    for (std::size_t i = 0; i < size; ++i) here_.push_back({connected(), POLLIN, 0});
    thread_ = std::thread([this] { stay(); });
  }
  ~Crowd() {
    over_ = true;
    thread_.join();
    for (const pollfd& one : here_) ::close(one.fd);
  }

 private:
  int connected() const {
    const int socket = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in at{};
    at.sin_family = AF_INET;
    at.sin_port = htons(port_);
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    linger reset{1, 0};
    setsockopt(socket, SOL_SOCKET, SO_LINGER, &reset, sizeof reset);
    if (::connect(socket, reinterpret_cast<sockaddr*>(&at), sizeof at) == 0) return socket;
    ::close(socket);
    return -1;  // poll() passes over it
  }
  void stay() {
    while (!over_) {
      ::poll(here_.data(), here_.size(), 50);
      for (pollfd& one : here_) {
        if (one.revents == 0) continue;
        ::close(one.fd);
        one.fd = connected();
      }
    }
  }

  const std::uint16_t port_;
  std::vector<pollfd> here_;
  std::atomic<bool> over_{false};
  std::thread thread_;
};

// A long training on two workers, under way.
struct ShellJob {
  ShellJob()
      : command({"train", "mnist-softmax", "--steps", "100000000", "--examples", "512",
                 "--replicas", "2", "--cluster", "local:2", "--no-recovery"},
                true) {
    REQUIRE_MESSAGE(command.wait_for("steps/s"), command.output());
    workers = children_of(command.pid());
    REQUIRE(workers.size() == 2);
  }
  void goes_on() {
    command.forget();
    CHECK_MESSAGE(command.wait_for("steps/s"), command.output());
  }
  // The way out of a job that is well.
  void ends_on(int number) {
    command.signal_group(number);
    CHECK(command.end(kPatience) == 128 + number);
    CHECK_MESSAGE(command.output().find("params_sha256") != std::string::npos, command.output());
    for (pid_t worker : workers) CHECK(state_of(worker).state == 0);
  }
  RunningCommand command;
  std::vector<pid_t> workers;
};

}  // namespace

TEST_CASE("signals to the whole group of a job are answered by its master") {
  for (int number : {SIGINT, SIGTERM}) {
    INFO("signal ", number);
    ShellJob job;
    job.ends_on(number);
  }
}

TEST_CASE("Ctrl-Z stops a whole job, and it goes on after any time [slow]") {
  ShellJob job;
  for (int number : {SIGTSTP, SIGSTOP}) {
    INFO("signal ", number);
    job.command.signal_group(number);
    wait_until_stopped(job.command.pid());
    for (pid_t worker : job.workers) wait_until_stopped(worker);
    job.command.listen_for(kLongStop);
    CHECK(state_of(job.command.pid()).state == 'T');
    job.command.signal_group(SIGCONT);
    job.goes_on();
  }
  job.ends_on(SIGTERM);
}

TEST_CASE("a master that is stopped alone finds its workers where it left them [slow]") {
  ShellJob job;
  job.command.signal(SIGSTOP);
  wait_until_stopped(job.command.pid());
  job.command.listen_for(kLongStop);
  for (pid_t worker : job.workers) CHECK(state_of(worker).state != 0);
  job.command.signal(SIGCONT);
  job.goes_on();
  job.ends_on(SIGTERM);
}

TEST_CASE("the workers of a master that is killed while it is stopped leave [slow]") {
  ShellJob job;
  job.command.signal_group(SIGSTOP);
  wait_until_stopped(job.command.pid());
  for (pid_t worker : job.workers) wait_until_stopped(worker);
  job.command.signal(SIGKILL);
  job.command.signal_group(SIGCONT);
  CHECK(job.command.end(kPatience) == -SIGKILL);
  for (pid_t worker : job.workers) wait_until_gone(worker);
}

TEST_CASE("a worker that is stopped for good ends the job within 2.5 s, with code 75 [slow]") {
  ShellJob job;
  const auto start = std::chrono::steady_clock::now();
  REQUIRE(::kill(job.workers[0], SIGSTOP) == 0);
  CHECK(job.command.end(kPatience) == 75);
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
  MESSAGE("seconds to the end: " << took.count());
  CHECK(took.count() <= 2.5);
  CHECK_MESSAGE(job.command.output().find("silent for") != std::string::npos, job.command.output());
  for (pid_t worker : job.workers) CHECK(state_of(worker).state == 0);
}

TEST_CASE("a worker joins a job whose master 140 idle connections crowd") {
  TemporaryDir dir;
  dir.write("secret", "sixteen and more bytes");
  std::filesystem::permissions(dir.path("secret"), std::filesystem::perms(0600));
  const test::ReservedPort port;
  const std::string at = "127.0.0.1:" + std::to_string(port.number());
  const std::string secret = dir.path("secret");
  RunningCommand train({"train", "mnist-softmax", "--examples", "512", "--steps", "5", "--quiet",
                        "--listen", at, "--wait-for", "1", "--secret-file", secret, "--log",
                        "info"});
  REQUIRE_MESSAGE(train.wait_for("waiting for workers"), train.output());
  Crowd crowd(port.number(), 140);
  RunningCommand worker({"worker", "--master", at, "--secret-file", secret});
  const int left = worker.end(kPatience), code = train.end(kPatience);
  CHECK_MESSAGE(left == 0, worker.output());
  CHECK_MESSAGE(code == 0, train.output());
}
