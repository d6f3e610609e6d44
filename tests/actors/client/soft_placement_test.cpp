#include <doctest/doctest.h>

#include <string>

#include "core/log.hpp"
#include "tests/actors/support/printed.hpp"
#include "tests/actors/support/sessions.hpp"

using namespace troupe;
using namespace troupe::test;

TEST_CASE("a node that does not get the device it asked for is warned of once, with its line") {
  // Each in its own words.
  for (const char* word : {"/gpu:0", "/cuda:0", "/job:worker/task:0/gpu:0"}) {
    Graph g;
    Output x;
    {
      auto there = g.with_device(word);
      x = constant(g, 2.0f) * constant(g, 3.0f);
    }
    Printed printed;
    set_log_level(LogLevel::warning);
    Session s(g, one_thread());
    CHECK(s.run({x})[0].item<float>() == 6);
    CHECK(printed.count(std::string(": ") + word + ", which this job does not have, is asked") ==
          1);
  }
  Graph g;
  Output x, y;
  const int line = __LINE__ + 3;
  {
    auto there = g.with_device("/gpu:0");
    x = constant(g, 2.0f) * constant(g, 3.0f);
    y = x + x;
  }
  Printed printed;
  set_log_level(LogLevel::warning);
  {
    Session s(g, one_thread());
    CHECK(s.run({x})[0].item<float>() == 6);
    CHECK(s.run({y})[0].item<float>() == 12);
    CHECK(s.run({x, y})[1].item<float>() == 12);
    CHECK(printed.count("/gpu:0, which this job does not have, is asked for by") == 1);
    CHECK(printed.count("soft_placement_test.cpp:" + std::to_string(line)) == 1);
  }
  Session other(g, one_thread());
  CHECK(other.run({y})[0].item<float>() == 12);
  CHECK(printed.count("/gpu:0, which") == 2);
}

TEST_CASE("a node that gets its device is not warned of") {
  Graph g;
  Output x;
  {
    auto there = g.with_device("/cpu:0");
    x = constant(g, 2.0f) * constant(g, 3.0f);
  }
  Printed printed;
  set_log_level(LogLevel::warning);
  Session s(g, one_thread());
  CHECK(s.run({x})[0].item<float>() == 6);
  CHECK(printed.count("asked for") == 0);
}
