#include <random>

#include "core/hash.hpp"
#include "tests/protocol/step_fixture.hpp"

using namespace troupe;

namespace {

std::uint32_t boolean(StepWorld& w, const std::string& name, const bool& value) {
  return w.kernel(name, {}, [&value](KernelContext& c) {
    c.set_output(0, Tensor::scalar(value));
    return ok_status();
  });
}

}  // namespace

TEST_CASE("a Switch sends its input down one branch; a Merge takes what comes") {
  StepWorld w;
  bool predicate = false;
  int left = 0, right = 0;
  auto p = boolean(w, "p", predicate);
  auto x = w.constant("x", 10);
  auto s = w.role("s", Role::switch_, {w.draft.out(x), w.draft.out(p)}, 2);
  auto count = [](int& n) {
    return [&n](KernelContext& c) {
      ++n;
      c.set_output(0, Tensor::scalar(c.input(0).item<float>() + (c.inputs() > 1 ? 1.0f : 2.0f)));
      return ok_status();
    };
  };
  auto l = w.kernel("l", {w.draft.out(s, 0), w.draft.out(x)}, count(left));
  auto l2 = w.sum("l2", {w.draft.out(l)});
  auto r = w.kernel("r", {w.draft.out(s, 1)}, count(right));
  auto m = w.role("m", Role::merge, {w.draft.out(l2), w.draft.out(r)}, 2);
  w.draft.fetch(w.draft.out(m));
  w.draft.fetch(w.draft.out(m, 1));
  w.make();
  for (int i = 0; i < 4; ++i) {
    predicate = i % 2 == 1;
    StepResult result = w.run_whole();
    REQUIRE_MESSAGE(result.status.ok(), result.status.text());
    CHECK(result.fetches[0].value.item<float>() == (predicate ? 12 : 11));
    CHECK(result.fetches[1].value.item<std::int32_t>() == (predicate ? 1 : 0));
  }
  CHECK(left == 2);
  CHECK(right == 2);
}

TEST_CASE("a Merge may read a Switch directly, both of its outputs") {
  StepWorld w;
  bool predicate = true;
  auto p = boolean(w, "p", predicate);
  auto x = w.constant("x", 10);
  auto s = w.role("s", Role::switch_, {w.draft.out(x), w.draft.out(p)}, 2);
  auto m = w.role("m", Role::merge, {w.draft.out(s, 0), w.draft.out(s, 1)}, 1);
  w.draft.fetch(w.draft.out(m));
  w.make();
  for (bool value : {true, false}) {
    predicate = value;
    StepResult result = w.run_whole();
    REQUIRE_MESSAGE(result.status.ok(), result.status.text());
    CHECK(result.fetches[0].value.item<float>() == 10);
  }
}

TEST_CASE("a dead control edge makes a node dead, but not a ControlTrigger") {
  StepWorld w;
  bool predicate = true;
  int ran = 0, after = 0;
  auto p = boolean(w, "p", predicate);
  auto s = w.role("s", Role::switch_, {w.draft.out(p), w.draft.out(p)}, 2);
  auto dead = w.sum("dead", {w.draft.out(s, 0)});
  w.kernel("a", {}, [&](KernelContext&) { return ++ran, ok_status(); }, 0, {dead});
  auto t = w.role("t", Role::control_trigger, {}, 0, {dead});
  w.kernel("b", {}, [&](KernelContext&) { return ++after, ok_status(); }, 0, {t});
  w.make();
  CHECK(w.run_whole().status.ok());
  CHECK(ran == 0);
  CHECK(after == 1);
}

TEST_CASE("death crosses partitions: sends carry it, and arrivals") {
  StepWorld w;
  bool predicate = true;
  auto p = boolean(w, "p", predicate);
  auto s = w.role("s", Role::switch_, {w.draft.out(p), w.draft.out(p)}, 2);
  auto out = w.role("out", Role::send, {w.draft.out(s, 0)}, 0);
  w.draft.info(out).channel = 1;
  auto in = w.role("in", Role::recv, {}, 1);
  w.draft.info(in).channel = 2;
  auto y = w.sum("y", {w.draft.out(in)});
  auto x = w.constant("x", 5);
  auto m = w.role("m", Role::merge, {w.draft.out(y), w.draft.out(x)}, 2);
  w.draft.fetch(w.draft.out(m));
  w.make();
  w.start();
  w.step->deliver(2, {}, Tensor(), true);
  REQUIRE(w.run().finished);
  StepResult result = w.step->result();
  REQUIRE_MESSAGE(result.status.ok(), result.status.text());
  CHECK(result.fetches[0].value.item<float>() == 5);
  REQUIRE(w.outbox.sent.size() == 1);
  CHECK(w.outbox.sent[0].dead);
}

