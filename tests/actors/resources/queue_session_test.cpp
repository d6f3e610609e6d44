// Queues as clients use them: through sessions, from several threads.
#include <doctest/doctest.h>

#include <algorithm>
#include <atomic>
#include <thread>

#include "ops/api/control.hpp"
#include "ops/data/data.hpp"
#include "tests/actors/support/sessions.hpp"

using namespace troupe;
using namespace troupe::test;

namespace {

// One queue of floats and all its operations.
struct Floats {
  Graph g;
  Output q, x, out, size;
  Op in, close, cancel;
  Session s{g, one_thread()};

  explicit Floats(std::int64_t capacity = 32)
      : q(fifo_queue(g, {DType::f32}, {.shapes = {PartialShape::scalar()}, .capacity = capacity})),
        x(placeholder<float>(g, {}, "x")),
        out(dequeue(q, {DType::f32}, {.shapes = {PartialShape::scalar()}})[0]),
        size(queue_size(q)),
        in(enqueue(q, {x})),
        close(queue_close(q)),
        cancel(queue_close(q, {.cancel_pending = true})) {}

  CompiledStep putting() { return s.compile({}, {in}, {x}); }
  CompiledStep taking() { return s.compile({out}); }
  Status put(float v) { return putting().try_run({Tensor::scalar(v)}).status(); }
  Expected<float> take() {
    TROUPE_TRY(std::vector<Tensor> got, taking().try_run());
    return got.at(0).item<float>();
  }
  std::int64_t count() { return s.run({size})[0].item<std::int64_t>(); }
  // Waits until the master knows of a run that waits for a queue.
  void until_blocked() {
    auto until = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    for (;;) {
      for (const std::string& line : s.describe())
        if (line.find("waits for a queue") != std::string::npos) return;
      REQUIRE(std::chrono::steady_clock::now() < until);
      std::this_thread::yield();
    }
  }
};

}  // namespace

TEST_CASE("a queue keeps the order and knows its size") {
  Floats f;
  CHECK(f.count() == 0);
  for (int i = 0; i < 10; ++i) REQUIRE(f.put(float(i)).ok());
  CHECK(f.count() == 10);
  for (int i = 0; i < 10; ++i) CHECK(*f.take() == float(i));
  CHECK(f.count() == 0);
}

TEST_CASE("an enqueue waits while the queue is full") {
  Floats f(2);
  REQUIRE(f.put(1).ok());
  REQUIRE(f.put(2).ok());
  PendingRun third = f.putting().start({Tensor::scalar(3.0f)});
  f.until_blocked();
  CHECK(!third.done());
  CHECK(f.count() == 2);
  CHECK(*f.take() == 1);
  CHECK(third.try_get().ok());
  CHECK(*f.take() == 2);
  CHECK(*f.take() == 3);
}

TEST_CASE("a closed queue gives what it has, then says that it is closed") {
  Floats f;
  REQUIRE(f.put(1).ok());
  REQUIRE(f.put(2).ok());
  f.s.run({}, {f.close});
  Status refused = f.put(3);
  CHECK(refused.code() == Code::cancelled);
  CHECK(refused.text().find("is closed") != std::string::npos);
  CHECK(refused.text().find("queue_session_test.cpp") != std::string::npos);
  CHECK(*f.take() == 1);
  CHECK(*f.take() == 2);
  Status empty = f.take().status();
  CHECK(empty.code() == Code::out_of_range);
  CHECK(empty.text().find("closed and has insufficient elements (requested 1, current size 0)") !=
        std::string::npos);
  CHECK(empty.text().find("Dequeue") != std::string::npos);
  CHECK(f.s.try_run({}, {f.close}).status().code() == Code::cancelled);
  CHECK(f.s.try_run({}, {f.cancel}).status().code() == Code::cancelled);
  CHECK(f.count() == 0);
}

TEST_CASE("closing ends a dequeue that waits") {
  Floats f;
  PendingRun waiting = f.taking().start();
  f.until_blocked();
  f.s.run({}, {f.close});
  CHECK(waiting.try_get().status().code() == Code::out_of_range);
}

