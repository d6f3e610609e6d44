// A job computes the same wherever its tasks are.
#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <set>

#include "actors/runtime/worker_shell.hpp"
#include "ops/optim/optim.hpp"
#include "tests/actors/sim/world.hpp"
#include "tests/actors/support/nodes.hpp"

using namespace troupe;
using namespace troupe::test;

namespace {

constexpr std::size_t kTasks = 3;
// The parameters of the tasks: so different that nobody takes one for another by its bytes.
constexpr std::array<std::int64_t, kTasks> kElements = {5'000, 25'000, 125'000};

// Whether each process has the device of the task that it is to host, and holds what that task's
// parameters need and no other's. `tasks`: of the processes 1, 2, ...
void check_hosts(const World& world, const std::vector<TaskId>& tasks) {
  std::set<ProcessId> seen;
  for (World::Index i = 0; i < world.processes(); ++i) {
    const WorkerShell* worker = world.process(i).worker();
    if (!worker) continue;
    seen.insert(worker->process());
    const TaskId task = tasks.at(worker->process() - 1);
    CAPTURE(worker->process());
    CAPTURE(number(task));
    REQUIRE(worker->devices().size() == 1);
    const Device& device = *worker->devices().front();
    CHECK(task_of(device.name()) == task);
    const std::size_t bytes = std::size_t(kElements[number(task)]) * sizeof(float);
    CHECK(device.bytes_in_use() >= bytes);
    CHECK(device.bytes_in_use() < 3 * bytes);
  }
  CHECK(seen == std::set<ProcessId>{1, 2, 3});
}

// Parameters on three tasks, each step of which depends on all of them.
std::string train(std::uint64_t seed, const std::vector<TaskId>& tasks) {
  Graph g(7);
  Output x = random_standard_normal(g, {8});
  std::vector<Output> values;
  Output error = constant(g, -1.0f);
  for (std::size_t k = 0; k < kTasks; ++k) {
    const std::string task = "/job:worker/task:" + std::to_string(k);
    std::vector<float> initial(std::size_t(kElements[k]), 0.5f / float(k + 1));
    Variable v = variable_on(g, task.c_str(), "v" + std::to_string(k),
                             Tensor::of<float>({kElements[k]}, initial));
    values.push_back(v.value());
    error = error + mean(v.value() * v.value()) * mean(x * x);
  }
  Output loss = error * error;
  Op train = optim::Sgd{.lr = 100}.minimize(loss);

  World world(seed, World::Options{.workers = int(kTasks), .tasks = tasks});
  const Status started = world.start();
  REQUIRE_MESSAGE(started.ok(), started.text());
  Client client(world.master(), 1, g, 2);
  client.init().compile("train", {loss}, {train}).run("train", 4);
  client.compile("read", values, {}, 1).run("read");
  Status status = world.run({&client});
  CHECK_MESSAGE(status.ok(), status.text());
  CHECK_MESSAGE(client.status().ok(), client.status().text());
  world.pass(std::chrono::milliseconds(100));  // what the steps held is given back
  check_hosts(world, tasks);
  client.close();
  status = world.run({&client});
  CHECK_MESSAGE(status.ok(), status.text());
  const Status end = world.shut_down();
  CHECK_MESSAGE(end.ok(), end.text());
  return client.fetched_bytes();
}

void same_result_wherever_tasks_are(std::uint64_t seeds) {
  std::vector<TaskId> tasks = {TaskId{0}, TaskId{1}, TaskId{2}};
  const std::string first = train(0, tasks);
  const std::size_t params = std::size_t(kElements[0] + kElements[1] + kElements[2]);
  REQUIRE(first.size() == (4 + params) * sizeof(float));
  const float* values = reinterpret_cast<const float*>(first.data());
  CHECK(values[0] != values[3]);  // it did train
  CHECK(values[4] != 0.5f);
  std::size_t permutations = 0;
  do {
    ++permutations;
    CAPTURE(permutations);
    for (std::uint64_t seed = 1; seed <= seeds; ++seed) {
      CAPTURE(seed);
      CHECK((train(seed, tasks) == first));
    }
  } while (std::next_permutation(tasks.begin(), tasks.end()));
  CHECK(permutations == 6);
}

}  // namespace

TEST_CASE("training on three tasks gives the same result whichever processes host them") {
  same_result_wherever_tasks_are(schedules(3));
}

TEST_CASE(
    "training on three tasks gives the same result whichever processes host them, long [slow]") {
  same_result_wherever_tasks_are(schedules(100));
}
