#include <random>
#include <set>
#include <thread>

#include "core/hash.hpp"
#include "core/list.hpp"
#include "tests/protocol/step_fixture.hpp"

using namespace troupe;

namespace {

// What loops are made of, in f32.
struct LoopWorld : StepWorld {
  using StepWorld::StepWorld;
  std::uint32_t out(std::uint32_t node, std::uint32_t k = 0) const { return draft.out(node, k); }

  std::uint32_t less(std::string name, std::uint32_t a, std::uint32_t b) {
    return kernel(std::move(name), {a, b}, [](KernelContext& c) {
      c.set_output(0, Tensor::scalar(c.input(0).item<float>() < c.input(1).item<float>()));
      return ok_status();
    });
  }
  // A loop over values that follow a first predicate; invariants come last.
  std::uint32_t loop(std::string name, std::uint32_t predicate, std::vector<std::uint32_t> first,
                     std::vector<std::uint32_t> invariants = {}) {
    const auto variables = std::uint16_t(first.size());
    first.insert(first.begin(), predicate);
    first.insert(first.end(), invariants.begin(), invariants.end());
    return role(std::move(name), Role::loop, std::move(first), variables);
  }
  float fetched(const StepResult& result, std::size_t i = 0) const {
    REQUIRE_MESSAGE(result.status.ok(), result.status.text());
    REQUIRE(result.fetches.size() > i);
    return result.fetches[i].value.item<float>();
  }
};

// while (i < limit) i = i + 1, from `first`. Returns the loop's node.
std::uint32_t counting(LoopWorld& w, const std::string& name, float first, std::uint32_t limit) {
  auto one = w.constant(name + "/one", 1);
  auto i0 = w.constant(name + "/first", first);
  auto p0 = w.less(name + "/p0", w.out(i0), limit);
  auto loop = w.loop(name, w.out(p0), {w.out(i0)}, {limit, w.out(one)});
  auto body = w.draft.begin_loop(loop);
  auto next = w.sum(name + "/add", {w.out(body, 0), w.out(body, 2)});
  auto again = w.less(name + "/less", w.out(next), w.out(body, 1));
  w.draft.end_loop({w.out(again), w.out(next)});
  return loop;
}

}  // namespace

TEST_CASE("a loop counts, step after step, also from where it need not begin") {
  for (float limit : {1.0f, 2.0f, 1000.0f, 0.0f, -3.0f}) {
    LoopWorld w;
    auto bound = w.constant("limit", limit);
    auto loop = counting(w, "count", 0, w.out(bound));
    auto after = w.sum("after", {w.out(loop), w.out(loop)});
    w.draft.fetch(w.out(loop));
    w.draft.fetch(w.out(after));
    w.make();
    for (int step = 0; step < 3; ++step) {
      StepResult result = w.run_whole();
      CHECK(w.fetched(result, 0) == std::max(limit, 0.0f));
      CHECK(w.fetched(result, 1) == 2 * std::max(limit, 0.0f));
    }
  }
}

TEST_CASE("a cheap burst ends after so many nodes of a loop, and the next one goes on from there") {
  constexpr std::size_t kIterations = 10'000;
  LoopWorld w;
  auto bound = w.constant("limit", float(kIterations));
  auto loop = counting(w, "count", 0, w.out(bound));
  auto last = w.sum("last", {w.out(loop)});
  w.draft.fetch(w.out(last));
  for (std::uint32_t node = 0; node <= last; ++node) w.draft.node(node).cheap = true;
  w.make();
  w.start();
  std::size_t bursts = 0;
  BurstResult burst;
  do {
    burst = w.step->run_cheap(w.lanes);
    ++bursts;
  } while (burst.more);
  REQUIRE(burst.finished);
  CHECK(w.fetched(w.step->result()) == float(kIterations));
  // Of an iteration the addition, the comparison and what ends it.
  CHECK(bursts >= 3 * kIterations / StepState::kCheapNodes);
  CHECK(bursts <= 4 * kIterations / StepState::kCheapNodes);
}

