// Loops and Merges whose inputs come late, and loops that end in the middle.
#include <doctest/doctest.h>

#include "core/list.hpp"
#include "tests/protocol/step_fixture.hpp"

using namespace troupe;

namespace {

std::uint32_t received(StepWorld& w, const std::string& name, ChannelId channel) {
  auto node = w.role(name, Role::recv, {}, 1);
  w.draft.info(node).channel = channel;
  return node;
}

std::uint32_t less(StepWorld& w, const std::string& name, std::uint32_t a, std::uint32_t b) {
  return w.kernel(name, {a, b}, [](KernelContext& c) {
    c.set_output(0, Tensor::scalar(c.input(0).item<float>() < c.input(1).item<float>()));
    return ok_status();
  });
}

// Counts for ever, and pushes a big tensor onto a list in each iteration. Fails in iteration `bad`.
struct Growing : StepWorld {
  explicit Growing(int bad) {
    auto zero = constant("zero", 0), one = constant("one", 1), end = constant("end", 1e9f);
    auto empty = kernel("empty", {}, [](KernelContext& c) {
      c.set_output(0, list_tensor({}));
      return ok_status();
    });
    auto p0 = less(*this, "p0", draft.out(zero), draft.out(end));
    auto loop =
        role("loop", Role::loop,
             {draft.out(p0), draft.out(zero), draft.out(empty), draft.out(one), draft.out(end)}, 2);
    auto body = draft.begin_loop(loop);  // i, list, one, end
    auto push = kernel("push", {draft.out(body, 1)}, [](KernelContext& c) -> Status {
      List list = list_in(c.input(0));
      TROUPE_TRY(Tensor made, c.allocate(DType::f32, Shape{1 << 8}));
      list.push(std::move(made));
      c.set_output(0, list_tensor(std::move(list)));
      return ok_status();
    });
    auto next =
        kernel("next", {draft.out(body, 0), draft.out(body, 2)}, [bad](KernelContext& c) -> Status {
          if (int(c.input(0).item<float>()) == bad) return internal_error("planted");
          c.set_output(0, Tensor::scalar(c.input(0).item<float>() + 1));
          return ok_status();
        });
    auto again = less(*this, "again", draft.out(next), draft.out(body, 3));
    draft.end_loop({draft.out(again), draft.out(next), draft.out(push)});
    make();
  }
};

}  // namespace

TEST_CASE("a Merge waits for its control inputs, and for a value or the death of all") {
  enum class Late { value, control };
  for (Late late : {Late::value, Late::control})
    for (bool live : {true, false}) {
      CAPTURE(live);
      StepWorld w;
      int after = 0;
      auto no = w.kernel("no", {}, [](KernelContext& c) {
        c.set_output(0, Tensor::scalar(false));
        return ok_status();
      });
      auto x = w.constant("x", 3);
      auto sides = w.role("sides", Role::switch_, {w.draft.out(x), w.draft.out(no)}, 2);
      auto dead = w.sum("dead", {w.draft.out(sides, 1)});
      auto in = received(w, "in", 1), gate = received(w, "gate", 2);
      auto merge = w.role("merge", Role::merge, {w.draft.out(dead), w.draft.out(in)}, 2, {gate});
      w.kernel(
          "after", {w.draft.out(merge)},
          [&](KernelContext& c) {
            ++after;
            CHECK(c.input(0).item<float>() == 7);
            return ok_status();
          },
          0);
      w.make();
      for (int again = 0; again < 2; ++again) {
        after = 0;
        w.start();
        auto deliver = [&](bool value) {
          if (value)
            w.step->deliver(1, {}, live ? Tensor::scalar(7.0f) : Tensor(), !live);
          else
            w.step->deliver(2, {}, Tensor::scalar(0.0f), false);
        };
        CHECK_FALSE(w.run_on().finished);
        deliver(late == Late::control);
        CHECK_FALSE(w.run_on().finished);
        CHECK(after == 0);
        deliver(late == Late::value);
        CHECK(w.run_on().finished);
        CHECK(w.step->result().status.ok());
        CHECK(after == (live ? 1 : 0));
      }
    }
}

TEST_CASE("a dead control input holds a Merge up, and does not kill it") {
  StepWorld w;
  auto no = w.kernel("no", {}, [](KernelContext& c) {
    c.set_output(0, Tensor::scalar(false));
    return ok_status();
  });
  auto x = w.constant("x", 3);
  auto sides = w.role("sides", Role::switch_, {w.draft.out(x), w.draft.out(no)}, 2);
  auto in = received(w, "in", 1);
  auto dies = w.sum("dies", {w.draft.out(sides, 1), w.draft.out(in)});
  auto merge = w.role("merge", Role::merge, {w.draft.out(sides, 0), w.draft.out(dies)}, 2, {dies});
  w.draft.fetch(w.draft.out(merge));
  w.make();
  for (int again = 0; again < 2; ++again) {
    w.start();
    CHECK_FALSE(w.run_on().finished);
    w.step->deliver(1, {}, Tensor::scalar(7.0f), false);
    CHECK(w.run_on().finished);
    StepResult result = w.step->result();
    REQUIRE_MESSAGE(result.status.ok(), result.status.text());
    CHECK(result.fetches.at(0).value.item<float>() == 3);
  }
}

