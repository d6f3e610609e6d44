#include "actors/master/wait_lines.hpp"

#include <doctest/doctest.h>

#include "actors/master/run_table.hpp"
#include "core/hash.hpp"
#include "tests/graph/allocated.hpp"

using namespace troupe;
using namespace std::chrono_literals;

namespace {

constexpr TaskId kFirst{0}, kSecond{1};

NodeWait at_node(std::uint32_t partition, Wait::On on, std::string what, std::uint64_t ms = 4200) {
  NodeWait wait;
  wait.run = {0, 4};
  wait.attempt = {1, 7};
  wait.partition = partition;
  wait.on = on;
  wait.node = "x";
  wait.op = "Dequeue";
  wait.site = "prog.cpp:41";
  wait.device = "/job:worker/task:0/cpu:0";
  wait.what = std::move(what);
  wait.milliseconds = ms;
  return wait;
}

TaskWaits told(TaskId task, std::vector<NodeWait> waits) {
  TaskWaits all;
  all.task = task;
  all.waits = std::move(waits);
  return all;
}

// A run of two partitions, on two tasks that have said nothing yet.
JobLook two_tasks(Instant age = 5s) {
  JobLook look;
  RunLook& run = look.runs.emplace_back();
  run.run = {0, 4};
  run.attempt = {1, 7};
  run.age = run.attempt_age = age;
  run.computes = true;
  run.parts = {{0, kFirst, "/job:worker/task:0/cpu:0"}, {1, kSecond, "/job:worker/task:1/cpu:0"}};
  look.tasks = {{kFirst, "0 (process 11)"}, {kSecond, "1 (process 12)"}};
  look.asked_for = 250ms;
  return look;
}

std::vector<std::string> texts(const JobLook& look) {
  std::vector<std::string> all;
  for (const Wait& wait : waits_of(look)) all.push_back(wait.text());
  return all;
}

}  // namespace

TEST_CASE("a wait names the run, for how long and what it waits, the node, its line and device") {
  JobLook look = two_tasks();
  look.runs[0].parts.pop_back();
  look.told[kFirst] = told(kFirst, {at_node(0, Wait::On::queue, "queue 'q', which is empty")});
  CHECK(texts(look) == std::vector<std::string>{
                           "step 4 of session 0 waits 4.2 s for queue 'q', which is empty, in node "
                           "'x' (Dequeue) at prog.cpp:41 on /job:worker/task:0/cpu:0"});
  look.runs[0].left = 1500ms;
  look.told[kFirst].waits[0].on = Wait::On::node;
  CHECK(texts(look) == std::vector<std::string>{
                           "step 4 of session 0 computes node 'x' (Dequeue) at prog.cpp:41 on "
                           "/job:worker/task:0/cpu:0 for 4.2 s; its timeout passes in 1.5 s"});
  look.told[kFirst].waits[0].milliseconds = 0;
  CHECK(
      texts(look)[0].ends_with(" for 0.0 s; the run began 5.0 s ago; its timeout passes in 1.5 s"));
}

TEST_CASE("who waits for a tensor is told what its sender does") {
  JobLook look = two_tasks();
  NodeWait tensor = at_node(1, Wait::On::tensor, "tensor 'y:0'");
  tensor.from = 0;
  look.told[kSecond] = told(kSecond, {tensor});
  CHECK(waits_of(look)[1].what ==
        "tensor 'y:0' from /job:worker/task:0/cpu:0, which does not answer");
  look.told[kFirst] = told(kFirst, {at_node(0, Wait::On::node, "")});
  CHECK(waits_of(look)[1].what ==
        "tensor 'y:0' from /job:worker/task:0/cpu:0, which computes node 'x' (Dequeue) at "
        "prog.cpp:41");
  look.told[kFirst] = told(kFirst, {at_node(0, Wait::On::queue, "queue 'q', which is full")});
  CHECK(waits_of(look)[1].what ==
        "tensor 'y:0' from /job:worker/task:0/cpu:0, which waits for queue 'q', which is full");
  look.runs[0].parts.erase(look.runs[0].parts.begin());
  CHECK(waits_of(look)[0].what ==
        "tensor 'y:0', which was made elsewhere and has not arrived: it is under way, or lost");
}

