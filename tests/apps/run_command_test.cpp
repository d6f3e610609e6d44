// `troupe run`: a program that is killed at any moment lives again, and its job ends with the bits
// of one that nobody disturbed.
#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <thread>

#include "actors/job/control_socket.hpp"
#include "actors/net/socket.hpp"
#include "actors/net/transport.hpp"
#include "actors/processes/proc.hpp"
#include "apps/commands/job_look.hpp"
#include "core/descriptor.hpp"
#include "tests/apps/command.hpp"
#include "tests/apps/folder.hpp"
#include "tests/apps/job_processes.hpp"
#include "tests/apps/running_command.hpp"

namespace fs = std::filesystem;
using namespace troupe;
using namespace troupe::test;

namespace {

std::size_t lives(const std::string& job) {
  std::ifstream log(job + "/lives.log");
  std::size_t n = 0;
  for (std::string line; std::getline(log, line);) n += contains(line, "\"started\"");
  return n;
}

bool has_checkpoint(const std::string& job, const std::string& other_than = {}) {
  std::error_code none;
  for (const auto& entry : fs::directory_iterator(job + "/checkpoints", none))
    if (entry.path().filename().string().starts_with("ckpt-") && entry.path() != other_than)
      return true;
  return false;
}

}  // namespace

TEST_CASE("a job whose processes are killed goes on under troupe run, to the same bits") {
  const std::string train =
      " train mnist-softmax --examples 512 --steps 500 --threads 1 --replicas 2 --output json";
  const auto whole = troupe_command(train).json();
  REQUIRE(whole.is_object());
  Folder folder;
  const std::string job = folder.path + "/job";
  RunningCommand run(words_of("run --job " + job + " -- " + troupe_program() + train +
                              " --cluster local:2 --no-recovery --checkpoint-every 20"));
  // The trainer, then one of its workers.
  for (std::size_t kill_worker : {0, 1}) {
    REQUIRE(wait_until([&] {
      return lives(job) == kill_worker + 1 && below(run.pid()).size() == 3 && has_checkpoint(job);
    }));
    const auto processes = below(run.pid());
    kill(processes[kill_worker], SIGKILL);
    REQUIRE(wait_until([&] { return lives(job) == kill_worker + 2; }));
  }
  const auto second = std::string("a second one");
  const Ended refused = troupe_command("run --job " + job + " -- true");
  CHECK(refused.code == 1);
  CHECK(contains(refused.err, "is running already"));
  REQUIRE_MESSAGE(run.end() == 0, run.output());
  const std::string& out = run.output();
  CHECK(contains(out, "was ended by signal 9 (Killed) at step"));
  CHECK(contains(out, "ended with exit code 75 at step"));
  CHECK_MESSAGE(contains(out, whole["params_sha256"].get<std::string>()), out);
  CHECK(fs::status(job).permissions() == fs::perms::owner_all);
}

TEST_CASE("what a program says by its exit code is the supervisor's, and ends the job") {
  Folder folder;
  const std::string run = "run --job " + folder.path + "/job --max-restarts 2 ";
  for (int code : {0, 1, 2, 143}) {
    const Ended ended = troupe_command(run + "-- sh -c 'exit " + std::to_string(code) + "'");
    CHECK(ended.code == code);
    CHECK(contains(ended.err, "exit code") == (code != 0));
  }
  CHECK(lives(folder.path + "/job") == 4);
  const Ended again = troupe_command(run + "-- sh -c 'echo life; exit 75'");
  CHECK(again.code == 75);
  CHECK(again.out == "life\nlife\nlife\n");
  CHECK(contains(again.err, "exit code 75, 3 times within 60 s"));
  // However long it takes to get there.
  const Ended slow = troupe_command(run + "--within 1 -- sh -c 'sleep 0.4; echo life; exit 75'");
  CHECK(slow.code == 75);
  CHECK(slow.out == "life\nlife\nlife\n");
  const Ended killed = troupe_command(run + "--quiet -- sh -c 'kill -SEGV $$'");
  CHECK(killed.code == 139);
  CHECK(killed.err.empty());
  const Ended missing = troupe_command(run + "-- no-such-program");
  CHECK(missing.code == 127);
  CHECK(contains(missing.err, "cannot run 'no-such-program': No such file"));
  std::ofstream(folder.path + "/file") << "x";
  CHECK(troupe_command("run --job " + folder.path + "/file -- true").code == 1);
  CHECK(troupe_command(run + "-- " + folder.path + "/file").code == 126);
  const Ended foreign = troupe_command("run --job " + folder.path + " -- true");
  CHECK(foreign.code == 1);
  CHECK(contains(foreign.err, "has files and is not the folder of a job"));
  for (const char* nothing : {"run", "run --", "run true"})
    CHECK(troupe_command(nothing).code == 2);
}

