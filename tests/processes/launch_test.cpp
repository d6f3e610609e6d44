#include "actors/processes/launch.hpp"

#include <doctest/doctest.h>

#include <map>
#include <random>
#include <string>

#include "tests/contains.hpp"

using namespace troupe;
using test::contains;

namespace {

using Environment = std::map<std::string, std::string>;
using Names = std::vector<std::string>;

Expected<Launch> launch(const std::string& by, const Environment& environment,
                        const std::string& listen = {}, const std::string& secret = "secret") {
  return launch_by(
      {by, listen, secret},
      [&](const std::string& name) -> std::optional<std::string> {
        const auto found = environment.find(name);
        return found == environment.end() ? std::nullopt
                                          : std::optional<std::string>(found->second);
      },
      "here");
}

Environment with(Environment environment, const Environment& changes) {
  for (const auto& [name, value] : changes) environment[name] = value;
  return environment;
}

void refused(const Expected<Launch>& launch, const std::string& what) {
  REQUIRE_FALSE(launch.ok());
  CHECK(launch.status().code() == Code::invalid_argument);
  CHECK_MESSAGE(contains(launch.status().message(), what), launch.status().message());
}

const Environment kSlurm = {{"SLURM_PROCID", "0"},
                            {"SLURM_NTASKS", "3"},
                            {"SLURM_JOB_ID", "4711"},
                            {"SLURM_STEP_ID", "0"},
                            {"SLURM_STEP_NODELIST", "node[07-09]"},
                            {"SLURMD_NODENAME", "node07"}};
const Environment kTorchrun = {
    {"RANK", "1"}, {"WORLD_SIZE", "4"}, {"MASTER_ADDR", "node1"}, {"MASTER_PORT", "29500"}};

}  // namespace

TEST_CASE("a list of hosts is what Slurm means by it") {
  CHECK(hosts_of("node[1-3,07-09],gpu5", 100).value() ==
        Names{"node1", "node2", "node3", "node07", "node08", "node09", "gpu5"});
  CHECK(hosts_of("a", 1).value() == Names{"a"});
  CHECK(hosts_of("r[1-2]n[0,5-6]x,b-c.d_e", 100).value() ==
        Names{"r1n0x", "r1n5x", "r1n6x", "r2n0x", "r2n5x", "r2n6x", "b-c.d_e"});
  CHECK(hosts_of("n[098-101]", 100).value() == Names{"n098", "n099", "n100", "n101"});
  CHECK(hosts_of("n[9-11]", 3).value() == Names{"n9", "n10", "n11"});
  CHECK(hosts_of("n[0]", 3).value() == Names{"n0"});
}

TEST_CASE(
    "a list of hosts that is none is refused with the place, and a huge one before it is made") {
  for (const char* wrong :
       {"",         ",",     "a,",       ",a",     "a,,b",  "[1-2]",
        "a[",       "a[]",   "a[1",      "a[1-",   "a[1-]", "a[-2]",
        "a[2-1]",   "a[1,]", "a[1-2-3]", "a]",     "a[1]]", "a[x]",
        "a b",      "a\n",   "a[1 -2]",  "a[[1]]", "a/b",   "a[1-99999999999999999999]",
        "\xff\xfe", "a:1",   "$(ls)"}) {
    CAPTURE(wrong);
    const auto hosts = hosts_of(wrong, 100);
    REQUIRE_FALSE(hosts.ok());
    CHECK(hosts.status().code() == Code::invalid_argument);
    CHECK(contains(hosts.status().message(), "at character"));
  }
  for (const char* huge :
       {"node[1-999999999]", "node[0-999999999999999999]", "a[1-99],b[1-2]",
        "r[1-999999999]n[1-999999999]m[1-999999999]k[1-999999999]", "a[1-50,1-51]"}) {
    CAPTURE(huge);
    const auto hosts = hosts_of(huge, 100);
    REQUIRE_FALSE(hosts.ok());
    CHECK(hosts.status().message() == "the list has more than 100 hosts");
  }
}

TEST_CASE("any text is a list of hosts or refused") {
  const unsigned seed = 20261127;
  CAPTURE(seed);
  std::mt19937 random(seed);
  const std::string letters = "ab01 9[]-,._";
  for (int i = 0; i < 20000; ++i) {
    std::string text;
    for (unsigned n = random() % 16; n > 0; --n) text += letters[random() % letters.size()];
    const auto hosts = hosts_of(text, 1000);
    if (!hosts.ok()) continue;
    CHECK(hosts->size() <= 1000);
    for (const std::string& host : *hosts)
      CHECK_MESSAGE(host.find_first_of("[], ") == host.npos, text);
  }
}

