#include <doctest/doctest.h>
#include <sys/resource.h>

#include <filesystem>
#include <fstream>

#include "apps/training.hpp"
#include "tests/apps/command.hpp"
#include "tests/apps/folder.hpp"
#include "tests/apps/running_command.hpp"

using namespace troupe;

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

TEST_CASE("a full disk does not end training, and the finished result is printed") {
  // As if the disk were full: no file may have more than 4 KiB.
  const std::string full = "ulimit -f 8; " + troupe_program() + " ";
  const std::string train = "train mnist-softmax --examples 512 --batch 16 --quiet --output json ";
  Folder folder, other;
  const std::string here = "--checkpoint-every 2 --checkpoint-dir " + folder.path;

  Ended none = shell_command(full + train + "--steps 5 " + here);
  CHECK(none.code == 1);
  auto json = none.json();
  REQUIRE_MESSAGE(json.is_object(), none.out << none.err);
  CHECK(json["steps"] == 5);
  CHECK(json["test_accuracy"].is_number());
  CHECK(json["checkpoint"].is_null());
  CHECK(json["failed_checkpoints"] == 3);
  CHECK(contains(json["checkpoint_error"].get<std::string>(), "File too large"));
  CHECK(contains(none.err, "there is no checkpoint yet"));

  auto whole = troupe_command(train + "--steps 9 --checkpoint-dir " + other.path).json();
  REQUIRE(whole.is_object());
  CHECK(whole["failed_checkpoints"] == 0);
  CHECK_FALSE(whole.contains("checkpoint_error"));
  auto first = troupe_command(train + "--steps 5 " + here).json();
  REQUIRE(first.is_object());
  Ended rest = shell_command(full + train + "--steps 9 --resume " + here);
  CHECK(rest.code == 1);
  json = rest.json();
  REQUIRE_MESSAGE(json.is_object(), rest.out << rest.err);
  CHECK(json["checkpoint"] == first["checkpoint"]);  // the old one is the newest good one
  CHECK(contains(rest.err, "the newest good one is " + first["checkpoint"].get<std::string>()));
  CHECK(json["params_sha256"] == whole["params_sha256"]);
  Ended again = troupe_command(train + "--steps 9 --resume " + here);
  CHECK(again.code == 0);
  CHECK(again.json()["params_sha256"] == whole["params_sha256"]);
}

TEST_CASE("a disk that has room again takes the next checkpoint") {
  Folder folder;
  rlimit before{}, small{};
  REQUIRE(getrlimit(RLIMIT_FSIZE, &before) == 0);
  small = before;
  small.rlim_cur = 4096;
  REQUIRE(setrlimit(RLIMIT_FSIZE, &small) == 0);  // which the command inherits
  RunningCommand troupe({"train", "mnist-softmax", "--steps", "1000000", "--examples", "512",
                         "--quiet", "--cluster", "local:1", "--checkpoint-every", "20",
                         "--checkpoint-dir", folder.path});
  REQUIRE(setrlimit(RLIMIT_FSIZE, &before) == 0);
  REQUIRE_MESSAGE(troupe.wait_for("warning: "), troupe.output());
  CHECK(contains(troupe.output(), "there is no checkpoint yet"));
  REQUIRE(prlimit(troupe.pid(), RLIMIT_FSIZE, &before, nullptr) == 0);
  // The worker writes the variables.
  const std::string pid = std::to_string(troupe.pid());
  std::ifstream children("/proc/" + pid + "/task/" + pid + "/children");
  for (pid_t worker; children >> worker;)
    REQUIRE(prlimit(worker, RLIMIT_FSIZE, &before, nullptr) == 0);
  troupe.signal(SIGTERM);
  CHECK(troupe.end() == 128 + SIGTERM);
  CHECK_MESSAGE(contains(troupe.output(), "checkpoint " + folder.path), troupe.output());
  CHECK(troupe_command("ckpt ls " + folder.path).code == 0);
}

TEST_CASE("a checkpoint of another graph is refused, unless it is allowed") {
  Folder folder;
  const std::string train =
      "train mnist-softmax --examples 512 --quiet --output json --checkpoint-dir " + folder.path;
  REQUIRE(troupe_command(train + " --batch 16 --steps 3").code == 0);
  Ended other = troupe_command(train + " --batch 8 --steps 5 --resume");
  CHECK(other.code == 1);
  CHECK(other.json()["code"] == "failed_precondition");
  CHECK(contains(other.json()["error"].get<std::string>(), "--allow-other-graph"));
  CHECK(troupe_command(train + " --batch 8 --steps 5 --resume --allow-other-graph").code == 0);
  // More replicas or more steps are the same graph.
  CHECK(troupe_command(train + " --batch 8 --steps 7 --replicas 2 --resume").code == 0);
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
  CHECK(first["checkpoint"] == folder.path + "/ckpt-5");  // named as the step is counted

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
  CHECK(contains(text.out, "the checkpoint is at step 5; no steps are left"));
  CHECK(contains(text.out, "params_sha256 " + first["params_sha256"].get<std::string>()));
  CHECK_FALSE(contains(text.out, "steps/s"));
}

