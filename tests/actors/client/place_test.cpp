// What a job keeps with a commit for a program that comes back: its note, what it did once, how far
// datasets were read, the graph that it had.
#include <doctest/doctest.h>

#include <atomic>
#include <thread>

#include "ops/api/generated.hpp"
#include "ops/api/math.hpp"
#include "ops/data/data.hpp"
#include "serialization/checkpoint.hpp"
#include "tests/actors/support/sessions.hpp"
#include "tests/serialization/temporary.hpp"

using namespace troupe;
using namespace troupe::test;
using troupe::testing::TemporaryDir;

namespace {

// Trains on a dataset with noise, and looks at what it has with noise of its own.
struct Noted {
  Graph g{3};
  Variable w = variable(g, "w", 0.f);
  Output x, noise, seen;
  Op train;
  std::unique_ptr<TcpWorkers> workers;
  std::unique_ptr<Session> session;
  CompiledStep step, look;

  explicit Noted(int tasks = 0) {
    auto [images, labels] = data::digits(64).batch(4).outputs(g);
    x = sum(images);
    noise = random_standard_normal(g, PartialShape::scalar());
    train = assign_add(w, x * 0.01f + noise);
    seen = w + random_standard_normal(g, PartialShape::scalar());
    if (tasks > 0) workers = std::make_unique<TcpWorkers>(tasks);
    session = std::make_unique<Session>(g, workers ? workers->cluster() : one_thread());
    step = session->compile({x}, {train});
    look = session->compile({seen});
  }
  // One line for each step, as a program that counts in its note says it.
  std::string next(int n) {
    const float was = step.run({}, {.note = std::to_string(n)})[0].item<float>();
    const float first = look.run()[0].item<float>(), second = look.run()[0].item<float>();
    CHECK(first != second);
    return std::to_string(n) + ": " + std::to_string(was) + " " + std::to_string(first) + " " +
           std::to_string(second);
  }
};

// Its two queues hold what it has put there, up to these many elements.
struct Queued {
  Graph g;
  Variable w = variable(g, "w", 0.f);
  Output first, second;
  Op add, put;
  std::unique_ptr<TcpWorkers> workers;
  std::unique_ptr<Session> session;
  CompiledStep step;

  Queued(int tasks, int capacity)
      : first(fifo_queue(g, {DType::f32}, {.capacity = 10, .shared_name = "first"})),
        second(fifo_queue(g, {DType::f32}, {.capacity = capacity, .shared_name = "second"})) {
    add = assign_add(w, constant(g, 1.f));
    put = group(g, {enqueue(first, {w + 0.f}), enqueue(second, {w + 0.f})});
    if (tasks > 0) workers = std::make_unique<TcpWorkers>(tasks);
    session = std::make_unique<Session>(g, workers ? workers->cluster() : one_thread());
    step = session->compile({}, {add, put});
  }
  void train(int from, int to) {
    for (int n = from; n <= to; ++n) step.run({}, {.note = std::to_string(n)});
  }
  float value() { return session->run({w})[0].item<float>(); }
};

// Trains, and looks at a dataset with noise.
struct Looking {
  Graph g{4};
  Variable w = variable(g, "w", 0.f);
  Output x = sum(data::digits(64).batch(1).outputs<2>(g)[0]);
  Output noise = random_standard_normal(g, PartialShape::scalar());
  Op add = assign_add(w, constant(g, 1.f));
  Session session{g, one_thread()};
  CompiledStep step = session.compile({}, {add}), look = session.compile({x, noise});
  std::pair<float, float> next() {
    const std::vector<Tensor> seen = look.run();
    return {seen[0].item<float>(), seen[1].item<float>()};
  }
};

Code code_of(const Status& status) { return status.code(); }

}  // namespace

TEST_CASE("a program that goes on from its note does and draws what it would have") {
  for (int tasks : {0, 2}) {
    INFO(tasks << " workers");
    const TemporaryDir dir;
    std::vector<std::string> whole;
    {
      Noted program(tasks);
      CHECK(program.session->place().committed == 0);
      CHECK(program.session->place().note.empty());
      program.session->init();
      for (int n = 1; n <= 8; ++n) {
        whole.push_back(program.next(n));
        if (n == 5) program.session->save_job(dir.path());  // draws nothing of the program's
      }
      CHECK(program.session->place().note == "8");
    }
    Noted program(tasks);
    program.session->restore_job(dir.path(), {.same_graph = true});
    const JobPlace place = program.session->place();
    CHECK(place.note == "5");
    CHECK(place.committed == 6);
    REQUIRE(place.fetches.size() == 1);
    CHECK(whole[4].find(std::to_string(place.fetches[0].item<float>())) != std::string::npos);
    for (int n = 6; n <= 8; ++n) CHECK(program.next(n) == whole[std::size_t(n) - 1]);
  }
}

