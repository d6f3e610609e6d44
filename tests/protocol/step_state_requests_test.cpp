#include <random>
#include <thread>

#include "tests/protocol/step_fixture.hpp"

using namespace troupe;

namespace {

std::uint32_t variable(StepWorld& w, const std::string& name, const std::string& container = "") {
  return w.draft.resource({.kind = "variable", .container = container, .name = name});
}

std::uint32_t read(StepWorld& w, const std::string& name, std::uint32_t resource,
                   std::vector<std::uint32_t> control = {}, std::uint32_t epoch = 0) {
  auto node = w.external(name, asks::read, {}, 1, std::move(control));
  w.draft.info(node).resource = resource;
  w.draft.info(node).epoch = epoch;
  return node;
}

std::uint32_t write(StepWorld& w, const std::string& name, std::uint32_t resource,
                    std::uint32_t operand) {
  auto node = w.external(name, asks::log, {operand}, 0);
  w.draft.info(node).resource = resource;
  w.draft.info(node).handles = {resource};
  return node;
}

std::vector<Tensor> scalars(std::initializer_list<float> values) {
  std::vector<Tensor> tensors;
  for (float v : values) tensors.push_back(Tensor::scalar(v));
  return tensors;
}

}  // namespace

TEST_CASE("all reads of the snapshot join one request per container, whenever they become ready") {
  StepWorld w;
  auto a = variable(w, "a"), b = variable(w, "b"), c = variable(w, "c", "other");
  auto x = w.constant("x", 1);
  auto ra = read(w, "ra", a);
  auto rb = read(w, "rb", b, {x});
  auto late = w.sum("late", {w.draft.out(ra)});
  auto rc = read(w, "rc", c);
  auto ra2 = read(w, "ra2", a, {late});
  auto y = w.sum("y", {w.draft.out(ra), w.draft.out(rb), w.draft.out(rc), w.draft.out(ra2)});
  w.draft.fetch(w.draft.out(y));
  w.make();
  for (int again = 0; again < 2; ++again) {
    w.start();
    BurstResult burst = w.run();
    CHECK_FALSE(burst.finished);
    REQUIRE(burst.requests.size() == 2);
    CHECK(burst.requests[0].external == &asks::read);
    REQUIRE(burst.requests[0].items.size() == 3);
    CHECK(burst.requests[0].items[0].node == ra);
    CHECK(burst.requests[0].items[1].node == rb);
    CHECK(burst.requests[0].items[2].node == ra2);
    CHECK(burst.requests[1].items.size() == 1);
    w.step->answer(burst.requests[1].id, scalars({100}));
    CHECK(w.step->has_arrivals());
    burst = [&, id = burst.requests[0].id] {
      BurstResult nothing = w.run();
      CHECK(nothing.requests.empty());
      CHECK_FALSE(nothing.finished);
      w.step->answer(id, scalars({1, 10, 1}));
      return w.run();
    }();
    REQUIRE(burst.finished);
    StepResult result = w.step->result();
    REQUIRE(result.status.ok());
    CHECK(result.fetches[0].value.item<float>() == 112);
    CHECK(result.keys == std::vector<std::uint32_t>{0, 0, 0});
  }
}

TEST_CASE("writes ready in one burst are one request with their operands, and counted") {
  StepWorld w;
  auto a = variable(w, "a"), b = variable(w, "b");
  auto x = w.constant("x", 3), y = w.constant("y", 4);
  auto wa = write(w, "wa", a, w.draft.out(x));
  auto wb = write(w, "wb", b, w.draft.out(y));
  auto again = read(w, "again", a, {wa}, 1);
  w.draft.fetch(w.draft.out(again));
  w.make();
  w.start();
  BurstResult burst = w.run();
  REQUIRE(burst.requests.size() == 1);
  const StepRequest request = std::move(burst.requests[0]);
  CHECK(request.external == &asks::log);
  REQUIRE(request.items.size() == 2);
  CHECK(request.items[0].node == wa);
  CHECK(request.items[0].operands.at(0).item<float>() == 3);
  CHECK(request.items[1].node == wb);
  CHECK(request.items[1].operands.at(0).item<float>() == 4);
  CHECK(request.items[1].operands.at(0).unique());  // nobody else read it: moved
  w.step->answer(request.id, std::vector<Tensor>{});
  burst = w.run();
  // Only now, after the acknowledgement, the read of what was written.
  REQUIRE(burst.requests.size() == 1);
  CHECK(burst.requests[0].external == &asks::read);
  CHECK(burst.requests[0].epoch == 1);
  w.step->answer(burst.requests[0].id, scalars({3}));
  burst = w.run();
  REQUIRE(burst.finished);
  StepResult result = w.step->result();
  CHECK(result.status.ok());
  CHECK(result.keys == std::vector<std::uint32_t>{1, 1});
}

