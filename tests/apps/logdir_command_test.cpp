// `troupe train --logdir`, as a user meets it. tests/accept/programs_6.sh reads it with
// TensorBoard.
#include <doctest/doctest.h>

#include <set>

#include "tests/apps/command.hpp"
#include "tests/apps/folder.hpp"
#include "tests/serialization/events.hpp"

namespace {

using troupe::testing::read_events;
using troupe::testing::ReadEvent;
using troupe::testing::shown_events;

const std::string kShown = "train mnist-softmax --examples 512 --quiet --output json ";

// By tag, the steps of what is shown.
std::map<std::string, std::vector<std::int64_t>> shown_steps(const std::string& dir) {
  std::map<std::string, std::vector<std::int64_t>> out;
  for (const ReadEvent& event : shown_events(read_events(dir)))
    for (const std::string& tag : event.tags()) out[tag].push_back(event.step);
  return out;
}

}  // namespace

TEST_CASE("summaries show a training run and change nothing else") {
  Folder folder;
  const std::string job = kShown + "--steps 7 --replicas 2 --cluster local:2 ";
  const std::string logs = folder.path + "/logs";
  const Ended shown = troupe_command(job + "--summary-every 3 --logdir " + logs);
  REQUIRE_MESSAGE(shown.code == 0, shown.err);
  CHECK(shown.json()["logdir"] == logs);
  CHECK(shown.json()["lost_summaries"] == 0);
  CHECK(shown.json()["params_sha256"] == troupe_command(job).json()["params_sha256"]);

  using Steps = std::vector<std::int64_t>;
  auto steps = shown_steps(logs);
  for (const char* tag :
       {"loss", "learning_rate", "parameters/softmax/out/W", "norms/softmax/out/b"})
    CHECK_MESSAGE((steps[tag] == Steps{1, 3, 6, 7}), tag);
  CHECK(steps["batch/image/2"] == Steps{1, 3, 6});
  CHECK(steps["options"] == Steps{1});
  CHECK(steps["test_accuracy"] == Steps{7});
  std::string graph, run, run_tag;
  for (const ReadEvent& event : read_events(logs)) {
    graph += event.graph;
    run += event.run;
    run_tag += event.run_tag;
  }
  for (const char* device : {"/job:worker/task:0/cpu:0", "/job:worker/task:1/cpu:0"}) {
    CHECK(contains(graph, device));
    CHECK(contains(run, device));
  }
  CHECK(run_tag == "step 4");
}

TEST_CASE("a run that is resumed shows each step once, and without a logdir, too, is the same") {
  Folder folder;
  const std::string logs = " --summary-every 1 --logdir " + folder.path + "/logs ";
  const std::string in = "--checkpoint-dir " + folder.path + "/ckpt ";
  REQUIRE(troupe_command(kShown + "--steps 3 " + in + logs).code == 0);
  const Ended more = troupe_command(kShown + "--steps 5 --resume " + in + logs);
  REQUIRE_MESSAGE(more.code == 0, more.err);
  CHECK(shown_steps(folder.path + "/logs")["loss"] == std::vector<std::int64_t>{1, 2, 3, 4, 5});
  const Ended plain = troupe_command(kShown + "--steps 6 --resume " + in);
  REQUIRE_MESSAGE(plain.code == 0, plain.err);
  CHECK(plain.json()["params_sha256"] ==
        troupe_command(kShown + "--steps 6").json()["params_sha256"]);
}

TEST_CASE("a logdir that cannot be made is refused before training, by its name") {
  const Ended ended = troupe_command(kShown + "--steps 5 --logdir /dev/null/logs");
  CHECK(ended.code == 1);
  CHECK(contains(ended.json()["error"].get<std::string>(), "/dev/null"));
  const Ended lonely = troupe_command(kShown + "--steps 5 --summary-every 2");
  CHECK(lonely.code == 2);
  CHECK(contains(lonely.err + lonely.out, "--logdir"));
}

TEST_CASE("a disk that fills costs a training run its summaries, and tells so") {
  Folder folder;
  // No file may have more than 4 KiB.
  const Ended full = shell_command("ulimit -f 4; trap '' XFSZ; " + troupe_program() + " " + kShown +
                                   "--steps 5 --summary-every 1 --logdir " + folder.path + "/logs");
  REQUIRE_MESSAGE(full.code == 0, full.err);
  CHECK(full.json()["steps"] == 5);
  CHECK(full.json()["lost_summaries"].get<int>() > 3);
  CHECK(contains(full.json()["summaries_error"].get<std::string>(), "File too large"));
  CHECK(contains(full.err, "goes on without summaries"));
  CHECK(full.err.find("goes on without") == full.err.rfind("goes on without"));
}
