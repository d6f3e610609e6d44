#include "core/shape.hpp"

#include <doctest/doctest.h>

#include <optional>

#include "core/hash.hpp"

using namespace troupe;

namespace {

using Dims = std::vector<std::int64_t>;
constexpr std::int64_t kMost = std::int64_t{0x7fffffffffffffff};
constexpr std::int64_t kUnknown = PartialShape::kUnknown;

// Broadcasting by definition: which sizes can dimension d of the result have?
std::optional<Dims> slow_broadcast(Dims a, Dims b) {
  while (a.size() < b.size()) a.insert(a.begin(), 1);
  while (b.size() < a.size()) b.insert(b.begin(), 1);
  Dims out;
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (a[i] != b[i] && a[i] != 1 && b[i] != 1) return std::nullopt;
    out.push_back(a[i] == 1 ? b[i] : a[i]);
  }
  return out;
}

// Every full shape with dimensions from {0, 1, 2, 3} that a partial shape of known rank accepts.
std::vector<Dims> fillings(const PartialShape& p) {
  std::vector<Dims> all = {{}};
  for (int i = 0; i < p.rank(); ++i) {
    std::vector<Dims> longer;
    for (const Dims& d : all)
      for (std::int64_t v = 0; v <= 3; ++v)
        if (!p.known(i) || p.dim(i) == v) {
          longer.push_back(d);
          longer.back().push_back(v);
        }
    all = longer;
  }
  return all;
}

PartialShape random_partial(Random& random) {
  Dims dims(random.below(3));
  for (auto& d : dims) d = std::int64_t(random.below(5)) - 1;
  return PartialShape::make(dims).value();
}

}  // namespace

TEST_CASE("a shape counts its elements") {
  CHECK(Shape{}.elements() == 1);
  CHECK(Shape{}.text() == "[]");
  Shape s{2, 3, 4};
  CHECK(s.rank() == 3);
  CHECK(s.elements() == 24);
  CHECK(s.elements(1, 3) == 12);
  CHECK(s.elements(1, 1) == 1);
  CHECK(s.text() == "[2,3,4]");
  CHECK(Shape{2, 0, 4}.elements() == 0);
  CHECK(Shape{2, 3} == Shape{2, 3});
  CHECK_FALSE(Shape{2, 3} == Shape{2, 3, 1});
  CHECK_FALSE(Shape{2, 3} == Shape{3, 2});
  Shape t;
  for (int i = 0; i < 8; ++i) t.append(i);
  CHECK(t.text() == "[0,1,2,3,4,5,6,7]");
}

TEST_CASE("shapes from outside are checked") {
  auto refused = [](const Dims& dims) {
    auto made = Shape::make(dims);
    return !made.ok() && made.status().code() == Code::invalid_argument;
  };
  CHECK(Shape::make(Dims{1, 2, 3, 4, 5, 6, 7, 8}).ok());
  CHECK(refused({1, 2, 3, 4, 5, 6, 7, 8, 9}));
  CHECK(refused({-1}));
  CHECK(refused({2, -3}));
  CHECK(refused({-kMost - 1}));
  CHECK(Shape::make(Dims{kMost}).value().elements() == kMost);
  CHECK(refused({kMost, 2}));
  CHECK(refused({std::int64_t{1} << 32, std::int64_t{1} << 31}));
  CHECK(Shape::make(Dims{std::int64_t{1} << 32, (std::int64_t{1} << 31) - 1}).ok());
  // A zero does not excuse the others: elements(0, 2) would overflow.
  CHECK(refused({kMost, 2, 0}));
  CHECK(Shape::make(Dims{kMost, 0}).ok());
}

TEST_CASE("byte sizes stop at 2^62") {
  CHECK(byte_size(Shape{2, 3}, 4).value() == 24);
  CHECK(byte_size(Shape{}, 8).value() == 8);
  CHECK(byte_size(Shape{kMost, 0}, 16).value() == 0);
  std::int64_t limit = std::int64_t{1} << 62;
  CHECK(byte_size(Shape{limit / 4}, 4).value() == limit);
  CHECK_FALSE(byte_size(Shape{limit / 4 + 1}, 4).ok());
  CHECK_FALSE(byte_size(Shape{kMost}, 1).ok());
  CHECK_FALSE(byte_size(Shape{kMost}, 16).ok());
  CHECK_FALSE(byte_size(Shape{}, ~std::size_t{0}).ok());
}

