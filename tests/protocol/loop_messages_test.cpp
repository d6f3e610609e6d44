// What the parts of a loop send each other, by kind: values that cross, predicates, and that an
// iteration is over. Nothing else.
#include <doctest/doctest.h>

#include <random>

#include "tests/protocol/drawn_loops.hpp"

using namespace troupe;
using namespace troupe::test::loops;

namespace {

using PerKind = std::map<MessageKind, std::size_t>;

// A loop that goes round as often as it is told.
struct CountedLoop {
  const char* name;
  std::vector<Output> (*make)(Graph& g, const Devices& d, int n, std::int64_t window);
  std::size_t parts;
  PerKind inside;   // messages of an iteration
  PerKind outside;  // beside those
};

template <class F>
std::vector<Output> counted_loop(Graph& g, int n, std::int64_t window, F&& body) {
  auto [i, x, y] = while_loop(
      std::tuple{constant(g, 0), constant(g, 0.5), constant(g, 0.25)},
      [&](Output i, Output, Output) { return i < n; },
      [&](Output i, Output x, Output y) {
        auto [nx, ny] = body(i, x, y);
        return std::tuple<Output, Output, Output>{i + 1, nx, ny};
      },
      {.window = window});
  return {i, x, y};
}

// Of each two participants the leader sends one predicate, and one before the loop; it gets one
// end. The rest follows from the bodies.
const std::vector<CountedLoop> kCounted{
    {"there and back",
     [](Graph& g, const Devices& d, int n, std::int64_t window) {
       return counted_loop(g, n, window, [&](Output, Output x, Output y) {
         return std::pair{on(g, d[1], [&] { return sin(x); }) + y, y * 0.5};
       });
     },
     2,
     {{MessageKind::value, 2}, {MessageKind::predicate, 1}, {MessageKind::end, 1}},
     {{MessageKind::value, 1}, {MessageKind::first, 1}}},  // the first x
    {"each by itself",
     [](Graph& g, const Devices& d, int n, std::int64_t window) {
       return counted_loop(g, n, window, [&](Output, Output x, Output y) {
         return std::pair{on(g, d[1], [&] { return sin(x); }), on(g, d[2], [&] { return cos(y); })};
       });
     },
     3,
     {{MessageKind::predicate, 2}, {MessageKind::end, 2}},
     {{MessageKind::value, 2}, {MessageKind::first, 2}}},
    {"two stages",
     [](Graph& g, const Devices& d, int n, std::int64_t window) {
       return counted_loop(g, n, window, [&](Output, Output x, Output y) {
         Output next = on(g, d[1], [&] { return sin(x); });
         return std::pair{next, on(g, d[2], [&] { return y * 0.5 + next; })};
       });
     },
     3,
     {{MessageKind::value, 1}, {MessageKind::predicate, 2}, {MessageKind::end, 2}},
     {{MessageKind::value, 2}, {MessageKind::first, 2}}},
    {"a value from around it",  // crosses once
     [](Graph& g, const Devices& d, int n, std::int64_t window) {
       Output around = taken_from(queue_on(g, d[0], "queue"));
       return counted_loop(g, n, window, [&](Output, Output x, Output y) {
         return std::pair{on(g, d[1], [&] { return sin(x) + around; }), y * 0.5};
       });
     },
     2,
     {{MessageKind::predicate, 1}, {MessageKind::end, 1}},
     {{MessageKind::value, 2}, {MessageKind::first, 1}}},
    {"a branch",  // from here, where x stays: there and back, taken or not
     [](Graph& g, const Devices& d, int n, std::int64_t window) {
       return counted_loop(g, n, window, [&](Output i, Output x, Output y) {
         return std::pair{
             cond(
                 mod(i, constant(g, 3)) == 0, [&] { return on(g, d[1], [&] { return sin(x); }); },
                 [&] { return x * y; }),
             y};
       });
     },
     2,
     {{MessageKind::value, 2}, {MessageKind::predicate, 1}, {MessageKind::end, 1}},
     {{MessageKind::first, 1}}},
    {"an effect alone",  // of the counter
     [](Graph& g, const Devices& d, int n, std::int64_t window) {
       return counted_loop(g, n, window, [&](Output i, Output x, Output y) {
         on(g, d[1], [&] { return print(i, {.message = "i"}); });
         return std::pair{sin(x), y};
       });
     },
     2,
     {{MessageKind::value, 1}, {MessageKind::predicate, 1}, {MessageKind::end, 1}},
     {{MessageKind::value, 1}, {MessageKind::first, 1}}},
};

// What holds of every program: a predicate and an end for each part but the leader's in each
// iteration, and what else crosses is what nodes on two devices have between them.
void check_kinds(const SpreadStep& step) {
  std::map<MessageKind, std::size_t> channels;
  std::size_t messages = 0, participants = 0;
  const auto count = [&](const std::map<MessageKind, Traffic>& kinds) {
    for (const auto& [kind, traffic] : kinds) {
      channels[kind] += traffic.channels;
      messages += traffic.messages;
    }
  };
  for (const SpreadStep::Loop& loop : step.loops()) {
    const Traffic one{loop.parts - 1, (loop.parts - 1) * loop.iterations};
    CHECK(loop.inside.at(MessageKind::predicate) == one);
    CHECK(loop.inside.at(MessageKind::end) == one);
    participants += loop.parts - 1;
    count(loop.inside);
  }
  const std::map<MessageKind, Traffic> outside = step.outside();
  CHECK(outside.count(MessageKind::predicate) + outside.count(MessageKind::end) == 0);
  count(outside);
  CHECK(messages == step.messages());
  CHECK(channels[MessageKind::first] <= participants);
  CHECK(channels[MessageKind::value] + channels[MessageKind::first] +
            channels[MessageKind::predicate] ==
        step.crossing_ports());
  CHECK(channels[MessageKind::end] + channels[MessageKind::order] <= step.crossing_controls());
}

// Those of some numbers. Each goes round as often as on one device.
void check_drawn_kinds(Random& random, std::uint64_t first, std::uint64_t end) {
  for (std::uint64_t number = first; number < end; ++number) {
    CAPTURE(number);
    const DrawnLoop drawn = drawn_loop(number);
    const Effects alone = on_one(drawn.make, drawn.world).effects;
    SpreadStep spread = spread_over(drawn.make, kSpread, drawn.world);
    spread.run(at_random(random));
    check_kinds(spread);
    for (const SpreadStep::Loop& loop : spread.loops()) {
      std::size_t told = 0;
      for (const std::string& message : loop.prints) {
        if (!message.starts_with("loop ")) continue;
        ++told;
        const auto at = alone.find("print " + message);
        CHECK(loop.iterations == (at == alone.end() ? 0 : at->second.size()));
      }
      CHECK(told == 1);
    }
  }
}

}  // namespace

