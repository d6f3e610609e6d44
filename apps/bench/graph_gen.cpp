#include "apps/bench/graph_gen.hpp"

#include <string>
#include <utility>
#include <vector>

#include "apps/bench/plan_draft.hpp"
#include "core/hash.hpp"

namespace troupe {
namespace {

std::uint32_t add_after(PlanDraft& draft, std::vector<std::uint32_t> before, bool data) {
  PlanDraft::NodeSpec spec{.name = "n", .outputs = std::uint16_t(data ? 1 : 0)};
  if (data) {
    for (std::uint32_t& node : before) node = draft.out(node);
    spec.inputs = std::move(before);
  } else {
    spec.control = std::move(before);
  }
  return draft.add(std::move(spec));
}

}  // namespace

Plan layered_graph(std::uint32_t width, std::uint32_t depth, bool data, std::uint64_t seed) {
  PlanDraft draft;
  Random random(seed);
  std::vector<std::uint32_t> hand;
  for (std::uint64_t i = 0, n = 1 + random.below(width); i < n; ++i)
    hand.push_back(add_after(draft, {}, data));
  for (std::uint32_t layer = 0; layer < depth; ++layer) {
    for (std::size_t i = hand.size(); i > 1; --i)
      std::swap(hand[i - 1], hand[std::size_t(random.below(i))]);
    const auto joined = std::size_t(1 + random.below(hand.size()));
    std::uint32_t hub = add_after(draft, {hand.end() - std::ptrdiff_t(joined), hand.end()}, data);
    hand.resize(hand.size() - joined);
    for (std::uint64_t i = 0, n = 1 + random.below(width); i < n; ++i)
      hand.push_back(add_after(draft, {hub}, data));
  }
  return draft.finish();
}

Plan chain_graph(std::uint32_t nodes, bool data) {
  PlanDraft draft;
  for (std::uint32_t i = 0; i < nodes; ++i)
    add_after(draft, i == 0 ? std::vector<std::uint32_t>{} : std::vector<std::uint32_t>{i - 1},
              data);
  return draft.finish();
}

}  // namespace troupe
