#include "actors/client/batcher.hpp"

#include <doctest/doctest.h>

#include <atomic>
#include <future>
#include <limits>
#include <random>
#include <thread>

#include "ops/api.hpp"
#include "tests/actors/support/sessions.hpp"

using namespace troupe;
using namespace troupe::test;
using namespace std::chrono_literals;

namespace {

Tensor row(float a, float b) { return Tensor::of<float>({1, 2}, {a, b}); }

// Twice each number.
Expected<std::vector<Tensor>> twice(std::vector<Tensor> feeds) {
  Tensor y = value_or_throw(feeds[0].clone());
  for (std::int64_t i = 0; i < y.elements(); ++i) y.mutable_data<float>()[i] *= 2;
  return std::vector<Tensor>{y};
}

// As many threads as there are requests, which ask at once.
std::vector<Expected<std::vector<Tensor>>> ask_all(Batcher& batcher,
                                                   std::vector<std::vector<Tensor>> requests) {
  std::vector<std::future<Expected<std::vector<Tensor>>>> asked;
  for (auto& request : requests)
    asked.push_back(
        std::async(std::launch::async, [&] { return batcher.try_ask(std::move(request)); }));
  std::vector<Expected<std::vector<Tensor>>> answers;
  for (auto& each : asked) answers.push_back(each.get());
  return answers;
}

}  // namespace

TEST_CASE("a batch runs as soon as it is full, however long it could wait") {
  Batcher batcher(twice, {.most = 4, .wait = 24h});
  const auto answers = ask_all(batcher, {{row(1, 2)}, {row(3, 4)}, {row(5, 6)}, {row(7, 8)}});
  for (std::size_t i = 0; i < answers.size(); ++i) {
    REQUIRE(answers[i].ok());
    const float first = 2 * float(i) + 1;
    CHECK(Tensor::same((*answers[i])[0], row(2 * first, 2 * first + 2)));
  }
  CHECK(batcher.counts().batches == 1);
  CHECK(batcher.counts().rows == 4);
}

TEST_CASE("a request that nobody joins is answered alone, after its time") {
  Batcher batcher(twice, {.most = 100, .wait = 1ms});
  CHECK(Tensor::same(batcher.ask({row(1, 2)})[0], row(2, 4)));
  Batcher at_once(twice, {.most = 100, .wait = 0ms});
  CHECK(Tensor::same(at_once.ask({row(1, 2)})[0], row(2, 4)));
  CHECK(at_once.counts().batches == 1);
}

TEST_CASE("requests may have several rows, and more than a batch") {
  Batcher batcher(twice, {.most = 3, .wait = 24h});
  const Tensor five = Tensor::of<float>({5, 1}, {1, 2, 3, 4, 5});
  CHECK(Tensor::same(batcher.ask({five})[0], Tensor::of<float>({5, 1}, {2, 4, 6, 8, 10})));
  const Tensor two = Tensor::of<float>({2, 1}, {1, 2}), one = Tensor::of<float>({1, 1}, {9});
  const auto answers = ask_all(batcher, {{two}, {one}});
  CHECK(Tensor::same((*answers[0])[0], Tensor::of<float>({2, 1}, {2, 4})));
  CHECK(Tensor::same((*answers[1])[0], Tensor::of<float>({1, 1}, {18})));
  CHECK(batcher.counts().batches == 2);
}

TEST_CASE("as many rows as can be counted, of no elements, are no batch with others") {
  const std::int64_t most = std::numeric_limits<std::int64_t>::max();
  const auto empty = [](std::int64_t rows) {
    return value_or_throw(Tensor::make(DType::f32, Shape{rows, 0}));
  };
  for (const std::int64_t limit : {std::int64_t{2}, most}) {
    CAPTURE(limit);
    Batcher batcher([](std::vector<Tensor> feeds) { return Expected(std::move(feeds)); },
                    {.most = limit, .wait = 1ms});
    const auto answers = ask_all(batcher, {{empty(1)}, {empty(most)}, {empty(most - 1)}});
    CHECK(value_or_throw(answers[0])[0].shape() == Shape{1, 0});
    CHECK(value_or_throw(answers[1])[0].shape() == Shape{most, 0});
    CHECK(value_or_throw(answers[2])[0].shape() == Shape{most - 1, 0});
  }
}

TEST_CASE("a request of another shape or dtype is in a batch of its own, and fails alone") {
  Graph g;
  Output x = placeholder<float>(g, {-1, 2}, "x");
  Session s(g, one_thread());
  auto step = s.compile({2 * x}, {}, {x});
  Batcher batcher([&](std::vector<Tensor> feeds) { return step.try_run(std::move(feeds)); },
                  {.most = 2, .wait = 24h});
  const auto answers = ask_all(batcher, {{row(1, 2)},
                                         {row(3, 4)},
                                         {Tensor::of<float>({2, 3}, {1, 2, 3, 4, 5, 6})},
                                         {Tensor::of<double>({2, 2}, {1, 2, 3, 4})}});
  REQUIRE(answers[0].ok());
  CHECK(Tensor::same((*answers[0])[0], row(2, 4)));
  CHECK(Tensor::same((*answers[1])[0], row(6, 8)));
  says(answers[2].status(), Code::invalid_argument, "[2,3]");
  says(answers[3].status(), Code::invalid_argument, "f64");
}