TEST_CASE("rank 0 of Slurm's tasks is the master, the others are its workers") {
  const Launch master = launch("slurm", kSlurm).value();
  CHECK(master.role == Launch::Role::master);
  CHECK(master.workers == 2);
  CHECK(master.join.empty());
  CHECK(master.listen.starts_with("[::]:"));
  CHECK(master.secret_file == "secret");
  const Launch worker =
      launch("slurm", with(kSlurm, {{"SLURM_PROCID", "2"}, {"SLURMD_NODENAME", "node09"}})).value();
  CHECK(worker.role == Launch::Role::worker);
  CHECK(worker.rank == 2);
  CHECK(worker.join == "node07" + master.listen.substr(master.listen.rfind(':')));
  CHECK(worker.announce == "node09");
  CHECK(worker.listen.empty());
  // Jobs and steps beside each other do not meet.
  CHECK(launch("slurm", with(kSlurm, {{"SLURM_STEP_ID", "1"}}))->listen != master.listen);
  CHECK(launch("slurm", with(kSlurm, {{"SLURM_JOB_ID", "4712"}}))->listen != master.listen);
  // Without a step's list, the job's; without a node's name, the host's.
  Environment job = kSlurm;
  job.erase("SLURM_STEP_NODELIST");
  job.erase("SLURMD_NODENAME");
  job.erase("SLURM_STEP_ID");
  job["SLURM_NODELIST"] = "gpu5,node[1-300]";
  job["SLURM_PROCID"] = "1";
  const Launch other = launch("slurm", job).value();
  CHECK(other.join.starts_with("gpu5:"));
  CHECK(other.announce == "here");
  // On this machine alone.
  const Environment here =
      with(kSlurm, {{"SLURM_STEP_NODELIST", "localhost"}, {"SLURMD_NODENAME", "localhost"}});
  CHECK(launch("slurm", here)->listen.starts_with("localhost:"));
  CHECK(launch("slurm", with(here, {{"SLURM_PROCID", "1"}}))->announce.empty());
}

TEST_CASE("rank 0 of torchrun's processes is the master, the others are its workers") {
  const Launch worker = launch("torchrun", kTorchrun).value();
  CHECK(worker.role == Launch::Role::worker);
  CHECK(worker.join == "node1:29500");
  CHECK(worker.announce == "here");
  const Launch master = launch("torchrun", with(kTorchrun, {{"RANK", "0"}})).value();
  CHECK(master.role == Launch::Role::master);
  CHECK(master.workers == 3);
  CHECK(master.listen == "[::]:29500");  // whatever addresses the name has elsewhere
  const Environment four = with(kTorchrun, {{"MASTER_ADDR", "10.0.0.1"}, {"RANK", "0"}});
  CHECK(launch("torchrun", four)->listen == "0.0.0.0:29500");
  // The launcher has taken that port for itself.
  const Environment taken = with(kTorchrun, {{"TORCHELASTIC_USE_AGENT_STORE", "True"}});
  CHECK(launch("torchrun", taken)->join == "node1:29501");
  CHECK(launch("torchrun", with(taken, {{"MASTER_PORT", "65535"}}))->join == "node1:65534");
  const Environment six = with(kTorchrun, {{"MASTER_ADDR", "fe80::1"}});
  CHECK(launch("torchrun", six)->join == "[fe80::1]:29500");
  CHECK(launch("torchrun", with(six, {{"RANK", "0"}}))->listen == "[::]:29500");
  const Environment here = with(kTorchrun, {{"MASTER_ADDR", "127.0.0.1"}, {"RANK", "0"}});
  CHECK(launch("torchrun", here)->listen == "127.0.0.1:29500");
}

TEST_CASE("a process that a launcher started alone needs no secret and no address") {
  for (const Launch& alone :
       {launch("torchrun", {{"RANK", "0"}, {"WORLD_SIZE", "1"}}, {}, {}).value(),
        launch("slurm", {{"SLURM_PROCID", "0"}, {"SLURM_NTASKS", "1"}}, {}, {}).value()}) {
    CHECK(alone.role == Launch::Role::master);
    CHECK(alone.workers == 0);
    CHECK(alone.listen.empty());
  }
}