TEST_CASE("variables move on all at once") {
  LoopWorld w;  // (a, b, c, i) -> (b, a, a, i + 1), four times
  auto a = w.constant("a", 1), b = w.constant("b", 2), c = w.constant("c", 3),
       i = w.constant("i", 0), one = w.constant("one", 1), four = w.constant("four", 4);
  auto p = w.less("p", w.out(i), w.out(four));
  auto loop =
      w.loop("loop", w.out(p), {w.out(a), w.out(b), w.out(c), w.out(i)}, {w.out(one), w.out(four)});
  auto body = w.draft.begin_loop(loop);
  auto next = w.sum("next", {w.out(body, 3), w.out(body, 4)});
  auto again = w.less("again", w.out(next), w.out(body, 5));
  w.draft.end_loop({w.out(again), w.out(body, 1), w.out(body, 0), w.out(body, 0), w.out(next)});
  for (std::uint32_t k = 0; k < 3; ++k) w.draft.fetch(w.out(loop, k));
  w.make();
  StepResult result = w.run_whole();
  CHECK(w.fetched(result, 0) == 1);
  CHECK(w.fetched(result, 1) == 2);
  CHECK(w.fetched(result, 2) == 2);
}

TEST_CASE("loops nest: the inner one starts anew in each iteration, and may have none") {
  LoopWorld w;  // for i in [0, 5): for (j = 0; j < i; ++j) total += 1
  auto zero = w.constant("zero", 0), one = w.constant("one", 1), five = w.constant("five", 5);
  auto p = w.less("p", w.out(zero), w.out(five));
  auto outer = w.loop("outer", w.out(p), {w.out(zero), w.out(zero)}, {w.out(one), w.out(five)});
  auto body = w.draft.begin_loop(outer);  // i, total, one, five
  auto j0 = w.constant("j0", 0);
  auto q = w.less("q", w.out(j0), w.out(body, 0));
  auto inner =
      w.loop("inner", w.out(q), {w.out(j0), w.out(body, 1)}, {w.out(body, 0), w.out(body, 2)});
  auto inside = w.draft.begin_loop(inner);  // j, total, i, one
  auto j = w.sum("j", {w.out(inside, 0), w.out(inside, 3)});
  auto more = w.less("more", w.out(j), w.out(inside, 2));
  auto total = w.sum("total", {w.out(inside, 1), w.out(inside, 3)});
  w.draft.end_loop({w.out(more), w.out(j), w.out(total)});
  auto next = w.sum("next", {w.out(body, 0), w.out(body, 2)});
  auto again = w.less("again", w.out(next), w.out(body, 3));
  w.draft.end_loop({w.out(again), w.out(next), w.out(inner, 1)});
  w.draft.fetch(w.out(outer, 1));
  w.make();
  for (int step = 0; step < 2; ++step) CHECK(w.fetched(w.run_whole()) == 10);
}

TEST_CASE("a branch in a loop is taken anew in each iteration") {
  LoopWorld w;  // for i in [0, 6): total += i < 3 ? 1 : 10
  auto zero = w.constant("zero", 0), one = w.constant("one", 1), three = w.constant("three", 3),
       six = w.constant("six", 6), ten = w.constant("ten", 10);
  auto p = w.less("p", w.out(zero), w.out(six));
  auto loop = w.loop("loop", w.out(p), {w.out(zero), w.out(zero)},
                     {w.out(one), w.out(three), w.out(six), w.out(ten)});
  auto body = w.draft.begin_loop(loop);  // i, total, one, three, six, ten
  auto small = w.less("small", w.out(body, 0), w.out(body, 3));
  auto branch = w.role("branch", Role::switch_, {w.out(body, 1), w.out(small)}, 2);
  auto low = w.sum("low", {w.out(branch, 1), w.out(body, 2)});
  auto high = w.sum("high", {w.out(branch, 0), w.out(body, 5)});
  auto joined = w.role("joined", Role::merge, {w.out(high), w.out(low)}, 2);
  auto next = w.sum("next", {w.out(body, 0), w.out(body, 2)});
  auto again = w.less("again", w.out(next), w.out(body, 4));
  w.draft.end_loop({w.out(again), w.out(next), w.out(joined)});
  w.draft.fetch(w.out(loop, 1));
  w.make();
  for (int step = 0; step < 2; ++step) CHECK(w.fetched(w.run_whole()) == 33);
}

