#include "actors/client/takes_elements.hpp"

#include <doctest/doctest.h>

#include "ops/api.hpp"
#include "tests/actors/support/nodes.hpp"

using namespace troupe;
using namespace troupe::test;

TEST_CASE("a step takes elements if a node that it needs does, or a function that it may call") {
  Graph g;
  FIFOQueueOptions options;
  options.capacity = 4;
  const Output queue = queue_on(g, "", options);
  const Variable w = variable(g, "w", 0.f);
  const auto takes = [&](const auto& wanted) { return takes_elements(g, {wanted.node()}); };
  CHECK_FALSE(takes(enqueue(queue, {w + 1.f})));
  CHECK_FALSE(takes(assign_add(w, constant(g, 1.f))));
  CHECK_FALSE(takes(queue_size(queue)));
  const Output element = take_from(queue);
  CHECK(takes(assign_add(w, element)));
  {
    const auto after = g.with_control({element});
    CHECK(takes(w + 2.f));
  }
  const auto chosen = [&](bool taken) {
    return cond(
        constant(g, true), [&] { return taken ? take_from(queue) : constant(g, 2.f); },
        [&] { return constant(g, 1.f); });
  };
  CHECK_FALSE(takes(chosen(false)));
  CHECK(takes(chosen(true)));
  CHECK_FALSE(takes(w + 3.f));
}
