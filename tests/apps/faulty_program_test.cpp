// A fault of the runtime in a program that embeds it.
#include <doctest/doctest.h>

#include "tests/apps/command.hpp"

TEST_CASE("what a kernel throws fails its run, on any lane, and the session goes on") {
  const Ended ended = shell_command(build_dir() + "/bin/faulty");
  INFO(ended.out);
  const std::string kernel =
      "kernel: internal: the kernel threw an exception: chunk 1 (in node 'bad' (Throw) on /job:";
  std::size_t runs = 0;
  for (std::size_t at = 0; (at = ended.out.find(kernel, at)) != std::string::npos; ++at) ++runs;
  CHECK(runs == 20);
  CHECK(contains(ended.out, "beside it: 4\n"));
}

TEST_CASE("a fault of the runtime fails its session, and the program and other sessions go on") {
  Ended ended = shell_command(build_dir() + "/bin/faulty");
  INFO(ended.out);
  INFO(ended.err);
  CHECK(ended.code == 0);
  const std::string fault = "internal: a fault of the runtime: actor 'resource' ended: planted";
  for (const char* call : {"run: ", "waiting run: ", "later run: ", "trace: ", "close: "})
    CHECK(contains("\n" + ended.out, "\n" + std::string(call) + fault));
  CHECK(contains(ended.out, "compile: invalid_argument"));  // of another graph: said first
  CHECK(contains(ended.out, "after it: internal"));
  CHECK(contains(ended.out, "other session: 3.0"));
  CHECK(contains(ended.out, "next session: 4\n"));
  CHECK(contains(ended.err, "a fault of the runtime: actor 'resource' ended: planted"));
}

TEST_CASE("a fault fails all sessions of a program's actor system, which goes on and ends") {
  Ended ended = shell_command("timeout 60 " + build_dir() + "/bin/faulty own");
  INFO(ended.out);
  INFO(ended.err);
  CHECK(ended.code == 0);
  const std::string fault = "internal: a fault of the runtime: actor 'resource' ended: planted";
  for (const char* call :
       {"run: ", "waiting run: ", "later run: ", "trace: ", "close: ", "other session: "})
    CHECK(contains("\n" + ended.out, "\n" + std::string(call) + fault));
  CHECK(contains(ended.out, "the program's actor: 7\n"));
  CHECK(contains(ended.out, "next session: 4\n"));
  CHECK(contains(ended.out, "left open: 3\n"));
}