TEST_CASE("closing lets enqueues that wait go first") {
  Floats f(1);
  REQUIRE(f.put(1).ok());
  PendingRun waiting = f.putting().start({Tensor::scalar(2.0f)});
  f.until_blocked();
  f.s.run({}, {f.close});
  CHECK(f.put(3).code() == Code::cancelled);
  CHECK(!waiting.done());
  CHECK(*f.take() == 1);
  CHECK(waiting.try_get().ok());
  CHECK(*f.take() == 2);
  CHECK(f.take().status().code() == Code::out_of_range);
}

TEST_CASE("closing with cancel_pending cancels enqueues that wait") {
  Floats f(1);
  REQUIRE(f.put(1).ok());
  PendingRun waiting = f.putting().start({Tensor::scalar(2.0f)});
  f.until_blocked();
  f.s.run({}, {f.cancel});
  CHECK(waiting.try_get().status().code() == Code::cancelled);
  CHECK(*f.take() == 1);
  CHECK(f.take().status().code() == Code::out_of_range);
}

TEST_CASE("cancelling a run that waits leaves queue and session in order") {
  Floats f(1);
  PendingRun taker = f.taking().start();
  f.until_blocked();
  taker.cancel();
  Status status = taker.try_get().status();
  CHECK(status.code() == Code::cancelled);
  REQUIRE(f.put(1).ok());
  PendingRun putter = f.putting().start({Tensor::scalar(2.0f)});
  f.until_blocked();
  putter.cancel();
  CHECK(putter.try_get().status().code() == Code::cancelled);
  CHECK(f.count() == 1);
  CHECK(*f.take() == 1);
  CHECK(f.count() == 0);
}

TEST_CASE("what a failed run took is back, in its place") {
  Floats f;
  Output index = placeholder<std::int64_t>(f.g, {1}, "index");
  Output row = gather(constant(f.g, Tensor::of<float>({2}, {0, 0})), index);
  Output bad = f.out + sum(row);
  for (int i = 1; i <= 3; ++i) REQUIRE(f.put(float(i)).ok());
  auto step = f.s.compile({bad}, {}, {index});
  for (int i = 0; i < 5; ++i) {
    CHECK(step.try_run({Tensor::of<std::int64_t>({1}, {9})}).status().code() ==
          Code::invalid_argument);
    CHECK(f.count() == 3);
  }
  for (int i = 1; i <= 3; ++i) CHECK(*f.take() == float(i));
}

TEST_CASE("what a failed run put never enters") {
  Floats f;
  Output index = placeholder<std::int64_t>(f.g, {1}, "index");
  Op row = gather(constant(f.g, Tensor::of<float>({2}, {0, 0})), index);
  auto step = f.s.compile({}, {f.in, row}, {f.x, index});
  CHECK(!step.try_run({Tensor::scalar(1.0f), Tensor::of<std::int64_t>({1}, {9})}).ok());
  CHECK(f.count() == 0);
  CHECK(step.try_run({Tensor::scalar(2.0f), Tensor::of<std::int64_t>({1}, {1})}).ok());
  CHECK(*f.take() == 2);
}

TEST_CASE("an element of another dtype, shape or size is refused") {
  Graph g;
  Output q = fifo_queue(g, {DType::f32, DType::i64},
                        {.shapes = {PartialShape{2}, PartialShape::scalar()}});
  Output open = placeholder<float>(g, {-1}, "open");
  Output one = constant(g, std::int64_t{1});
  Op good = enqueue(q, {constant<float>(g, {2}, {1, 2}), one});
  Op late = enqueue(q, {open, one});
  Op types = enqueue(q, {one, one});
  Op few = enqueue(q, {constant<float>(g, {2}, {1, 2})});
  Output size = queue_size(q);
  Session s(g, one_thread());
  auto refused = [&](Status status, std::string_view part) {
    INFO(status.text());
    CHECK(status.code() == Code::invalid_argument);
    CHECK(status.text().find(part) != std::string::npos);
    CHECK(status.text().find("FIFOQueue") != std::string::npos);
    CHECK(status.text().find("Enqueue") != std::string::npos);
    CHECK(status.text().find("queue_session_test.cpp") != std::string::npos);
  };
  refused(s.try_run({}, {types}).status(), "Enqueue of [i64, i64]");
  refused(s.try_run({}, {few}).status(), "(FIFOQueue of [f32, i64])");
  refused(s.try_run({}, {late}, {{open, Tensor::of<float>({3}, {1, 2, 3})}}).status(),
          "has shape [2], not [3]");
  CHECK(s.run({size})[0].item<std::int64_t>() == 0);
  s.run({}, {good});
  s.run({}, {late}, {{open, Tensor::of<float>({2}, {1, 2})}});
  CHECK(s.run({size})[0].item<std::int64_t>() == 2);
}