TEST_CASE("a task that does not answer is named, and one that knows nothing of the run") {
  JobLook look = two_tasks();
  look.told[kFirst] = told(kFirst, {});
  const std::vector<Wait> waits = waits_of(look);
  REQUIRE(waits.size() == 2);
  CHECK(waits[0].on == Wait::On::lost);
  CHECK(waits[0].task == "worker 0 (process 11)");
  CHECK(waits[1].on == Wait::On::task);
  CHECK(waits[1].text() ==
        "step 4 of session 0 waits 5.0 s for worker 1 (process 12), which has not said within 0.2 "
        "s what it does, in the part on /job:worker/task:1/cpu:0");
}

TEST_CASE("a run that has not begun waits for its turn, and a step for those who load it") {
  JobLook look = two_tasks();
  look.runs[0].computes = false;
  look.runs[0].parts.clear();
  look.runs[0].turn = "step 3 of session 0, which is being committed";
  look.compiles = {{"session 0", 0, {}, 2s}, {"session 1", 9, {kFirst, kSecond}, 3s}};
  look.told[kFirst] = told(kFirst, {});
  look.told[kFirst].preparing = {9};
  CHECK(
      texts(look) ==
      std::vector<std::string>{
          "step 4 of session 0 waits 5.0 s for step 3 of session 0, which is being committed",
          "session 0 waits 2.0 s for its graph to be compiled at the master",
          "compiled step 9 of session 1 waits 3.0 s for worker 0 (process 11) to compile and load "
          "it",
          "compiled step 9 of session 1 waits 3.0 s for worker 1 (process 12), which has not said "
          "within 0.2 s what it does"});
}

TEST_CASE("a worker that is to stage writes and does not even say what it does is named for that") {
  JobLook look = two_tasks();
  look.runs[0].computes = false;
  look.runs[0].parts.clear();
  look.runs[0].turn = "worker 1 (process 12) to stage its writes";
  look.runs[0].unanswered = {kSecond};
  const std::string staging =
      "step 4 of session 0 waits 5.0 s for worker 1 (process 12) to stage its writes";
  look.told[kFirst] = told(kFirst, {});
  look.told[kSecond] = told(kSecond, {});
  CHECK(texts(look) == std::vector<std::string>{staging});
  CHECK(waits_of(look)[0].on == Wait::On::turn);
  look.told.erase(kSecond);
  CHECK(texts(look) ==
        std::vector<std::string>{staging + ": it has not said within 0.2 s what it does"});
  CHECK(waits_of(look)[0].on == Wait::On::task);
  CHECK(waits_of(look)[0].task == "worker 1 (process 12)");
  look.runs[0].unanswered = {kFirst, kSecond};
  CHECK(texts(look).size() == 1);
  CHECK(texts(look)[0].ends_with(": worker 1 (process 12) has not said within 0.2 s what it does"));
  look.told.clear();
  REQUIRE(texts(look).size() == 2);
  CHECK(texts(look)[0].ends_with(": worker 0 (process 11) has not said within 0.2 s what it does"));
  CHECK(texts(look)[1].ends_with(": worker 1 (process 12) has not said within 0.2 s what it does"));
}

TEST_CASE("lines of one run are as many as are wanted") {
  JobLook look = two_tasks();
  look.runs[0].parts.pop_back();
  look.told[kFirst] = told(kFirst, {});
  for (int i = 0; i < 7; ++i)
    look.told[kFirst].waits.push_back(at_node(0, Wait::On::resource, "the variables"));
  const std::string lines = lines_of(waits_of(look), "step 4 of session 0", 2);
  CHECK(lines.ends_with("; and for 5 more"));
  CHECK(lines_of(waits_of(look), "step 5 of session 0", 2).empty());
}