TEST_CASE("a partial shape knows what it does not know") {
  PartialShape none;
  CHECK_FALSE(none.known_rank());
  CHECK_FALSE(none.fully_known());
  CHECK(none.text() == "?");
  PartialShape p{kUnknown, 784};
  CHECK(p.text() == "[?,784]");
  CHECK_FALSE(p.known(0));
  CHECK(p.known(1));
  CHECK_FALSE(p.fully_known());
  CHECK(PartialShape{2, 3}.shape() == Shape{2, 3});
  CHECK(PartialShape::scalar().fully_known());
  CHECK(PartialShape::unknown_of_rank(2).text() == "[?,?]");
  CHECK(PartialShape::unknown_of_rank(0) == PartialShape::scalar());
  CHECK_FALSE(PartialShape::unknown() == PartialShape::scalar());
  CHECK_FALSE(PartialShape::make(Dims{-2}).ok());
  CHECK_FALSE(PartialShape::make(Dims(9, 1)).ok());
  CHECK(p.accepts(Shape{5, 784}));
  CHECK_FALSE(p.accepts(Shape{5, 783}));
  CHECK_FALSE(p.accepts(Shape{784}));
  CHECK(none.accepts(Shape{1, 2, 3}));
}

TEST_CASE("merging partial shapes keeps both facts or refuses") {
  PartialShape a{kUnknown, 784}, b{32, kUnknown};
  CHECK(PartialShape::merge(a, b).value() == PartialShape{32, 784});
  CHECK(PartialShape::merge(a, PartialShape::unknown()).value() == a);
  CHECK(PartialShape::merge(PartialShape::unknown(), b).value() == b);
  auto bad = PartialShape::merge(a, PartialShape{32, 783});
  REQUIRE_FALSE(bad.ok());
  CHECK(bad.status().message() == "shapes [?,784] and [32,783] are incompatible");
  CHECK_FALSE(PartialShape::merge(a, PartialShape{784}).ok());
}

TEST_CASE("a merge accepts exactly what both sides accept") {
  std::uint64_t seed = 11;
  INFO("seed ", seed);
  Random random(seed);
  for (int round = 0; round < 500; ++round) {
    PartialShape a = random_partial(random), b = random_partial(random);
    auto merged = PartialShape::merge(a, b);
    bool any = false;
    for (const Dims& dims : fillings(a)) {
      Shape s = Shape::make(dims).value();
      any = any || b.accepts(s);
      if (merged.ok()) CHECK(merged->accepts(s) == b.accepts(s));
    }
    CHECK(merged.ok() == any);
  }
}

TEST_CASE("shapes broadcast as in NumPy") {
  CHECK(broadcast(Shape{32, 1, 10}, Shape{5, 1}).value() == Shape{32, 5, 10});
  CHECK(broadcast(Shape{}, Shape{3}).value() == Shape{3});
  CHECK(broadcast(Shape{0}, Shape{1}).value() == Shape{0});
  auto bad = broadcast(Shape{2, 3}, Shape{2});
  REQUIRE_FALSE(bad.ok());
  CHECK(bad.status().message() == "shapes [2,3] and [2] do not broadcast together");
  CHECK_FALSE(broadcast(Shape{0}, Shape{2}).ok());
  std::int64_t big = std::int64_t{1} << 40;
  CHECK_FALSE(broadcast(Shape{big, 1}, Shape{1, big}).ok());
}

TEST_CASE("broadcasting partial shapes allows for every filling") {
  std::uint64_t seed = 12;
  INFO("seed ", seed);
  Random random(seed);
  for (int round = 0; round < 1000; ++round) {
    PartialShape a = random_partial(random), b = random_partial(random);
    auto both = broadcast(a, b);
    bool any = false;
    for (const Dims& da : fillings(a))
      for (const Dims& db : fillings(b)) {
        auto want = slow_broadcast(da, db);
        auto full = broadcast(Shape::make(da).value(), Shape::make(db).value());
        REQUIRE(full.ok() == want.has_value());
        if (!want) continue;
        any = true;
        CHECK(*full == Shape::make(*want).value());
        REQUIRE(both.ok());
        CHECK(both->accepts(*full));
      }
    CHECK(both.ok() == any);
  }
  CHECK(broadcast(PartialShape{kUnknown}, PartialShape{5}).value() == PartialShape{5});
  CHECK(broadcast(PartialShape{kUnknown}, PartialShape{1}).value() == PartialShape{kUnknown});
  CHECK_FALSE(broadcast(PartialShape::unknown(), PartialShape{5})->known_rank());
}