TEST_CASE("a loop begins when all that it takes is there, what only its body uses included") {
  StepWorld w;
  int iterations = 0;
  auto zero = w.constant("zero", 0), one = w.constant("one", 1), four = w.constant("four", 4);
  auto p0 = less(w, "p0", w.draft.out(zero), w.draft.out(four));
  auto first = received(w, "first", 1), late = received(w, "late", 2);
  auto loop = w.role("loop", Role::loop,
                     {w.draft.out(p0), w.draft.out(zero), w.draft.out(first), w.draft.out(one),
                      w.draft.out(four), w.draft.out(late)},
                     2);
  auto body = w.draft.begin_loop(loop);  // i, total, one, four, late
  auto next = w.kernel("next", {w.draft.out(body, 0), w.draft.out(body, 2)}, [&](KernelContext& c) {
    ++iterations;
    c.set_output(0, Tensor::scalar(c.input(0).item<float>() + 1));
    return ok_status();
  });
  auto total = w.sum("total", {w.draft.out(body, 1), w.draft.out(body, 4)});
  auto again = less(w, "again", w.draft.out(next), w.draft.out(body, 3));
  w.draft.end_loop({w.draft.out(again), w.draft.out(next), w.draft.out(total)});
  w.draft.fetch(w.draft.out(loop, 1));
  w.make();
  for (ChannelId last : {1, 2}) {
    iterations = 0;
    w.start();
    w.step->deliver(last == 1 ? 2 : 1, {}, Tensor::scalar(10.0f), false);
    CHECK_FALSE(w.run_on().finished);
    CHECK(iterations == 0);
    w.step->deliver(last, {}, Tensor::scalar(10.0f), false);
    CHECK(w.run_on().finished);
    StepResult result = w.step->result();
    REQUIRE_MESSAGE(result.status.ok(), result.status.text());
    CHECK(result.fetches.at(0).value.item<float>() == 50);
    CHECK(iterations == 4);
  }
}

TEST_CASE("a dead input takes the whole loop with it, whichever it is") {
  for (std::uint32_t dead = 1; dead <= 2; ++dead) {
    StepWorld w;
    auto one = w.constant("one", 1), four = w.constant("four", 4);
    auto first = received(w, "first", 1), late = received(w, "late", 2);
    auto p0 = less(w, "p0", w.draft.out(one), w.draft.out(four));
    auto loop = w.role("loop", Role::loop,
                       {w.draft.out(p0), w.draft.out(one), w.draft.out(first), w.draft.out(one),
                        w.draft.out(four), w.draft.out(late)},
                       2);
    auto body = w.draft.begin_loop(loop);  // i, total, one, four, late
    auto next = w.sum("next", {w.draft.out(body, 0), w.draft.out(body, 2)});
    auto total = w.sum("total", {w.draft.out(body, 1), w.draft.out(body, 4)});
    auto again = less(w, "again", w.draft.out(next), w.draft.out(body, 3));
    w.draft.end_loop({w.draft.out(again), w.draft.out(next), w.draft.out(total)});
    auto here = w.constant("here", 9);
    for (std::uint32_t k : {0u, 1u}) {
      auto merge = w.role("merge" + std::to_string(k), Role::merge,
                          {w.draft.out(loop, k), w.draft.out(here)}, 2);
      w.draft.fetch(w.draft.out(merge));
    }
    w.make();
    for (int again_ = 0; again_ < 2; ++again_) {
      w.start();
      for (ChannelId c : {1, 2})
        w.step->deliver(c, {}, c == dead ? Tensor() : Tensor::scalar(2.0f), c == dead);
      CHECK(w.run_on().finished);
      StepResult result = w.step->result();
      REQUIRE_MESSAGE(result.status.ok(), result.status.text());
      for (const auto& fetched : result.fetches) CHECK(fetched.value.item<float>() == 9);
    }
  }
}

TEST_CASE("a loop that fails in the middle leaves no memory, lists included") {
  for (int bad : {0, 1, 50}) {
    Growing w(bad);
    for (int step = 0; step < 2; ++step) {
      w.start();
      CHECK(w.run_on().finished);
      CHECK(w.step->result().status.text().find("in iteration " + std::to_string(bad)) !=
            std::string::npos);
      CHECK(w.device.bytes_in_use() == 0);
    }
  }
}

TEST_CASE("a loop that is called off leaves no memory, lists included") {
  Growing w(-1);
  for (int step = 0; step < 2; ++step) {
    w.start();
    CHECK(w.run().more);
    CHECK(w.device.bytes_in_use() > 0);
    w.step->abort(cancelled("enough"));
    CHECK(w.run_on().finished);
    CHECK(w.step->result().status.code() == Code::cancelled);
    CHECK(w.device.bytes_in_use() == 0);
  }
}
