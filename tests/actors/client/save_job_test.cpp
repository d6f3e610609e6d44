// A job that is saved as a whole and goes on: variables, queues and places in datasets, on whatever
// devices and workers there are then.
#include <doctest/doctest.h>

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <map>
#include <memory>
#include <thread>

#include "actors/resources/prompt_resource.hpp"
#include "ops/api/math.hpp"
#include "ops/data/data.hpp"
#include "serialization/checkpoint.hpp"
#include "serialization/checkpoint_lock.hpp"
#include "tests/actors/support/sessions.hpp"
#include "tests/serialization/temporary.hpp"

using namespace troupe;
using namespace troupe::test;
using troupe::testing::TemporaryDir;

namespace {

const Tensor& value_of(const JobState& state, std::string_view name) {
  const auto found = std::find_if(state.variables.begin(), state.variables.end(),
                                  [&](const auto& each) { return each.first == name; });
  REQUIRE(found != state.variables.end());
  return found->second;
}

// A counter that a step moves on, two queues, and a dataset.
struct SavedProgram {
  Graph g{7};
  Variable count;
  Output jobs, x, out, size, words, element;
  Op put, put_word, take_word, close_words, next;

  // Anywhere, or as the devices say.
  explicit SavedProgram(const char* first = "", const char* second = "")
      : count(variable_on(g, first, "count", Tensor::scalar(0.f))),
        jobs(queue_on(g, second, {.shared_name = "jobs"})),
        x(placeholder<float>(g, {}, "x")),
        out(take_from(jobs)),
        size(queue_size(jobs)) {
    {
      auto there = g.with_device(first);
      words = fifo_queue(g, {DType::string, DType::i64},
                         {.capacity = 9, .container = "mine", .shared_name = "words"});
    }
    put = enqueue(jobs, {x});
    put_word = enqueue(words, {constant(g, Tensor::scalar<std::string>("w")),
                               constant(g, Tensor::of<std::int64_t>({2}, {3, 4}))});
    close_words = queue_close(words);
    auto [images, labels] = data::digits(64).batch(4).outputs(g);
    element = sum(images);
    next = assign_add(count, ones(g, {}));
  }
};

struct SavedRun {
  std::unique_ptr<SavedProgram> program;
  std::unique_ptr<TcpWorkers> workers;
  std::unique_ptr<Session> s;

  explicit SavedRun(int tasks) {
    program = tasks == 2 ? std::make_unique<SavedProgram>(kTask0, kTask1)
                         : std::make_unique<SavedProgram>();
    if (tasks > 0) workers = std::make_unique<TcpWorkers>(tasks);
    s = std::make_unique<Session>(program->g, workers ? workers->cluster() : one_thread());
  }
  void put(float v) { s->run({}, {program->put}, {{program->x, Tensor::scalar(v)}}); }
  float take() { return s->run({program->out})[0].item<float>(); }
  float element() { return s->run({program->element}, {program->next})[0].item<float>(); }
};

}  // namespace

TEST_CASE(
    "a job that is saved on two workers goes on in one process, on one worker, two and three") {
  const TemporaryDir dir;
  std::vector<float> elements;
  std::string path;
  {
    SavedRun run(2);
    run.s->init();
    for (float v : {1.f, 2.f, 3.f, 4.f}) run.put(v);
    CHECK(run.take() == 1);
    for (int i = 0; i < 3; ++i) elements.push_back(run.element());
    run.s->run({}, {run.program->put_word});
    run.s->run({}, {run.program->close_words});
    path = run.s->save_job(dir.path("job"));
    CHECK(path == dir.path("job") + "/ckpt-" + std::to_string(run.s->committed()));
    for (int i = 0; i < 3; ++i) elements.push_back(run.element());
    CHECK(run.take() == 2);  // which is no part of it any more
  }
  const CheckpointData saved = value_or_throw(read_checkpoint(path));
  REQUIRE(saved.resources.size() == 2);
  CHECK(saved.resources[0].resource == ResourceName{"queue", "", "jobs"});
  CHECK(saved.resources[1].resource == ResourceName{"queue", "mine", "words"});
  for (int tasks : {0, 1, 2, 3}) {
    INFO(tasks << " workers");
    SavedRun run(tasks);
    const auto early = run.s->compile({run.program->size});  // before there is anything
    run.s->restore_job(dir.path("job"));
    CHECK(early.run<std::int64_t>() == std::tuple(std::int64_t{3}));
    CHECK(run.s->run({run.program->count})[0].item<float>() == 3);
    for (int i = 3; i < 6; ++i) CHECK(run.element() == elements[std::size_t(i)]);
    for (float v : {2.f, 3.f, 4.f}) CHECK(run.take() == v);
    run.put(9);
    CHECK(run.take() == 9);
    CHECK(run.s->try_run({}, {run.program->put_word}).status().code() == Code::cancelled);
    CHECK(run.s->try_restore_job(dir.path("job")).code() == Code::failed_precondition);
  }
}

