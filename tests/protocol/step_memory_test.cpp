// What a step may hold, and who holds it when that is too little.
#include "actors/burst/step_memory.hpp"

#include "core/list.hpp"
#include "tests/contains.hpp"
#include "tests/protocol/step_fixture.hpp"

using namespace troupe;
using troupe::test::contains;

namespace {

constexpr std::int64_t kKiB = 1024;

struct MemoryWorld : StepWorld {
  using StepWorld::StepWorld;
  std::shared_ptr<StepMemory> memory;

  std::uint32_t out(std::uint32_t node, std::uint32_t k = 0) const { return draft.out(node, k); }

  // Fresh memory, whatever its inputs are.
  std::uint32_t takes(std::string name, std::int64_t kib, std::vector<std::uint32_t> inputs = {}) {
    return kernel(std::move(name), std::move(inputs), [kib](KernelContext& c) -> Status {
      TROUPE_TRY(Tensor made, c.allocate(DType::u8, Shape{kib * kKiB}));
      c.set_output(0, std::move(made));
      return ok_status();
    });
  }
  std::uint32_t hands_on(std::string name, std::uint32_t input) {
    return kernel(std::move(name), {input}, [](KernelContext& c) {
      c.set_output(0, c.input(0));
      return ok_status();
    });
  }
  std::uint32_t ends(std::string name, std::vector<std::uint32_t> inputs) {
    return kernel(
        std::move(name), std::move(inputs), [](KernelContext&) { return ok_status(); }, 0);
  }
  StepResult run_within(std::int64_t kib) {
    memory = std::make_shared<StepMemory>(std::uint64_t(kib * kKiB));
    Status started = step->start({.run = 1, .memory = memory}, outbox);
    REQUIRE_MESSAGE(started.ok(), started.text());
    BurstResult burst;
    do burst = run();
    while (burst.more);
    REQUIRE(burst.finished);
    return step->result();
  }
};

}  // namespace

TEST_CASE("a step that wants more than it may hold ends, and names who holds the most") {
  MemoryWorld w;
  auto small = w.takes("small", 16), large = w.takes("large", 100);
  auto gone = w.takes("gone", 120);
  auto after = w.ends("after", {w.out(gone)});
  auto wants = w.kernel("wants", {w.out(small)},
                        [](KernelContext& c) -> Status {
                          TROUPE_TRY(Tensor made, c.allocate(DType::u8, Shape{64 * kKiB}));
                          c.set_output(0, std::move(made));
                          return ok_status();
                        },
                        1, {after});
  w.ends("end", {w.out(small), w.out(large), w.out(wants)});
  w.draft.info(large).def.site = {"net.cpp", 7};
  w.make();
  for (int step = 0; step < 2; ++step) {
    const Status ended = w.run_within(236).status;  // not 16 + 100 + 120 beside each other
    CHECK_MESSAGE(ended.ok(), ended.text());
    CHECK(w.memory->used() == 0);
  }
  for (int step = 0; step < 2; ++step) {
    const Status ended = w.run_within(179).status;
    CHECK(ended.code() == Code::resource_exhausted);
    CHECK_MESSAGE(contains(ended.text(), "in node 'gone'"), ended.text());
    CHECK_MESSAGE(contains(ended.text(), "holds 116 KiB"), ended.text());
    CHECK_MESSAGE(contains(ended.text(), "wants 120 KiB more"), ended.text());
    CHECK_MESSAGE(contains(ended.text(), "100 KiB by 'large' (Test, net.cpp:7), 16 KiB by 'small'"),
                  ended.text());
    CHECK(w.memory->used() == 0);
  }
  CHECK(w.run_whole().status.ok());  // without a limit
}

TEST_CASE("a buffer counts once, and as long as anybody has it") {
  MemoryWorld w;
  auto made = w.takes("made", 100);
  auto same = w.hands_on("same", w.out(made)), again = w.hands_on("again", w.out(same));
  w.ends("end", {w.out(made), w.out(same), w.out(again)});
  w.draft.fetch(w.out(again));
  w.make();
  StepResult result = w.run_within(100);
  REQUIRE_MESSAGE(result.status.ok(), result.status.text());
  CHECK(w.memory->used() == 100 * kKiB);
  w.step.reset();
  CHECK(w.memory->used() == 100 * kKiB);
  result.fetches.clear();
  CHECK(w.memory->used() == 0);
}