TEST_CASE("more workers than the machine can hold are refused before any is started") {
  Folder folder;
  const Ended ended = shell_command("cd " + folder.path + "; ulimit -n 64; exec " +
                                    troupe_program() + " run --workers 32 --job job -- true");
  CHECK(ended.code == 1);
  CHECK_MESSAGE(contains(ended.err, "139 descriptors in their master, and there are 64"),
                ended.err);
  CHECK_FALSE(fs::exists(folder.path + "/job"));
}

TEST_CASE("the port at which a program waits for its workers is its own before it listens") {
  Folder folder;
  RunningCommand run(
      {"run", "--workers", "1", "--job", folder.path + "/job", "--", "sh", "-c",
       "cd " + folder.path + "; echo $2 > new; mv new at; until [ -e go ]; do sleep 0.01; done",
       "sh"});
  REQUIRE(wait_until([&] { return fs::exists(folder.path + "/at"); }));
  std::string at;
  std::ifstream(folder.path + "/at") >> at;
  const auto address = value_or_throw(resolve(value_or_throw(parse_endpoint(at)))).front();
  const Descriptor stranger(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  CHECK(bind(stranger.get(), address.get(), address.size) != 0);
  CHECK(listen_on(address).ok());  // as the program
  std::ofstream(folder.path + "/go") << "";
  CHECK(run.end() == 0);
}

TEST_CASE("a worker that cannot live ends a job whose program has lived long") {
  Folder folder;
  std::ofstream(folder.path + "/hosts") << "nowhere\n";
  std::ofstream(folder.path + "/ssh") << "#!/bin/sh\nuntil [ -e again ]; do sleep 0.01; done\n"
                                         "exit 3\n";
  fs::permissions(folder.path + "/ssh", fs::perms::owner_all);
  const Ended ended = shell_command(
      "cd " + folder.path + "; timeout 60 " + troupe_program() +
      " run --job job --hosts hosts --ssh ./ssh --listen 127.0.0.1:1 --max-restarts 2 --within 1 "
      "-- sh -c '[ -e there ] && touch again && exec tail -f /dev/null; touch there; sleep 1.1; "
      "kill -KILL $$' sh");
  CHECK(ended.code == 75);
  CHECK_MESSAGE(contains(ended.err, "worker-0 ended with exit code 3, and the job got no further"),
                ended.err);
  CHECK(lives(folder.path + "/job") == 2);
}

TEST_CASE("a program gets its words as they are") {
  Folder folder;
  const Ended ended = troupe_command("run --job " + folder.path +
                                     "/job -- printf '<%s>' '[64,64]' '[]' '' -- '{}' --job=x -h");
  CHECK(ended.code == 0);
  CHECK(ended.out == "<[64,64]><[]><><--><{}><--job=x><-h>");
}

TEST_CASE("a program whose file is gone for a moment is tried again") {
  Folder folder;
  const std::string program = folder.path + "/program";
  std::ofstream(program) << "#!/bin/sh\n"
                            "[ -e $0.there ] && exit 0\n"
                            "touch $0.there; mv $0 $0.moved; (sleep 0.2; mv $0.moved $0) &\n"
                            "exec sh -c 'kill -KILL $$'\n";
  fs::permissions(program, fs::perms::owner_all);
  const std::string job = folder.path + "/job";
  const Ended ended = troupe_command("run --job " + job + " -- " + program);
  CHECK_MESSAGE(ended.code == 0, ended.err);
}

TEST_CASE("a supervisor whose words nobody reads goes on") {
  Folder folder;
  const Ended ended = shell_command("(" + troupe_program() + " run --job " + folder.path +
                                    "/job --max-restarts 3 -- sh -c 'echo >> " + folder.path +
                                    "/lives; exit 75' 2>&1; echo $? > " + folder.path +
                                    "/code) | true; while [ ! -s " + folder.path +
                                    "/code ]; do :; done; cat " + folder.path + "/code");
  CHECK(ended.out == "75\n");
  CHECK(fs::file_size(folder.path + "/lives") == 4);
}

TEST_CASE("signals that are ignored at the start stay so, and its parent's children are spared") {
  Folder folder;
  // A hang-up of nohup's; children may not be left to the kernel.
  const Ended ended = shell_command(
      "cd " + folder.path + "; sleep 100 > /dev/null 2>&1 & echo $! > other; trap '' HUP; exec " +
      troupe_program() +
      " run --job job -- sh -c '[ -e there ] && exit 0; touch there; kill -HUP $PPID $$; exit 75'");
  CHECK_MESSAGE(ended.code == 0, ended.err);
  pid_t other = 0;
  std::ifstream(folder.path + "/other") >> other;
  CHECK(kill(other, 0) == 0);
  kill(other, SIGKILL);
}

TEST_CASE("a program ignores the signals of a broken pipe that were ignored at the start") {
  Folder folder;  // as by systemd
  const Ended ended = shell_command("trap '' PIPE; exec " + troupe_program() + " run --job " +
                                    folder.path + "/job -- grep SigIgn /proc/self/status");
  REQUIRE_MESSAGE(ended.code == 0, ended.err);
  const std::uint64_t ignored = std::stoull(ended.out.substr(ended.out.find('\t')), nullptr, 16);
  CHECK((ignored >> (SIGPIPE - 1) & 1) == 1);
}

TEST_CASE("a job whose folder is removed is not started again beside another") {
  Folder folder;
  const std::string job = folder.path + "/job";
  const Ended ended = troupe_command("run --job " + job + " -- sh -c 'rm -r " + job + "; exit 75'");
  CHECK(ended.code == 75);
  CHECK(contains(ended.err, "was removed"));
}

TEST_CASE("the error of a life is in the log of its job") {
  Folder folder;
  const std::string job = folder.path + "/job";
  const Ended ended = troupe_command("run --job " + job + " -- " + build_dir() +
                                     "/bin/examples/letters /no/such/text");
  CHECK(ended.code == 1);  // an Error of a graph that is built before any session
  std::ifstream log(job + "/lives.log");
  std::stringstream text;
  text << log.rdbuf();
  CHECK_MESSAGE(contains(text.str(), "\"code\":\"not_found\""), text.str());
  CHECK(contains(text.str(), "/no/such/text"));
}

TEST_CASE("a group that is ended loses no checkpoint, and a named folder is gone on from") {
  Folder folder;
  const std::string job = folder.path + "/job", mine = folder.path + "/mine";
  // Its own folder, which a life of the job has written.
  const std::string train = " train mnist-softmax --examples 512 --threads 1 --output json";
  const auto whole = troupe_command(train + " --steps 400").json();
  const Ended killed = shell_command(
      troupe_program() + " run --job " + job + " -- sh -c 'if [ -e " + mine + "/ckpt-60 ]; " +
      "then exec " + troupe_program() + train + " --steps 400 --checkpoint-dir " + mine +
      "; else " + troupe_program() + train + " --steps 60 --checkpoint-dir " + mine + "; rm " +
      job + "/position.json; kill -KILL $$; fi'");  // before it had said how far it was
  CHECK_MESSAGE(killed.code == 0, killed.err);
  CHECK_MESSAGE(contains(killed.out, whole["params_sha256"].get<std::string>()), killed.out);

  RunningCommand run({"run", "--job", folder.path + "/other", "--", troupe_program(), "train",
                      "mnist-softmax", "--examples", "512", "--steps", "100000000", "--threads",
                      "1", "--checkpoint-every", "100000000", "--output", "json"});
  REQUIRE(wait_until(
      [&] { return below(run.pid()).size() == 1 && lives(folder.path + "/other") == 1; }));
  const auto program = below(run.pid());
  // It has begun when it listens.
  REQUIRE(wait_until([&] {
    std::ifstream status("/proc/" + std::to_string(program[0]) + "/status");
    std::uint64_t caught = 0;
    for (std::string word; status >> word;)
      if (word == "SigCgt:") status >> std::hex >> caught;
    return (caught >> (SIGTERM - 1) & 1) != 0;
  }));
  for (int i = 0; i < 5; ++i) kill(program[0], SIGTERM);  // as a group's sender and a supervisor do
  run.signal(SIGTERM);
  CHECK(run.end() == 128 + SIGTERM);
  CHECK(has_checkpoint(folder.path + "/other"));
}

TEST_CASE("a signal to the supervisor ends its program, and what that leaves behind") {
  for (int signal : {SIGTERM, SIGINT}) {
    Folder folder;
    const std::string job = folder.path + "/job";
    RunningCommand run({"run", "--job", job, "--", troupe_program(), "train", "mnist-softmax",
                        "--examples", "512", "--steps", "1000000", "--threads", "1", "--cluster",
                        "local:1", "--checkpoint-every", "20"});
    REQUIRE(wait_until([&] { return has_checkpoint(job) && below(run.pid()).size() == 2; }));
    run.signal(signal);
    CHECK(run.end() == 128 + signal);
    CHECK(lives(job) == 1);
  }
}

TEST_CASE("a job whose supervisor is gone is not another process that has its number") {
  Folder folder;
  const std::string lock = folder.path + "/lock";
  const auto held_by = [&](std::uint64_t start) {
    std::ofstream(lock) << getpid() << ' ' << start << '\n';
    return supervisor_of(folder.path);
  };
  const Descriptor file(open(lock.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  REQUIRE(flock(file.get(), LOCK_EX) == 0);  // as a child that it left has it
  CHECK(held_by(start_of(getpid())) == getpid());
  CHECK(held_by(start_of(getpid()) - 1) == 0);
  for (const char* nonsense : {"", "1", "x y", "-1 -1", "99999999999999999999 1"}) {
    std::ofstream(lock) << nonsense;
    CHECK(supervisor_of(folder.path) == 0);
  }
}

TEST_CASE("the socket of a process that has another number here is left to it") {
  Folder folder;
  const pid_t gone = fork();
  REQUIRE(gone >= 0);
  if (gone == 0) _exit(0);
  REQUIRE(waitpid(gone, nullptr, 0) == gone);
  auto socket = value_or_throw(ControlSocket::open(folder.path));
  const std::string path = folder.path + "/" + ControlSocket::kPrefix;
  // As in a container.
  fs::rename(path + std::to_string(getpid()), path + std::to_string(gone));
  const auto found = control_sockets(folder.path);
  REQUIRE(found.size() == 1);
  CHECK(found[0].first == gone);
  CHECK(ask_control_socket(found[0].second, ControlSocket::kWaits, 60'000).ok());
  socket.reset();
  CHECK(control_sockets(folder.path).empty());
  CHECK_FALSE(fs::exists(path + std::to_string(gone)));
}

TEST_CASE("a secret that only one process could read is refused before any is started") {
  Folder folder;
  const Ended ended =
      shell_command("echo sixteen bytes at least | " + troupe_program() +
                    " run --workers 1 --secret-file - --job " + folder.path + "/job -- true");
  CHECK(ended.code == 2);
  CHECK_MESSAGE(contains(ended.err, "--secret-file wants a file"), ended.err);
  CHECK_FALSE(fs::exists(folder.path + "/job"));
}

TEST_CASE("a supervisor that is killed while it makes the secret of its workers makes another") {
  Folder folder;
  const std::string job = folder.path + "/job", run = "run --job " + job + " --workers 1 -- ";
  REQUIRE(troupe_command("run --job " + job + " -- true").code == 0);
  for (const char* half : {"/secret", "/secret.new"}) {
    std::ofstream(job + half).close();
    REQUIRE(chmod((job + half).c_str(), 0600) == 0);
  }
  const Ended ended = troupe_command(run + "true");
  CHECK_MESSAGE(ended.code == 0, ended.err);
  std::ifstream secret(job + "/secret");
  std::string text;
  std::getline(secret, text);
  CHECK(text.size() == 64);
}

TEST_CASE("a checkpoint that was written before the clock was set back is there") {
  Folder folder;
  const std::string job = folder.path + "/job", made = job + "/checkpoints/ckpt-7";
  REQUIRE(troupe_command("run --job " + job + " -- mkdir -p " + made).code == 0);
  fs::last_write_time(made, fs::file_time_type::clock::now() + std::chrono::hours(1));
  CHECK(troupe_command("status " + job + " --output json").json()["checkpoint"]["age_seconds"] ==
        0);
  CHECK(contains(troupe_command("status " + job).out, "step 7, 0.0 s old"));
}

TEST_CASE("lives that ended by their own word are no faults that come fast") {
  Folder folder;
  const std::string job = folder.path + "/job";
  for (int i = 0; i < 3; ++i) REQUIRE(troupe_command("run --job " + job + " -- true").code == 0);
  CHECK(value_or_throw(read_lives(job)).no_further == 0);
  const Ended ended =
      troupe_command("run --max-restarts 2 --job " + job + " -- sh -c 'kill -9 $$'");
  CHECK(ended.code == 128 + SIGKILL);
  CHECK(value_or_throw(read_lives(job)).no_further == 2);  // of three lives
}

TEST_CASE("a supervisor that is asked to end before its program began says so by its code") {
  Folder folder;
  const Ended ended =
      shell_command("env --block-signal=TERM sh -c 'kill -TERM $$; exec " + troupe_program() +
                    " run --job " + folder.path + "/job -- touch " + folder.path + "/began'");
  CHECK_MESSAGE(ended.code == 128 + SIGTERM, ended.err);
  CHECK_FALSE(std::filesystem::exists(folder.path + "/began"));
}

TEST_CASE("an Error that leaves main ends the program by its code") {
  const std::string mnist = build_dir() + "/bin/examples/mnist ";
  const Ended wrong = shell_command(mnist + "--threads x");
  CHECK(wrong.code == 1);
  CHECK(contains(wrong.err, "--threads wants a number from 0 to 1024, not 'x'"));
  CHECK_FALSE(contains(wrong.err, "terminate called"));
}