TEST_CASE("an element of another shape than its taker declares fails the run, and stays") {
  for (const Place& place : kPlaces) {
    CAPTURE(place.name);
    Graph g;
    Output q;
    {
      auto there = g.with_device(place.second);
      q = fifo_queue(g, {DType::f32});
    }
    const Op put = enqueue(q, {constant<float>(g, {4}, {1, 2, 3, 4})});
    const Output wrong = dequeue(q, {DType::f32}, {.shapes = {PartialShape{3}}})[0];
    const Output right = dequeue(q, {DType::f32}, {.shapes = {PartialShape{4}}})[0];
    const Output here = node(g, place.first, "Neg", {wrong}).output();
    PlacedSession s(g, place);
    s->run({}, {put});
    for (const Output& taken : {wrong, here}) {
      const Status status = s->try_run({taken}).status();
      says(status, Code::invalid_argument, "output 0 is declared f32[3], and is f32[4]");
      says(status, Code::invalid_argument, "queue_session_test.cpp:");
    }
    CHECK(s->run({right})[0].elements() == 4);
  }
}

TEST_CASE("nodes that share a queue must declare the same") {
  Graph g;
  Output q = fifo_queue(g, {DType::f32}, {.capacity = 2, .shared_name = "both"});
  Output again = fifo_queue(g, {DType::f32}, {.capacity = 2, .shared_name = "both"});
  Output larger = fifo_queue(g, {DType::f32}, {.capacity = 3, .shared_name = "both"});
  Op in = enqueue(q, {constant(g, 5.0f)});
  Output out = dequeue(again, {DType::f32})[0];
  Output wrong = dequeue(larger, {DType::f32})[0];
  Session s(g, one_thread());
  s.run({}, {in});
  Status status = s.try_run({wrong}).status();
  CHECK(status.code() == Code::invalid_argument);
  CHECK(status.text().find("capacity 2") != std::string::npos);
  CHECK(status.text().find("capacity 3") != std::string::npos);
  CHECK(s.run({out})[0].item<float>() == 5);
}

TEST_CASE("a run that alone overfills a queue is told so") {
  Graph g;
  Output q = fifo_queue(g, {DType::f32}, {.capacity = 2});
  std::vector<Op> ins;
  for (int i = 0; i < 3; ++i) ins.push_back(enqueue(q, {constant(g, float(i))}));
  Session s(g, one_thread());
  Status status = s.try_run({}, ins).status();
  CHECK(status.code() == Code::failed_precondition);
  CHECK(status.text().find("capacity 2") != std::string::npos);
  CHECK(s.try_run({}, {ins[0], ins[1]}).ok());
}

TEST_CASE("a run takes what it put, after what was there") {
  Floats f;
  auto both = f.s.compile({f.out}, {f.in}, {f.x});
  REQUIRE(f.put(1).ok());
  CHECK(both.run({Tensor::scalar(2.0f)})[0].item<float>() == 1);
  CHECK(both.run({Tensor::scalar(3.0f)})[0].item<float>() == 2);
  CHECK(f.count() == 1);
}

TEST_CASE("what replicas put in is in their order, whichever has to wait") {
  Floats gate;
  const Output own = data::tensors({Tensor::of<float>({2}, {0, 1})}).repeat().outputs<1>(gate.g)[0];
  // The first replica has its element when somebody has put one into the gate.
  const Output x = cond(
      own < 0.5f, [&] { return take_from(gate.q); }, [&] { return own + 0.0f; });
  const Output all = fifo_queue(gate.g, {DType::f32}, {.shapes = {PartialShape::scalar()}});
  const Op put = enqueue(all, {x});
  const Output taken = take_from(all);
  const CompiledStep putting = gate.s.compile({}, {put}, {}, {.replicas = 2});
  for (int i = 0; i < 3; ++i) {
    PendingRun run = putting.start({});
    gate.until_blocked();
    REQUIRE(gate.put(7).ok());
    REQUIRE(run.try_get().ok());
    CHECK(gate.s.run({taken})[0].item<float>() == 7);
    CHECK(gate.s.run({taken})[0].item<float>() == 1);
  }
}

