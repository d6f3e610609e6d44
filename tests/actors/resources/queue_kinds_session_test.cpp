// Queues that shuffle, pad or go by priority, and batches of elements, as clients use them.
#include <doctest/doctest.h>

#include <algorithm>

#include "ops/api/control.hpp"
#include "ops/api/math.hpp"
#include "ops/api/queues.hpp"
#include "tests/actors/support/sessions.hpp"
#include "tests/serialization/temporary.hpp"

using namespace troupe;
using namespace troupe::test;
using troupe::testing::TemporaryDir;

namespace {

const std::vector<DType> kPair{DType::i64, DType::f32};
const std::vector<PartialShape> kScalars{PartialShape::scalar(), PartialShape::scalar()};
const char* const kKinds[] = {"fifo", "shuffle", "priority"};

Output queue_of(Graph& g, const std::string& kind, std::int64_t capacity = 16,
                std::int64_t kept = 0) {
  if (kind == "shuffle")
    return random_shuffle_queue(g, kPair,
                                {.shapes = kScalars,
                                 .capacity = capacity,
                                 .min_after_dequeue = kept,
                                 .seed = 3,
                                 .shared_name = "q"});
  if (kind == "priority")
    return priority_queue(g, kPair, {.shapes = kScalars, .capacity = capacity, .shared_name = "q"});
  return fifo_queue(g, kPair, {.shapes = kScalars, .capacity = capacity, .shared_name = "q"});
}

// One queue of (number, value), and all its operations.
struct Pairs {
  Output q, numbers, values, n, one, size;
  std::vector<Output> many, up_to;
  Op put_many, close;

  Pairs(Graph& g, const char* device, const std::string& kind, std::int64_t capacity = 16,
        std::int64_t kept = 0) {
    auto there = g.with_device(device);
    q = queue_of(g, kind, capacity, kept);
    numbers = placeholder<std::int64_t>(g, {-1}, "numbers");
    values = placeholder<float>(g, {-1}, "values");
    n = placeholder<std::int64_t>(g, {}, "n");
    put_many = enqueue_many(q, {numbers, values});
    one = dequeue(q, kPair, {.shapes = kScalars})[0];
    many = dequeue_many(q, n, kPair, {.shapes = kScalars});
    up_to = dequeue_up_to(q, n, kPair, {.shapes = kScalars});
    size = queue_size(q);
    close = queue_close(q);
  }
  void put(Session& s, const std::vector<std::int64_t>& all) const {
    std::vector<float> floats(all.begin(), all.end());
    const auto rows = std::int64_t(all.size());
    s.run({}, {put_many},
          {{numbers, Tensor::of<std::int64_t>({rows}, all)},
           {values, Tensor::of<float>({rows}, std::span<const float>(floats))}});
  }
  static std::vector<std::int64_t> numbers_of(const std::vector<Tensor>& got) {
    const auto span = got[0].span<std::int64_t>();
    std::vector<std::int64_t> all(span.begin(), span.end());
    for (std::size_t i = 0; i < all.size(); ++i)
      CHECK(got[1].data<float>()[i] == float(all[i]));  // elements stay whole
    return all;
  }
  std::vector<std::int64_t> take(Session& s, std::int64_t k) const {
    return numbers_of(s.run(many, {}, {{n, Tensor::scalar(k)}}));
  }
  Expected<std::vector<Tensor>> try_up_to(Session& s, std::int64_t k) const {
    return s.try_run(up_to, {}, {{n, Tensor::scalar(k)}});
  }
  std::int64_t count(Session& s) const { return s.run({size})[0].item<std::int64_t>(); }
};

Status thrown_by(const std::function<void()>& f) {
  try {
    f();
  } catch (const Error& error) {
    return error.status();
  }
  return ok_status();
}

}  // namespace