TEST_CASE("a loop on a branch that is not taken is dead as a whole") {
  for (bool taken : {false, true}) {
    LoopWorld w;
    auto predicate = w.kernel("predicate", {}, [taken](KernelContext& c) {
      c.set_output(0, Tensor::scalar(taken));
      return ok_status();
    });
    auto limit = w.constant("limit", 7);
    auto branch = w.role("branch", Role::switch_, {w.out(limit), w.out(predicate)}, 2);
    auto loop = counting(w, "count", 0, w.out(branch, 1));
    auto joined = w.role("joined", Role::merge, {w.out(branch, 0), w.out(loop)}, 2);
    auto twice = w.sum("twice", {w.out(joined), w.out(joined)});
    w.draft.fetch(w.out(twice));
    w.make();
    for (int step = 0; step < 2; ++step) CHECK(w.fetched(w.run_whole()) == 14);
  }
}

TEST_CASE("a failure says in which iteration, and of siblings the first one's is told") {
  LoopWorld w;
  auto limit = w.constant("limit", 100);
  std::vector<std::uint32_t> loops;
  for (auto [name, when] : {std::pair{"a", 9.0f}, std::pair{"b", 0.0f}}) {
    auto i0 = w.constant(std::string(name) + "/i0", 0);
    auto one = w.constant(std::string(name) + "/one", 1);
    auto p0 = w.less(std::string(name) + "/p0", w.out(i0), w.out(limit));
    auto loop = w.loop(name, w.out(p0), {w.out(i0)}, {w.out(limit), w.out(one)});
    auto body = w.draft.begin_loop(loop);
    auto fails = w.kernel(std::string(name) + "/fails", {w.out(body)},
                          [when = when](KernelContext& c) -> Status {
                            if (c.input(0).item<float>() == when) return internal_error("planted");
                            c.set_output(0, c.input(0));
                            return ok_status();
                          });
    auto next = w.sum(std::string(name) + "/next", {w.out(fails), w.out(body, 2)});
    auto again = w.less(std::string(name) + "/again", w.out(next), w.out(body, 1));
    w.draft.end_loop({w.out(again), w.out(next)});
    w.draft.fetch(w.out(loop));
  }
  w.make();
  for (int step = 0; step < 2; ++step) {
    w.start();
    CHECK(w.run_on().finished);
    const std::string text = w.step->result().status.text();
    CHECK_MESSAGE(text.find("in node 'a/fails'") != std::string::npos, text);
    CHECK_MESSAGE(text.find("in iteration 9 of 'a'") != std::string::npos, text);
  }
}

TEST_CASE("an endless loop gives way to others, and ends when its step is called off") {
  LoopWorld w;
  auto limit = w.constant("limit", 1);
  auto zero = w.constant("zero", 0);
  auto p0 = w.less("p0", w.out(zero), w.out(limit));
  auto loop = w.loop("endless", w.out(p0), {w.out(zero)}, {w.out(limit)});
  auto body = w.draft.begin_loop(loop);
  auto again = w.less("again", w.out(body, 0), w.out(body, 1));
  w.draft.end_loop({w.out(again), w.out(body, 0)});
  w.make();
  w.start();
  CHECK(w.run().more);
  CHECK(w.run().more);
  std::thread other([&] { w.step->abort(cancelled("enough")); });
  const BurstResult burst = w.run_on();
  other.join();
  CHECK(burst.finished);
  CHECK(w.step->result().status.code() == Code::cancelled);
}

TEST_CASE("a cheap burst leaves loops to the lanes") {
  LoopWorld w;
  auto limit = w.constant("limit", 3);
  auto loop = counting(w, "count", 0, w.out(limit));
  w.draft.fetch(w.out(loop));
  for (std::uint32_t i = 0; i < 5; ++i) w.draft.node(i).cheap = true;
  w.make();
  w.start();
  BurstResult burst = w.step->run_cheap(w.lanes);
  CHECK(burst.more);
  CHECK(w.run_on().finished);
  CHECK(w.fetched(w.step->result()) == 3);
}

