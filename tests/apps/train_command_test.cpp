#include <doctest/doctest.h>

#include <filesystem>

#include "tests/apps/command.hpp"
#include "tests/apps/running_command.hpp"

namespace {

struct Folder {
  std::string path;
  Folder() {
    char name[] = "/tmp/troupe-test-XXXXXX";
    path = mkdtemp(name);
  }
  ~Folder() { std::filesystem::remove_all(path); }
};

}  // namespace

TEST_CASE("the first signal ends a wait for workers, and the workers that are there already") {
  for (int number : {SIGTERM, SIGINT})
    for (const char* cluster : {"local", "local:1"}) {
      INFO(cluster, " gets signal ", number);
      RunningCommand troupe({"train", "mnist-softmax", "--listen", "127.0.0.1:0", "--wait-for", "2",
                             "--cluster", cluster, "--output", "json", "--log", "info"});
      REQUIRE_MESSAGE(troupe.wait_for("waiting for workers at 127.0.0.1:"), troupe.output());
      troupe.signal(number);
      CHECK(troupe.end() == 128 + number);
      CHECK(contains(troupe.output(), "\"code\":\"cancelled\""));
      CHECK(contains(troupe.output(), "of 2 workers had joined"));
    }
}

TEST_CASE("a signal while training leaves a checkpoint") {
  for (int number : {SIGTERM, SIGINT}) {
    INFO("signal ", number);
    Folder folder;
    RunningCommand troupe({"train", "mnist-softmax", "--steps", "1000000", "--examples", "512",
                           "--cluster", "local:1", "--checkpoint-dir", folder.path});
    REQUIRE_MESSAGE(troupe.wait_for("steps/s"), troupe.output());
    troupe.signal(number);
    CHECK(troupe.end() == 128 + number);
    INFO(troupe.output());
    CHECK(contains(troupe.output(), "checkpoint " + folder.path));
    CHECK(contains(troupe.output(), "params_sha256 "));
    Ended rest = troupe_command("ckpt ls " + folder.path + " --output json");
    CHECK(rest.code == 0);
    CHECK_FALSE(rest.json().is_discarded());
  }
}

TEST_CASE("resuming a run that is finished says so and gives its results again") {
  Folder folder;
  const std::string train =
      "train mnist-softmax --examples 512 --batch 16 --steps 5 --quiet --checkpoint-dir " +
      folder.path;
  auto first = troupe_command(train + " --output json").json();
  REQUIRE(first.is_object());
  CHECK(first["steps"] == 5);
  CHECK(first["steps_here"] == 5);
  CHECK(first["loss"].is_number());

  Ended again = troupe_command(train + " --resume --output json");
  CHECK(again.code == 0);
  auto json = again.json();
  REQUIRE(json.is_object());
  CHECK(json["steps"] == 5);
  CHECK(json["steps_here"] == 0);
  CHECK(json["loss"].is_null());
  CHECK(json["steps_per_second"].is_null());
  for (const char* same : {"test_accuracy", "params_sha256", "checkpoint"})
    CHECK(json[same] == first[same]);

  Ended text = troupe_command(train + " --resume");
  CHECK(text.code == 0);
  CHECK(contains(text.out, "the checkpoint is at step 5, nothing is left to do"));
  CHECK(contains(text.out, "params_sha256 " + first["params_sha256"].get<std::string>()));
  CHECK_FALSE(contains(text.out, "steps/s"));
}