TEST_CASE("batches enter and leave queues of every kind, in the order of the kind") {
  for (const Place& place : kPlaces)
    for (const std::string kind : kKinds) {
      CAPTURE(place.name);
      CAPTURE(kind);
      Graph g;
      Pairs q(g, place.second, kind);
      PlacedSession s(g, place);
      q.put(*s, {5, 1, 4, 1, 3, 2});
      CHECK(q.count(*s) == 6);
      const std::vector<std::int64_t> first = q.take(*s, 2), rest = q.take(*s, 4);
      std::vector<std::int64_t> all = first;
      all.insert(all.end(), rest.begin(), rest.end());
      if (kind == "fifo") CHECK(all == std::vector<std::int64_t>{5, 1, 4, 1, 3, 2});
      if (kind == "priority") CHECK(all == std::vector<std::int64_t>{1, 1, 2, 3, 4, 5});
      std::sort(all.begin(), all.end());
      CHECK(all == std::vector<std::int64_t>{1, 1, 2, 3, 4, 5});
      CHECK(q.take(*s, 0).empty());
      q.put(*s, {});
      CHECK(q.count(*s) == 0);
      q.put(*s, {7, 8, 9});
      s->run({}, {q.close});
      CHECK(Pairs::numbers_of(*q.try_up_to(*s, 2)).size() == 2);
      CHECK(Pairs::numbers_of(*q.try_up_to(*s, 2)).size() == 1);  // what is left
      says(q.try_up_to(*s, 2).status(), Code::out_of_range, "(requested 2, current size 0)");
      CHECK(q.count(*s) == 0);
    }
}

TEST_CASE("a batch waits for all its elements, and for room for all of them") {
  Graph g;
  Pairs q(g, kTask0, "fifo", 4);
  Session s(g, one_thread());
  PendingRun waits = s.compile(q.many, {}, {q.n}).start({Tensor::scalar<std::int64_t>(3)});
  q.put(s, {1, 2});
  CHECK(!waits.done());
  CHECK(q.count(s) == 2);  // it has taken none of them
  waits.cancel();
  CHECK_FALSE(waits.try_get().ok());
  PendingRun later = s.compile(q.many, {}, {q.n}).start({Tensor::scalar<std::int64_t>(3)});
  q.put(s, {3, 4});
  CHECK(Pairs::numbers_of(later.get()) == std::vector<std::int64_t>{1, 2, 3});
  const std::vector<Tensor> four{Tensor::of<std::int64_t>({4}, {5, 6, 7, 8}),
                                 Tensor::of<float>({4}, {5, 6, 7, 8})};
  PendingRun full = s.compile({}, {q.put_many}, {q.numbers, q.values}).start(four);
  CHECK(q.count(s) == 1);
  CHECK(q.take(s, 1) == std::vector<std::int64_t>{4});
  CHECK(full.try_get().ok());
  CHECK(q.take(s, 4) == std::vector<std::int64_t>{5, 6, 7, 8});
  // A closed queue that has fewer keeps them.
  q.put(s, {9});
  s.run({}, {q.close});
  says(s.try_run(q.many, {}, {{q.n, Tensor::scalar<std::int64_t>(2)}}).status(), Code::out_of_range,
       "is closed and has insufficient elements (requested 2, current size 1)");
  CHECK(q.take(s, 1) == std::vector<std::int64_t>{9});
}

TEST_CASE("a queue that pads makes batches of elements of several shapes") {
  for (const Place& place : kPlaces) {
    CAPTURE(place.name);
    Graph g;
    auto there = g.with_device(place.second);
    const std::vector<DType> types{DType::i32, DType::string};
    const std::vector<PartialShape> shapes{PartialShape{-1, 2}, PartialShape{-1}};
    Output q = padding_fifo_queue(g, types, shapes, {.capacity = 8});
    Output rows = placeholder<std::int32_t>(g, {-1, 2}, "rows");
    Output words = placeholder<std::string>(g, {-1}, "words");
    Op put = enqueue(q, {rows, words});
    std::vector<Output> batch = dequeue_many(q, 3, types, {.shapes = shapes});
    CHECK(batch[0].shape() == PartialShape{3, -1, 2});
    std::vector<Output> rest = dequeue_up_to(q, 4, types, {.shapes = shapes});
    CHECK(rest[1].shape() == PartialShape{-1, -1});
    Op close = queue_close(q);
    PlacedSession s(g, place);
    const auto run = [&](std::int64_t n, std::initializer_list<const char*> texts) {
      std::vector<std::int32_t> numbers(std::size_t(2 * n), std::int32_t(n));
      std::vector<std::string> all(texts.begin(), texts.end());
      s->run({}, {put},
             {{rows, Tensor::of<std::int32_t>({n, 2}, std::span<const std::int32_t>(numbers))},
              {words, Tensor::of<std::string>({std::int64_t(all.size())},
                                              std::span<const std::string>(all))}});
    };
    run(1, {"a"}), run(0, {}), run(2, {"b", "c", "d"}), run(1, {"e"});
    const std::vector<Tensor> got = s->run(batch);
    CHECK(Tensor::same(got[0], Tensor::of<std::int32_t>({3, 2, 2}, {1, 1, 0, 0,  //
                                                                    0, 0, 0, 0,  //
                                                                    2, 2, 2, 2})));
    CHECK(got[1].shape() == Shape{3, 3});
    CHECK(got[1].data<std::string>()[0] == "a");
    CHECK(got[1].data<std::string>()[2].empty());
    CHECK(got[1].data<std::string>()[8] == "d");
    s->run({}, {close});
    CHECK(s->run(rest)[1].shape() == Shape{1, 1});
  }
}