TEST_CASE("replicas that all take the branch in which a queue is closed close it once") {
  Floats f;
  const Output own = data::tensors({Tensor::of<float>({2}, {5, 6})}).repeat().outputs<1>(f.g)[0];
  const Op ends = cond(
      own > 0.0f, [&] { queue_close(f.q); }, [&] {});
  REQUIRE(f.put(1).ok());
  f.s.compile({}, {ends}, {}, {.replicas = 2}).run(std::vector<Tensor>{});
  CHECK(f.put(2).code() == Code::cancelled);
  CHECK(*f.take() == 1);
}

TEST_CASE("closing the session ends runs that wait on either side") {
  Floats full(1), empty;
  REQUIRE(full.put(1).ok());
  CompiledStep take = empty.taking();
  std::vector<PendingRun> waiting;
  for (int i = 0; i < 4; ++i) {
    waiting.push_back(full.putting().start({Tensor::scalar(2.0f)}));
    waiting.push_back(take.start());
  }
  full.s.close();
  empty.s.close();
  for (PendingRun& run : waiting) CHECK(run.try_get().status().code() == Code::cancelled);
  CHECK(take.try_run().status().code() == Code::failed_precondition);
  CHECK(take.start().try_get().status().code() == Code::failed_precondition);
}

TEST_CASE("runs that start while the session closes are all answered") {
  Floats f;
  CompiledStep put = f.putting();
  std::vector<std::thread> clients;
  std::atomic<int> done{0};
  for (int t = 0; t < 3; ++t)
    clients.emplace_back([&] {
      for (;;) {
        Status status = put.start({Tensor::scalar(1.0f)}).try_get().status();
        ++done;
        if (status.code() == Code::failed_precondition) return;
      }
    });
  while (done < 10) std::this_thread::yield();
  f.s.close();
  for (auto& c : clients) c.join();
}

TEST_CASE("producers and consumers lose and double nothing") {
  Floats f(4);
  constexpr int kEach = 40, kProducers = 3;
  CompiledStep put = f.putting(), take = f.taking();
  std::vector<std::thread> threads;
  for (int p = 0; p < kProducers; ++p)
    threads.emplace_back([&, p] {
      for (int i = 0; i < kEach; ++i) put.run({Tensor::scalar(float(p * kEach + i))});
    });
  std::vector<float> got[2];
  for (auto& mine : got)
    threads.emplace_back([&] {
      for (;;) {
        auto element = take.try_run();
        if (!element.ok()) {
          CHECK(element.status().code() == Code::out_of_range);
          return;
        }
        mine.push_back(element->at(0).item<float>());
      }
    });
  for (int p = 0; p < kProducers; ++p) threads[p].join();
  f.s.run({}, {f.close});
  for (std::size_t t = kProducers; t < threads.size(); ++t) threads[t].join();
  std::vector<float> all = got[0];
  all.insert(all.end(), got[1].begin(), got[1].end());
  std::sort(all.begin(), all.end());
  REQUIRE(all.size() == kProducers * kEach);
  for (std::size_t i = 0; i < all.size(); ++i) CHECK(all[i] == float(i));
}

TEST_CASE("memory does not grow behind a run that waits") {
  Floats f;
  Output large = f.x + random_standard_normal(f.g, {1 << 14});
  PendingRun waiting = f.taking().start();
  f.until_blocked();
  CompiledStep step = f.s.compile({large}, {}, {f.x});
  step.run({Tensor::scalar(1.0f)});
  const std::uint64_t before = f.s.memory()[0].in_use;
  for (int i = 0; i < 300; ++i) step.run({Tensor::scalar(1.0f)});
  CHECK(f.s.memory()[0].in_use < before + 10 * (4 << 14));
  REQUIRE(f.put(7).ok());
  CHECK(waiting.get().at(0).item<float>() == 7);
}