TEST_CASE("an iteration over two devices sends its values, a predicate and that it is over") {
  Random random(1);
  for (const CountedLoop& example : kCounted)
    for (int n : {0, 1, 2, 7, 25})
      for (std::int64_t window : {1, 10}) {
        const std::string name = example.name;
        CAPTURE(name);
        CAPTURE(n);
        CAPTURE(window);
        SpreadStep spread =
            spread_over([&](Graph& g, const Devices& d) { return example.make(g, d, n, window); },
                        kSpread, {.queues = {{"queue", {.elements = {Tensor::scalar(2.0)}}}}});
        for (int round = 0; round < 3; ++round) {
          spread.run(at_random(random));
          const auto loops = spread.loops();
          REQUIRE(loops.size() == 1);
          CHECK(loops[0].parts == example.parts);
          CHECK(loops[0].iterations == std::size_t(n));
          PerKind inside, outside;
          for (const auto& [kind, traffic] : loops[0].inside) inside[kind] = traffic.messages;
          for (const auto& [kind, traffic] : spread.outside()) outside[kind] = traffic.messages;
          PerKind expected = example.inside;
          for (auto& [kind, messages] : expected) messages *= std::size_t(n);
          CHECK(inside == expected);
          CHECK(outside == example.outside);
          std::size_t all = 0;
          for (const PerKind& kinds : {expected, example.outside})
            for (const auto& [kind, messages] : kinds) all += messages;
          CHECK(spread.messages() == all);
        }
      }
}

TEST_CASE("loops in loops send predicates and ends as often as each goes round") {
  Random random(2);
  for (std::int64_t window : {1, 10}) {
    SpreadStep spread =
        spread_over([&](Graph& g, const Devices& d) { return nest(g, d, window); }, kSpread);
    spread.run(at_random(random));
    auto loops = spread.loops();
    REQUIRE(loops.size() == 2);
    if (loops[0].iterations == 8) std::swap(loops[0], loops[1]);
    CHECK(loops[0].iterations == 1 + 3 + 5 + 7);
    CHECK(loops[1].iterations == 8);
    // In each iteration of the outer loop, whether or not the inner one has any.
    CHECK(loops[1].inside.at(MessageKind::first) == Traffic{2, 16});
    check_kinds(spread);
  }
}

TEST_CASE("loops send nothing but what crosses, predicates and ends, in any order") {
  const auto seed = std::uint64_t(std::random_device{}());
  CAPTURE(seed);
  Random random(seed);
  for (const LoopExample& example : loop_examples()) {
    const std::string name = example.name;
    CAPTURE(name);
    SpreadStep spread = spread_over(example.make, kSpread);
    for (int round = 0; round < 3; ++round) {
      spread.run(at_random(random));
      check_kinds(spread);
    }
  }
  check_drawn_kinds(random, 0, 40);
}

TEST_CASE("loops send nothing but what crosses, predicates and ends: those that are drawn [slow]") {
  const auto seed = std::uint64_t(std::random_device{}());
  CAPTURE(seed);
  Random random(seed);
  check_drawn_kinds(random, 40, 200);
}
