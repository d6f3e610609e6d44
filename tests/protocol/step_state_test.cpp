#include <random>
#include <thread>

#include "tests/protocol/step_fixture.hpp"

using namespace troupe;

TEST_CASE("a chain runs in order and its last value is fetched, step after step") {
  StepWorld w;
  auto a = w.constant("a", 2);
  auto b = w.sum("b", {w.draft.out(a)});
  auto c = w.sum("c", {w.draft.out(b), w.draft.out(b), w.draft.out(a)});
  w.draft.fetch(w.draft.out(c));
  w.make();
  for (int i = 0; i < 3; ++i) {
    StepResult result = w.run_whole();
    CHECK(result.status.ok());
    REQUIRE(result.fetches.size() == 1);
    CHECK(result.fetches[0].value.item<float>() == 6);
  }
}

TEST_CASE("control edges order nodes that share no tensor") {
  StepWorld w;
  std::string order;
  auto log = [&](char c) {
    return [&order, c](KernelContext&) {
      order += c;
      return ok_status();
    };
  };
  auto a = w.kernel("a", {}, log('a'), 0);
  auto b = w.kernel("b", {}, log('b'), 0, {a});
  auto c = w.kernel("c", {}, log('c'), 0, {a});
  w.kernel("d", {}, log('d'), 0, {b, c});
  w.make();
  CHECK(w.run_whole().status.ok());
  CHECK(order == "abcd");
}

TEST_CASE("feeds are in their slots before the first node; a wrong count is refused") {
  StepWorld w;
  auto x = w.role("x", Role::placeholder, {}, 1);
  auto y = w.sum("y", {w.draft.out(x), w.draft.out(x)});
  w.draft.feed(w.draft.out(x));
  w.draft.fetch(w.draft.out(y));
  w.draft.fetch(w.draft.out(x));
  w.make();
  CHECK(w.step->start({}, w.outbox).code() == Code::invalid_argument);
  StepResult result = w.run_whole({Tensor::scalar(4.0f)});
  REQUIRE(result.fetches.size() == 2);
  CHECK(result.fetches[0].value.item<float>() == 8);
  CHECK(result.fetches[1].value.item<float>() == 4);
}

TEST_CASE("a placeholder that nobody feeds is an error that names it") {
  StepWorld w;
  auto x = w.role("x", Role::placeholder, {}, 1);
  w.sum("y", {w.draft.out(x)});
  w.make();
  Status status = w.run_whole().status;
  CHECK(status.code() == Code::invalid_argument);
  CHECK(status.text().find("node 'x'") != std::string::npos);
}

TEST_CASE("random graphs equal a recursive evaluation") {
  const auto seed = std::uint64_t(std::random_device{}());
  INFO("seed " << seed);
  Random random(seed);
  for (int round = 0; round < 50; ++round) {
    StepWorld w;
    std::vector<std::uint32_t> nodes;
    std::vector<float> expected;
    const int count = 1 + int(random.below(60));
    for (int i = 0; i < count; ++i) {
      const std::string name = "n" + std::to_string(i);
      std::vector<std::uint32_t> inputs, control;
      float value = 0;
      if (i > 0)
        for (std::uint64_t k = random.below(4); k > 0; --k) {
          auto from = std::size_t(random.below(std::uint64_t(i)));
          if (random.below(4) == 0) {
            control.push_back(nodes[from]);
            continue;
          }
          inputs.push_back(w.draft.out(nodes[from]));
          value += expected[from];
        }
      if (inputs.empty()) {
        value = float(random.below(3));
        nodes.push_back(w.constant(name, value, control));
      } else {
        if (value > 1e6f) value = 0, inputs.clear();
        nodes.push_back(inputs.empty() ? w.constant(name, 0, control)
                                       : w.sum(name, inputs, control));
      }
      expected.push_back(value);
    }
    std::vector<float> wanted;
    for (int i = 0; i < count; ++i)
      if (random.below(3) == 0) {
        w.draft.fetch(w.draft.out(nodes[std::size_t(i)]));
        wanted.push_back(expected[std::size_t(i)]);
      }
    w.make();
    for (int again = 0; again < 2; ++again) {
      StepResult result = w.run_whole();
      REQUIRE(result.status.ok());
      REQUIRE(result.fetches.size() == wanted.size());
      for (std::size_t i = 0; i < wanted.size(); ++i)
        CHECK(result.fetches[i].value.item<float>() == wanted[i]);
    }
  }
}

