// Commands in a process that may have few threads.
#include <doctest/doctest.h>

#include <fmt/format.h>

#include "tests/apps/command.hpp"

using namespace troupe::test;

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool kSanitized = true;
#else
constexpr bool kSanitized = false;
#endif

TEST_CASE("a process that may have few threads trains, or says that it needs more") {
  if (kSanitized) {
    MESSAGE("skipped: a sanitizer's library has to be loaded before any other");
    return;
  }
  const auto command = [](int most, const std::string& arguments) {
    return shell_command(
        fmt::format("TROUPE_CUDA_PATH={0}/fake-cuda:{0}/fake-nvrtc:- TROUPE_CUDA_CACHE=- "
                    "MOST_THREADS={1} LD_PRELOAD={0}/bin/few_threads.so timeout -k 1 60 {2} {3}",
                    build_dir(), most, troupe_program(), arguments));
  };
  const auto train = [&](int most, const std::string& how) {
    return command(most, "train mnist-softmax --steps 1 --examples 64 --threads 1 --quiet " + how);
  };
  for (const std::string how : {"", "--cluster local:1", "--device cuda"}) {
    const Ended usual = train(100, how);
    REQUIRE_MESSAGE(usual.code == 0, usual.err);
    bool trained = false;
    for (int most = 0; !trained && most < 40; most += most < 12 ? 4 : 2) {
      INFO(how << ", at most " << most << " threads");
      const Ended ended = train(most, how);
      trained = ended.code == 0;
      if (trained) {
        CHECK(ended.out == usual.out);
      } else {
        CHECK_MESSAGE(ended.code == 1, ended.err);
        CHECK_MESSAGE(contains(ended.err, "resource_exhausted"), ended.err);
      }
    }
    CHECK(trained);
  }
  const Ended worker = command(0, "worker --master 127.0.0.1:1");
  CHECK_MESSAGE(worker.code == 1, worker.err);
  CHECK_MESSAGE(contains(worker.err, "resource_exhausted"), worker.err);
}