namespace {

// Long enough for one window of its last tenth.
std::string some_text() {
  std::string text;
  for (int i = 0; text.size() < 6000; ++i) text += i % 3 == 0 ? "two bells\n" : "one ring, ";
  return text;
}

}  // namespace

TEST_CASE("a character LSTM is tested while it learns, and writes of what it has read") {
  Folder folder;
  const std::string file = folder.path + "/text";
  std::ofstream(file) << some_text();
  const std::string train =
      "train char-lstm --data " + file + " --steps 3 --validate-every 2 --batch 4 --output json ";
  auto one = troupe_command(train + "--threads 1").json();
  REQUIRE(one.is_object());
  CHECK_FALSE(one.contains("test_accuracy"));
  CHECK(one["steps"] == 3);
  const double best = one["validation_loss"], last = one["last_validation_loss"];
  CHECK(best <= last);
  CHECK(best > 0);
  CHECK((one["best_step"] == (best < last ? 2 : 3)));
  const std::string sample = one["sample"];
  CHECK(sample.size() == 400);
  CHECK(sample.find_first_not_of(some_text()) == std::string::npos);
  // The same on other threads and in another process.
  for (const char* where : {"--threads 2", "--cluster local:1"}) {
    auto other = troupe_command(train + where).json();
    REQUIRE(other.is_object());
    for (const char* what : {"params_sha256", "validation_loss", "sample"})
      CHECK_MESSAGE(other[what] == one[what], where, " ", what);
  }
}

TEST_CASE("a character LSTM goes through text in one node, step by step or in a loop") {
  Folder folder;
  const std::string file = folder.path + "/text";
  std::ofstream(file) << some_text();
  const std::string train =
      "train char-lstm --data " + file + " --steps 2 --batch 2 --output json --over-time ";
  const auto fused = troupe_command(train + "fused").json();
  REQUIRE(fused.is_object());
  for (const char* way : {"unrolled", "loop"}) {
    CAPTURE(way);
    const auto other = troupe_command(train + way).json();
    REQUIRE(other.is_object());
    CHECK(other["loss"].get<double>() == doctest::Approx(fused["loss"].get<double>()));
    CHECK(other["validation_loss"].get<double>() ==
          doctest::Approx(fused["validation_loss"].get<double>()));
  }
  CHECK(troupe_command(train + "backwards").code == 2);
}

TEST_CASE("a character LSTM that gets no better ends before its steps") {
  Folder folder;
  const std::string file = folder.path + "/text";
  std::ofstream(file) << some_text();
  // So slow that nothing changes.
  auto json = troupe_command("train char-lstm --data " + file +
                             " --steps 50 --validate-every 1 --patience 2 --batch 2 "
                             "--learning-rate 1e-30 --output json")
                  .json();
  REQUIRE(json.is_object());
  CHECK(json["steps"] == 3);
  CHECK(json["best_step"] == 1);
}

TEST_CASE("patience is part of a checkpoint: a run that goes on ends where it would have") {
  Folder folder;
  TrainOptions options;
  options.example = "char-lstm";
  options.data = folder.path + "/text";
  std::ofstream(options.data) << some_text();
  options.batch = 2;
  options.steps = 40;
  options.learning_rate = 1e-30;
  options.validate_steps = 2;
  options.patience = 3;
  options.cluster.threads = 1;
  const TrainResult whole = value_or_throw(train(options));
  CHECK(whole.steps == 8);
  // Stopped between two tests, and at the end already.
  for (std::int64_t stop : {3, 8}) {
    INFO(stop);
    TrainOptions job = options;
    job.checkpoint_dir = folder.path + "/job" + std::to_string(stop);
    job.stop = [left = stop]() mutable { return left-- == 0; };
    CHECK(value_or_throw(train(job)).steps == stop);
    job.stop = {};
    job.resume = true;
    const TrainResult rest = value_or_throw(train(job));
    CHECK(rest.steps == whole.steps);
    CHECK(rest.steps_here == whole.steps - stop);
    CHECK(rest.loss == whole.loss);
    CHECK(rest.params_sha256 == whole.params_sha256);
    CHECK(rest.best_step == whole.best_step);
    CHECK(rest.validation_loss == whole.validation_loss);
    CHECK(rest.last_validation_loss == whole.last_validation_loss);
    CHECK(rest.sample == whole.sample);
  }
}

TEST_CASE("a character LSTM reads what the program draws where there is no text [slow]") {
  auto json = troupe_command("train char-lstm --steps 2 --batch 2 --output json").json();
  REQUIRE(json.is_object());
  CHECK(json["data"] == "drawn");
  CHECK(json["steps"] == 2);
}

TEST_CASE(
    "a step that would take more memory than it may ends the command, which says who held it") {
  for (const char* cluster : {"local", "local:1"}) {
    INFO(cluster);
    const std::string train = std::string("train mnist-mlp --steps 2 --examples 256 --cluster ") +
                              cluster + " --output json --step-memory ";
    const Ended refused = troupe_command(train + "200KiB");
    INFO(refused.out);
    CHECK(refused.code == 1);
    CHECK(contains(refused.out, "\"code\":\"resource_exhausted\""));
    CHECK(contains(refused.out, "where it may hold 200 KiB (step_memory)"));
    CHECK(troupe_command(train + "1GiB").code == 0);
  }
}