TEST_CASE("what a loop saves counts, and is named by what was saved") {
  MemoryWorld w;
  auto one = w.constant("one", 1), ten = w.constant("ten", 10), zero = w.constant("zero", 0);
  auto empty = w.kernel("empty", {}, [](KernelContext& c) {
    c.set_output(0, list_tensor({}));
    return ok_status();
  });
  auto less = [&](std::string name, std::uint32_t a, std::uint32_t b) {
    return w.kernel(std::move(name), {a, b}, [](KernelContext& c) {
      c.set_output(0, Tensor::scalar(c.input(0).item<float>() < c.input(1).item<float>()));
      return ok_status();
    });
  };
  auto p = less("p", w.out(zero), w.out(ten));
  auto loop =
      w.role("loop", Role::loop, {w.out(p), w.out(zero), w.out(empty), w.out(one), w.out(ten)}, 2);
  auto body = w.draft.begin_loop(loop);  // i, list, one, ten
  auto value = w.takes("value", 32);
  w.draft.info(value).def.site = {"net.cpp", 12};
  auto keep = w.role("keep", Role::keep, {w.out(body, 1), w.out(value)}, 1);
  auto next = w.sum("next", {w.out(body, 0), w.out(body, 2)});
  auto again = less("again", w.out(next), w.out(body, 3));
  w.draft.end_loop({w.out(again), w.out(next), w.out(keep)});
  // The rest goes to whoever takes values off.
  auto other = w.takes("other", 48, {w.out(loop)});
  w.ends("end", {w.out(loop, 1), w.out(other)});
  w.make();
  CHECK(w.run_within(10 * 32 + 48).status.ok());
  const Status inside = w.run_within(5 * 32 + 8).status;
  CHECK(inside.code() == Code::resource_exhausted);
  CHECK_MESSAGE(contains(inside.text(), "in iteration 5 of 'loop'"), inside.text());
  CHECK_MESSAGE(
      contains(inside.text(), "160 KiB by 5 values that were saved of 'value' (Test, net.cpp:12)"),
      inside.text());
  CHECK(w.memory->used() == 0);
  const Status behind = w.run_within(10 * 32 + 47).status;
  CHECK(behind.code() == Code::resource_exhausted);
  CHECK_MESSAGE(
      contains(behind.text(), "320 KiB by 10 values that were saved of 'value' (Test, net.cpp:12)"),
      behind.text());
  CHECK(w.memory->used() == 0);
}

TEST_CASE("partitions of a step in one process count together") {
  const auto memory = std::make_shared<StepMemory>(250 * kKiB);
  MemoryWorld a, b;
  for (MemoryWorld* w : {&a, &b}) {
    w->draft.fetch(w->out(w->takes("made", 150)));
    w->make();
  }
  auto run = [&](MemoryWorld& w) {
    REQUIRE(w.step->start({.run = 1, .memory = memory}, w.outbox).ok());
    REQUIRE(w.run_on().finished);
    return w.step->result();
  };
  StepResult first = run(a);
  CHECK(first.status.ok());
  const Status second = run(b).status;
  CHECK(second.code() == Code::resource_exhausted);
  CHECK_MESSAGE(contains(second.text(), "holds 150 KiB in this process"), second.text());
  CHECK_MESSAGE(!contains(second.text(), "held by"), second.text());  // not here
  first = {};
  CHECK(memory->used() == 0);
  CHECK(run(b).status.ok());
}

TEST_CASE("what reaches a step counts, unless somebody else has it, too") {
  for (const bool shared : {false, true}) {
    CAPTURE(shared);
    MemoryWorld w;
    auto recv = w.role("recv", Role::recv, {}, 1);
    w.draft.info(recv).channel = 3;
    auto made = w.takes("made", 60, {w.out(recv)});
    w.ends("end", {w.out(recv), w.out(made)});
    w.make();
    w.memory = std::make_shared<StepMemory>(100 * kKiB);
    REQUIRE(w.step->start({.run = 1, .memory = w.memory}, w.outbox).ok());
    REQUIRE(!w.run_on().finished);
    Tensor arrived = value_or_throw(Tensor::zeros(DType::f32, {16 * kKiB}));
    const Tensor mine = shared ? arrived : Tensor();
    w.step->deliver(3, {}, std::move(arrived));
    REQUIRE(w.run_on().finished);
    const Status ended = w.step->result().status;
    CHECK(ended.ok() == shared);
    if (!shared) CHECK_MESSAGE(contains(ended.text(), "64 KiB by 'recv'"), ended.text());
    CHECK(w.memory->used() == 0);
  }
}

TEST_CASE("memory that is adopted goes back to whom it was taken from, strings included") {
  const auto memory = std::make_shared<StepMemory>(1 << 20);
  const StepAllocatorPtr allocator(new StepAllocator(heap_allocator(), memory));
  Tensor words = value_or_throw(Tensor::make(DType::string, {1000}));
  words.mutable_data<std::string>()[999] = std::string(100, 'x');
  const std::size_t bytes = words.buffer().size();
  Tensor adopted = value_or_throw(allocator->adopt(std::move(words)));
  CHECK(memory->used() == bytes);
  CHECK(adopted.unique());
  CHECK(adopted.data<std::string>()[999] == std::string(100, 'x'));
  adopted = value_or_throw(allocator->adopt(std::move(adopted)));  // counted already
  CHECK(memory->used() == bytes);
  adopted = {};
  CHECK(memory->used() == 0);
  const StepAllocatorPtr refuses(
      new StepAllocator(heap_allocator(), std::make_shared<StepMemory>(9)));
  CHECK(refuses->adopt(value_or_throw(Tensor::zeros(DType::f32, {2000}))).status().code() ==
        Code::resource_exhausted);
  CHECK(refuses->take_refusal() == 8000);
  CHECK(refuses->take_refusal() == 0);
}
