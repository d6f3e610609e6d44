// A fault of the runtime in a program that embeds it.
#include <doctest/doctest.h>

#include "tests/apps/command.hpp"

TEST_CASE("a fault of the runtime fails its session, and the program and other sessions go on") {
  Ended ended = shell_command(build_dir() + "/bin/faulty");
  INFO(ended.out);
  INFO(ended.err);
  CHECK(ended.code == 0);
  const std::string fault = "internal: a fault of the runtime: actor 'executor' ended: planted";
  for (const char* call : {"run: ", "waiting run: ", "later run: ", "trace: ", "close: "})
    CHECK(contains("\n" + ended.out, "\n" + std::string(call) + fault));
  CHECK(contains(ended.out, "compile: invalid_argument"));  // of another graph: said first
  CHECK(contains(ended.out, "after it: internal"));
  CHECK(contains(ended.out, "other session: 3\n"));
  CHECK(contains(ended.out, "next session: 4\n"));
  CHECK(contains(ended.err, "a fault of the runtime: actor 'executor' ended: planted"));
}
