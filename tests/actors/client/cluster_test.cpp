#include "actors/cluster.hpp"

#include <doctest/doctest.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <chrono>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "tests/actors/support/sessions.hpp"
#include "tests/serialization/temporary.hpp"

using namespace troupe;
using namespace troupe::test;

namespace {

Expected<Cluster> of_words(std::vector<std::string> words) {
  std::vector<char*> argv;
  words.insert(words.begin(), "program");
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  return Cluster::try_from_args(int(words.size()), argv.data());
}

void refused_with(const Status& status, std::string_view what, Code code = Code::invalid_argument) {
  says(status, code, what);
}

}  // namespace

TEST_CASE("more workers than there are descriptors for are refused, and none is started") {
  rlimit before{};
  REQUIRE(getrlimit(RLIMIT_NOFILE, &before) == 0);
  rlimit few = before;
  few.rlim_cur = 64;
  REQUIRE(setrlimit(RLIMIT_NOFILE, &few) == 0);
  Cluster cluster = one_thread();
  cluster.workers = 32;
  cluster.worker_program = "/no/such/program";
  const Status refused = open_session(cluster);
  REQUIRE(setrlimit(RLIMIT_NOFILE, &before) == 0);
  says(refused, Code::resource_exhausted,
       "32 workers on this machine need at the least 139 descriptors in their master, and there "
       "are 64");
}