TEST_CASE("an address that the user names is that of all processes") {
  CHECK(launch("slurm", kSlurm, "10.0.0.1:7077")->listen == "10.0.0.1:7077");
  const Environment worker = with(kSlurm, {{"SLURM_PROCID", "1"}});
  CHECK(launch("slurm", worker, "10.0.0.1:7077")->join == "10.0.0.1:7077");
  CHECK(launch("torchrun", kTorchrun, "[::1]:7077")->join == "[::1]:7077");
  CHECK(launch("torchrun", kTorchrun, "[::1]:7077")->announce.empty());
  refused(launch("torchrun", kTorchrun, "10.0.0.1:0"), "a port that all processes know");
  refused(launch("torchrun", kTorchrun, "nowhere"), "like 127.0.0.1:7077");
}

TEST_CASE("an environment that is not the launcher's is refused by the variable") {
  refused(launch("slurm", {}), "SLURM_NTASKS is not set: start the program with srun");
  refused(launch("torchrun", {}), "WORLD_SIZE is not set: start the program with torchrun");
  for (const char* name : {"SLURM_PROCID", "SLURM_NTASKS", "SLURM_JOB_ID"}) {
    CAPTURE(name);
    Environment missing = kSlurm;
    missing.erase(name);
    refused(launch("slurm", missing), std::string(name) + " is not set");
    for (const char* garbage : {"x", "-1", "1.5", " 1", "0x1", "99999999999999999999", "\xff"})
      refused(launch("slurm", with(kSlurm, {{name, garbage}})), std::string(name) + " is a number");
    refused(launch("slurm", with(kSlurm, {{name, ""}})), std::string(name) + " is empty");
  }
  for (const char* name : {"RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT"}) {
    CAPTURE(name);
    Environment missing = kTorchrun;
    missing.erase(name);
    refused(launch("torchrun", missing), std::string(name) + " is not set");
    refused(launch("torchrun", with(kTorchrun, {{name, ""}})), std::string(name) + " is empty");
  }
  for (const char* wrong : {"0", "65536", "-1", "http", "29500x"})
    refused(launch("torchrun", with(kTorchrun, {{"MASTER_PORT", wrong}})), "MASTER_PORT");
  refused(launch("torchrun", with(kTorchrun, {{"MASTER_ADDR", "[x"}})), "MASTER_ADDR is no host");
  Environment no_list = kSlurm;
  no_list.erase("SLURM_STEP_NODELIST");
  refused(launch("slurm", no_list), "SLURM_NODELIST is not set");
  refused(launch("slurm", with(kSlurm, {{"SLURM_STEP_NODELIST", "node[1-"}})),
          "SLURM_STEP_NODELIST: 'node[1-' is no list of hosts");
  refused(launch("slurm", with(kSlurm, {{"SLURM_STEP_NODELIST", "node[1-999999999]"}})),
          "SLURM_STEP_NODELIST: the list has more than");
  refused(launch("mpirun", kSlurm), "no launcher 'mpirun'");
}

TEST_CASE("variables of a launcher that contradict each other are refused") {
  refused(launch("slurm", with(kSlurm, {{"SLURM_PROCID", "3"}})),
          "SLURM_PROCID 3 is not below SLURM_NTASKS 3");
  refused(launch("torchrun", with(kTorchrun, {{"RANK", "4"}})), "RANK 4 is not below WORLD_SIZE 4");
  refused(launch("slurm", with(kSlurm, {{"SLURM_STEP_NODELIST", "node[1-4]"}})),
          "has 4 hosts for the 3 tasks");
  refused(launch("slurm", with(kSlurm, {{"SLURMD_NODENAME", "node08"}})),
          "task 0 runs on node08, and not on node07");
  CHECK(launch("slurm", with(kSlurm, {{"SLURMD_NODENAME", "node07.cluster.org"}})).ok());
  refused(launch("slurm", with(kSlurm, {{"SLURM_STEP_ID", "4294967291"}})),
          "a batch script is one process");
}

TEST_CASE("processes without a secret are told how to make one") {
  refused(launch("slurm", kSlurm, {}, {}), "say --secret-file FILE or TROUPE_SECRET_FILE=FILE");
  const Environment environment = with(kTorchrun, {{"TROUPE_SECRET_FILE", "/of/all"}});
  CHECK(launch("torchrun", environment, {}, {})->secret_file == "/of/all");
  CHECK(launch("torchrun", environment, {}, "/mine")->secret_file == "/mine");
}