TEST_CASE("random numbers differ from iteration to iteration and are the same again") {
  LoopWorld w;
  std::vector<std::uint64_t> seen;
  auto limit = w.constant("limit", 50);
  auto one = w.constant("one", 1), zero = w.constant("zero", 0);
  auto p0 = w.less("p0", w.out(zero), w.out(limit));
  auto loop = w.loop("loop", w.out(p0), {w.out(zero)}, {w.out(limit), w.out(one)});
  auto body = w.draft.begin_loop(loop);
  w.kernel(
      "draw", {},
      [&](KernelContext& c) {
        seen.push_back(hash_combine(c.random().key, c.random().run));
        return ok_status();
      },
      0);
  auto next = w.sum("next", {w.out(body, 0), w.out(body, 2)});
  auto again = w.less("again", w.out(next), w.out(body, 1));
  w.draft.end_loop({w.out(again), w.out(next)});
  w.make();
  CHECK(w.run_whole().status.ok());
  const std::vector<std::uint64_t> first = std::exchange(seen, {});
  CHECK(first.size() == 50);
  CHECK(std::set(first.begin(), first.end()).size() == 50);
  CHECK(w.run_whole().status.ok());
  CHECK(seen == first);
}

TEST_CASE("two frames do not share a loop") {
  LoopWorld w;
  auto limit = w.constant("limit", 3);
  counting(w, "a", 0, w.out(limit));
  counting(w, "b", 0, w.out(limit));
  auto shared = [](Plan& p) { p.frames[2].loop = p.frames[1].loop; };
  CHECK(w.code_of(shared) == Code::invalid_argument);
}

TEST_CASE("what a plan says of its frames is not believed") {
  auto code = [](const std::function<void(Plan&)>& change) {
    LoopWorld w;
    auto limit = w.constant("limit", 3);
    auto loop = counting(w, "count", 0, w.out(limit));
    w.draft.fetch(w.out(loop));
    return w.code_of(change);
  };
  const auto refused = Code::invalid_argument;
  CHECK(code([](Plan&) {}) == Code::ok);
  CHECK(code([](Plan& p) { p.frames.pop_back(); }) == refused);
  CHECK(code([](Plan& p) { p.frames[1].parent = 1; }) == refused);
  CHECK(code([](Plan& p) { p.frames[1].parent = 9; }) == refused);
  CHECK(code([](Plan& p) { p.frames[1].first_node += 1; }) == refused);
  CHECK(code([](Plan& p) { p.frames[1].nodes = ~0u; }) == refused);
  CHECK(code([](Plan& p) { p.frames[1].nodes -= 1; }) == refused);
  CHECK(code([](Plan& p) { p.frames[1].first_slot = ~0u; }) == refused);
  CHECK(code([](Plan& p) { p.frames[1].slots -= 1; }) == refused);
  CHECK(code([](Plan& p) { p.frames[1].loop = 0; }) == refused);
  CHECK(code([](Plan& p) { p.frames[1].body = ~0u; }) == refused);
  CHECK(code([](Plan& p) { p.frames[1].next = p.frames[1].body; }) == refused);
  CHECK(code([](Plan& p) { p.frames[1].variables = 2; }) == refused);
  CHECK(code([](Plan& p) { p.frames.push_back(p.frames[1]); }) == refused);
  CHECK(code([](Plan& p) { p.nodes[p.frames[1].body].frame = 0; }) == refused);
  CHECK(code([](Plan& p) { p.nodes[0].frame = 1; }) == refused);
  CHECK(code([](Plan& p) { p.nodes[0].frame = 77; }) == refused);
  CHECK(code([](Plan& p) { p.nodes[p.frames[1].body].edges = 0; }) == refused);
  CHECK(code([](Plan& p) { p.fetches[0].slot = p.frames[1].first_slot; }) == refused);
  CHECK(code([](Plan& p) { p.feeds.push_back({p.frames[1].first_slot, 0}); }) == refused);
  CHECK(code([](Plan& p) { p.input_slots[p.nodes[p.frames[1].next].first_input] = 0; }) == refused);
  CHECK(code([](Plan& p) { p.nodes[p.frames[1].body + 1].role = Role::recv; }) != Code::ok);
}