TEST_CASE("what a program did between two commits it does again, or not, as its place says") {
  for (bool marks : {false, true}) {
    const TemporaryDir dir;
    float first = 0, second = 0;
    {
      Noted program;
      program.session->init();
      program.step.run({}, {.note = "trained"});
      first = program.look.run()[0].item<float>();
      if (marks) program.session->mark_place("looked once");
      program.session->save_job(dir.path());
      second = program.look.run()[0].item<float>();
    }
    Noted program;
    program.session->restore_job(dir.path());
    CHECK(program.session->place().note == (marks ? "looked once" : "trained"));
    CHECK(program.session->place().committed == 2);
    CHECK(program.look.run()[0].item<float>() == (marks ? second : first));
  }
}

TEST_CASE("a program that was restored and does not ask where it is may read, and not write") {
  const TemporaryDir dir;
  {
    Noted program;
    program.session->init();
    program.next(1);
    program.session->save_job(dir.path());
  }
  Noted program;
  Session& s = *program.session;
  s.restore_job(dir.path());
  s.init();  // has nothing to do, and may write what is new
  const float was = s.run({program.w})[0].item<float>();
  const Status refused = program.step.try_run().status();
  CHECK(code_of(refused) == Code::failed_precondition);
  CHECK_MESSAGE(refused.message().find("from commit 2") != std::string::npos, refused.text());
  // A program's first act, which would undo all that it has learned.
  Graph file;
  [[maybe_unused]] const Output read = variable(file, "w", 9.f) + 0.f;
  Session writer(file, one_thread());
  writer.init();
  writer.save(dir.path("w"));
  CHECK(code_of(s.try_restore(dir.path("w"))) == Code::failed_precondition);
  CHECK(code_of(s.try_init({.reset = true})) == Code::failed_precondition);
  CHECK(code_of(s.try_reset()) == Code::failed_precondition);
  CHECK(s.run({program.w})[0].item<float>() == was);
  CHECK(s.place().note == "1");
  CHECK(program.step.try_run().ok());
  // One that never wrote anything down is not asked.
  s.init({.reset = true});
  CHECK(s.run({program.w})[0].item<float>() == 0);
  s.reset();
  const TemporaryDir plain;
  Noted other;
  other.session->init();
  other.session->save_job(plain.path());
  Noted again;
  again.session->restore_job(plain.path());
  CHECK(again.step.try_run().ok());
}

TEST_CASE("a restore that fails leaves a session as it was, and another one may follow") {
  for (int tasks : {0, 2}) {
    INFO(tasks << " workers");
    const TemporaryDir dir;
    const std::string large = dir.path("large"), small = dir.path("small");
    {
      Queued program(tasks, 10);
      program.session->init();
      program.session->once("prepared", [] {});
      program.train(1, 2);
      program.session->save_job(small);
      program.train(3, 5);
      program.session->save_job(large);
    }
    for (const bool again : {false, true}) {
      Queued program(tasks, 2);  // has no room for five elements
      Session& s = *program.session;
      const Status full = s.try_restore_job(large);
      CHECK(code_of(full) == Code::invalid_argument);
      const JobPlace before = s.place();
      CHECK(before.committed == 0);
      CHECK(before.note.empty());
      CHECK(before.once.empty());
      if (again) {
        s.restore_job(small);
        CHECK(program.value() == 2);
        CHECK(s.place().note == "2");
        CHECK(s.place().committed == 3);
        CHECK(s.run({queue_size(program.first)})[0].item<std::int64_t>() == 2);
        continue;
      }
      s.init();
      CHECK(s.place().committed == 1);
      CHECK(s.place().note.empty());
      CHECK(program.value() == 0);
      CHECK(s.once("prepared", [&] { program.train(1, 1); }));
      CHECK(s.committed() == 2);
      CHECK(code_of(s.try_restore_job(small)) == Code::failed_precondition);
    }
  }
}

