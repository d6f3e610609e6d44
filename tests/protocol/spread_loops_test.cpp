// Loops over several devices: whatever order their messages come in, they compute what they compute
// on one. Partitions run here one burst at a time, on one thread, as a seed says.
#include <doctest/doctest.h>

#include <algorithm>
#include <functional>
#include <optional>
#include <random>

#include "tests/protocol/loop_examples.hpp"
#include "troupe/actors/burst/step_state.hpp"
#include "troupe/core/hash.hpp"
#include "troupe/devices/cpu/cpu_device.hpp"
#include "troupe/ops/compile_host.hpp"

using namespace troupe;
using namespace troupe::test::loops;

namespace {

struct Message {
  std::uint32_t to = 0;
  ChannelId channel = 0;
  Tag tag;
  Tensor tensor;
  bool dead = false;
};

// All partitions of one step, and what is on its way between them.
class Partitions {
 public:
  Partitions(const GraphDef& graph, const CompileRequest& request, const Devices& devices)
      : host_(ops::builtin()) {
    Target target = host_.target();
    for (const std::string& device : devices) {
      devices_.push_back(make_inline_device(*DeviceName::parse(device)));
      target.devices.push_back({devices_.back()->name()});
    }
    compiled_ = value_or_throw(compile(graph, request, target));
    for (Plan& plan : compiled_.plans) add(std::move(plan));
  }

  // What can happen next: a burst of a partition, or that a message arrives there.
  struct Action {
    std::uint32_t partition = 0;
    std::optional<std::size_t> message = {};  // the place among those on their way, oldest first
  };
  using Choose = std::function<std::size_t(const std::vector<Action>&)>;

  std::vector<Tensor> run(const Choose& choose) {
    std::vector<bool> over(parts_.size(), false);
    std::vector<std::optional<Tensor>> fetched(compiled_.fetches);
    messages_ = most_ = 0;
    for (auto& part : parts_) throw_if_error(part->step->start({.run = 7}, *part));
    for (auto& part : parts_) part->wants = true;
    for (std::size_t left = parts_.size(); left > 0;) {
      std::vector<Action> actions;
      for (std::uint32_t p = 0; p < parts_.size(); ++p)
        if (!over[p] && parts_[p]->wants) actions.push_back({p});
      for (std::size_t m = 0; m < way_.size(); ++m) actions.push_back({way_[m].to, m});
      REQUIRE_MESSAGE(!actions.empty(), "no partition can go on");
      const Action action = actions[choose(actions)];
      if (action.message) {
        deliver(*action.message, over);
        continue;
      }
      Part& part = *parts_[action.partition];
      BurstResult burst = part.step->run(lanes_);
      CHECK(burst.requests.empty());
      part.wants = burst.more || part.step->has_arrivals();
      if (!burst.finished) continue;
      over[action.partition] = true;
      --left;
      StepResult result = part.step->result();
      throw_if_error(result.status);
      for (Fetched& f : result.fetches) fetched[f.index] = f.value;
    }
    way_.clear();
    std::vector<Tensor> out;
    for (auto& value : fetched) out.push_back(value.value());
    return out;
  }

  std::size_t size() const { return parts_.size(); }
  // Of the last run: all of them, and the most of one channel that were on their way at once.
  std::size_t messages() const { return messages_; }
  std::size_t most_of_a_channel() const { return most_; }

 private:
  struct Part final : StepOutbox {
    Part(Partitions& all) : all(all) {}
    void send(ChannelId channel, const Tag& tag, Tensor tensor, bool dead) override {
      const Channel& c = all.compiled_.channels[channel];
      all.way_.push_back({c.to, channel, tag, std::move(tensor), dead});
      ++all.messages_;
      std::size_t now = 0;
      for (const Message& m : all.way_) now += m.channel == channel;
      all.most_ = std::max(all.most_, now);
    }
    Partitions& all;
    std::unique_ptr<StepState> step;
    bool wants = false;
  };

  void add(Plan plan) {
    const OpTable& table = ops::builtin();
    Device* device = nullptr;
    for (const auto& d : devices_)
      if (d->name().text() == plan.device) device = d.get();
    REQUIRE(device);
    auto program = value_or_throw(
        LoadedPlan::make(std::make_shared<const Plan>(std::move(plan)), *device,
                         [&](const PlanInfo& node) -> Expected<std::unique_ptr<Kernel>> {
                           return table.kernels.make(node.def, *table.ops.find(node.def.op), "CPU");
                         }));
    parts_.push_back(std::make_unique<Part>(*this));
    parts_.back()->step = std::make_unique<StepState>(program);
  }