namespace {

// A program of loops: each level adds, and repeats what is inside it as often as its own number
// says.
struct Nest {
  int trips = 0;   // of this level, beside the number of the iteration around it modulo 3
  float step = 0;  // added in each iteration
  bool branches = false;
  int before = 0, yes = 0, no = 0;  // nodes more on the way to a branch, and in its sides
  std::vector<Nest> inside;         // after it; of which the first may be in one of its sides
  bool in_side = false;
};

Nest random_nest(Random& random, int depth) {
  Nest nest;
  nest.trips = int(random.below(4));
  nest.step = float(random.below(5));
  nest.branches = random.below(2) == 0;
  for (int* length : {&nest.before, &nest.yes, &nest.no})
    *length = random.below(2) == 0 ? 0 : int(random.below(9));
  nest.in_side = random.below(2) == 0;
  if (depth > 0)
    for (std::uint64_t k = random.below(3); k > 0; --k)
      nest.inside.push_back(random_nest(random, depth - 1));
  return nest;
}

float obvious(const Nest& nest, int around, float total) {
  for (int i = 0; i < nest.trips + around % 3; ++i) {
    std::size_t k = 0;
    if (nest.branches && total < 20) {
      total += 2 * nest.step;
      if (nest.in_side && !nest.inside.empty()) total = obvious(nest.inside[0], i, total);
    } else {
      total += nest.step;
    }
    if (nest.branches && nest.in_side) k = 1;
    for (; k < nest.inside.size(); ++k) total = obvious(nest.inside[k], i, total);
  }
  return total;
}

// The slot of the total after the nest, given those of the total before it and of the iteration
// around it.
std::uint32_t draft(LoopWorld& w, const Nest& nest, const std::string& name, std::uint32_t around,
                    std::uint32_t before) {
  auto trips = w.kernel(name + "/trips", {around}, [n = nest.trips](KernelContext& c) {
    c.set_output(0, Tensor::scalar(float(n + int(c.input(0).item<float>()) % 3)));
    return ok_status();
  });
  auto zero = w.constant(name + "/zero", 0);
  auto p0 = w.less(name + "/p0", w.out(zero), w.out(trips));
  auto loop = w.loop(name, w.out(p0), {w.out(zero), before}, {w.out(trips)});
  auto body = w.draft.begin_loop(loop);  // i, total, trips
  std::uint32_t total = w.out(body, 1);
  auto step = w.constant(name + "/step", nest.step);
  std::size_t k = 0;
  if (nest.branches) {
    auto chain = [&](const std::string& way, std::uint32_t slot, int nodes) {
      for (int n = 0; n < nodes; ++n)
        slot = w.out(w.sum(name + "/" + way + std::to_string(n), {slot}));
      return slot;
    };
    auto twenty = w.constant(name + "/twenty", 20);
    auto low = w.less(name + "/low", total, w.out(twenty));
    // One side takes the total itself, the other what may still be on its way when that is over.
    auto late = chain("late", total, nest.before);
    auto takes = w.role(name + "/takes", Role::switch_, {late, w.out(low)}, 2);
    auto branch = w.role(name + "/branch", Role::switch_, {total, w.out(low)}, 2);
    auto yes = w.out(w.sum(name + "/yes", {w.out(takes, 1), w.out(step), w.out(step)}));
    if (nest.in_side && !nest.inside.empty()) {
      auto i = w.role(name + "/side", Role::switch_, {w.out(body, 0), w.out(low)}, 2);
      yes = draft(w, nest.inside[0], name + "/in_side", w.out(i, 1), yes);
    }
    yes = chain("yes", yes, nest.yes);
    auto no = chain("no", w.out(w.sum(name + "/no", {w.out(branch, 0), w.out(step)})), nest.no);
    total = w.out(w.role(name + "/joined", Role::merge, {no, yes}, 2));
    k = nest.in_side ? 1 : 0;
  } else {
    total = w.out(w.sum(name + "/plus", {total, w.out(step)}));
  }
  for (; k < nest.inside.size(); ++k)
    total = draft(w, nest.inside[k], name + "/" + std::to_string(k), w.out(body, 0), total);
  auto one = w.constant(name + "/one", 1);
  auto i = w.sum(name + "/i", {w.out(body, 0), w.out(one)});
  auto again = w.less(name + "/again", w.out(i), w.out(body, 2));
  w.draft.end_loop({w.out(again), w.out(i), total});
  return w.out(loop, 1);
}

}  // namespace