TEST_CASE("a field of a cluster that is out of range is refused with the range") {
  constexpr int kMost = std::numeric_limits<int>::max(), kLeast = std::numeric_limits<int>::min();
  const auto with = [](auto change) {
    Cluster cluster = one_thread();
    change(cluster);
    return open_session(cluster);
  };
  for (int wrong : {-1, 1025, 100'000, kMost, kLeast})
    refused_with(with([=](Cluster& c) { c.threads = wrong; }),
                 "threads is a number from 0 to 1024");
  for (int wrong : {0, -1, 1025, kMost})
    refused_with(with([=](Cluster& c) { c.replicas = wrong; }),
                 "replicas is a number from 1 to 1024");
  for (int wrong : {-1, 4097, kMost})
    refused_with(with([=](Cluster& c) { c.workers = wrong; }),
                 "workers is a number from 0 to 4096");
  for (int wrong : {-1, 4097, kMost})
    refused_with(with([=](Cluster& c) { c.wait_for = wrong; }),
                 "wait_for is a number from 0 to 4096");
  refused_with(with([](Cluster& c) { c.devices = {}; }), "from 1 to 16, not 0");
  refused_with(with([](Cluster& c) { c.devices.assign(17, "CPU"); }), "from 1 to 16, not 17");
  for (const char* word : {"NPU", "npu", "TPU"})
    refused_with(with([=](Cluster& c) {
                   c.devices = {"CPU", word};
                 }),
                 "there is no device of type '" + std::string(word) + "'; known are: CPU",
                 Code::not_found);
  CHECK(with([](Cluster& c) { c.devices = {"NPU"}; }).text().find("FAKE") == std::string::npos);
  refused_with(with([](Cluster& c) { c.devices = {"no device"}; }),
               "'no device' is no type of device");
  for (auto wrong : {std::chrono::milliseconds(249), std::chrono::milliseconds(-5)})
    refused_with(with([=](Cluster& c) { c.silence = wrong; }), "250 ms are the least");
  for (std::size_t wrong : {1, 15, 65})
    refused_with(with([=](Cluster& c) { c.secret.assign(wrong, 's'); }), "16 to 64 bytes");
  refused_with(with([](Cluster& c) { c.wait_for = 1; }), "Cluster::listen");
  refused_with(with([](Cluster& c) { c.listen = "127.0.0.1:0"; }), "Cluster::wait_for");
  refused_with(with([](Cluster& c) {
                 c.listen = "nowhere";
                 c.wait_for = 1;
               }),
               "like 127.0.0.1:7077");
  refused_with(with([](Cluster& c) {
                 c.disabled_passes = {"cse", "sce"};
               }),
               "there is no pass 'sce' to disable; known are fold cse", Code::not_found);
  refused_with(with([](Cluster& c) { c.disabled_passes = {"place"}; }), "there is no pass 'place'",
               Code::not_found);
  CHECK(with([](Cluster& c) { c.disabled_passes = {"cse", "fold"}; }).ok());
}

TEST_CASE("an option of a compile that is out of range is refused with the range") {
  Graph g;
  Output one = constant(g, 1.0f);
  Session s(g, one_thread());
  for (int wrong : {-1, std::numeric_limits<int>::min()})
    refused_with(s.try_compile({one}, {}, {}, {.replicas = wrong}).status(), "from 0");
  refused_with(s.try_compile({one}, {}, {}, {.replicas = 1025}).status(), "between 1 and 1024");
}

TEST_CASE("options of a cluster are read from a program's arguments") {
  const Cluster read =
      of_words({"--threads", "3", "mine", "--replicas=2", "--cluster", "local:2", "--step-memory",
                "1MiB", "--cuda-sync", "--other", "--", "--thread", "9"})
          .value();
  CHECK(read.threads == 3);
  CHECK(read.replicas == 2);
  CHECK(read.workers == 2);
  CHECK(read.step_memory == 1u << 20);
  CHECK(read.cuda_sync);
  CHECK_FALSE(of_words({"--threads", "3"}).value().cuda_sync);
  CHECK(read.devices == std::vector<std::string>{"CPU"});
}

TEST_CASE("a program is told of which types its devices are, and a GPU has a CPU beside it") {
  using Types = std::vector<std::string>;
  CHECK(of_words({"--device", "CUDA"}).value().devices == Types{"CPU", "CUDA"});
  CHECK(of_words({"--device=cuda", "--device", "cpu"}).value().devices == Types{"cuda", "cpu"});
  CHECK(of_words({"--device", "CPU", "--device", "CPU"}).value().devices == Types{"CPU", "CPU"});
  refused_with(of_words({"--device"}).status(), "--device wants a value");
}

TEST_CASE("an option of a cluster that is mistyped, or has no value, is refused") {
  refused_with(of_words({"--thread", "1"}).status(),
               "no option '--thread'; did you mean '--threads'?");
  refused_with(of_words({"--thread=1"}).status(), "did you mean '--threads'?");
  refused_with(of_words({"--replica", "1"}).status(), "did you mean '--replicas'?");
  refused_with(of_words({"--step_memory", "1MiB"}).status(), "did you mean '--step-memory'?");
  refused_with(of_words({"--clutser", "local"}).status(), "did you mean '--cluster'?");
  for (const char* option : {"--threads", "--replicas", "--cluster", "--step-memory"})
    refused_with(of_words({option}).status(), std::string(option) + " wants a value");
  refused_with(of_words({"--threads="}).status(), "from 0 to 1024, not ''");
  refused_with(of_words({"--threads", "1025"}).status(), "from 0 to 1024");
  refused_with(of_words({"--replicas", "0"}).status(), "from 1 to 1024");
  refused_with(of_words({"--cluster", "local:4097"}).status(), "from 0 to 4096");
  // Options of the program's own are left to it.
  CHECK(of_words({"--steps", "5", "--data", "x", "-t", "thread", "--threshold", "2"}).ok());
}

TEST_CASE("a program is told where workers of other machines join it") {
  testing::TemporaryDir folder;
  folder.write("secret", "0123456789abcdef\n");
  const std::string secret = folder.path("secret");
  chmod(secret.c_str(), 0600);
  const Cluster read =
      of_words({"--listen", "[::1]:7077", "--wait-for=3", "--secret-file", secret}).value();
  CHECK(read.listen == "[::1]:7077");
  CHECK(read.wait_for == 3);
  CHECK(read.secret == "0123456789abcdef");
  refused_with(of_words({"--wait-for", "1"}).status(), "--wait-for needs --listen");
  refused_with(of_words({"--listen", "127.0.0.1:0"}).status(), "--listen needs --wait-for");
  refused_with(of_words({"--listen", "here", "--wait-for", "1"}).status(), "like 127.0.0.1:7077");
  refused_with(of_words({"--secret-file", secret}).status(), "--secret-file needs workers");
  refused_with(of_words({"--listen", "127.0.0.1:0", "--wait-for", "4097"}).status(),
               "from 0 to 4096");
  refused_with(
      of_words({"--listen", "127.0.0.1:0", "--wait-for", "1", "--secret-file", "/none"}).status(),
      "cannot open '/none'", Code::not_found);
  chmod(secret.c_str(), 0644);
  refused_with(of_words({"--cluster", "local:1", "--secret-file", secret}).status(), "chmod 600",
               Code::failed_precondition);
}