  void deliver(std::size_t which, const std::vector<bool>& over) {
    Message m = std::move(way_[which]);
    way_.erase(way_.begin() + std::ptrdiff_t(which));
    if (over[m.to]) return;  // it needed this no more
    parts_[m.to]->step->deliver(m.channel, m.tag, std::move(m.tensor), m.dead);
    parts_[m.to]->wants = true;
  }

  CompileHost host_;
  std::vector<std::unique_ptr<Device>> devices_;
  CompiledGraph compiled_;
  InlineLanes lanes_;
  std::vector<std::unique_ptr<Part>> parts_;
  std::vector<Message> way_;
  std::size_t messages_ = 0, most_ = 0;
};

const Devices kOne{"/job:local/task:0/cpu:0", "/job:local/task:0/cpu:0", "/job:local/task:0/cpu:0"};
const Devices kThree{"/job:local/task:0/cpu:0", "/job:local/task:0/cpu:1",
                     "/job:local/task:1/cpu:0"};

Partitions partitions_of(const Make& make, const Devices& on) {
  Graph g;
  CompileRequest request;
  for (const Output& o : make(g, on)) request.fetches.push_back(*PortName::parse(o.name()));
  Devices devices = on;
  devices.erase(std::unique(devices.begin(), devices.end()), devices.end());
  return Partitions(g.def(), request, devices);
}

using Action = Partitions::Action;

Partitions::Choose at_random(Random& random) {
  return [&random](const std::vector<Action>& actions) { return random.below(actions.size()); };
}

// The last one for which that holds; if there is none, the first action.
template <class F>
Partitions::Choose last_where(F holds) {
  return [holds](const std::vector<Action>& actions) {
    for (std::size_t i = actions.size(); i-- > 0;)
      if (holds(actions[i])) return i;
    return std::size_t{0};
  };
}

void check_same(const std::vector<Tensor>& got, const std::vector<Tensor>& expected) {
  REQUIRE(got.size() == expected.size());
  for (std::size_t k = 0; k < got.size(); ++k) {
    CAPTURE(k);
    CHECK_MESSAGE(same_bits(got[k], expected[k]), got[k].text()
                                                      << " instead of " << expected[k].text());
  }
}

std::vector<Tensor> on_one(const Make& make) {
  Partitions alone = partitions_of(make, kOne);
  REQUIRE(alone.size() == 1);
  return alone.run([](const auto&) { return std::size_t{0}; });
}

// In random orders, and in three that are as uneven as can be.
void check_orders(const Make& make, Random& random, int rounds) {
  const std::vector<Tensor> expected = on_one(make);
  Partitions spread = partitions_of(make, kThree);
  CHECK(spread.size() >= 2);
  for (int round = 0; round < rounds; ++round) check_same(spread.run(at_random(random)), expected);
  // The newest message first; none while a partition can go on; one partition while it can.
  check_same(spread.run(last_where([](const Action& a) { return a.message.has_value(); })),
             expected);
  check_same(spread.run(last_where([](const Action& a) { return !a.message; })), expected);
  for (std::uint32_t p = 0; p < spread.size(); ++p)
    check_same(spread.run(last_where([p](const Action& a) { return a.partition == p; })), expected);
}

// Those examples whose names begin so.
void check_examples(std::string_view name, int rounds) {
  const auto seed = std::uint64_t(std::random_device{}());
  CAPTURE(seed);
  Random random(seed);
  for (const LoopExample& example : loop_examples()) {
    const std::string of = example.name;
    CAPTURE(of);
    if (of.starts_with(name)) check_orders(example.make, random, rounds);
  }
}

}  // namespace

TEST_CASE("a loop over several devices computes what it computes on one, in any order") {
  check_examples("", 50);
}

TEST_CASE("a loop over two devices that hands values back and forth") {
  check_examples("alternating", 100);
}
TEST_CASE("loops over two devices nest") { check_examples("nest", 100); }
TEST_CASE("a branch in a loop over two devices") { check_examples("branches", 100); }
TEST_CASE("a loop whose condition is on another device") { check_examples("a condition", 100); }
TEST_CASE("a loop over two devices on a branch that is not taken") { check_examples("dead", 100); }
TEST_CASE("the gradient of a loop over two devices, twice") { check_examples("slope", 100); }

