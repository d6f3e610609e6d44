#include "core/list.hpp"

#include <doctest/doctest.h>

#include <deque>
#include <random>
#include <thread>

using namespace troupe;

namespace {

Tensor number(std::int64_t value) { return Tensor::scalar(value); }

bool holds(const List& list, const std::vector<std::int64_t>& values) {
  if (list.size() != std::int64_t(values.size())) return false;
  for (std::size_t i = 0; i < values.size(); ++i)
    if (list.get(std::int64_t(i)).item<std::int64_t>() != values[i]) return false;
  std::vector<std::int64_t> seen;
  list.for_each([&](const Tensor& t) { seen.push_back(t.item<std::int64_t>()); });
  return seen == values;
}

}  // namespace

TEST_CASE("a list gives back what was pushed, from either end of it") {
  List list;
  std::vector<std::int64_t> values;
  for (std::int64_t i = 0; i < 300; ++i) {
    list.push(number(i * i));
    values.push_back(i * i);
    CHECK(holds(list, values));
  }
  while (!values.empty()) {
    CHECK(list.pop().item<std::int64_t>() == values.back());
    values.pop_back();
    CHECK(holds(list, values));
  }
  CHECK(list.empty());
}

TEST_CASE("lists that come of each other change each by itself") {
  const std::uint64_t seed = 20250917;
  INFO("seed ", seed);
  std::mt19937_64 random(seed);
  struct Pair {
    List list;
    std::vector<std::int64_t> values;
  };
  std::deque<Pair> versions(1);
  for (int step = 0; step < 4000; ++step) {
    CAPTURE(step);
    Pair next = versions[random() % versions.size()];
    const int changes = int(random() % 20);
    for (int k = 0; k < changes; ++k) {
      const auto value = std::int64_t(random() % 1000);
      const std::size_t size = next.values.size();
      switch (size == 0 ? 0 : random() % 3) {
        case 0:
          next.list.push(number(value));
          next.values.push_back(value);
          break;
        case 1:
          REQUIRE(next.list.pop().item<std::int64_t>() == next.values.back());
          next.values.pop_back();
          break;
        default: {
          const std::size_t at = random() % size;
          next.list.set(std::int64_t(at), number(value));
          next.values[at] = value;
        }
      }
    }
    versions.push_back(std::move(next));
    if (versions.size() > 30) versions.pop_front();
    if (step % 40 == 0)
      for (const Pair& p : versions) REQUIRE(holds(p.list, p.values));
  }
}

TEST_CASE("a list holds tensors and copies none") {
  Tensor big = Tensor::of<float>(Shape{3}, {1, 2, 3});
  List list;
  list.push(big);
  CHECK_FALSE(big.unique());
  CHECK(list.get(0).buffer() == big.buffer());
  {
    List other = list;
    other.push(number(1));
    other.set(0, number(2));
    CHECK(list.get(0).buffer() == big.buffer());
    Tensor back = list.pop();
    CHECK(back.buffer() == big.buffer());
  }
  CHECK(list.empty());
  CHECK(big.unique());
}

TEST_CASE("what nobody else holds is moved out, so that it can be written") {
  List list;
  for (int i = 0; i < 10; ++i) list.push(number(i));
  CHECK(list.pop().unique());
  const List other = list;
  CHECK_FALSE(list.pop().unique());
  CHECK(holds(other, {0, 1, 2, 3, 4, 5, 6, 7, 8}));
}

TEST_CASE("lists in lists are freed however deep they are") {
  Tensor inner = list_tensor({});
  for (int depth = 0; depth < 300'000; ++depth) {
    List around;
    around.push(std::move(inner));
    inner = list_tensor(std::move(around));
  }
  CHECK(list_in(inner).size() == 1);
  inner = Tensor();
  CHECK_FALSE(inner.defined());
}

TEST_CASE("a list may be read and let go on many threads") {
  List list;
  for (int i = 0; i < 100; ++i) list.push(number(i));
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([copy = list, t]() mutable {
      for (int k = 0; k < 200; ++k) {
        List mine = copy;
        while (mine.size() > t * 10) mine.pop();
        mine.push(number(k));
        copy.set(k % 100, mine.get(mine.size() - 1));
      }
    });
  for (std::thread& t : threads) t.join();
  for (int i = 0; i < 100; ++i) CHECK(list.get(i).item<std::int64_t>() == i);
}

TEST_CASE("a tensor of type list holds a list and has no bytes") {
  List list;
  list.push(number(1));
  list.push(Tensor::scalar(2.0f));
  const Tensor t = list_tensor(list);
  CHECK(t.dtype() == DType::list);
  CHECK(t.shape() == Shape{});
  CHECK(t.bytes() == 0);
  CHECK(t.text() == "list[] {2 elements}");
  Tensor copy = t.clone().value();
  CHECK(copy.unique());
  CHECK(Tensor::same(t, copy));
  list_in(copy).set(0, number(3));
  CHECK_FALSE(Tensor::same(t, copy));
  CHECK(list_in(t).get(0).item<std::int64_t>() == 1);
  const Status none = Tensor::make(DType::list, Shape{}).status();
  CHECK(none.code() == Code::invalid_argument);
}