TEST_CASE("a job's variables are named by container and name, whatever their nodes are called") {
  const TemporaryDir dir;
  {
    Graph g;
    const Variable a = variable(g, "a", 1.f, {.container = "one", .shared_name = "x"});
    const Variable b = variable(g, "b", 2.f, {.shared_name = "x"});
    const Variable again = variable(g, "c", 2.f, {.shared_name = "x"});
    Session s(g, one_thread());
    s.init();
    [[maybe_unused]] const Output read = a + b + again;
    const JobState state = value_or_throw(s.try_state());
    REQUIRE(state.variables.size() == 2);
    CHECK(state.variables[0].first == "one/x");
    CHECK(state.variables[1].first == "x");
    s.save_job(dir.path());
  }
  Graph g;
  const Variable p = variable(g, "p", 0.f, {.shared_name = "x"});
  const Variable q = variable(g, "q", 0.f, {.container = "one", .shared_name = "x"});
  const Output difference = p - q;
  Session s(g, one_thread());
  s.restore_job(dir.path());
  CHECK(s.run({difference})[0].item<float>() == 1);
  const Variable same = variable(g, "one/x", 5.f);
  [[maybe_unused]] const Output read = same + q;
  s.init();
  const Status twice = s.try_state().status();
  CHECK(twice.code() == Code::already_exists);
  CHECK_MESSAGE(twice.message().find("'one/x'") != std::string::npos, twice.text());
}

TEST_CASE("a job is not saved where a checkpoint of another would be restored instead") {
  const TemporaryDir dir;
  std::string later;
  const auto saved_after = [&](int puts) {
    SavedRun run(0);
    run.s->init();
    for (int i = 0; i < puts; ++i) run.put(1);
    return run.s->try_save_job(dir.path());
  };
  REQUIRE((later = value_or_throw(saved_after(5))).ends_with("/ckpt-6"));
  const auto names = dir.names();
  const Status refused = saved_after(2).status();
  CHECK(refused.code() == Code::failed_precondition);
  CHECK_MESSAGE(refused.message().find("ckpt-6' is of a later step than 3") != std::string::npos,
                refused.text());
  CHECK(dir.names() == names);
  REQUIRE(saved_after(5).ok());  // the same step: it is replaced
  // One that is damaged is passed over, so that a job which restored an earlier one goes on.
  std::filesystem::remove(later + "/manifest.json");
  const auto earlier = saved_after(2);
  REQUIRE_MESSAGE(earlier.ok(), earlier.status().text());
  SavedRun run(0);
  run.s->restore_job(dir.path());
  CHECK(run.s->committed() == 3);
}

TEST_CASE("a job is not saved while another writer is at work in the folder") {
  const TemporaryDir dir;
  SavedRun run(0);
  run.s->init();
  {
    const CheckpointLock other = value_or_throw(CheckpointLock::take(dir.path()));
    const CheckpointDraft draft = value_or_throw(CheckpointDraft::begin(dir.path()));
    const Status refused = run.s->try_save_job(dir.path()).status();
    CHECK(refused.code() == Code::failed_precondition);
    CHECK_MESSAGE(
        refused.message().find("somebody else writes checkpoints into") != std::string::npos,
        refused.text());
    CHECK(check_draft(disk(), draft.folder(), draft.token()).ok());
  }
  const auto saved = run.s->try_save_job(dir.path());
  CHECK_MESSAGE(saved.ok(), saved.status().text());
}