TEST_CASE("loops and functions put and take batches of every kind") {
  for (const std::string kind : kKinds) {
    CAPTURE(kind);
    Graph g;
    Pairs q(g, kTask0, kind);
    const ValueType number{DType::i32, PartialShape::scalar()};
    Function fill = function(g, "fill", {number}, {number}, [&](Function&, Output i) {
      Output both = pack({cast<std::int64_t>(i), cast<std::int64_t>(i) + std::int64_t{10}});
      enqueue_many(q.q, {both, cast<float>(both)});
      return i + 1;
    });
    Output filled = while_loop(
        constant(g, 0), [](Output i) { return i < 4; }, [&](Output i) { return fill(i); });
    auto [i, total] = while_loop(
        std::tuple{constant(g, 0), constant(g, std::int64_t{0})},
        [](Output i, Output) { return i < 2; },
        [&](Output i, Output total) {
          Output three = dequeue_many(q.q, 3, kPair, {.shapes = kScalars})[0];
          return std::tuple{i + 1, total + sum(three)};
        });
    Session s(g, one_thread());
    s.init();
    CHECK(s.run({filled})[0].item<std::int32_t>() == 4);
    CHECK(q.count(s) == 8);
    const std::int64_t six = s.run({total})[0].item<std::int64_t>();
    CHECK(q.count(s) == 2);
    std::int64_t left = 0;
    for (std::int64_t each : q.take(s, 2)) left += each;
    CHECK(six + left == 52);  // 0 to 3, and 10 to 13
    if (kind == "fifo") CHECK(left == 16);
    if (kind == "priority") CHECK(left == 25);
    // A loop that fails has taken nothing.
    q.put(s, {1, 2, 3, 4});
    CHECK(s.try_run({total}, {}, {}, {.timeout = std::chrono::milliseconds(30)}).status().code() ==
          Code::deadline_exceeded);
    CHECK(q.count(s) == 4);
  }
}

TEST_CASE("queues of every kind are saved and restored, and draw as if nothing had happened") {
  for (const std::string kind : kKinds) {
    CAPTURE(kind);
    const TemporaryDir dir;
    std::vector<std::int64_t> rest;
    {
      Graph g;
      Pairs q(g, kTask1, kind, 16, 2);
      TcpWorkers workers(2);
      Session s(g, workers.cluster());
      q.put(s, {8, 7, 6, 5, 4, 3, 2, 1});
      q.take(s, 2);
      s.save_job(dir.path("job"));
      for (int i = 0; i < 4; ++i) rest.push_back(s.run({q.one})[0].item<std::int64_t>());
    }
    Graph g;
    Pairs q(g, kTask0, kind, 16, 2);
    Session s(g, one_thread());
    s.restore_job(dir.path("job"));
    CHECK(q.count(s) == 6);
    std::vector<std::int64_t> again;
    for (int i = 0; i < 4; ++i) again.push_back(s.run({q.one})[0].item<std::int64_t>());
    CHECK(again == rest);
    if (kind == "priority") CHECK(again == std::vector<std::int64_t>{3, 4, 5, 6});
    // The last two of a shuffled queue stay until it is closed.
    if (kind == "shuffle")
      CHECK(
          s.try_run({q.one}, {}, {}, {.timeout = std::chrono::milliseconds(20)}).status().code() ==
          Code::deadline_exceeded);
    s.run({}, {q.close});
    CHECK(Pairs::numbers_of(*q.try_up_to(s, 3)).size() == 2);
  }
}

