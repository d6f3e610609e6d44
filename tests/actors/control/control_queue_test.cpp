// Queues in loops: one request in each iteration, in the order of iterations.
#include <doctest/doctest.h>

#include "ops/api.hpp"
#include "tests/actors/support/sessions.hpp"

using namespace troupe;
using namespace troupe::test;

namespace {

// A queue of numbers, and a client's place to take one from.
struct Numbers {
  Numbers(Graph& g, std::int64_t capacity, const char* device = "") {
    FIFOQueueOptions options;
    options.capacity = capacity;
    queue = queue_on(g, device, options);
    auto there = g.with_device(device);
    one = take_from(queue);
    size = queue_size(queue);
  }
  std::vector<float> take(Session& s, int n) const {
    std::vector<float> all;
    for (int k = 0; k < n; ++k) all.push_back(s.run({one})[0].item<float>());
    return all;
  }
  std::int64_t count(Session& s) const { return s.run({size})[0].item<std::int64_t>(); }

  Output queue, one, size;
};

// x, later.
Output slowly(Graph& g, const Output& x) {
  return std::get<1>(while_loop(
      std::tuple{constant(g, 0), x}, [](Output k, Output) { return k < 500; },
      [](Output k, Output x) {
        return std::tuple{k + 1, x + 0.0f};
      }));
}

Output times(Graph& g, int n, const std::function<void(Output)>& body) {
  return while_loop(
      constant(g, 0), [&](Output i) { return i < n; },
      [&](Output i) {
        body(i);
        return i + 1;
      });
}

}  // namespace

TEST_CASE("a loop enqueues in each iteration, in their order") {
  Graph g;
  Numbers numbers(g, 32);
  Output loop = times(g, 8, [&](Output i) {
    // Every other element takes longer to make.
    Output slow = cond(
        mod(i, constant(g, 2)) == 0, [&] { return slowly(g, cast<float>(i)); },
        [&] { return cast<float>(i); });
    enqueue(numbers.queue, {slow});
    enqueue(numbers.queue, {cast<float>(i) + 100.0f});  // after the one before it
  });
  Session s(g, one_thread());
  s.init();
  CHECK(numbers.count(s) == 0);
  s.run({loop});
  CHECK(numbers.count(s) == 16);
  std::vector<float> expected;
  for (int i = 0; i < 8; ++i) expected.insert(expected.end(), {float(i), float(i) + 100});
  CHECK(numbers.take(s, 16) == expected);
}

// The device that takes makes values for a queue of the other one, and may be iterations ahead.
TEST_CASE("a loop over two devices takes and enqueues in the order of iterations") {
  constexpr int kTimes = 16;
  Cluster cluster = one_thread();
  cluster.devices = {"CPU", "CPU"};
  for (const bool leader_takes : {true, false})
    for (const std::int64_t window : {1, 2, 10}) {
      CAPTURE(leader_takes);
      CAPTURE(window);
      const char* first = leader_takes ? "/cpu:0" : "/cpu:1";
      const char* second = leader_takes ? "/cpu:1" : "/cpu:0";
      Graph g;
      Numbers from(g, 64, first), to(g, 64, second);
      Output fed = placeholder<float>(g, PartialShape::scalar(), "fed");
      Op put = enqueue(from.queue, {fed});
      auto leader = g.with_device("/cpu:0");
      Output loop = while_loop(
          constant(g, 0), [](Output i) { return i < kTimes; },
          [&](Output i) {
            Output made;
            {
              auto there = g.with_device(first);
              Output taken = take_from(from.queue);
              Output odd = mod(i, constant(g, 2)) == 1;
              made = cond(
                  odd, [&] { return taken; }, [&] { return slowly(g, taken); });
            }
            auto there = g.with_device(second);
            Output late = cond(
                made > 20.0f, [&] { return slowly(g, made); }, [&] { return made; });
            enqueue(to.queue, {late});
            enqueue(to.queue, {cast<float>(i) + 100.0f});
            auto back = g.with_device("/cpu:0");
            return i + 1;
          },
          {.window = window});
      Session s(g, cluster);
      s.init();
      std::vector<float> expected;
      for (int i = 0; i < kTimes; ++i) {
        const float x = float(i * 7 % kTimes + 10);
        s.run({}, {put}, {{fed, Tensor::scalar(x)}});
        expected.insert(expected.end(), {x, float(i) + 100});
      }
      CHECK(s.run({loop})[0].item<std::int32_t>() == kTimes);
      CHECK(from.count(s) == 0);
      CHECK(to.take(s, 2 * kTimes) == expected);
      CHECK(to.count(s) == 0);
    }
}

TEST_CASE("a loop takes elements, and puts others in their place") {
  Graph g;
  Numbers from(g, 32), to(g, 32);
  Output fed = placeholder<float>(g, PartialShape::scalar(), "fed");
  Op put = enqueue(from.queue, {fed});
  auto [i, total] = while_loop(
      std::tuple{constant(g, 0), constant(g, 0.0f)}, [](Output i, Output) { return i < 3; },
      [&](Output i, Output total) {
        Output x = take_from(from.queue);
        cond(
            x > 1.0f, [&] { enqueue(to.queue, {x * total}); }, [&] {});
        return std::tuple{i + 1, total * 10.0f + x};
      });
  Session s(g, one_thread());
  s.init();
  for (float x : {1.0f, 2.0f, 3.0f, 4.0f}) s.run({}, {put}, {{fed, Tensor::scalar(x)}});
  CHECK(s.run({total})[0].item<float>() == 123);
  CHECK(from.count(s) == 1);
  CHECK(to.take(s, 2) == std::vector<float>{2, 36});
  // What a run took that fails is there again.
  auto failed = s.try_run({total}, {}, {}, {.timeout = std::chrono::milliseconds(50)});
  CHECK_FALSE(failed.ok());
  CHECK(from.take(s, 1) == std::vector<float>{4});
  CHECK(to.count(s) == 0);
}

TEST_CASE("a queue is closed behind a loop that fills it") {
  Graph g;
  Numbers numbers(g, 32);
  Output loop = times(g, 3, [&](Output i) { enqueue(numbers.queue, {cast<float>(i)}); });
  Op close;
  {
    auto behind = g.with_control({Op(loop)});
    close = queue_close(numbers.queue);
  }
  Session s(g, one_thread());
  s.init();
  s.run({}, {close});
  CHECK(numbers.take(s, 3) == std::vector<float>{0, 1, 2});
  CHECK(s.try_run({numbers.one}).status().code() == Code::out_of_range);
}