TEST_CASE("a queue is restored where the steps that use it are, which come later") {
  const TemporaryDir dir;
  for (int round = 0; round < 3; ++round) {
    Graph g;
    const Output queue =
        fifo_queue(g, {DType::f32}, {.shapes = {PartialShape::scalar()}, .shared_name = "q"});
    const Op put = node(g, kTask1, "Enqueue", {queue, constant(g, 1.5f)});
    const Output taken = take_from(queue);
    PlacedSession s(g, kPlaces[1]);
    if (round > 0) s->restore_job(dir.path());
    if (round == 2) CHECK(value_or_throw(s->try_state()).resources.size() == 1);
    s->run({}, {put});
    if (round == 0) s->save_job(dir.path());
    CHECK(s->run({taken})[0].item<float>() == 1.5f);
    if (round > 0) CHECK(s->run({taken})[0].item<float>() == 1.5f);
  }
}

TEST_CASE("variables and datasets alone are restored as before, and the state without queues") {
  SavedRun run(0);
  run.s->init();
  run.put(5);
  (void)run.element();
  const JobState all = value_or_throw(run.s->try_state());
  const JobState some = value_or_throw(run.s->try_state({.resources = false}));
  CHECK(all.resources.size() == 2);
  CHECK(some.resources.empty());
  CHECK(some.variables.size() == all.variables.size());
  SavedRun other(0);
  other.s->restore(all.variables, all.committed, all.datasets);
  CHECK(other.s->run({other.program->count})[0].item<float>() == 1);
  CHECK(other.s->run({other.program->size})[0].item<std::int64_t>() == 0);
  CHECK(other.s->committed() == all.committed);
}

TEST_CASE("what does not fit the graph is refused by name, and nothing is changed") {
  const TemporaryDir dir;
  SavedRun run(0);
  run.s->init();
  for (float v : {1.f, 2.f}) run.put(v);
  run.s->save_job(dir.path());
  Graph g{7};
  variable(g, "count", 0.f);
  fifo_queue(g, {DType::string, DType::i64}, {.container = "mine", .shared_name = "words"});
  Session s(g, one_thread());
  const Status missing = s.try_restore_job(dir.path());
  CHECK(missing.code() == Code::not_found);
  CHECK_MESSAGE(missing.message().find("the graph has no queue 'jobs'") != std::string::npos,
                missing.text());
  fifo_queue(g, {DType::f32},
             {.shapes = {PartialShape::scalar()}, .capacity = 1, .shared_name = "jobs"});
  const Status full = s.try_restore_job(dir.path());
  CHECK(full.code() == Code::invalid_argument);
  CHECK_MESSAGE(full.text().find("queue 'jobs' of capacity 1 cannot hold 2") != std::string::npos,
                full.text());
  Graph seeds{8};
  Session other(seeds, one_thread());
  const Status seed = other.try_restore_job(dir.path());
  CHECK(seed.code() == Code::invalid_argument);
  CHECK(seed.message().find("seed 7") != std::string::npos);
  CHECK(s.try_restore_job(dir.path("nothing")).code() == Code::not_found);
  JobState damaged = value_or_throw(run.s->try_state());
  damaged.resources[0].state = Tensor::of<std::uint8_t>({3}, {1, 2, 3});
  SavedRun fresh(0);
  const Status bytes = fresh.s->try_restore(damaged);
  CHECK(bytes.code() == Code::invalid_argument);
  CHECK(bytes.text().find("queue 'jobs'") != std::string::npos);
  fresh.s->restore_job(dir.path());
  CHECK(fresh.take() == 1);
}