TEST_CASE("random nests of loops and branches equal a plain evaluation") {
  const auto seed = std::uint64_t(std::random_device{}());
  INFO("seed " << seed);
  Random random(seed);
  for (int round = 0; round < 200; ++round) {
    LoopWorld w;
    const Nest nest = random_nest(random, 3);
    auto around = w.constant("around", 2);
    auto before = w.constant("before", 1);
    w.draft.fetch(draft(w, nest, "n", w.out(around), w.out(before)));
    w.make();
    for (int step = 0; step < 2; ++step) CHECK(w.fetched(w.run_whole()) == obvious(nest, 2, 1));
  }
}

TEST_CASE("a loop leaves nothing behind: neither in its last iteration nor for the next step") {
  LoopWorld w;  // (a, b, i) -> (b, a, i + 1) beside a big invariant, all from the device's memory
  auto big = [&](const std::string& name) {
    return w.kernel(name, {}, [](KernelContext& c) -> Status {
      TROUPE_TRY(Tensor made, c.allocate(DType::f32, Shape{1 << 16}));
      c.set_output(0, std::move(made));
      return ok_status();
    });
  };
  auto a = big("a"), b = big("b"), c = big("c");
  auto zero = w.constant("zero", 0), one = w.constant("one", 1), five = w.constant("five", 5);
  auto p = w.less("p", w.out(zero), w.out(five));
  auto loop = w.loop("loop", w.out(p), {w.out(a), w.out(b), w.out(zero), w.out(a)},
                     {w.out(c), w.out(one), w.out(five)});
  auto body = w.draft.begin_loop(loop);
  auto look = w.kernel("look", {w.out(body, 4), w.out(body, 0)}, [](KernelContext& k) -> Status {
    TROUPE_TRY(Tensor made, k.allocate(DType::f32, Shape{1 << 16}));
    k.set_output(0, std::move(made));
    return ok_status();
  });
  auto next = w.sum("next", {w.out(body, 2), w.out(body, 5)});
  auto again = w.less("again", w.out(next), w.out(body, 6));
  w.draft.end_loop({w.out(again), w.out(body, 1), w.out(body, 0), w.out(next), w.out(look)});
  w.draft.fetch(w.out(loop, 2));
  w.make();
  for (int step = 0; step < 3; ++step) {
    {
      StepResult result = w.run_whole();
      CHECK(w.fetched(result) == 5);
    }
    CHECK(w.device.bytes_in_use() == 0);
  }
}

namespace {

// An empty list.
std::uint32_t no_list(LoopWorld& w, const std::string& name) {
  return w.kernel(name, {}, [](KernelContext& c) {
    c.set_output(0, list_tensor({}));
    return ok_status();
  });
}

}  // namespace

