// Requests on a graph that grows: what each costs does not grow with the graph.
#include <doctest/doctest.h>

#include <cstdint>
#include <string>

#include "ops/api.hpp"
#include "tests/actors/support/sessions.hpp"
#include "tests/graph/allocated.hpp"

using namespace troupe;
using namespace troupe::test;

namespace {

// Nodes that no request needs.
void grow_beside(Graph& g, int nodes) {
  Output x = placeholder<float>(g, PartialShape::scalar());
  for (int i = 0; i < nodes; ++i) x = x + x;
}

// Bytes that a request on nodes of its own takes, in all processes that are this one.
double bytes_a_request(Graph& g, Session& s, int beside) {
  grow_beside(g, beside);
  constexpr int kRequests = 20;
  const auto fresh = [&](int i) {
    const float value = float(i) + float(beside);
    return s.run({constant(g, value) * constant(g, 2.0f)})[0].item<float>() == 2 * value;
  };
  CHECK(fresh(-1));  // which ships what there is
  CHECK(fresh(-2));  // for which lists of exactly that size grow
  const std::uint64_t before = allocated_bytes();
  for (int i = 0; i < kRequests; ++i) CHECK(fresh(i));
  return double(allocated_bytes() - before) / kRequests;
}

}  // namespace

TEST_CASE("a request on new nodes takes as much on a large graph as on a small one") {
  for (const Place& place : kPlaces)
    for (bool restored : {false, true}) {
      CAPTURE(place.name);
      CAPTURE(restored);
      Graph g;
      Variable v = variable_on(g, place.first, "v", Tensor::scalar(1.0f));
      (void)v.value();  // there is something to restore
      PlacedSession session(g, place);
      // The session then has nodes of its own among the client's.
      if (restored)
        session->restore({{"v", Tensor::scalar(2.0f)}}, 2);
      else
        session->init();
      const double small = bytes_a_request(g, *session, 100);
      const double large = bytes_a_request(g, *session, 5000);
      CAPTURE(small);
      CAPTURE(large);
      // A byte for each node would be 5000; an index that grows takes some at times.
      CHECK(large < small + 30'000);
    }
}