TEST_CASE("a state is of one moment, however busy its queues are") {
  for (const Place& place : kPlaces) {
    INFO(place.name);
    Graph g;
    // What is put is counted in the same run, and so is what is taken.
    const Variable in = variable_on(g, place.first, "in", Tensor::scalar<std::int64_t>(0));
    const Variable taken = variable_on(g, place.first, "taken", Tensor::scalar<std::int64_t>(0));
    const Output queue = queue_on(g, place.second, {.shared_name = "busy"});
    const Output one = constant(g, Tensor::scalar<std::int64_t>(1));
    const Op put = group(g, {enqueue(queue, {constant(g, 1.f)}), assign_add(in, one)});
    const Output out = take_from(queue);
    const Op take = group(g, {assign_add(taken, cast<std::int64_t>(out))});
    [[maybe_unused]] const Output read = in + taken;  // of which a state is
    PlacedSession s(g, place);
    s->init();
    auto putting = s->compile({}, {put}), taking = s->compile({}, {take});
    std::atomic<bool> stop{false};
    std::vector<std::thread> threads;
    for (const CompiledStep& step : {putting, taking})
      threads.emplace_back([&, step] {
        while (!stop) (void)step.try_run();
      });
    for (int i = 0; i < 20; ++i) {
      const JobState state = value_or_throw(s->try_state());
      std::map<std::string, std::int64_t> values;
      for (const auto& [name, value] : state.variables) values[name] = value.item<std::int64_t>();
      Graph here;
      const Output again = fifo_queue(here, {DType::f32},
                                      {.shapes = {PartialShape::scalar()}, .shared_name = "busy"});
      const Output size = queue_size(again);
      Session local(here, one_thread());
      JobState queue_alone = state;
      queue_alone.variables.clear();
      local.restore(queue_alone);
      CHECK(local.run({size})[0].item<std::int64_t>() == values["in"] - values["taken"]);
    }
    stop = true;
    // Whoever waits for an element, or for room, gets on.
    s->run({}, {queue_close(queue, {.cancel_pending = true})});
    for (std::thread& t : threads) t.join();
  }
}

// Kinds of the program's own: one that says how it is saved, and one that does not.
namespace {

struct SavedNumbers final : PromptResource<std::map<WriteKey, float>, std::vector<float>> {
  using Log = std::map<WriteKey, float>;
  explicit SavedNumbers(bool saves) : saves_(saves) {}

  Expected<std::vector<Tensor>> perform(ResourceRequest& request) override {
    auto& item = request.items.front();
    if (request.external().verb == "sum") {
      float all = 0;
      for (float x : numbers_) all += x;
      return std::vector{Tensor::scalar(all)};
    }
    logs_[request.attempt.id][item.key] = item.operands.at(0).item<float>();
    return std::vector<Tensor>{};
  }
  std::string name() const override { return "numbers"; }
  std::uint32_t keys_of(const Log& log) const override { return std::uint32_t(log.size()); }
  Expected<std::pair<std::uint64_t, std::vector<float>>> record_of(CommitNumber, const AttemptId&,
                                                                   Log log) override {
    std::vector<float> added;
    for (const auto& [key, x] : log) added.push_back(x);
    return std::pair{std::uint64_t(added.size()), std::move(added)};
  }
  Status commit(CommitNumber, const AttemptId&, std::vector<float> added, Outputs&) override {
    numbers_.insert(numbers_.end(), added.begin(), added.end());
    return {};
  }
  Expected<std::vector<float>> whole() const override {
    if (!saves_) return PromptResource::whole();
    return numbers_;
  }
  Status write_record(const std::vector<float>& numbers, StateWriter& out) const override {
    out.number(numbers.size());
    for (float x : numbers) out.tensor(Tensor::scalar(x));
    return {};
  }
  Expected<std::vector<float>> read_record(StateReader& in) const override {
    std::vector<float> numbers;
    for (std::uint64_t n = in.count(); n > 0 && in.ok(); --n) {
      const Tensor x = in.tensor();
      if (x.dtype() != DType::f32 || x.rank() != 0)
        in.refuse("no number");
      else
        numbers.push_back(x.item<float>());
    }
    return numbers;
  }