namespace {

// out = in + 1, in place where that is allowed; tells whether it was.
Compute increment(bool& in_place) {
  return [&in_place](KernelContext& c) -> Status {
    in_place = c.may_reuse(0);
    TROUPE_TRY(Tensor out, c.reuse_or_allocate(0, DType::f32, c.input(0).shape()));
    *out.mutable_data<float>() = c.input(0).item<float>() + 1;
    c.set_output(0, std::move(out));
    return ok_status();
  };
}

// Lets every kernel tell when it runs.
void note_runs(StepWorld& w, std::vector<std::string>& ran) {
  for (auto& [name, compute] : w.kernels)
    compute = [name = name, run = std::move(compute), &ran](KernelContext& c) {
      ran.push_back(name);
      return run(c);
    };
}

}  // namespace

TEST_CASE("the last reader may overwrite its input, and only the last one") {
  StepWorld w;
  bool first = false, second = false, third = false;
  auto a = w.constant("a", 1);
  auto b = w.kernel("b", {w.draft.out(a)}, increment(first));
  auto c = w.kernel("c", {w.draft.out(b)}, increment(second));
  auto d = w.kernel("d", {w.draft.out(b)}, increment(third), 1, {c});
  w.draft.fetch(w.draft.out(c));
  w.draft.fetch(w.draft.out(d));
  w.make();
  StepResult result = w.run_whole();
  CHECK(first);
  CHECK_FALSE(second);
  CHECK(third);
  CHECK(result.fetches[0].value.item<float>() == 3);
  CHECK(result.fetches[1].value.item<float>() == 3);
}

TEST_CASE("what is fetched, fed and still held, or read twice by one node is never overwritten") {
  StepWorld w;
  bool fetched = true, fed = true, twice = true;
  auto x = w.role("x", Role::placeholder, {}, 1);
  w.draft.feed(w.draft.out(x));
  auto a = w.constant("a", 1);
  auto b = w.constant("b", 1);
  w.draft.fetch(w.draft.out(a));
  w.kernel("f", {w.draft.out(a)}, increment(fetched));
  w.kernel("g", {w.draft.out(x)}, increment(fed));
  w.kernel("h", {w.draft.out(b), w.draft.out(b)}, increment(twice));
  w.make();
  Tensor feed = Tensor::scalar(7.0f);
  StepResult result = w.run_whole({feed});
  CHECK_FALSE(fetched);
  CHECK_FALSE(fed);
  CHECK_FALSE(twice);
  CHECK(result.fetches[0].value.item<float>() == 1);
  CHECK(feed.item<float>() == 7);
}

TEST_CASE("a tensor goes with its last reader, and at once when nobody reads it") {
  StepWorld w;
  std::vector<std::size_t> in_use;
  auto make = [](KernelContext& c) -> Status {
    TROUPE_TRY(Tensor t, c.allocate(DType::f32, Shape{1024}));
    for (int i = 0; i < c.outputs(); ++i) c.set_output(i, t);
    return ok_status();
  };
  auto look = [&](KernelContext& c) -> Status {
    in_use.push_back(c.device().bytes_in_use());
    return ok_status();
  };
  auto a = w.kernel("a", {}, make);
  auto b = w.kernel("b", {w.draft.out(a)}, look, 0);
  auto c = w.kernel("c", {}, look, 0, {b});
  auto d = w.kernel("d", {}, make, 2, {c});  // nobody reads it
  w.kernel("e", {}, look, 0, {d});
  w.make();
  CHECK(w.run_whole().status.ok());
  REQUIRE(in_use.size() == 3);
  CHECK(in_use[0] >= 4096);
  CHECK(in_use[1] == 0);
  CHECK(in_use[2] == 0);
}