TEST_CASE("a restore that fails asks nothing of the graph that comes later") {
  JobState state;
  {
    Graph g;
    const Variable w = variable(g, "w", 1.f);
    Session s(g, one_thread());
    s.init();
    s.run({w * 2.f + 3.f});
    state = value_or_throw(s.try_state());
  }
  state.variables[0].second = Tensor::scalar(std::int64_t{1});
  Graph g;
  const Variable w = variable(g, "w", 1.f);
  const Output y = w * 2.f;
  Session s(g, one_thread());
  CHECK(code_of(s.try_restore(state, {.same_graph = true})) == Code::invalid_argument);
  s.init();
  CHECK(s.run({y + 4.f})[0].item<float>() == 6);
}

TEST_CASE("what a thing that is done once has read and drawn is not read and drawn again") {
  const TemporaryDir dir;
  std::pair<float, float> once, next;
  {
    Looking program;
    program.session.init();
    program.step.run({}, {.note = "1"});
    CHECK(program.session.once("baseline", [&] { once = program.next(); }));
    program.session.save_job(dir.path());
    next = program.next();
    CHECK(once != next);
  }
  Looking program;
  program.session.restore_job(dir.path());
  CHECK_FALSE(program.session.once("baseline", [&] { once = program.next(); }));
  CHECK(program.session.place().note == "1");
  CHECK(program.next() == next);
}

TEST_CASE("what is done once is done once in all lives of a job, and again if it failed") {
  const TemporaryDir dir;
  int made = 0;
  {
    Noted program;
    Session& s = *program.session;
    s.init();
    CHECK_THROWS_AS(s.once("prepare", [] { throw Error(unavailable("not yet")); }), Error);
    CHECK(s.try_once("prepare", [] { return aborted("again"); }).status().code() == Code::aborted);
    const auto prepare = [&] {
      ++made;
      s.run({}, {assign_add(program.w, constant(program.g, 100.f))});
    };
    CHECK(s.once("prepare", prepare));
    CHECK_FALSE(s.once("prepare", prepare));
    const CommitNumber commit = s.committed();
    CHECK(s.once("nothing", [] {}));
    CHECK(s.committed() == commit);
    CHECK(s.place().once == std::set<std::string>{"nothing", "prepare"});
    s.save_job(dir.path());
  }
  CHECK(made == 1);
  Noted program;
  program.session->restore_job(dir.path());
  CHECK_FALSE(program.session->once("prepare", [&] { ++made; }));
  CHECK(program.step.try_run().ok());  // it has asked
  CHECK(program.session->once("later", [&] { ++made; }));
  CHECK(made == 2);
}

TEST_CASE("no state is saved in the midst of what is done once") {
  Noted program;
  Session& s = *program.session;
  s.init();
  std::atomic<bool> asked{false};
  JobState seen;
  std::thread other;
  s.once("two runs", [&] {
    s.run({}, {assign_add(program.w, constant(program.g, 1.f))});
    other = std::thread([&] {
      asked = true;
      seen = value_or_throw(s.try_state());
    });
    while (!asked) std::this_thread::yield();
    CHECK(value_or_throw(s.try_state()).once.empty());  // its own thread may
    s.run({}, {assign_add(program.w, constant(program.g, 1.f))});
  });
  other.join();
  CHECK(seen.once.contains("two runs"));
  CHECK(seen.committed == 3);
}

TEST_CASE("nor are the values of some variables written or read in its midst") {
  const TemporaryDir dir;
  const std::string path = dir.path("w.safetensors");
  Noted program;
  Session& s = *program.session;
  s.init();
  const Output now = program.w + 0.f;
  const auto add = [&] { s.run({}, {assign_add(program.w, constant(program.g, 1.f))}); };
  std::atomic<int> asked{0};
  std::vector<std::thread> others;
  float read = 0;
  s.once("two runs", [&] {
    add();
    others.emplace_back([&] {
      ++asked;
      s.save(path, {program.w});
    });
    others.emplace_back([&] {
      ++asked;
      read = value_or_throw(s.try_variables()).at(0).second.item<float>();
    });
    while (asked < 2) std::this_thread::yield();
    for (int i = 0; i < 200; ++i) (void)s.run({now});  // time enough for who does not wait
    add();
  });
  for (std::thread& each : others) each.join();
  const float both = s.run({now})[0].item<float>();
  CHECK(both == 2);
  CHECK(read == both);
  add();
  s.restore(path);
  CHECK(s.run({now})[0].item<float>() == both);
}