TEST_CASE("a loop gives the same for every window") {
  Random random(11);
  for (const auto& loop : {alternating, pipeline, nest}) {
    const std::vector<Tensor> expected =
        on_one([&](Graph& g, const Devices& d) { return loop(g, d, 10); });
    for (std::int64_t window : {1, 2, 3, 10, 1024}) {
      Partitions spread =
          partitions_of([&](Graph& g, const Devices& d) { return loop(g, d, window); }, kThree);
      for (int round = 0; round < 20; ++round) check_same(spread.run(at_random(random)), expected);
    }
  }
  Graph g;
  for (std::int64_t window : {0, -1, 1025})
    CHECK_THROWS_WITH_AS(alternating(g, kThree, window), doctest::Contains("window"), Error);
}

TEST_CASE("an iteration beyond the window waits until an earlier one is over") {
  for (std::int64_t window : {1, 2, 5, 10}) {
    CAPTURE(window);
    Partitions spread =
        partitions_of([&](Graph& g, const Devices& d) { return pipeline(g, d, window); }, kThree);
    std::size_t most = 0;
    for (std::uint32_t first = 0; first < spread.size(); ++first) {
      spread.run(
          last_where([first](const Action& a) { return a.partition == first && !a.message; }));
      most = std::max(most, spread.most_of_a_channel());
      spread.run(last_where([first](const Action& a) { return a.partition == first; }));
      most = std::max(most, spread.most_of_a_channel());
    }
    CHECK(most <= std::size_t(window));
    CHECK(most + 1 >= std::size_t(window));  // and no more than that is forbidden
  }
}

TEST_CASE("a part of a loop on a device of its own with nothing but effects ends with it") {
  const Make make = [](Graph& g, const Devices& d) {
    Output last = while_loop(
        constant(g, 0), [&](Output i) { return i < 9; },
        [&](Output i) {
          on(g, d[1], [&] { return assert_(i < 9, {.message = "too far"}); });
          return i + 1;
        });
    return std::vector<Output>{last};
  };
  Random random(5);
  check_orders(make, random, 50);
}

namespace {

// Each as short as it can be while it has what its name says.
const std::vector<LoopExample>& short_loops() {
  using Carried = std::tuple<Output, Output>;
  static const auto loop = [](Graph& g, int trips, const std::function<Output(Output, Output)>& f) {
    auto [i, x] = while_loop(
        std::tuple{constant(g, 0), constant(g, 1.5)}, [&](Output i, Output) { return i < trips; },
        [&](Output i, Output x) {
          return Carried{i + 1, f(i, x)};
        });
    return std::vector<Output>{i, x};
  };
  static const std::vector<LoopExample> all{
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
  };
  return all;
}

// The number of sequences of choices, each of which ends alike.
std::size_t try_all(Partitions& spread, const std::vector<Tensor>& expected) {
  struct Choice {
    std::size_t taken = 0, of = 0;
  };
  std::vector<Choice> choices;
  for (std::size_t runs = 1;; ++runs) {
    std::size_t made = 0;
    const auto got = spread.run([&](const std::vector<Action>& actions) {
      if (made == choices.size()) choices.push_back({0, actions.size()});
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

}  // namespace

TEST_CASE("every interleaving of a loop over two devices ends alike") {
  for (const LoopExample& example : short_loops()) {
    const std::string name = example.name;
    CAPTURE(name);
    Partitions spread = partitions_of(example.make, {kThree[0], kThree[1]});
    CHECK(spread.size() == 2);
    MESSAGE(name << ": " << try_all(spread, on_one(example.make)) << " interleavings");
  }
}

TEST_CASE("100,000 random orders of larger loops [slow]") {
  check_examples("", int(100'000 / loop_examples().size()) + 1);
}

TEST_CASE("an iteration over two devices sends its values, a predicate and that it is over") {
  Random random(1);
  Partitions spread = partitions_of(
      [](Graph& g, const Devices& d) {
        return alternating(g, {d[0], d[1]}, 10);
      },
      kThree);
  REQUIRE(spread.size() == 2);
  spread.run(at_random(random));
  // 25 iterations of x there, its sine back, the predicate and the end; before the loop the first
  // values and predicate.
  CHECK(spread.messages() <= 25 * 4 + 3);
  CHECK(spread.messages() >= 25 * 3);
}