TEST_CASE("of several failures the one with the smallest plan index is reported") {
  StepWorld w;
  int later = 0;
  auto bad = [](const char* what) {
    return [what](KernelContext&) { return invalid_argument(what); };
  };
  auto a = w.kernel(
      "a", {}, [](KernelContext&) { return ok_status(); }, 0);
  // Ready only after `d` has failed, and before it in the plan.
  auto b = w.kernel("b", {}, [](KernelContext&) { return ok_status(); }, 0, {a});
  w.kernel("c", {}, bad("in c"), 0, {b});
  auto d = w.kernel("d", {}, bad("in d"), 0);
  w.kernel("e", {}, [&](KernelContext&) { return ++later, ok_status(); }, 0, {d});
  w.draft.info(2).def.site = {"train.cpp", 12};
  w.make();
  for (int i = 0; i < 2; ++i) {
    StepResult result = w.run_whole();
    CHECK(result.status.code() == Code::invalid_argument);
    CHECK(result.status.message() == "in c");
    CHECK(result.status.site().text() == "train.cpp:12");
    CHECK(result.status.text().find("in node 'c' (Test) on /job:local/task:0/cpu:0") !=
          std::string::npos);
    CHECK(result.fetches.empty());
  }
  CHECK(later == 0);
}

TEST_CASE("a failed step leaves nothing behind and the state starts anew") {
  StepWorld w;
  bool bad = true;
  auto a = w.kernel("a", {}, [](KernelContext& c) -> Status {
    TROUPE_TRY(Tensor t, c.allocate(DType::f32, Shape{1024}));
    c.set_output(0, std::move(t));
    return ok_status();
  });
  auto b = w.kernel("b", {w.draft.out(a)}, [&](KernelContext& c) {
    if (bad) return internal_error("b");
    c.set_output(0, Tensor::scalar(1.0f));
    return ok_status();
  });
  w.draft.fetch(w.draft.out(b));
  w.make();
  CHECK_FALSE(w.run_whole().status.ok());
  CHECK(w.device.bytes_in_use() == 0);
  bad = false;
  CHECK(w.run_whole().status.ok());
}

TEST_CASE("a kernel that throws fails its node, and the state starts anew") {
  StepWorld w;
  std::function<void()> act;
  auto a = w.kernel("a", {}, [](KernelContext& c) -> Status {
    TROUPE_TRY(Tensor t, c.allocate(DType::f32, Shape{1024}));
    c.set_output(0, std::move(t));
    return ok_status();
  });
  auto b = w.kernel("b", {w.draft.out(a)}, [&](KernelContext& c) {
    c.set_output(0, c.input(0));
    act();
    c.set_output(0, Tensor::scalar(1.0f));
    return ok_status();
  });
  w.kernel("c", {w.draft.out(a)}, [](KernelContext& c) {
    c.set_output(0, c.input(0));
    return ok_status();
  });
  w.draft.fetch(w.draft.out(b));
  w.make();
  const std::pair<std::function<void()>, Code> all[] = {
      {[] { throw std::bad_alloc(); }, Code::resource_exhausted},
      {[] { throw std::runtime_error("planted"); }, Code::internal},
      {[] { throw 7; }, Code::internal}};
  for (const auto& [throws, code] : all)
    for (const bool limited : {false, true}) {
      auto memory = limited ? std::make_shared<StepMemory>(1 << 20) : nullptr;
      for (const bool bad : {true, false}) {
        act = bad ? throws : [] {};
        REQUIRE(w.step->start({.run = 1, .memory = memory}, w.outbox).ok());
        REQUIRE(w.run().finished);
        const StepResult result = w.step->result();
        CHECK(result.status.code() == (bad ? code : Code::ok));
        if (bad) CHECK(result.status.text().find("in node 'b' (Test)") != std::string::npos);
        CHECK(w.device.bytes_in_use() == 0);
        if (limited) CHECK(memory->used() == 0);
      }
    }
}

TEST_CASE("an abort stops the step where it is and shows to running kernels") {
  StepWorld w;
  int ran = 0;
  bool seen = false;
  auto a = w.kernel(
      "a", {},
      [&](KernelContext& c) {
        CHECK_FALSE(c.cancelled());
        w.step->abort(cancelled("enough"));
        seen = c.cancelled();
        return ok_status();
      },
      0);
  w.kernel("b", {}, [&](KernelContext&) { return ++ran, ok_status(); }, 0, {a});
  w.make();
  StepResult result = w.run_whole();
  CHECK(result.status == cancelled("enough"));
  CHECK(seen);
  CHECK(ran == 0);
}

