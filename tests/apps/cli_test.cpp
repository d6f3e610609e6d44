#include <doctest/doctest.h>

#include "apps/commands/command_line.hpp"
#include "tests/apps/command.hpp"
#include "tests/environment_variable.hpp"

TEST_CASE("a command line that means nothing is a usage error") {
  for (const char* arguments : {"",
                                "train",
                                "no-such-command",
                                "train mnist-mlp --no-such-flag",
                                "train mnist-mlp --steps",
                                "train mnist-mlp --steps many",
                                "train mnist-mlp --steps 0",
                                "train mnist-mlp --steps -3",
                                "train mnist-mlp --batch 0",
                                "train mnist-mlp --replicas 0",
                                "train mnist-mlp --output xml",
                                "train mnist-mlp --cluster far:2",
                                "train mnist-mlp --cluster local:many",
                                "train mnist-mlp --checkpoint-every 5m --checkpoint-dir /nowhere",
                                "train mnist-mlp --checkpoint-every 0 --checkpoint-dir /nowhere",
                                "train mnist-mlp --checkpoint-every 5",
                                "train mnist-mlp --resume",
                                "train mnist-mlp --trace-steps 5",
                                "train mnist-mlp --trace t.json --trace-steps 0",
                                "train mnist-mlp --wait-for 1",
                                "train mnist-mlp --listen 127.0.0.1:0",
                                "graph mnist-mlp --format svg",
                                "graph mnist-mlp --stage nowhere",
                                "graph mnist-mpl",
                                "bench nothing",
                                "bench --rounds 0",
                                "bench --peer jax",
                                "bench step --peer torch",
                                "bench train --threads 0",
                                "bench train --cluster far:1",
                                "ckpt",
                                "worker"}) {
    INFO("troupe ", arguments);
    Ended ended = troupe_command(arguments);
    CHECK(ended.code == 2);
    CHECK_FALSE(ended.err.empty());
    CHECK(ended.out.empty());
  }
}

TEST_CASE("help and version succeed and go to stdout") {
  Ended help = troupe_command("--help");
  CHECK(help.code == 0);
  for (const char* command : {"train", "demo", "worker", "graph", "bench", "ckpt"})
    CHECK(contains(help.out, command));
  CHECK(troupe_command("train --help").code == 0);
  Ended version = troupe_command("--version");
  CHECK(version.code == 0);
  CHECK(contains(version.out, "troupe 0."));
}

TEST_CASE("a level that the processor or the build lacks is a usage error") {
  const troupe::test::EnvironmentVariable isa("TROUPE_ISA", "v9");
  Ended ended = troupe_command("--version");
  CHECK(ended.code == 2);
  CHECK(contains(ended.err, "TROUPE_ISA is v2, v3, v4 or v4-amx, not 'v9'"));
}

TEST_CASE("a mistyped name is answered with the one that was meant") {
  CHECK(contains(troupe_command("trian mnist-mlp").err, "did you mean 'troupe train'?"));
  CHECK(contains(troupe_command("train mnist-mpl").err, "did you mean mnist-mlp?"));
  CHECK(contains(troupe_command("graph mnist-cnv").err, "did you mean mnist-conv?"));
  CHECK(contains(troupe_command("graph mnist-mlp --stage plase").err, "did you mean place?"));
  CHECK(contains(troupe_command("bench stp").err, "did you mean step?"));
}

TEST_CASE("an error is a JSON document when JSON is asked for") {
  Ended ended = troupe_command("train mnist-mpl --output json");
  CHECK(ended.code == 2);
  auto json = ended.json();
  REQUIRE(json.is_object());
  CHECK(json["code"] == "not_found");
  CHECK(contains(json["error"].get<std::string>(), "mnist-mlp"));
}

TEST_CASE("a folder without data is a failure, not a usage error") {
  Ended ended = troupe_command("train mnist-mlp --data /no/such/folder --steps 1 --quiet");
  CHECK(ended.code == 1);
  CHECK(contains(ended.err, "/no/such/folder"));
}

TEST_CASE("a result that cannot be written is a failure") {
  Ended ended = troupe_command("graph mnist-softmax --stage stages >/dev/full");
  CHECK(ended.code == 1);
  CHECK(contains(ended.err, "cannot write the result: No space left"));
}

TEST_CASE("each kind of error has its exit code") {
  using namespace troupe;
  CHECK(exit_code(ok_status()) == 0);
  CHECK(exit_code(invalid_argument("x")) == 1);
  CHECK(exit_code(internal_error("x")) == 70);
  CHECK(exit_code(unavailable("x")) == 75);
}

TEST_CASE("an error about a name that is no UTF-8 is a document all the same") {
  Ended ended = troupe_command("ckpt verify /no/such/\xff\xfe --output json");
  CHECK(ended.code == 1);
  CHECK(contains(ended.out, "/no/such/"));
  CHECK(contains(ended.out, "not_found"));
  CHECK(ended.err.empty());
}