TEST_CASE("what no queue can hold or give is refused, with node and line") {
  Graph g;
  Pairs q(g, kTask0, "fifo", 4);
  Output loose = fifo_queue(g, {DType::f32});
  Output batch = dequeue_many(loose, 1, {DType::f32})[0];
  Output count = placeholder<std::int64_t>(g, PartialShape(), "count");
  Output unknown = dequeue_many(q.q, count, kPair, {.shapes = kScalars})[0];
  Session s(g, one_thread());
  const Status many = s.try_run({}, {q.put_many},
                                {{q.numbers, Tensor::zeros(DType::i64, {5}).value()},
                                 {q.values, Tensor::zeros(DType::f32, {5}).value()}})
                          .status();
  says(many, Code::invalid_argument,
       "a batch of 5 elements is more than queue 'q' of capacity 4 can hold");
  says(many, Code::invalid_argument, "queue_kinds_session_test.cpp:");
  says(s.try_run({}, {q.put_many},
                 {{q.numbers, Tensor::zeros(DType::i64, {2}).value()},
                  {q.values, Tensor::zeros(DType::f32, {3}).value()}})
           .status(),
       Code::invalid_argument, "2 elements in component 0 and 3 in component 1");
  for (std::int64_t n : {std::int64_t{5}, std::int64_t{-1}, std::int64_t{1} << 40}) {
    const Status status = q.try_up_to(s, n).status();
    says(status, Code::invalid_argument,
         n < 0 ? "n must be at least 0, not -1" : " elements are asked of queue 'q' of capacity 4");
    says(status, Code::invalid_argument, "(DequeueUpTo");
  }
  says(s.try_run({batch}).status(), Code::invalid_argument, "cannot be stacked");
  says(s.try_run({unknown}, {}, {{count, Tensor::zeros(DType::i64, {2}).value()}}).status(),
       Code::invalid_argument, "n must be an i64 scalar");
  CHECK(q.count(s) == 0);
}

TEST_CASE("a queue that nobody could use is an error where it is made") {
  Graph g;
  const auto refused = [&](const std::function<void()>& f, std::string_view what) {
    const Status status = thrown_by(f);
    says(status, Code::invalid_argument, what);
    says(status, Code::invalid_argument, "queue_kinds_session_test.cpp:");
  };
  refused([&] { random_shuffle_queue(g, {DType::f32}, {.capacity = 4, .min_after_dequeue = 4}); },
          "`min_after_dequeue` must be at least 0 and below the capacity of 4, not 4");
  refused([&] { random_shuffle_queue(g, {DType::f32}, {.capacity = 0}); }, "`capacity`");
  refused([&] { padding_fifo_queue(g, {DType::f32}, {}); }, "a shape for each component");
  refused([&] { padding_fifo_queue(g, {DType::f32}, {PartialShape()}); },
          "the rank of component 0");
  refused([&] { priority_queue(g, {DType::f32, DType::i64}); }, "component 0 is the priority");
  refused(
      [&] {
        priority_queue(g, kPair, {.shapes = {PartialShape{1}, PartialShape{}}});
      },
      "component 0 is the priority");
  Output q = fifo_queue(g, kPair);
  refused([&] { dequeue_many(q, -1, kPair); }, "n must be at least 0, not -1");
  refused([&] { enqueue_many(q, {constant(g, std::int64_t{1}), constant(g, 1.f)}); }, "rank");
  refused(
      [&] {
        enqueue_many(q, {constant<std::int64_t>(g, {2}, {1, 2}), constant<float>(g, {1}, {1})});
      },
      "the components have 2 and 1 elements");
  CHECK(dequeue_many(q, 3, kPair, {.shapes = kScalars})[1].shape() == PartialShape{3});
  CHECK(dequeue_up_to(q, 3, kPair, {.shapes = kScalars})[1].shape() == PartialShape{-1});
}

TEST_CASE("queues of two kinds do not share a name") {
  Graph g;
  Output first = queue_of(g, "fifo"), second = queue_of(g, "priority");
  Output a = queue_size(first), b = queue_size(second);
  Session s(g, one_thread());
  s.run({a});
  const Status status = s.try_run({b}).status();
  says(status, Code::invalid_argument, "is shared by a node that declares");
  says(status, Code::invalid_argument, "by priority");
}