TEST_CASE("what some of many runs wait for is told as if each were asked for by itself") {
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    CAPTURE(seed);
    Random random(seed);
    JobLook look = two_tasks();
    look.runs.clear();
    for (TaskId task : {kFirst, kSecond})
      if (random.below(8) != 0) look.told[task] = told(task, {});
    for (std::uint64_t n = 1 + random.below(8); n > 0; --n) {
      RunLook run = two_tasks().runs.front();
      run.run = {random.below(2), n};
      run.attempt = {1, n};
      run.computes = random.below(3) != 0;
      if (!run.computes) run.turn = "its turn";
      if (!run.computes || random.below(3) == 0) run.parts.clear();
      for (auto& [task, said] : look.told)
        for (std::uint64_t waits = random.below(5); waits > 0; --waits) {
          const auto on = random.below(2) == 0 ? Wait::On::tensor : Wait::On::queue;
          NodeWait wait = at_node(std::uint32_t(random.below(2)), on, std::to_string(waits));
          wait.from = std::uint32_t(random.below(2));
          wait.attempt = run.attempt;
          said.waits.push_back(std::move(wait));
        }
      look.runs.push_back(std::move(run));
    }
    std::vector<RunId> some{{3, 3}};  // which is not there
    for (const RunLook& run : look.runs)
      if (random.below(2) == 0) some.push_back(run.run);
    const auto lines = lines_of(look, some, 3);
    CHECK(lines.size() == some.size());
    for (const RunId& run : some)
      CHECK(lines.at(run) == lines_of(waits_of(look), step_name(run), 3));
  }
}

namespace {

// What it takes in memory to tell of all of so many runs at once.
std::uint64_t telling_of(std::size_t runs) {
  JobLook look = two_tasks();
  const RunLook one = look.runs.front();
  look.runs.clear();
  look.told[kFirst] = told(kFirst, {});
  std::vector<RunId> all;
  for (std::uint64_t n = 1; n <= runs; ++n) {
    RunLook& run = look.runs.emplace_back(one);
    all.push_back(run.run = {0, n});
    run.attempt = {1, n};
    run.parts.pop_back();
    NodeWait wait = at_node(0, Wait::On::queue, "queue 'q', which is empty");
    wait.attempt = run.attempt;
    look.told[kFirst].waits.push_back(std::move(wait));
  }
  const std::uint64_t before = test::allocated_bytes();
  const auto lines = lines_of(look, all, 5);
  const std::uint64_t took = test::allocated_bytes() - before;
  CHECK(lines.at({0, runs}).starts_with("step " + std::to_string(runs) + " of session 0 waits"));
  return took;
}

}  // namespace

TEST_CASE("what many runs wait for takes no more to tell for each than for few") {
  const std::uint64_t few = telling_of(50), many = telling_of(400);
  MESSAGE("bytes for 50 runs: ", few, ", for 400: ", many);
  CHECK(many < 10 * few);
}

TEST_CASE("a run whose nodes stand still is told of once, and later again") {
  WaitsWatch watch(60s);
  const auto still = [&](Instant age, std::uint64_t ms, Wait::On on = Wait::On::node) {
    JobLook look = two_tasks(age);
    look.runs[0].parts.pop_back();
    look.told[kFirst] = told(kFirst, {at_node(0, on, "", ms)});
    return watch.look(look, waits_of(look)).still;
  };
  CHECK(still(59s, 59'000).empty());
  CHECK(still(100s, 1'000).empty());                     // nodes end and begin
  CHECK(still(100s, 100'000, Wait::On::queue).empty());  // its client has to fill it
  const auto found = still(100s, 100'000);
  REQUIRE(found.size() == 1);
  CHECK(found[0] ==
        "no node of step 4 of session 0 has begun or ended for 60 s: step 4 of session 0 computes "
        "node 'x' (Dequeue) at prog.cpp:41 on /job:worker/task:0/cpu:0 for 100.0 s");
  CHECK(still(199s, 199'000).empty());
  CHECK(still(201s, 201'000).size() == 1);
  WaitsWatch off(0s);
  JobLook look = two_tasks(1h);
  CHECK(off.look(look, waits_of(look)).still.empty());
}

TEST_CASE("a part that its task never heard of is lost when it is too old to be under way") {
  WaitsWatch watch(60s);
  const auto lost = [&](Instant age, bool answers, bool tensors = false) {
    JobLook look = two_tasks(age);
    look.runs[0].parts.pop_back();
    look.runs[0].parts[0].moves_tensors = tensors;
    if (answers) look.told[kFirst] = told(kFirst, {});
    return watch.look(look, waits_of(look)).lost.size();
  };
  CHECK(lost(10s, true) == 0);  // seen for the first time
  CHECK(lost(11s, true) == 0);
  CHECK(lost(14s, true) == 1);
  CHECK(lost(20s, false) == 0);  // it does not answer: that is another thing
  CHECK(lost(30s, true) == 0);
  CHECK(lost(40s, true, true) == 0);  // a large feed may be under way
  CHECK(lost(700s, true, true) == 1);
}
