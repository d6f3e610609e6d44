// Functions that call themselves, in plans by hand.
#include <cmath>
#include <functional>
#include <random>

#include "tests/contains.hpp"
#include "tests/protocol/step_fixture.hpp"

using namespace troupe;
using troupe::test::contains;

namespace {

// What functions are made of, in f32.
struct CallWorld : StepWorld {
  using StepWorld::StepWorld;
  std::uint32_t out(std::uint32_t node, std::uint32_t k = 0) const { return draft.out(node, k); }

  std::uint32_t positive(std::string name, std::uint32_t a) {
    return kernel(std::move(name), {a}, [](KernelContext& c) {
      c.set_output(0, Tensor::scalar(c.input(0).item<float>() > 0));
      return ok_status();
    });
  }
  std::uint32_t less_one(std::string name, std::uint32_t a) {
    return kernel(std::move(name), {a}, [](KernelContext& c) {
      c.set_output(0, Tensor::scalar(c.input(0).item<float>() - 1));
      return ok_status();
    });
  }
  std::uint32_t invoke(std::string name, std::vector<std::uint32_t> arguments,
                       std::uint16_t results, std::vector<std::uint32_t> control = {}) {
    return role(std::move(name), Role::invoke, std::move(arguments), results, std::move(control));
  }
  float fetched(const StepResult& result, std::size_t i = 0) const {
    REQUIRE_MESSAGE(result.status.ok(), result.status.text());
    REQUIRE(result.fetches.size() > i);
    return result.fetches[i].value.item<float>();
  }
};

// f(k, x) = k > 0 ? f(k - 1, x) + x : x, of a call with these arguments. `inside` is run in each
// call. Returns the call's node.
std::uint32_t multiply(CallWorld& w, const std::string& name, std::uint32_t k, std::uint32_t x,
                       Compute inside = {}) {
  auto call = w.invoke(name, {k, x}, 1);
  auto body = w.draft.begin_function(call, 2, 1);
  if (inside) w.kernel(name + "/inside", {w.out(body)}, std::move(inside), 0);
  auto p = w.positive(name + "/p", w.out(body));
  auto k_side = w.role(name + "/k_side", Role::switch_, {w.out(body, 0), w.out(p)}, 2);
  auto x_side = w.role(name + "/x_side", Role::switch_, {w.out(body, 1), w.out(p)}, 2);
  auto less = w.less_one(name + "/less", w.out(k_side, 1));
  auto again = w.invoke(name + "/again", {w.out(less), w.out(x_side, 1)}, 1);
  w.draft.calls(again, body);
  auto sum = w.sum(name + "/sum", {w.out(again), w.out(x_side, 1)});
  auto merge = w.role(name + "/merge", Role::merge, {w.out(x_side, 0), w.out(sum)}, 1);
  w.draft.end_function({w.out(merge)});
  return call;
}

}  // namespace