TEST_CASE("a request on an untaken branch is not made, and reads there do not join the first") {
  StepWorld w;
  bool predicate = true;
  auto v = w.draft.resource({.name = "v"});
  auto p = boolean(w, "p", predicate);
  auto s = w.role("s", Role::switch_, {w.draft.out(p), w.draft.out(p)}, 2);
  auto live = w.kernel(
      "live", {w.draft.out(s, 1)}, [](KernelContext&) { return ok_status(); }, 0);
  auto dead = w.kernel(
      "dead", {w.draft.out(s, 0)}, [](KernelContext&) { return ok_status(); }, 0);
  auto a = w.external("a", asks::read, {}, 1, {live});
  auto b = w.external("b", asks::read, {}, 1, {dead});
  w.draft.info(a).resource = w.draft.info(b).resource = v;
  auto x = w.constant("x", 1);
  auto put = w.external("put", asks::enqueue, {w.draft.out(x)}, 0, {dead});
  w.draft.info(put).resource = v;
  w.make();
  w.start();
  BurstResult burst = w.run();
  REQUIRE(burst.requests.size() == 1);
  REQUIRE(burst.requests[0].items.size() == 1);
  CHECK(burst.requests[0].items[0].node == a);
  w.step->answer(burst.requests[0].id, std::vector<Tensor>{Tensor::scalar(1.0f)});
  REQUIRE(w.run().finished);
  StepResult result = w.step->result();
  CHECK(result.status.ok());
  CHECK(result.keys == std::vector<std::uint32_t>{0});
}

TEST_CASE("fetching from an untaken branch is an error") {
  StepWorld w;
  bool predicate = true;
  auto p = boolean(w, "p", predicate);
  auto s = w.role("s", Role::switch_, {w.draft.out(p), w.draft.out(p)}, 2);
  auto y = w.sum("y", {w.draft.out(s, 0)});
  w.draft.fetch(w.draft.out(y));
  w.make();
  for (int i = 0; i < 2; ++i) {
    Status status = w.run_whole().status;
    CHECK(status.code() == Code::invalid_argument);
    CHECK(status.text().find("node 'y'") != std::string::npos);
  }
}

TEST_CASE("two live inputs of a Merge are an error, early or late") {
  for (bool late : {false, true}) {
    StepWorld w;
    auto a = w.constant("a", 1);
    auto b = late ? w.sum("b", {w.draft.out(a)}) : w.constant("b", 2);
    w.role("m", Role::merge, {w.draft.out(a), w.draft.out(b)}, 1);
    w.make();
    StepResult result = w.run_whole();
    CHECK(result.status.code() == Code::invalid_argument);
  }
}

TEST_CASE("a predicate that is no bool is an error that names the Switch") {
  StepWorld w;
  auto x = w.constant("x", 1);
  w.role("s", Role::switch_, {w.draft.out(x), w.draft.out(x)}, 2);
  w.make();
  Status status = w.run_whole().status;
  CHECK(status.code() == Code::invalid_argument);
  CHECK(status.text().find("node 's'") != std::string::npos);
}

TEST_CASE("random nested conditionals equal a recursive evaluation, and leave no memory") {
  const auto seed = std::uint64_t(std::random_device{}());
  INFO("seed " << seed);
  Random random(seed);
  for (int round = 0; round < 60; ++round) {
    StepWorld w;
    std::vector<bool> flags(16);
    for (std::size_t i = 0; i < flags.size(); ++i) flags[i] = random.below(2) == 1;
    int names = 0;
    auto fresh = [&] { return "n" + std::to_string(names++); };
    // cond(x, depth): a Switch, a body on each side, maybe conditionals in them, a Merge.
    std::function<std::pair<std::uint32_t, float>(std::uint32_t, float, int)> build =
        [&](std::uint32_t x, float value, int depth) -> std::pair<std::uint32_t, float> {
      if (depth == 0 || random.below(4) == 0) {
        auto y = w.sum(fresh(), {x, x});
        return {w.draft.out(y), value * 2};
      }
      const std::size_t which = std::size_t(random.below(flags.size()));
      const bool taken = flags[which];
      auto p = w.kernel(fresh(), {}, [taken](KernelContext& c) {
        c.set_output(0, Tensor::scalar(taken));
        return ok_status();
      });
      auto s = w.role(fresh(), Role::switch_, {x, w.draft.out(p)}, 2);
      auto [no, no_value] = build(w.draft.out(s, 0), value, depth - 1);
      auto one = w.sum(fresh(), {w.draft.out(s, 1), w.draft.out(s, 1), w.draft.out(s, 1)});
      auto [yes, yes_value] = build(w.draft.out(one), value * 3, depth - 1);
      auto m = w.role(fresh(), Role::merge, {no, yes}, 2);
      return {w.draft.out(m), taken ? yes_value : no_value};
    };
    auto x = w.kernel("x", {}, [](KernelContext& c) -> Status {
      TROUPE_TRY(Tensor t, c.allocate(DType::f32, Shape{}));
      *t.mutable_data<float>() = 1;
      c.set_output(0, std::move(t));
      return ok_status();
    });
    auto [slot, value] = build(w.draft.out(x), 1, 4);
    w.draft.fetch(slot);
    w.make();
    for (int again = 0; again < 2; ++again) {
      {
        StepResult result = w.run_whole();
        REQUIRE_MESSAGE(result.status.ok(), result.status.text());
        CHECK(result.fetches.at(0).value.item<float>() == value);
      }
      CHECK(w.device.bytes_in_use() == 0);
    }
  }
}
