// Examples that are run as their readers run them.
#include <doctest/doctest.h>

#include <cstdio>

#include "tests/apps/command.hpp"

TEST_CASE("a policy whose games are in the graph catches three times what chance does") {
  const Ended ended = shell_command(build_dir() + "/bin/examples/reinforce --threads 1");
  CAPTURE(ended.out);
  REQUIRE(ended.code == 0);
  float chance = 0, learned = 0;
  const auto last = ended.out.find("random moves");
  REQUIRE(last != std::string::npos);
  REQUIRE(std::sscanf(ended.out.c_str() + last, "random moves %f learned %f", &chance, &learned) ==
          2);
  CHECK(chance > 0.05);
  CHECK(learned >= 3 * chance);
}
