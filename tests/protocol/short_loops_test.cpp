// Every order in which bursts, messages and answers of short loops over two devices can happen.
#include <doctest/doctest.h>

#include "tests/protocol/spread_step.hpp"

using namespace troupe;
using namespace troupe::test::loops;

namespace {

struct ShortLoop {
  const char* name;
  Make make;
  Surroundings world = {};
  bool slow = false;
};

std::deque<Tensor> f64_scalars(std::initializer_list<double> values) {
  std::deque<Tensor> tensors;
  for (double v : values) tensors.push_back(Tensor::scalar(v));
  return tensors;
}

// Each as short as it can be while it has what its name says.
const std::vector<ShortLoop>& short_loops() {
  using Carried = std::tuple<Output, Output>;
  static const auto loop = [](Graph& g, int trips, const std::function<Output(Output, Output)>& f) {
    auto [i, x] = while_loop(
        std::tuple{constant(g, 0), constant(g, 1.5)}, [&](Output i, Output) { return i < trips; },
        [&](Output i, Output x) {
          return Carried{i + 1, f(i, x)};
        });
    return std::vector<Output>{i, x};
  };
  static const auto prints = [](Graph& g, const Devices& d, int trips) {
    return loop(g, trips, [&](Output i, Output x) {
      print(i, {.message = "i"});
      on(g, d[1], [&] { return print(x, {.message = "x"}); });
      return x * 2.0;
    });
  };
  static const auto takes = [](Graph& g, const Devices& d, int trips) {
    Output queue = queue_on(g, d[1], "queue");
    return loop(g, trips, [&](Output, Output x) { return x * 2.0 + taken_from(queue); });
  };
  static const std::vector<ShortLoop> all{
      {"there and back",
       [](Graph& g, const Devices& d) {
         return loop(g, 1,
                     [&](Output, Output x) { return on(g, d[1], [&] { return x * 2.0; }) + 1.0; });
       }},
      {"no iteration",
       [](Graph& g, const Devices& d) {
         return loop(g, 0, [&](Output, Output x) { return on(g, d[1], [&] { return x * 2.0; }); });
       }},
      {"each by itself",
       [](Graph& g, const Devices& d) {
         return loop(g, 2, [&](Output, Output x) { return on(g, d[1], [&] { return x * 2.0; }); });
       }},
      {"a count that is used there",
       [](Graph& g, const Devices& d) {
         return loop(g, 1, [&](Output i, Output x) {
           return on(g, d[1], [&] { return x + cast(i, DType::f64); });
         });
       }},
      {"an effect alone",
       [](Graph& g, const Devices& d) {
         return loop(g, 1, [&](Output i, Output x) {
           on(g, d[1], [&] { return assert_(i < 2); });
           return x * 2.0;
         });
       }},
      {"a condition elsewhere",
       [](Graph& g, const Devices& d) {
         Output x = while_loop(
             constant(g, 1.5), [&](Output x) { return on(g, d[1], [&] { return x + 0.0; }) < 4.0; },
             [&](Output x) { return x * 2.0; });
         return std::vector<Output>{x};
       }},
      {"a branch",
       [](Graph& g, const Devices& d) {
         return loop(g, 1, [&](Output i, Output x) {
           return cond(
               i == 0, [&] { return on(g, d[1], [&] { return x * 2.0; }); }, [&] { return x; });
         });
       }},
      {"a loop in it, elsewhere",
       [](Graph& g, const Devices& d) {
         return loop(g, 1, [&](Output i, Output x) {
           return std::get<1>(on(g, d[1], [&] {
             return while_loop(
                 Carried{constant(g, 0), x}, [&](Output j, Output) { return j <= i; },
                 [&](Output j, Output y) {
                   return Carried{j + 1, y * 2.0};
                 });
           }));
         });
       }},
      {"a loop in it, over both",
       [](Graph& g, const Devices& d) {
         return loop(g, 1, [&](Output, Output x) {
           return std::get<1>(while_loop(
               Carried{constant(g, 0), x}, [&](Output j, Output) { return j < 1; },
               [&](Output j, Output y) {
                 return Carried{j + 1, on(g, d[1], [&] { return y * 2.0; })};
               }));
         });
       }},
      {"on a branch that is not taken",
       [](Graph& g, const Devices& d) {
         Output x = constant(g, 1.5);
         return std::vector<Output>{cond(
             x > 2.0,
             [&] {
               return loop(
                   g, 2, [&](Output, Output x) { return on(g, d[1], [&] { return x * 2.0; }); })[1];
             },
             [&] { return x; })};
       }},
      {"a branch whose other side is elsewhere",
       [](Graph& g, const Devices& d) {
         return loop(g, 1, [&](Output i, Output x) {
           return cond(
               i == 1, [&] { return on(g, d[1], [&] { return x * 2.0; }); }, [&] { return x; });
         });
       }},
      {"one iteration at a time",
       [](Graph& g, const Devices& d) {
         Output x = while_loop(
             constant(g, 1.5), [&](Output x) { return x < 4.0; },
             [&](Output x) { return on(g, d[1], [&] { return x * 2.0; }); }, {.window = 1});
         return std::vector<Output>{x};
       }},
      {"a call of a function that calls itself, elsewhere",
       [](Graph& g, const Devices& d) {
         Function halved =
             g.function("halved", {f64_scalar}, {f64_scalar}, [](Function& self, Output x) {
               return cond(
                   x < 1.0, [&] { return x; }, [&] { return self(x * 0.5) + 1.0; });
             });
         return loop(g, 1, [&](Output, Output x) {
           return on(g, d[1], [&] { return halved(x + 2.0); }) * 2.0;
         });
       }},
      {"what is printed here and there",
       [](Graph& g, const Devices& d) { return prints(g, d, 1); }},
      {"what is printed here and there, twice",
       [](Graph& g, const Devices& d) { return prints(g, d, 2); },
       {},
       true},
      {"what is put into a queue elsewhere",
       [](Graph& g, const Devices& d) {
         Output queue = queue_on(g, d[1], "queue");
         return loop(g, 1, [&](Output, Output x) {
           enqueue(queue, {x});
           enqueue(queue, {x * 2.0});
           return x + 1.0;
         });
       },
       {.queues = {{"queue", {}}}}},
      {"what is taken from a queue elsewhere",
       [](Graph& g, const Devices& d) { return takes(g, d, 1); },
       {.queues = {{"queue", {.elements = f64_scalars({3, 4, 5})}}}}},
      {"what is taken from a queue elsewhere, twice",
       [](Graph& g, const Devices& d) { return takes(g, d, 2); },
       {.queues = {{"queue", {.elements = f64_scalars({3, 4, 5})}}}},
       true},
      {"a branch that takes from a queue elsewhere, or not",
       [](Graph& g, const Devices& d) {
         Output queue = queue_on(g, d[1], "queue");
         return loop(g, 2, [&](Output i, Output x) {
           return cond(
               i == 1, [&] { return taken_from(queue); }, [&] { return x; });
         });
       },
       {.queues = {{"queue", {.elements = f64_scalars({3, 4})}}}},
       true},
      {"a variable elsewhere that is written",
       [](Graph& g, const Devices& d) {
         Variable v = on(g, d[1], [&] { return variable(g, "v", Tensor::scalar(0.0)); });
         return loop(g, 1, [&](Output, Output x) {
           assign_add(v, x);
           return x * 2.0;
         });
       },
       {.variables = {{"v", Tensor::scalar(10.0)}}}},
      {"as often as a queue elsewhere says",
       [](Graph& g, const Devices& d) {
         Output x = on(g, d[1], [&] { return taken_from(queue_on(g, d[1], "queue")); });
         return std::vector<Output>{while_loop(
             x, [&](Output x) { return x < 4.0; },
             [&](Output x) { return on(g, d[1], [&] { return x * 0.5; }) + x; })};
       },
       {.queues = {{"queue", {.elements = f64_scalars({2})}}}}},
  };
  return all;
}

// The number of sequences of choices, each of which ends alike: in values and effects.
std::size_t try_all(SpreadStep& spread, const Outcome& expected) {
  struct Choice {
    std::size_t taken = 0, of = 0;
  };
  std::vector<Choice> choices;
  for (std::size_t runs = 1;; ++runs) {
    std::size_t made = 0;
    const Outcome got = spread.run([&](const std::vector<SpreadStep::Action>& actions) {
      if (made == choices.size()) choices.push_back({0, actions.size()});
      REQUIRE(choices[made].of == actions.size());
      return choices[made++].taken;
    });
    check_same(got, expected);
    // The last choice that can be another one is made so.
    while (!choices.empty() && choices.back().taken + 1 == choices.back().of) choices.pop_back();
    if (choices.empty()) return runs;
    ++choices.back().taken;
    REQUIRE(runs < 1'000'000);
  }
}

void try_all_of(bool slow) {
  std::size_t loops = 0;
  for (const ShortLoop& example : short_loops()) {
    if (example.slow != slow) continue;
    ++loops;
    const std::string name = example.name;
    CAPTURE(name);
    SpreadStep spread = spread_over(example.make, {kSpread[0], kSpread[1]}, example.world);
    CHECK(spread.size() == 2);
    const std::size_t ways = try_all(spread, on_one(example.make, example.world));
    MESSAGE(name << ": " << ways << " interleavings");
  }
  MESSAGE(loops << " loops");
  CHECK(loops >= (slow ? 3 : 12));
}

}  // namespace

