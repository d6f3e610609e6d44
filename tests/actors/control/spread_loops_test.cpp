// Loops over devices of several processes.
#include <doctest/doctest.h>

#include "tests/actors/support/sessions.hpp"
#include "tests/protocol/loop_examples.hpp"

namespace troupe::test::loops {
TEST_CASE("loops alternate between processes, and what they leave is used there") {
  for (const Place& place : kPlaces) {
    CAPTURE(place.name);
    Graph g;
    PlacedSession s(g, place);
    for (const LoopExample& example : loop_examples()) {
      const std::string name = example.name;
      CAPTURE(name);
      const std::vector<Output> alone = example.make(g, {kTask0, kTask0, kTask0});
      const std::vector<Output> made = example.make(g, {place.first, place.second, place.first});
      const std::vector<Tensor> expected = s->run(alone);
      for (int run = 0; run < 3; ++run) {
        const std::vector<Tensor> got = s->run(made);
        for (std::size_t k = 0; k < got.size(); ++k)
          if (name != "draws")
            CHECK_MESSAGE(Tensor::same(got[k], expected[k]),
                          got[k].text() << " instead of " << expected[k].text());
      }
    }
  }
}

TEST_CASE("a failure on another device ends the loop everywhere, and says in which iteration") {
  for (const Place& place : kPlaces) {
    CAPTURE(place.name);
    Graph g;
    Output x = while_loop(
        constant(g, 0), [&](Output i) { return i < 1000; },
        [&](Output i) {
          on(g, place.second, [&] { return assert_(i < 7, {.message = "seven"}); });
          return i + 1;
        });
    PlacedSession s(g, place);
    try {
      s->run({x});
      FAIL("it went on");
    } catch (const Error& error) {
      const std::string text = error.status().text();
      CHECK_MESSAGE(text.find("in iteration 7 of 'while'") != std::string::npos, text);
      CHECK_MESSAGE(text.find("seven") != std::string::npos, text);
    }
  }
}

TEST_CASE("a process with two CPU devices has cpu:0 and cpu:1, and loops over both") {
  Cluster cluster = one_thread();
  cluster.devices = {"CPU", "CPU"};
  Graph g;
  Session s(g, cluster);
  for (const LoopExample& example : loop_examples()) {
    const std::string name = example.name;
    CAPTURE(name);
    const std::vector<Tensor> expected = s.run(example.make(g, {"/cpu:0", "/cpu:0", "/cpu:0"}));
    const std::vector<Tensor> got = s.run(example.make(g, {"/cpu:0", "/cpu:1", "/cpu:0"}));
    REQUIRE(got.size() == expected.size());
    for (std::size_t k = 0; k < got.size(); ++k)
      if (name != "draws") CHECK(Tensor::same(got[k], expected[k]));
  }
}

}  // namespace troupe::test::loops