TEST_CASE("steps of one program run at the same time") {
  StepWorld w;
  auto x = w.role("x", Role::placeholder, {}, 1);
  w.draft.feed(w.draft.out(x));
  auto last = x;
  for (int i = 0; i < 50; ++i)
    last = w.sum("n" + std::to_string(i), {w.draft.out(last), w.draft.out(last)});
  w.draft.fetch(w.draft.out(last));
  auto program = w.make();
  std::vector<std::thread> threads;
  std::atomic<int> wrong{0};
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      StepState step(program);
      RecordingOutbox outbox;
      InlineLanes lanes;
      for (int i = 0; i < 200; ++i) {
        const bool started = step.start({.feeds = {Tensor::scalar(float(t))}}, outbox).ok();
        const bool finished = started && step.run(lanes).finished;
        StepResult result = finished ? step.result() : StepResult{};
        if (result.fetches.size() != 1 ||
            result.fetches[0].value.item<float>() != float(t) * float(1ull << 50))
          ++wrong;
        if (!finished) return;
      }
    });
  for (std::thread& t : threads) t.join();
  CHECK(wrong == 0);
}

TEST_CASE("random numbers are keyed by node and run") {
  StepWorld w;
  std::vector<RandomState> seen;
  w.kernel(
      "a", {}, [&](KernelContext& c) { return seen.push_back(c.random()), ok_status(); }, 0);
  w.draft.info(0).random_key = 42;
  w.make();
  w.run_whole();
  REQUIRE(seen.size() == 1);
  CHECK(seen[0].key == 42);
  CHECK(seen[0].run == 1);
  CHECK(run_hash(0, 0) != run_hash(1, 0));
  CHECK(run_hash(0, 0) != run_hash(0, 1));
}

TEST_CASE("spans name the nodes that ran") {
  StepWorld w;
  auto a = w.constant("a", 1);
  w.sum("b", {w.draft.out(a)});
  w.make();
  Trace trace;
  TraceTrack& track = trace.track("lane");
  Status started = w.step->start({.run = 1, .trace_run = 9}, w.outbox);
  REQUIRE(started.ok());
  CHECK(w.step->run(w.lanes, &track).finished);
  const auto spans = trace.collect().tracks.at(0).spans;
  REQUIRE(spans.size() == 3);
  CHECK(spans[0].name == "a");
  CHECK(spans[1].name == "b");
  CHECK(spans[1].run == 9);
  CHECK(spans[2].kind == Span::Kind::burst);
  CHECK(spans[2].begin_ns <= spans[0].begin_ns);
  CHECK(spans[2].end_ns >= spans[1].end_ns);
}

TEST_CASE("a plan that cannot be run is refused") {
  InlineLanes lanes;
  auto device = make_inline_device(test_device_name());
  auto make = [&](Plan plan) {
    return LoadedPlan::make(std::make_shared<const Plan>(std::move(plan)), *device,
                            [](const PlanInfo&) -> Expected<std::unique_ptr<Kernel>> {
                              return std::unique_ptr<Kernel>(
                                  new LambdaKernel([](KernelContext&) { return ok_status(); }));
                            })
        .status()
        .code();
  };
  auto good = [] {
    PlanDraft draft;
    auto a = draft.add({.name = "a"});
    auto b = draft.add({.name = "b", .inputs = {draft.out(a)}});
    draft.fetch(draft.out(b));
    return draft.finish();
  };
  CHECK(make(good()) == Code::ok);
  auto spoil = [&](auto change) {
    Plan plan = good();
    change(plan);
    return make(std::move(plan));
  };
  CHECK(spoil([](Plan& p) { p.edges[0].node = 7; }) == Code::invalid_argument);
  CHECK(spoil([](Plan& p) { p.edges[0].node = 0; }) == Code::invalid_argument);
  CHECK(spoil([](Plan& p) { p.edges[0].control = true; }) == Code::invalid_argument);
  CHECK(spoil([](Plan& p) { p.input_slots[0] = 9; }) == Code::invalid_argument);
  CHECK(spoil([](Plan& p) { p.nodes[1].first_slot = 0; }) == Code::invalid_argument);
  CHECK(spoil([](Plan& p) { p.nodes[1].inputs = 2; }) == Code::invalid_argument);
  CHECK(spoil([](Plan& p) { p.fetches[0].slot = 5; }) == Code::invalid_argument);
  CHECK(spoil([](Plan& p) { p.info.pop_back(); }) == Code::invalid_argument);
  CHECK(spoil([](Plan& p) { p.frames.emplace_back(); }) == Code::invalid_argument);
  CHECK(spoil([](Plan& p) { p.nodes[1].role = Role::enter; }) == Code::invalid_argument);
  CHECK(spoil([](Plan& p) { p.nodes[1].role = Role::keep; }) == Code::invalid_argument);
  CHECK(spoil([](Plan& p) { p.nodes[1].role = Role::kept; }) == Code::invalid_argument);
}