TEST_CASE("queue operations, elements and files are requests of one item") {
  StepWorld w;
  auto q = w.draft.resource({.kind = "queue", .name = "q"});
  auto x = w.constant("x", 3);
  auto put = w.external("put", asks::enqueue, {w.draft.out(x), w.draft.out(x)}, 0);
  auto get = w.external("get", asks::dequeue, {}, 2);
  auto next = w.external("next", asks::next, {}, 1);
  auto save = w.external("save", asks::save, {w.draft.out(x)}, 0);
  auto close = w.external("close", asks::close, {}, 0);
  auto size = w.external("size", asks::size, {}, 1);
  for (auto node : {put, get, close, size}) w.draft.info(node).resource = q;
  auto y = w.sum("y", {w.draft.out(get, 0), w.draft.out(get, 1), w.draft.out(next)});
  w.draft.fetch(w.draft.out(y));
  w.make();
  w.start();
  BurstResult burst = w.run();
  REQUIRE(burst.requests.size() == 6);
  for (const StepRequest& r : burst.requests) {
    REQUIRE(r.items.size() == 1);
    const auto node = r.items[0].node;
    std::vector<Tensor> answer;
    if (node == put) CHECK(r.items[0].operands.size() == 2);
    if (node == save) CHECK(r.items[0].operands.size() == 1);
    if (node == get) answer = scalars({1, 2});
    if (node == next) answer = scalars({10});
    if (node == size) answer = {Tensor::scalar(std::int64_t{5})};
    w.step->answer(r.id, answer);
  }
  burst = w.run();
  REQUIRE(burst.finished);
  StepResult result = w.step->result();
  REQUIRE(result.status.ok());
  CHECK(result.fetches[0].value.item<float>() == 13);
  CHECK(result.keys == std::vector<std::uint32_t>{3, 0, 0});  // a size leaves no key
}

TEST_CASE("a refused request fails the step in the name of its node; open ones are listed") {
  StepWorld w;
  auto q = w.draft.resource({.kind = "queue", .name = "q"});
  auto get = w.external("get", asks::dequeue, {}, 1);
  auto other = w.external("other", asks::dequeue, {}, 1);
  w.draft.info(get).resource = w.draft.info(other).resource = q;
  w.draft.fetch(w.draft.out(get));
  w.make();
  w.start();
  BurstResult burst = w.run();
  REQUIRE(burst.requests.size() == 2);
  const auto open = burst.requests[1].id;
  w.step->answer(burst.requests[0].id, out_of_range("the queue is closed"));
  burst = w.run();
  REQUIRE(burst.finished);
  StepResult result = w.step->result();
  CHECK(result.status.code() == Code::out_of_range);
  CHECK(result.status.text().find("node 'get'") != std::string::npos);
  CHECK(result.unanswered == std::vector<std::uint32_t>{open});

  // The late answer of the failed step does not reach the next one.
  w.start();
  burst = w.run();
  w.step->answer(open, scalars({666}));
  CHECK_FALSE(w.run().finished);
  for (const StepRequest& r : burst.requests) w.step->answer(r.id, scalars({1}));
  REQUIRE(w.run().finished);
  result = w.step->result();
  CHECK(result.fetches.at(0).value.item<float>() == 1);
}

TEST_CASE("an answer without enough outputs is an error, not a crash") {
  StepWorld w;
  auto get = w.external("get", asks::dequeue, {}, 2);
  w.draft.fetch(w.draft.out(get));
  w.make();
  w.start();
  BurstResult burst = w.run();
  w.step->answer(burst.requests.at(0).id, scalars({1}));
  REQUIRE(w.run().finished);
  CHECK(w.step->result().status.code() == Code::internal);
}