// What is done once may wait for it: for a thread that it begins, or for who fills a queue.
TEST_CASE("a thread may initialise while another one does something once") {
  const TemporaryDir dir;
  Noted program;
  Session& s = *program.session;
  s.init();
  s.save(dir.path("w.safetensors"), {program.w});
  const Variable later = variable(program.g, "later", constant(program.g, 7.f));
  const Output value = later + 0.f;
  s.once("two threads", [&] {
    std::thread([&] { s.init(); }).join();
    std::thread([&] {
      s.restore(dir.path("w.safetensors"), {.only = {program.w}, .init_others = true});
    }).join();
  });
  CHECK(s.run({value})[0].item<float>() == 7);
}

TEST_CASE("notes are bytes, up to 64 KiB of them") {
  Noted program;
  Session& s = *program.session;
  s.init();
  std::string bytes;
  for (int i = 0; i < 1 << 16; ++i) bytes += char(i * 7);
  program.step.run({}, {.note = bytes});
  CHECK(s.place().note == bytes);
  const Status longer = program.step.try_run({}, {.note = bytes + "."}).status();
  CHECK(code_of(longer) == Code::invalid_argument);
  CHECK_MESSAGE(longer.message().find("65537 bytes, and may have 65536") != std::string::npos,
                longer.text());
  CHECK(code_of(program.step.try_run({}, {.note = ""}).status()) == Code::invalid_argument);
  CHECK(code_of(s.try_mark_place("")) == Code::invalid_argument);
  CHECK(s.place().note == bytes);
  const TemporaryDir dir;
  s.save_job(dir.path());
  Noted again;
  again.session->restore_job(dir.path());
  CHECK(again.session->place().note == bytes);
  // A run that writes nothing commits when it has one.
  const CommitNumber before = s.committed();
  program.look.run({}, {.note = "looked"});
  CHECK(s.committed() == before + 1);
  CHECK(s.place().note == "looked");
  PendingRun pending = program.look.start({}, {.note = "started"});
  pending.get();
  CHECK(pending.committed() == before + 2);
  s.close();
  CHECK(code_of(s.try_place().status()) == Code::failed_precondition);
  CHECK(code_of(s.try_once("x", [] { return ok_status(); }).status()) == Code::failed_precondition);
}

TEST_CASE("a checkpoint of another graph is refused if that is asked, now or when nodes come") {
  const TemporaryDir dir;
  const auto build = [](Graph& g, float late) {
    const Variable w = variable(g, "w", 1.f);
    const Output y = w * 2.f;
    return std::pair(y, late);
  };
  {
    Graph g;
    auto [y, late] = build(g, 3.f);
    Session s(g, one_thread());
    s.init();
    CHECK(s.run({y + late})[0].item<float>() == 5);
    s.save_job(dir.path());
  }
  {
    Graph g;  // the same, which comes to its last nodes later
    auto [y, late] = build(g, 3.f);
    Session s(g, one_thread());
    s.restore_job(dir.path(), {.same_graph = true});
    CHECK(s.run({y + late})[0].item<float>() == 5);
    CHECK(s.run({y + 4.f})[0].item<float>() == 6);  // what is behind its end is new
  }
  {
    Graph g;
    auto [y, late] = build(g, 4.f);
    Session s(g, one_thread());
    s.restore_job(dir.path(), {.same_graph = true});
    CHECK(s.run({y})[0].item<float>() == 2);
    const Status other = s.try_run({y + late}).status();
    CHECK(code_of(other) == Code::failed_precondition);
    CHECK_MESSAGE(other.text().find("place_test.cpp") != std::string::npos, other.text());
  }
  Graph g;
  const Variable w = variable(g, "w", 2.f);
  [[maybe_unused]] const Output read = w * 2.f;
  Session s(g, one_thread());
  const Status other = s.try_restore_job(dir.path(), {.same_graph = true});
  CHECK(code_of(other) == Code::failed_precondition);
  CHECK_MESSAGE(other.text().find("ckpt-") != std::string::npos, other.text());
  CHECK(s.try_restore_job(dir.path()).ok());
  CHECK(s.run({w})[0].item<float>() == 1);
}
