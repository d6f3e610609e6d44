#include <doctest/doctest.h>

#include <cmath>

#include "actors/burst/step_state.hpp"
#include "apps/bench/message_count.hpp"
#include "apps/troupe.hpp"

using namespace troupe;

namespace {

// Messages of one step. The last of them may still be under way when its result is here, which many
// steps in a row make up for.
int messages_per_step(Graph& graph, const std::vector<Output>& fetches,
                      const std::vector<Op>& targets) {
  constexpr int kSteps = 80;
  CountingSystem counting;
  Session session(graph, counting.system(), {});
  CompiledStep step = session.compile(fetches, targets);
  for (int i = 0; i < kSteps; ++i) step.run(std::vector<Tensor>{});
  const std::uint64_t before = counting.messages();
  for (int i = 0; i < kSteps; ++i) step.run(std::vector<Tensor>{});
  const int each = int(std::lround(double(counting.messages() - before) / kSteps));
  session.close();
  return each;
}

int with_cheap_nodes(int nodes) {
  Graph graph;
  Op last = no_op(graph);
  for (int i = 1; i < nodes; ++i) {
    auto after = graph.with_control({last});
    last = no_op(graph);
  }
  return messages_per_step(graph, {}, {last});
}

int with_costly_nodes(int nodes) {
  Graph graph(1);
  Output first = random_uniform(graph, {4, 4}, {.high = 0.25}), x = first;
  for (int i = 0; i < nodes; ++i) x = mat_mul(x, first);
  return messages_per_step(graph, {x}, {});
}

}  // namespace

TEST_CASE("a step of many nodes takes as many messages as one of few") {
  // An executor runs up to so many cheap nodes itself and gives the rest, or what is costly, to a
  // lane: two more messages, there and back, for any number of nodes.
  constexpr int kToLane = 2;
  constexpr int kSelf = int(StepState::kCheapNodes);
  constexpr int kManyCheap = 1'000, kManyCostly = 100;
  const int few = with_cheap_nodes(10), many = with_cheap_nodes(kManyCheap);
  MESSAGE(few, " messages a step; ", many, " with a lane");
  CHECK(few > 0);
  CHECK(with_cheap_nodes(kSelf) == few);
  CHECK(with_cheap_nodes(kSelf + 10) == many);
  CHECK(many == few + kToLane);
  const int costly = with_costly_nodes(10);
  CHECK(costly == many);
  CHECK(with_costly_nodes(kManyCostly) == costly);
}
