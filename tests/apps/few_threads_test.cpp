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
  const auto train = [](int most, const std::string& how) {
    return shell_command(
        fmt::format("MOST_THREADS={} LD_PRELOAD={}/bin/few_threads.so timeout -k 1 60 {} train "
                    "mnist-softmax --steps 1 --examples 64 --threads 2 --quiet {}",
                    most, build_dir(), troupe_program(), how));
  };
  for (const std::string how : {"", "--cluster local:1"}) {
    const Ended usual = train(100, how);
    REQUIRE_MESSAGE(usual.code == 0, usual.err);
    bool trained = false;
    for (int most = 0; !trained && most < 40; ++most) {
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
}