TEST_CASE("a function calls itself, step after step") {
  for (float k : {0.0f, 1.0f, 2.0f, 100.0f, 5'000.0f}) {
    CallWorld w;
    auto times = w.constant("k", k), x = w.constant("x", 3);
    auto call = multiply(w, "f", w.out(times), w.out(x));
    auto after = w.sum("after", {w.out(call), w.out(x)});
    w.draft.fetch(w.out(call));
    w.draft.fetch(w.out(after));
    w.make();
    for (int step = 0; step < 3; ++step) {
      StepResult result = w.run_whole();
      CHECK(w.fetched(result, 0) == 3 * (k + 1));
      CHECK(w.fetched(result, 1) == 3 * (k + 2));
    }
  }
}

TEST_CASE("two functions call each other, and the inner one of them itself") {
  CallWorld w;  // f(k) = k > 0 ? h(k - 1) + h(k - 1) : 1, h(k) = f(k) + 1
  auto k = w.constant("k", 6);
  auto call = w.invoke("f", {w.out(k)}, 1);
  auto f = w.draft.begin_function(call, 1, 1);
  auto one = w.constant("one", 1);
  auto p = w.positive("p", w.out(f));
  auto side = w.role("side", Role::switch_, {w.out(f), w.out(p)}, 2);
  auto one_side = w.role("one_side", Role::switch_, {w.out(one), w.out(p)}, 2);
  auto less = w.less_one("less", w.out(side, 1));
  auto a = w.invoke("a", {w.out(less)}, 1), b = w.invoke("b", {w.out(less)}, 1);
  auto sum = w.sum("sum", {w.out(a), w.out(b)});
  auto merge = w.role("merge", Role::merge, {w.out(one_side, 0), w.out(sum)}, 1);
  auto h = w.draft.begin_function(call, 1, 1);
  w.draft.calls(a, h);
  w.draft.calls(b, h);
  auto again = w.invoke("again", {w.out(h)}, 1);
  w.draft.calls(again, f);
  auto more = w.constant("more", 1);
  auto result = w.sum("result", {w.out(again), w.out(more)});
  w.draft.end_function({w.out(result)});
  w.draft.end_function({w.out(merge)});
  w.draft.fetch(w.out(call));
  w.make();
  float want = 1;
  for (int i = 0; i < 6; ++i) want = 2 * (want + 1);
  for (int step = 0; step < 2; ++step) CHECK(w.fetched(w.run_whole()) == want);
}

TEST_CASE("a dead call calls nothing, and what follows it is dead") {
  CallWorld w;
  int calls = 0;
  auto x = w.constant("x", 3);
  auto p = w.kernel("p", {}, [](KernelContext& c) {
    c.set_output(0, Tensor::scalar(false));
    return ok_status();
  });
  auto side = w.role("side", Role::switch_, {w.out(x), w.out(p)}, 2);
  auto call = multiply(w, "f", w.out(side, 1), w.out(x), [&](KernelContext&) {
    ++calls;
    return ok_status();
  });
  auto merge = w.role("merge", Role::merge, {w.out(side, 0), w.out(call)}, 2);
  w.draft.fetch(w.out(merge));
  w.make();
  for (int step = 0; step < 2; ++step) CHECK(w.fetched(w.run_whole()) == 3);
  CHECK(calls == 0);
}

TEST_CASE("random functions that call themselves equal a plain evaluation") {
  for (std::uint32_t seed = 0; seed < 300; ++seed) {
    CAPTURE(seed);
    std::mt19937 random(seed);
    // f(k, x): sums of values before them; in the branch for k > 0 calls of f(k - 1, a value).
    struct Made {
      bool call = false, in_branch = false;
      std::vector<std::size_t> of;
    };
    std::vector<Made> nodes;
    const std::size_t count = 2 + random() % 8;
    for (std::size_t i = 0; i < count; ++i) {
      Made made;
      made.in_branch = random() % 2;
      made.call = made.in_branch && random() % 3 == 0;
      for (std::size_t n = made.call ? 1 : 1 + random() % 3; n > 0; --n) {
        std::size_t from = random() % (i + 1);  // 0 is x
        if (from > 0 && nodes[from - 1].in_branch && !made.in_branch) from = 0;
        made.of.push_back(from);
      }
      nodes.push_back(std::move(made));
    }
    auto last_of = [&](bool branch) {
      std::size_t last = 0;
      for (std::size_t i = 0; i < count; ++i)
        if (nodes[i].in_branch == branch) last = i + 1;
      return last;
    };
    std::function<float(int, float)> f = [&](int k, float x) {
      std::vector<float> value{x};
      for (const Made& made : nodes) {
        float sum = 0;
        if (made.in_branch && k <= 0) {
          value.push_back(0);
          continue;
        }
        for (std::size_t from : made.of) sum += value[from];
        value.push_back(made.call ? std::fmod(f(k - 1, std::fmod(sum, 64.0f)), 64.0f) : sum);
      }
      return k > 0 ? value[last_of(true)] : value[last_of(false)];
    };
    CallWorld w;
    const int depth = int(random() % 4);
    auto k = w.constant("k", float(depth)), x = w.constant("x", 5);
    auto call = w.invoke("f", {w.out(k), w.out(x)}, 1);
    auto body = w.draft.begin_function(call, 2, 1);
    auto p = w.positive("p", w.out(body));
    auto k_side = w.role("k_side", Role::switch_, {w.out(body), w.out(p)}, 2);
    auto less = w.less_one("less", w.out(k_side, 1));
    std::vector<std::uint32_t> done{less};  // whether or not the branch is taken
    auto remainder = [&](std::string name, std::uint32_t of) {
      return w.out(w.kernel(std::move(name), {of}, [](KernelContext& c) {
        c.set_output(0, Tensor::scalar(std::fmod(c.input(0).item<float>(), 64.0f)));
        return ok_status();
      }));
    };
    std::vector<std::uint32_t> slot{w.out(body, 1)}, in_branch;  // by value, outside and inside
    auto switched = [&](std::size_t v) {
      const std::string name = "side" + std::to_string(v);
      in_branch.resize(std::max(in_branch.size(), v + 1), ~0u);
      if (in_branch[v] == ~0u)
        in_branch[v] = w.out(w.role(name, Role::switch_, {slot[v], w.out(p)}, 2), 1);
      return in_branch[v];
    };
    for (std::size_t i = 0; i < count; ++i) {
      const Made& made = nodes[i];
      const std::string name = "n" + std::to_string(i);
      std::vector<std::uint32_t> inputs;
      for (std::size_t from : made.of)
        inputs.push_back(made.in_branch && (from == 0 || !nodes[from - 1].in_branch)
                             ? switched(from)
                             : slot[from]);
      if (!made.call) {
        const auto sum = w.sum(name, inputs);
        slot.push_back(w.out(sum));
        if (made.in_branch) done.push_back(sum);
        continue;
      }
      auto again = w.invoke(name, {w.out(less), remainder(name + "/in", inputs[0])}, 1);
      w.draft.calls(again, body);
      done.push_back(again + 1);
      slot.push_back(remainder(name + "/out", w.out(again)));
    }
    const std::size_t live = last_of(true), other = last_of(false);
    const std::uint32_t taken = live == 0 ? switched(0) : slot[live];
    auto else_side = w.role("else_side", Role::switch_, {slot[other], w.out(p)}, 2);
    auto merge = w.role("merge", Role::merge, {w.out(else_side, 0), taken}, 1);
    w.role("done", Role::control_trigger, {}, 0, done);
    w.draft.end_function({w.out(merge)});
    w.draft.fetch(w.out(call));
    w.make();
    for (int step = 0; step < 2; ++step) CHECK(w.fetched(w.run_whole()) == f(depth, 5));
  }
}

TEST_CASE("what comes from outside while calls are open goes on, other calls included") {
  CallWorld w;
  auto k = w.constant("k", 6), x = w.constant("x", 3);
  auto received = w.role("received", Role::recv, {}, 1);
  w.draft.info(received).channel = 7;
  auto beside = w.sum("beside", {w.out(received), w.out(x)});
  auto other = multiply(w, "g", w.out(received), w.out(beside));
  auto call = multiply(w, "f", w.out(k), w.out(x), [&](KernelContext& c) {
    if (c.input(0).item<float>() == 4) w.step->deliver(7, {}, Tensor::scalar(5.0f), false);
    return ok_status();
  });
  auto after = w.sum("after", {w.out(call), w.out(other)});
  w.draft.fetch(w.out(after));
  w.make();
  for (int step = 0; step < 2; ++step) CHECK(w.fetched(w.run_whole()) == 3 * 7 + 8 * 6);
}

TEST_CASE("a failure in a call ends all calls, says how deep it was, and leaves nothing") {
  CallWorld w;
  Tensor held = Tensor::scalar(2.0f);
  auto x = w.kernel("x", {}, [&](KernelContext& c) {
    c.set_output(0, held);
    return ok_status();
  });
  auto k = w.constant("k", 9);
  auto call = multiply(w, "f", w.out(k), w.out(x), [](KernelContext& c) {
    return c.input(0).item<float>() == 4 ? invalid_argument("it is four") : ok_status();
  });
  w.draft.fetch(w.out(call));
  w.make();
  for (int step = 0; step < 2; ++step) {
    StepResult result = w.run_whole();
    CHECK(result.status.code() == Code::invalid_argument);
    CHECK_MESSAGE(contains(result.status.text(), "call 6 of 'f'"), result.status.text());
    CHECK(held.unique());
  }
}

TEST_CASE("of failures in calls and around them the one with the smallest index is told") {
  for (bool before : {false, true}) {
    CallWorld w;
    auto fails = [](KernelContext&) { return invalid_argument("beside"); };
    auto k = w.constant("k", 5), x = w.constant("x", 2);
    auto late = w.sum("late", {w.out(x)});  // so that it is ready after the call
    if (before) w.kernel("fails", {w.out(late)}, fails, 0);
    multiply(w, "f", w.out(k), w.out(x),
             [](KernelContext&) { return invalid_argument("in a call"); });
    if (!before) w.kernel("fails", {w.out(late)}, fails, 0);
    w.make();
    StepResult result = w.run_whole();
    CHECK_MESSAGE(contains(result.status.text(), before ? "beside" : "in a call"),
                  result.status.text());
  }
}

TEST_CASE("calls that are called off leave nothing") {
  CallWorld w;
  Tensor held = Tensor::scalar(2.0f);
  auto x = w.kernel("x", {}, [&](KernelContext& c) {
    c.set_output(0, held);
    return ok_status();
  });
  auto k = w.constant("k", 1e9);  // for ever
  auto call = multiply(w, "f", w.out(k), w.out(x), [&, n = 0](KernelContext&) mutable {
    if (++n % 100 == 0) w.step->abort(cancelled("enough"));
    return ok_status();
  });
  w.draft.fetch(w.out(call));
  w.make();
  for (int step = 0; step < 2; ++step) {
    CHECK(w.run_whole().status.code() == Code::cancelled);
    CHECK(held.unique());
  }
}

TEST_CASE("calls end at a depth, and at what they hold on to, each buffer once") {
  for (bool shared : {false, true}) {
    CAPTURE(shared);
    CallWorld w;
    w.limits = {.calls = 500, .bytes = 1 << 20};
    // f(x) = f(x'), where x' has the memory of x or its own, and x' is needed again.
    auto x = w.kernel("x", {}, [](KernelContext& c) {
      c.set_output(0, value_or_throw(Tensor::zeros(DType::f32, {1 << 12})));
      return ok_status();
    });
    auto call = w.invoke("f", {w.out(x)}, 1);
    auto body = w.draft.begin_function(call, 1, 1);
    auto next = w.kernel("next", {w.out(body)}, [shared](KernelContext& c) {
      c.set_output(0, shared ? c.input(0) : value_or_throw(Tensor::zeros(DType::f32, {1 << 12})));
      return ok_status();
    });
    auto again = w.invoke("again", {w.out(next)}, 1);
    w.draft.calls(again, body);
    auto both = w.kernel("both", {w.out(again), w.out(next)}, [](KernelContext& c) {
      c.set_output(0, c.input(0));
      return ok_status();
    });
    w.draft.end_function({w.out(both)});
    w.draft.fetch(w.out(call));
    w.make();
    for (int step = 0; step < 2; ++step) {
      const Status ended = w.run_whole().status;
      CHECK(ended.code() == Code::resource_exhausted);
      const std::string why = shared ? "as deep as calls go" : "more than 1 MiB";
      CHECK_MESSAGE(contains(ended.text(), why), ended.text());
    }
  }
}

TEST_CASE("what a plan says of its functions is not believed") {
  auto code = [](const std::function<void(Plan&)>& change) {
    CallWorld w;
    auto k = w.constant("k", 3), x = w.constant("x", 2);
    auto call = multiply(w, "f", w.out(k), w.out(x));
    auto other = multiply(w, "g", w.out(k), w.out(x));
    w.draft.fetch(w.out(call));
    w.draft.fetch(w.out(other));
    return w.code_of(change);
  };
  auto inner = [](Plan& p) {  // the call in f
    for (std::uint32_t i = p.frames[1].first_node;; ++i)
      if (p.nodes[i].role == Role::invoke) return i;
  };
  const auto refused = Code::invalid_argument;
  CHECK(code([](Plan&) {}) == Code::ok);
  CHECK(code([](Plan& p) { p.frames.pop_back(); }) == refused);
  CHECK(code([](Plan& p) { p.frames[1].leader = 2; }) == refused);
  CHECK(code([](Plan& p) { p.frames[2].leader = 1; }) == refused);
  CHECK(code([](Plan& p) { p.frames[1].leader = ~0u; }) == refused);
  CHECK(code([](Plan& p) { p.frames[1].leader = 0; }) == refused);
  CHECK(code([](Plan& p) { p.frames[1].variables = 2; }) == refused);
  CHECK(code([](Plan& p) { p.frames[1].loop = 0; }) == refused);
  CHECK(code([](Plan& p) { p.frames[2].loop = p.frames[1].loop; }) == refused);
  CHECK(code([](Plan& p) { p.info[p.frames[1].loop].calls = 2; }) == refused);
  CHECK(code([](Plan& p) { p.info[p.frames[1].loop].calls = 0; }) == refused);
  CHECK(code([&](Plan& p) { p.info[inner(p)].calls = 2; }) == refused);
  CHECK(code([&](Plan& p) { p.info[inner(p)].calls = 77; }) == refused);
  CHECK(code([&](Plan& p) { p.nodes[inner(p)].inputs = 1; }) == refused);
  CHECK(code([&](Plan& p) { p.nodes[inner(p)].role = Role::loop; }) == refused);
  CHECK(code([](Plan& p) { p.nodes[p.frames[1].body].role = Role::loop_body; }) == refused);
  CHECK(code([](Plan& p) { p.nodes[p.frames[1].next].role = Role::control_trigger; }) == refused);
}