TEST_CASE("every interleaving of a loop over two devices ends alike") { try_all_of(false); }

TEST_CASE("every interleaving of a loop over two devices ends alike, longer ones [slow]") {
  try_all_of(true);
}

TEST_CASE("a body and what is in it ask one queue in the order of nodes") {
  using Inner = std::function<Output(Graph & g, const Output& queue, const Output& x)>;
  const auto side = [](Graph& g, const Output& x, const Output& taken) {
    return g.add(NodeSpec{.op = "Switch", .inputs = {x, taken}}).output(1);
  };
  const auto nothing = [](Graph& g) { return constant(g, std::int64_t{0}); };
  const std::pair<const char*, Inner> inners[] = {
      {"a branch",
       [&](Graph& g, const Output& queue, const Output& x) {
         cond(
             x > 1.0, [&] { enqueue(queue, {x + 10.0}); }, [&] {});
         return nothing(g);
       }},
      {"a loop",
       [&](Graph& g, const Output& queue, const Output& x) {
         while_loop(
             x, [&](Output y) { return y < 3.0; },
             [&](Output y) {
               enqueue(queue, {y + 10.0});
               return y + 1.0;
             });
         return nothing(g);
       }},
      {"a branch that looks",
       [&](Graph& g, const Output& queue, const Output& x) {
         return cond(
             x > 1.0, [&] { return queue_size(queue); }, [&] { return nothing(g); });
       }},
      {"a loop that looks",
       [&](Graph& g, const Output& queue, const Output&) {
         return while_loop(
             nothing(g), [&](Output i) { return i < 2; },
             [&](Output i) { return i + queue_size(queue); });
       }},
      {"a side that is dead, and a branch",
       [&](Graph& g, const Output& queue, const Output& x) {
         enqueue(queue, {side(g, x, x > 1.7)});
         return cond(
             x > 1.0,
             [&] {
               enqueue(queue, {x + 10.0});
               return constant(g, std::int64_t{1});
             },
             [&] { return nothing(g); });
       }},
      {"a side that is dead, and a loop",
       [&](Graph& g, const Output& queue, const Output& x) {
         enqueue(queue, {side(g, x, x > 1.7)});
         return while_loop(
             nothing(g), [&](Output i) { return i < 2; },
             [&](Output i) {
               enqueue(queue, {x + 10.0});
               return i + 1;
             });
       }},
      {"a function on one side",
       [&](Graph& g, const Output& queue, const Output& x) {
         Function f = g.function("f", {f64_scalar}, {f64_scalar}, [&](Function&, Output y) {
           enqueue(queue, {y + 10.0});
           return y;
         });
         f(side(g, x, x < 1.7));
         return nothing(g);
       }},
  };
  Random random(1);
  for (const auto& [name, inner] : inners) {
    const std::string what = name;
    CAPTURE(what);
    const auto program = [&inner = inner](Graph& g, const Devices& d) {
      Output queue = queue_on(g, d[0], "queue");
      auto [x, n] = while_loop(
          std::tuple{constant(g, 1.5), constant(g, std::int64_t{0})},
          [&](Output x, Output) { return x < 2.0; },
          [&](Output x, Output) {
            enqueue(queue, {x});
            Output n = inner(g, queue, x);
            enqueue(queue, {x + 100.0});
            return std::tuple{x + 1.0, n};
          });
      return std::vector<Output>{x, n};
    };
    const Surroundings world{.queues = {{"queue", {}}}};
    SpreadStep alone = spread_over(program, kAlone, world);
    const Outcome expected = alone.run([](const auto&) { return std::size_t{0}; });
    for (int round = 0; round < 20; ++round) check_same(alone.run(at_random(random)), expected);
  }
}