TEST_CASE("a cheap burst stops before a costly node, with its requests made") {
  StepWorld w;
  auto variable = w.draft.resource({.name = "v"});
  auto cheap = w.constant("cheap", 2);
  auto read = w.external("read", asks::read, {}, 1);
  w.draft.info(read).resource = variable;
  auto costly = w.sum("costly", {w.draft.out(cheap)});
  auto last = w.sum("last", {w.draft.out(costly), w.draft.out(read)});
  w.draft.fetch(w.draft.out(last));
  w.draft.node(cheap).cheap = w.draft.node(read).cheap = w.draft.node(last).cheap = true;
  std::vector<std::string> ran;
  note_runs(w, ran);
  w.make();
  w.start();
  BurstResult first = w.step->run_cheap(w.lanes);
  CHECK(first.more);
  CHECK_FALSE(first.finished);
  REQUIRE(first.requests.size() == 1);
  CHECK(ran == std::vector<std::string>{"cheap"});
  BurstResult second = w.run();
  CHECK_FALSE(second.more);
  CHECK(second.requests.empty());
  CHECK(ran == std::vector<std::string>{"cheap", "costly"});
  w.step->answer(first.requests[0].id, std::vector<Tensor>{Tensor::scalar(5.0f)});
  BurstResult third = w.step->run_cheap(w.lanes);
  CHECK_FALSE(third.more);
  REQUIRE(third.finished);
  CHECK(w.step->result().fetches[0].value.item<float>() == 7);
}

TEST_CASE("a cheap burst ends after so many nodes") {
  StepWorld w;
  auto node = w.constant("first", 1);
  w.draft.node(node).cheap = true;
  for (std::size_t i = 0; i < 2 * StepState::kCheapNodes; ++i) {
    node = w.sum("n" + std::to_string(i), {w.draft.out(node)});
    w.draft.node(node).cheap = true;
  }
  w.draft.fetch(w.draft.out(node));
  std::vector<std::string> ran;
  note_runs(w, ran);
  w.make();
  w.start();
  CHECK(w.step->run_cheap(w.lanes).more);
  CHECK(ran.size() == StepState::kCheapNodes);
  CHECK(w.step->run_cheap(w.lanes).more);
  CHECK(ran.size() == 2 * StepState::kCheapNodes);
  BurstResult rest = w.step->run_cheap(w.lanes);
  CHECK_FALSE(rest.more);
  CHECK(rest.finished);
  w.step->result();
}

TEST_CASE("a failure in a cheap burst waits for costly nodes before it in the plan") {
  StepWorld w;
  auto cheap = w.constant("cheap", 1);
  auto costly = w.kernel("costly", {w.draft.out(cheap)},
                         [](KernelContext&) { return invalid_argument("costly failed"); });
  auto failing = w.kernel("failing", {}, [](KernelContext&) { return invalid_argument("no"); });
  w.draft.fetch(w.draft.out(costly));
  w.draft.fetch(w.draft.out(failing));
  w.draft.node(cheap).cheap = w.draft.node(failing).cheap = true;
  w.make();
  w.start();
  BurstResult first = w.step->run_cheap(w.lanes);
  CHECK(first.more);
  CHECK_FALSE(first.finished);
  REQUIRE(w.run().finished);
  CHECK(w.step->result().status.text().find("node 'costly'") != std::string::npos);
}

TEST_CASE("a kernel that cannot be made names its node") {
  PlanDraft draft;
  draft.add({.name = "a"});
  auto device = make_inline_device(test_device_name());
  Status status = LoadedPlan::make(std::make_shared<const Plan>(draft.finish()), *device,
                                   [](const PlanInfo&) -> Expected<std::unique_ptr<Kernel>> {
                                     return not_found("no kernel");
                                   })
                      .status();
  CHECK(status.code() == Code::not_found);
  CHECK(status.text().find("node 'a'") != std::string::npos);
}