TEST_CASE("an error of a batch is the answer to all of its requests") {
  const Batcher::Run failing[] = {
      [](std::vector<Tensor>) -> Expected<std::vector<Tensor>> { return out_of_range("so"); },
      [](std::vector<Tensor>) -> Expected<std::vector<Tensor>> {
        throw Error(out_of_range("so"));
      }};
  for (const Batcher::Run& run : failing) {
    Batcher batcher(run, {.most = 2, .wait = 24h});
    for (const auto& answer : ask_all(batcher, {{row(1, 2)}, {row(3, 4)}}))
      says(answer.status(), Code::out_of_range, "so");
  }
  Batcher other([](std::vector<Tensor>) -> Expected<std::vector<Tensor>> {
    throw std::runtime_error("else");
  });
  says(other.try_ask({row(1, 2)}).status(), Code::internal, "else");
  Batcher no_exception([](std::vector<Tensor>) -> Expected<std::vector<Tensor>> { throw 42; },
                       {.most = 2, .wait = 24h});
  for (const auto& answer : ask_all(no_exception, {{row(1, 2)}, {row(3, 4)}}))
    says(answer.status(), Code::internal, "no std::exception");
  Batcher sums([](std::vector<Tensor>) -> Expected<std::vector<Tensor>> {
    return std::vector<Tensor>{Tensor::scalar(1.f)};
  });
  says(sums.try_ask({row(1, 2)}).status(), Code::invalid_argument, "not a row for each");
}

TEST_CASE("requests without rows, and a Batcher that cannot run, are refused") {
  Batcher batcher(twice);
  says(batcher.try_ask({}).status(), Code::invalid_argument, "has feeds");
  says(batcher.try_ask({Tensor::scalar(1.f)}).status(), Code::invalid_argument, "no rows");
  says(batcher.try_ask({Tensor()}).status(), Code::invalid_argument, "nothing");
  says(batcher.try_ask({Tensor::of<float>({0, 2}, {})}).status(), Code::invalid_argument,
       "no rows");
  says(batcher.try_ask({row(1, 2), Tensor::of<float>({2}, {1, 2})}).status(),
       Code::invalid_argument, "2 rows where the first one has 1");
  CHECK(batcher.counts().batches == 0);
  CHECK_THROWS_AS(Batcher(nullptr), Error);
  CHECK_THROWS_AS(Batcher(twice, {.most = 0}), Error);
  CHECK_THROWS_AS(Batcher(twice, {.wait = -1ms}), Error);
  CHECK_THROWS_AS(batcher.use(nullptr), Error);
}

TEST_CASE("what computes batches can be replaced while one runs, and is kept as long as it runs") {
  auto alive = std::make_shared<int>(0);
  std::promise<void> began, go;
  Batcher batcher(
      [alive, &began, &go](std::vector<Tensor> feeds) {
        began.set_value();
        go.get_future().wait();
        return twice(std::move(feeds));
      },
      {.most = 1});
  const std::weak_ptr<int> watched = std::exchange(alive, nullptr);
  auto first = std::async(std::launch::async, [&] { return batcher.ask({row(1, 2)})[0]; });
  began.get_future().wait();
  batcher.use([](std::vector<Tensor> feeds) { return Expected<std::vector<Tensor>>(feeds); });
  CHECK(Tensor::same(batcher.ask({row(1, 2)})[0], row(1, 2)));
  CHECK_FALSE(watched.expired());
  go.set_value();
  CHECK(Tensor::same(first.get(), row(2, 4)));
  CHECK(watched.expired());
}

TEST_CASE("many threads get their own answers") {
  const std::uint64_t seed = std::random_device{}();
  INFO("seed " << seed);
  Batcher batcher(twice, {.most = 5, .wait = 100us});
  std::atomic<int> wrong{0}, rows{0};
  std::vector<std::thread> threads;
  for (std::uint64_t t = 0; t < 8; ++t)
    threads.emplace_back([&, t] {
      std::mt19937_64 random(seed + t);
      for (int i = 0; i < 200; ++i) {
        const auto k = std::int64_t(random() % 3 + 1), width = std::int64_t(random() % 2 + 1);
        std::vector<float> numbers(std::size_t(k * width));
        for (float& x : numbers) x = float(random() % 1000);
        const Tensor x = Tensor::of<float>({k, width}, std::span<const float>(numbers));
        const auto y = batcher.try_ask({x});
        rows += int(k);
        if (!y.ok() || !Tensor::same((*y)[0], (*twice({x}))[0])) ++wrong;
      }
    });
  for (std::thread& thread : threads) thread.join();
  CHECK(wrong == 0);
  CHECK(batcher.counts().rows == std::uint64_t(rows));
  CHECK(batcher.counts().batches <= 1600);
}