TEST_CASE("a burst that fails hands no requests back") {
  StepWorld w;
  auto x = w.constant("x", 1);
  w.external("put", asks::enqueue, {w.draft.out(x)}, 0);
  w.kernel(
      "bad", {}, [](KernelContext&) { return internal_error("bad"); }, 0);
  w.make();
  w.start();
  BurstResult burst = w.run();
  CHECK(burst.finished);
  CHECK(burst.requests.empty());
  StepResult result = w.step->result();
  CHECK_FALSE(result.status.ok());
  CHECK(result.unanswered.empty());
}

TEST_CASE("sends leave when their tensor is done; arrivals wait for their node and it for them") {
  StepWorld w;
  auto first = w.role("first", Role::recv, {}, 1);
  auto gate = w.role("gate", Role::recv, {}, 0);
  auto second = w.role("second", Role::recv, {}, 1, {gate});
  w.draft.info(first).channel = 5;
  w.draft.info(gate).channel = 8;
  w.draft.info(second).channel = 3;
  auto y = w.sum("y", {w.draft.out(first), w.draft.out(second)});
  auto out = w.role("out", Role::send, {w.draft.out(y)}, 0);
  w.draft.info(out).channel = 9;
  auto signal = w.role("signal", Role::send, {}, 0, {y});
  w.draft.info(signal).channel = 10;
  w.make();
  w.start();
  // Before the first burst and before its node is ready.
  w.step->deliver(3, {}, Tensor::scalar(2.0f));
  BurstResult burst = w.run();
  CHECK_FALSE(burst.finished);
  CHECK(burst.requests.empty());
  w.step->deliver(8, {}, Tensor::of<std::uint8_t>(Shape{0}, {}));
  CHECK_FALSE(w.run().finished);
  CHECK(w.outbox.sent.empty());
  w.step->deliver(5, {}, Tensor::scalar(40.0f));
  w.step->deliver(5, {}, Tensor::scalar(666.0f));  // sent again
  REQUIRE(w.run().finished);
  CHECK(w.step->result().status.ok());
  REQUIRE(w.outbox.sent.size() == 2);
  CHECK(w.outbox.sent[0].channel == 9);
  CHECK(w.outbox.sent[0].tensor.item<float>() == 42);
  CHECK_FALSE(w.outbox.sent[0].dead);
  CHECK(w.outbox.sent[1].channel == 10);
  CHECK(w.outbox.sent[1].tensor.elements() == 0);
}

TEST_CASE("a tensor for a channel that nobody receives fails the step") {
  StepWorld w;
  auto first = w.role("first", Role::recv, {}, 1);
  w.draft.info(first).channel = 5;
  w.make();
  w.start();
  w.step->deliver(6, {}, Tensor::scalar(1.0f));
  REQUIRE(w.run().finished);
  CHECK(w.step->result().status.code() == Code::invalid_argument);
}

TEST_CASE("an abort ends a step that waits") {
  StepWorld w;
  auto first = w.role("first", Role::recv, {}, 1);
  w.draft.info(first).channel = 5;
  w.make();
  w.start();
  CHECK_FALSE(w.run().finished);
  w.step->abort(deadline_exceeded("too late"));
  REQUIRE(w.run().finished);
  CHECK(w.step->result().status == deadline_exceeded("too late"));
}

TEST_CASE("arrivals from many threads reach a burst while it runs") {
  StepWorld w;
  constexpr int kChannels = 64;
  std::vector<std::uint32_t> inputs;
  for (int i = 0; i < kChannels; ++i) {
    auto node = w.role("r" + std::to_string(i), Role::recv, {}, 1);
    w.draft.info(node).channel = ChannelId(i);
    inputs.push_back(w.draft.out(node));
  }
  auto y = w.sum("y", inputs);
  w.draft.fetch(w.draft.out(y));
  w.make();
  for (int round = 0; round < 20; ++round) {
    w.start();
    std::vector<std::thread> threads;
    for (int t = 0; t < 4; ++t)
      threads.emplace_back([&, t] {
        for (int i = t; i < kChannels; i += 4)
          w.step->deliver(ChannelId(i), {}, Tensor::scalar(float(i)));
      });
    BurstResult burst = w.run();
    while (!burst.finished) {
      if (!w.step->has_arrivals()) std::this_thread::yield();
      burst = w.run();
    }
    for (std::thread& t : threads) t.join();
    StepResult result = w.step->result();
    REQUIRE(result.status.ok());
    CHECK(result.fetches[0].value.item<float>() == kChannels * (kChannels - 1) / 2);
  }
}
