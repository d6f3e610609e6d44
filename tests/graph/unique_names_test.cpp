#include "graph/unique_names.hpp"

#include <doctest/doctest.h>

#include <set>

#include "core/hash.hpp"
#include "tests/graph/allocated.hpp"

using namespace troupe;

TEST_CASE("a name is given out as it is wanted, or with the first number that is free") {
  UniqueNames names;
  CHECK(names.insert("a_2"));
  CHECK(names.take("a") == "a");
  CHECK(names.take("a") == "a_1");
  CHECK(names.take("a") == "a_3");
  CHECK(names.take("a_1") == "a_1_1");
  CHECK_FALSE(names.insert("a_3"));
  names.erase("a");
  CHECK(names.take("a") == "a");
  CHECK(names.take("a") == "a_4");
}

TEST_CASE("of an attempt that is not kept all names are free again") {
  UniqueNames names;
  names.insert("there");
  const std::size_t outer = names.begin();
  CHECK(names.take("x") == "x");
  const std::size_t kept = names.begin();
  CHECK(names.take("x") == "x_1");
  names.end(kept, true);
  const std::size_t inner = names.begin();
  CHECK(names.take("x") == "x_2");
  names.erase("there");
  CHECK(names.insert("there"));
  names.erase("there");
  names.end(inner, false);
  CHECK(names.take("x") == "x_2");
  CHECK_FALSE(names.insert("there"));
  names.end(outer, false);
  CHECK(names.take("x") == "x");
  CHECK(names.take("x") == "x_1");
  CHECK_FALSE(names.insert("there"));
}

TEST_CASE("random attempts leave the names that were kept, and none twice") {
  for (std::uint64_t seed = 1; seed <= 300; ++seed) {
    CAPTURE(seed);
    Random random(seed);
    UniqueNames names;
    std::vector<std::set<std::string>> taken;  // by attempt that is open: what it began with
    std::set<std::string> now;
    std::vector<std::size_t> open;
    for (int step = 0; step < 200; ++step) {
      switch (random.below(8)) {
        case 0:
          open.push_back(names.begin());
          taken.push_back(now);
          break;
        case 1:
          if (open.empty()) break;
          if (random.below(2) == 0) {
            names.end(open.back(), true);
          } else {
            names.end(open.back(), false);
            now = taken.back();
          }
          open.pop_back();
          taken.pop_back();
          break;
        case 2:
          if (now.empty()) break;
          names.erase(*now.begin());
          now.erase(now.begin());
          break;
        default: {
          const std::string name = names.take(std::string(1, char('a' + random.below(3))));
          CHECK(now.insert(name).second);
        }
      }
    }
    for (const std::string& name : now) CHECK_FALSE(names.insert(name));
  }
}

TEST_CASE("the thousandth name of a kind costs what the first did") {
  const auto bytes = [](int n) {
    const std::uint64_t before = test::allocated_bytes();
    UniqueNames names;
    for (int i = 0; i < n; ++i) names.take("a name of some length, wanted often");
    return test::allocated_bytes() - before;
  };
  CHECK(double(bytes(2000)) < 2.2 * double(bytes(1000)));
}