  const bool saves_;
  std::vector<float> numbers_;
};

void add_numbers(OpTable& table) {
  for (const std::string kind : {"SavedNumbers", "LostNumbers"}) {
    table.add({.name = kind,
               .out = {"handle: resource"},
               .attrs = {"container: string = ", "shared_name: string = "},
               .shape = scalar_shape,
               .no_gradient = "a handle",
               .stateful = true,
               .role = Role::handle,
               .external = {.resource = kind},
               .doc = "Numbers."});
    table.add({.name = kind + "Add",
               .in = {"handle: resource", "x: f32"},
               .shape = no_outputs,
               .no_gradient = "no outputs",
               .host = {"x"},
               .stateful = true,
               .role = Role::external,
               .external = {.resource = kind, .verb = "add", .commits = true, .changes = true},
               .doc = "Adds one."});
    table.add({.name = kind + "Sum",
               .in = {"handle: resource"},
               .out = {"sum: f32"},
               .shape = scalar_shape,
               .no_gradient = "a number",
               .host = {"sum"},
               .stateful = true,
               .role = Role::external,
               .external = {.resource = kind, .verb = "sum", .sees = true},
               .doc = "Their sum."});
  }
}

Status add_number_kinds() {
  for (const bool saves : {true, false})
    TROUPE_TRY(add_resource_kind(
        {.name = saves ? "SavedNumbers" : "LostNumbers", .make = [saves](const ResourceRef&) {
           return Expected<std::unique_ptr<Resource>>(std::make_unique<SavedNumbers>(saves));
         }}));
  return ops::extend(add_numbers);
}
const Status kNumbersAdded = add_number_kinds();

}  // namespace

TEST_CASE("a kind of resource of the program's own is saved, if it says how") {
  REQUIRE_MESSAGE(kNumbersAdded.ok(), kNumbersAdded.text());
  const TemporaryDir dir;
  for (int round = 0; round < 2; ++round) {
    Graph g;
    const Output numbers = node(g, kTask0, "SavedNumbers", {}, {{"shared_name", "n"}}).output();
    const Output sum = node(g, kTask0, "SavedNumbersSum", {numbers}).output();
    const Op add = node(g, kTask0, "SavedNumbersAdd", {numbers, constant(g, 2.5f)});
    PlacedSession s(g, kPlaces[round]);
    if (round == 0) {
      for (int i = 0; i < 3; ++i) s->run({}, {add});
      s->save_job(dir.path());
    } else {
      s->restore_job(dir.path());
      s->run({}, {add});
    }
    CHECK(s->run({sum})[0].item<float>() == (round == 0 ? 7.5f : 10.f));
    if (round == 0) continue;
    // One that does not, by name.
    node(g, kTask0, "LostNumbers", {}, {{"shared_name", "l"}});
    const Status lost = s->try_save_job(dir.path("lost")).status();
    CHECK(lost.code() == Code::unimplemented);
    CHECK_MESSAGE(lost.text().find("LostNumbers") != std::string::npos, lost.text());
    CHECK(s->try_state({.resources = false}).status().code() == Code::failed_precondition);
    // Which is no part of a file of variables.
    const Variable weight = variable(g, "weight", 4.f);
    const Output read = weight * 2.f;
    s->init();
    const Status saved = s->try_save(dir.path("weights"));
    REQUIRE_MESSAGE(saved.ok(), saved.text());
    s->run({}, {assign(weight, constant(g, 5.f))});
    s->restore(dir.path("weights"));
    CHECK(s->run({read})[0].item<float>() == 8);
    Graph h;
    queue_on(h, kTask0);
    Session fresh(h, one_thread());
    CHECK(fresh.try_save_job(dir.path("fresh")).status().code() == Code::failed_precondition);
  }
}

// Who is killed then would go on from some new values and some old ones.
TEST_CASE("no state is saved amid an initialisation that takes several runs") {
  Graph g{7};
  const Variable first = variable(g, "first", random_uniform(g, {64}));
  const Variable second = variable(g, "second", first * 2);
  (void)variable(g, "third", second * 2);
  Session s(g, one_thread());
  s.init();
  CHECK(s.committed() == 3);
  std::atomic<bool> over{false};
  std::thread inits([&] {
    for (int i = 0; i < 100; ++i) s.init({.reset = true});
    over = true;
  });
  CommitNumber last = 0;
  int torn = 0, states = 0;
  do {
    const JobState state = value_or_throw(s.try_state());
    ++states;
    torn +=
        value_of(state, "third").data<float>()[0] != 4 * value_of(state, "first").data<float>()[0];
    last = state.committed;
  } while (!over);
  inits.join();
  CHECK(states > 0);
  CHECK(torn == 0);
  CHECK(last >= 3);
}