TEST_CASE("a loop keeps what a branch makes, and one that goes back gets it where it was made") {
  // for i in [0, 7): if i < 3 or 4 < i keep 10 + i; then, from the last to the first, the total
  // becomes twice itself, and more by what was kept.
  LoopWorld w;
  auto zero = w.constant("zero", 0), one = w.constant("one", 1), seven = w.constant("seven", 7);
  auto odd = [](float i) { return i < 3 || i > 4; };
  auto take = [&](const std::string& name, std::uint32_t i) {
    return w.kernel(name, {i}, [odd](KernelContext& c) {
      c.set_output(0, Tensor::scalar(odd(c.input(0).item<float>())));
      return ok_status();
    });
  };
  auto p = w.less("p", w.out(zero), w.out(seven));
  auto empty = no_list(w, "empty");
  auto loop = w.loop("loop", w.out(p), {w.out(zero), w.out(empty)}, {w.out(one), w.out(seven)});
  auto body = w.draft.begin_loop(loop);  // i, list, one, seven
  auto ten = w.constant("ten", 10);
  auto side = w.role("side", Role::switch_, {w.out(body, 0), w.out(take("is", w.out(body, 0)))}, 2);
  auto made = w.sum("made", {w.out(side, 1), w.out(ten)});
  auto keep = w.role("keep", Role::keep, {w.out(body, 1), w.out(made)}, 1);
  auto next = w.sum("next", {w.out(body, 0), w.out(body, 2)});
  auto again = w.less("again", w.out(next), w.out(body, 3));
  w.draft.end_loop({w.out(again), w.out(next), w.out(keep)});

  auto length = w.kernel("length", {w.out(loop, 1)}, [](KernelContext& c) {
    c.set_output(0, Tensor::scalar(float(list_in(c.input(0)).size())));
    return ok_status();
  });
  auto q = w.less("q", w.out(zero), w.out(seven));
  auto back = w.loop("back", w.out(q), {w.out(zero), w.out(loop, 1)}, {w.out(zero)});
  auto inside = w.draft.begin_loop(back);  // total, list, zero
  auto kept = w.role("kept", Role::kept, {w.out(inside, 1)}, 2);
  auto twice = w.sum("twice", {w.out(inside, 0), w.out(inside, 0)});
  auto left = w.kernel("left", {w.out(kept, 0)}, [odd](KernelContext& c) {
    c.set_output(0, Tensor::scalar(odd(float(list_in(c.input(0)).size()))));
    return ok_status();
  });
  auto branch = w.role("branch", Role::switch_, {w.out(twice), w.out(left)}, 2);
  auto more = w.sum("more", {w.out(branch, 1), w.out(kept, 1)});
  auto total = w.role("total", Role::merge, {w.out(branch, 0), w.out(more)}, 2);
  auto any = w.kernel("any", {w.out(kept, 0)}, [](KernelContext& c) {
    c.set_output(0, Tensor::scalar(!list_in(c.input(0)).empty()));
    return ok_status();
  });
  w.draft.end_loop({w.out(any), w.out(total), w.out(kept, 0)});
  w.draft.fetch(w.out(back, 0));
  w.draft.fetch(w.out(length));
  w.make();
  float wanted = 0;
  for (int i = 6; i >= 0; --i) wanted = 2 * wanted + (odd(float(i)) ? 10 + float(i) : 0);
  for (int step = 0; step < 3; ++step) {
    StepResult result = w.run_whole();
    CHECK(w.fetched(result, 0) == wanted);
    CHECK(w.fetched(result, 1) == 7);
  }
}

TEST_CASE("what is no list is neither pushed onto nor taken from") {
  for (bool push : {true, false})
    for (bool empty : {true, false}) {
      LoopWorld w;
      auto list = empty ? no_list(w, "list") : w.constant("list", 1);
      auto one = w.constant("one", 1);
      auto made = push ? w.role("keep", Role::keep, {w.out(list), w.out(one)}, 1)
                       : w.role("keep", Role::kept, {w.out(list)}, 2);
      auto after = w.kernel("after", {w.out(made)}, [](KernelContext& c) {
        c.set_output(0, Tensor::scalar(1.0f));
        return ok_status();
      });
      w.draft.fetch(w.out(after));
      w.make();
      const Status ended = w.run_whole().status;
      CHECK(ended.ok() == (push && empty));
      if (!ended.ok()) CHECK(ended.code() == Code::invalid_argument);
      if (!ended.ok())
        CHECK_MESSAGE(ended.text().find("'keep'") != std::string::npos, ended.text());
    }
}
