#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <deque>
#include <future>
#include <mutex>
#include <random>
#include <thread>

#include "core/hash.hpp"
#include "core/list.hpp"
#include "devices/fake/fake_device.hpp"
#include "tests/contains.hpp"
#include "tests/devices/cuda/cuda_subject.hpp"
#include "tests/protocol/step_fixture.hpp"

using namespace troupe;
using troupe::test::contains;

namespace {

// A plan on the fake accelerator: device memory faults under the host's hands.
struct FakeWorld : StepWorld {
  explicit FakeWorld(Device& device) : StepWorld(device) {}

  // Adds up its inputs on the device's stream, later.
  std::uint32_t later(std::string name, std::vector<std::uint32_t> inputs) {
    auto node = kernel(std::move(name), std::move(inputs), [](KernelContext& c) -> Status {
      TROUPE_TRY(Tensor out, c.allocate(DType::f32, Shape{4}));
      std::vector<Tensor> in;
      for (int i = 0; i < c.inputs(); ++i) in.push_back(device_alias(c.device(), c.input(i)));
      host_stream(c.device()).enqueue([in, to = device_alias(c.device(), out)]() mutable {
        for (int k = 0; k < 4; ++k) {
          float total = 0;
          for (const Tensor& t : in) total += t.data<float>()[k];
          to.mutable_data<float>()[k] = total;
        }
        return ok_status();
      });
      c.set_output(0, std::move(out));
      return ok_status();
    });
    draft.slot(draft.out(node)).space = MemorySpace::device;
    return node;
  }
  std::uint32_t host_value(std::string name, float value) {
    return kernel(std::move(name), {}, [value](KernelContext& c) -> Status {
      c.set_output(0, Tensor::of<float>(Shape{4}, {value, value, value, value}));
      return ok_status();
    });
  }
  std::uint32_t copy(std::string name, std::uint32_t slot, MemorySpace space) {
    auto node = role(std::move(name), Role::copy, {slot}, 1);
    draft.slot(draft.out(node)).space = space;
    return node;
  }
  // Runs bursts and answers waits until the step is over. It may be over before the last answer: a
  // ticket is seen to be done by whoever looks.
  StepResult drive() {
    for (;;) {
      BurstResult burst = run();
      if (burst.finished) {
        std::unique_lock lock(mutex);
        arrived.wait(lock, [&] { return open == 0; });
        return step->result();
      }
      for (const StepWait& wait : burst.waits) {
        ++waits;
        {
          std::lock_guard lock(mutex);
          ++open;
        }
        device.on_complete(wait.ticket, [this, id = wait.id](Status status) {
          std::lock_guard lock(mutex);
          step->waited(id, std::move(status));
          --open;
          arrived.notify_all();
        });
      }
      if (burst.more) continue;
      std::unique_lock lock(mutex);
      arrived.wait(lock, [&] { return step->has_arrivals(); });
    }
  }

  int waits = 0;
  int open = 0;  // of these, not answered yet
  std::mutex mutex;
  std::condition_variable arrived;
};

std::unique_ptr<FakeDevice> fake(FakeOptions options = {}) {
  return make_fake_device(test_device_name("fake"), options);
}

}  // namespace

TEST_CASE("kernels of a device follow each other without a wait; the step ends when all is done") {
  for (int streams : {1, 3}) {
    auto device = fake({.streams = streams});
    FakeWorld w(*device);
    auto x = w.host_value("x", 1);
    auto up = w.copy("up", w.draft.out(x), MemorySpace::device);
    auto at = up;
    for (int i = 0; i < 6; ++i)
      at = w.later("k" + std::to_string(i), {w.draft.out(at), w.draft.out(at)});
    auto down = w.copy("down", w.draft.out(at), MemorySpace::host);
    w.draft.fetch(w.draft.out(down));
    w.make();
    for (int again = 0; again < 3; ++again) {
      w.waits = 0;
      w.start();
      StepResult result = w.drive();
      REQUIRE_MESSAGE(result.status.ok(), result.status.text());
      for (float v : result.fetches.at(0).value.span<float>()) CHECK(v == 64);
      CHECK(w.waits <= streams);  // at most one for each stream, at the end
    }
  }
}

TEST_CASE(
    "what leaves a device waits until it is there: sends, operands, host inputs, predicates") {
  auto device = fake({.max_delay = std::chrono::microseconds(2000)});
  FakeWorld w(*device);
  auto x = w.host_value("x", 1);
  auto up = w.copy("up", w.draft.out(x), MemorySpace::device);
  auto k = w.later("k", {w.draft.out(up), w.draft.out(up)});
  auto down = w.copy("down", w.draft.out(k), MemorySpace::host);
  auto out = w.role("out", Role::send, {w.draft.out(down)}, 0);
  w.draft.info(out).channel = 1;
  auto put = w.external("put", asks::enqueue, {w.draft.out(down)}, 0);
  (void)put;
  // A kernel with a host argument, and a Switch on what it computes.
  auto test = w.kernel("test", {w.draft.out(down)}, [](KernelContext& c) {
    c.set_output(0, Tensor::scalar(c.input(0).data<float>()[0] > 1.5f));
    return ok_status();
  });
  auto s = w.role("s", Role::switch_, {w.draft.out(k), w.draft.out(test)}, 2);
  w.draft.slot(w.draft.out(s, 0)).space = w.draft.slot(w.draft.out(s, 1)).space =
      MemorySpace::device;
  auto no = w.later("no", {w.draft.out(s, 0)});
  auto yes = w.later("yes", {w.draft.out(s, 1), w.draft.out(s, 1)});
  auto m = w.role("m", Role::merge, {w.draft.out(no), w.draft.out(yes)}, 1);
  w.draft.slot(w.draft.out(m)).space = MemorySpace::device;
  auto result_copy = w.copy("result", w.draft.out(m), MemorySpace::host);
  w.draft.fetch(w.draft.out(result_copy));
  w.make();
  w.start();
  StepRequest request;
  bool asked = false;
  for (;;) {
    BurstResult burst = w.run();
    for (StepRequest& r : burst.requests) {
      CHECK(r.items.at(0).operands.at(0).data<float>()[3] == 2);
      w.step->answer(r.id, std::vector<Tensor>{});
      asked = true;
    }
    if (burst.finished) break;
    for (const StepWait& wait : burst.waits)
      device->on_complete(wait.ticket, [&, id = wait.id](Status status) {
        std::lock_guard lock(w.mutex);
        w.step->waited(id, std::move(status));
        w.arrived.notify_all();
      });
    std::unique_lock lock(w.mutex);
    w.arrived.wait(lock, [&] { return w.step->has_arrivals(); });
  }
  StepResult result = w.step->result();
  REQUIRE_MESSAGE(result.status.ok(), result.status.text());
  CHECK(asked);
  CHECK(result.fetches.at(0).value.data<float>()[0] == 4);
  REQUIRE(w.outbox.sent.size() == 1);
  CHECK(w.outbox.sent[0].tensor.data<float>()[0] == 2);
}

TEST_CASE("the host goes on with the size of what a device still makes") {
  auto device = fake();
  FakeWorld w(*device);
  std::promise<void> go;
  auto k = w.kernel("k", {}, [gone = go.get_future().share()](KernelContext& c) -> Status {
    TROUPE_TRY(Tensor out, c.allocate(DType::f32, Shape{4}));
    host_stream(c.device()).enqueue([gone] {
      gone.wait();
      return ok_status();
    });
    c.set_output(0, std::move(out));
    return ok_status();
  });
  w.draft.slot(w.draft.out(k)).space = MemorySpace::device;
  auto size = w.kernel("size", {w.draft.out(k)}, [](KernelContext& c) {
    c.set_output(0, Tensor::scalar<std::int64_t>(c.input(0).elements()));
    return ok_status();
  });
  auto twice = w.kernel("twice", {w.draft.out(size)}, [](KernelContext& c) {
    c.set_output(0, Tensor::scalar<std::int64_t>(2 * c.input(0).item<std::int64_t>()));
    return ok_status();
  });
  w.draft.info(w.role("out", Role::send, {w.draft.out(twice)}, 0)).channel = 1;
  w.make();
  w.start();
  const BurstResult burst = w.run();
  CHECK_FALSE(burst.finished);
  REQUIRE(w.outbox.sent.size() == 1);
  CHECK(w.outbox.sent[0].tensor.item<std::int64_t>() == 8);
  go.set_value();
  REQUIRE(burst.waits.size() == 1);  // the end of the step
  std::promise<Status> done;
  device->on_complete(burst.waits[0].ticket, [&](Status s) { done.set_value(std::move(s)); });
  w.step->waited(burst.waits[0].id, done.get_future().get());
  REQUIRE(w.run().finished);
  CHECK(w.step->result().status.ok());
}

TEST_CASE("host tensors from outside are put where their slot wants them") {
  auto device = fake();
  FakeWorld w(*device);
  auto x = w.role("x", Role::placeholder, {}, 1);
  auto in = w.external("in", asks::dequeue, {}, 1);
  w.draft.slot(w.draft.out(x)).space = w.draft.slot(w.draft.out(in)).space = MemorySpace::device;
  w.draft.feed(w.draft.out(x));
  auto k = w.later("k", {w.draft.out(x), w.draft.out(in)});
  auto down = w.copy("down", w.draft.out(k), MemorySpace::host);
  w.draft.fetch(w.draft.out(down));
  w.make();
  w.start({Tensor::of<float>(Shape{4}, {1, 2, 3, 4})});
  BurstResult burst = w.run();
  REQUIRE(burst.requests.size() == 1);
  w.step->answer(burst.requests[0].id,
                 std::vector<Tensor>{Tensor::of<float>(Shape{4}, {10, 10, 10, 10})});
  StepResult result = w.drive();
  REQUIRE_MESSAGE(result.status.ok(), result.status.text());
  CHECK(result.fetches.at(0).value.data<float>()[3] == 14);
}

TEST_CASE("a failed ticket names the node that issued the work") {
  constexpr int kNodes = 13;
  for (std::uint64_t fail_at = 1; fail_at <= kNodes + 1; ++fail_at) {
    auto device = fake({.max_delay = std::chrono::microseconds(20), .fail_at = fail_at});
    FakeWorld w(*device);
    auto x = w.host_value("x", 1);
    auto at = w.copy("work1", w.draft.out(x), MemorySpace::device);
    for (int i = 2; i <= kNodes; ++i) at = w.later("work" + std::to_string(i), {w.draft.out(at)});
    auto down = w.copy("work" + std::to_string(kNodes + 1), w.draft.out(at), MemorySpace::host);
    auto out = w.role("out", Role::send, {w.draft.out(down)}, 0);
    w.draft.info(out).channel = 1;
    w.make();
    w.start();
    StepResult result = w.drive();
    CHECK(result.status.code() == Code::internal);
    INFO(result.status.text());
    CHECK(result.status.text().find("in node 'work" + std::to_string(fail_at) + "' (") !=
          std::string::npos);
    CHECK(w.outbox.sent.empty());
  }
}

TEST_CASE("a GPU's error names the nodes that may have failed") {
  constexpr int kNodes = 9;
  for (int guilty = 0; guilty < kNodes; ++guilty) {
    CAPTURE(guilty);
    auto device = test::make_cuda_on_fake(test_device_name("cuda"), "delay_us=30").value();
    test::HostKernels kernels(*device);
    FakeWorld w(*device);
    auto at = w.copy("up", w.draft.out(w.host_value("x", 1)), MemorySpace::device);
    for (int i = 0; i < kNodes; ++i) {
      const auto compute = [&kernels, fails = i == guilty](KernelContext& c) -> Status {
        TROUPE_TRY(Tensor out, c.allocate(DType::f32, Shape{4}));
        TROUPE_TRY(kernels.launch([fails] { return fails ? internal_error("") : ok_status(); }));
        c.set_output(0, std::move(out));
        return ok_status();
      };
      at = w.kernel("k" + std::to_string(i), {w.draft.out(at)}, compute);
      w.draft.slot(w.draft.out(at)).space = MemorySpace::device;
    }
    auto down = w.copy("down", w.draft.out(at), MemorySpace::host);
    auto out = w.role("out", Role::send, {w.draft.out(down)}, 0);
    w.draft.info(out).channel = 1;
    w.make();
    w.start();
    const Status status = w.drive().status;
    CAPTURE(status.text());
    CHECK(contains(status.text(), "CUDA_ERROR_ILLEGAL_ADDRESS"));
    // In the order of the plan the guilty one is between the two that are named.
    std::vector<std::string> names = {"up"};
    for (int i = 0; i < kNodes; ++i) names.push_back("k" + std::to_string(i));
    names.push_back("down");
    std::size_t first = names.size(), last = 0;
    for (std::size_t i = 0; i < names.size(); ++i) {
      if (contains(status.text(), "in one of the nodes '" + names[i] + "' to ")) first = i;
      if (contains(status.text(), "' to '" + names[i] + "'")) last = i;
      if (contains(status.text(), "in node '" + names[i] + "'")) first = last = i;
    }
    CHECK(first <= std::size_t(guilty) + 1);
    CHECK(last >= std::size_t(guilty) + 1);
    CHECK(w.outbox.sent.empty());
  }
}

TEST_CASE("an upload to a GPU that is done does not tell of the work before it") {
  auto device = test::make_cuda_on_fake(test_device_name("cuda"), "").value();
  test::HostKernels kernels(*device);
  FakeWorld w(*device);
  std::promise<void> go;
  auto k = w.kernel("k", {}, [&, gone = go.get_future().share()](KernelContext& c) -> Status {
    TROUPE_TRY(Tensor out, c.allocate(DType::f32, Shape{4}));
    TROUPE_TRY(kernels.launch([gone] {
      gone.wait();
      return internal_error("");
    }));
    c.set_output(0, std::move(out));
    return ok_status();
  });
  auto x = w.host_value("x", 1);
  auto up = w.role("up", Role::copy, {w.draft.out(x)}, 1, {k});  // beside the kernel
  for (std::uint32_t node : {k, up}) {
    w.draft.slot(w.draft.out(node)).space = MemorySpace::device;
    auto out = w.role("out of " + std::to_string(node), Role::send, {w.draft.out(node)}, 0);
    w.draft.info(out).channel = node + 1;
  }
  w.make();
  w.start();
  const BurstResult burst = w.run();
  REQUIRE(burst.waits.size() == 2);
  const auto answer_wait_of = [&](std::uint32_t stream) {
    const auto wait =
        std::find_if(burst.waits.begin(), burst.waits.end(),
                     [&](const StepWait& one) { return one.ticket.stream == stream; });
    REQUIRE(wait != burst.waits.end());
    std::promise<Status> done;
    device->on_complete(wait->ticket, [&](Status status) { done.set_value(std::move(status)); });
    Status status = done.get_future().get();
    w.step->waited(wait->id, status);
    return status;
  };
  CHECK(answer_wait_of(1).ok());
  CHECK_FALSE(w.run().finished);
  CHECK(w.outbox.sent.size() == 1);
  go.set_value();
  CHECK_FALSE(answer_wait_of(0).ok());
  REQUIRE(w.run().finished);
  const Status status = w.step->result().status;
  CHECK_MESSAGE(contains(status.text(), "in node 'k'"), status.text());
  CHECK(w.outbox.sent.size() == 1);
}

TEST_CASE("what failed before a step is told as the device's failure, not as its node's") {
  for (int streams : {1, 3})
    for (int nodes : {1, 7}) {
      INFO(streams, " streams, ", nodes, " nodes");
      auto device = fake({.fail_at = 12, .streams = streams});
      auto plan = [&](FakeWorld& w, const std::string& name) {
        auto at = w.copy(name, w.draft.out(w.host_value("x", 1)), MemorySpace::device);
        for (int i = 0; i < nodes; ++i) at = w.later(name + std::to_string(i), {w.draft.out(at)});
        w.draft.fetch(w.draft.out(w.copy("down", w.draft.out(at), MemorySpace::host)));
        w.make();
      };
      FakeWorld guilty(*device), innocent(*device);
      plan(guilty, "guilty");
      plan(innocent, "innocent");
      StepResult result;
      int steps = 0;
      do {
        guilty.start();
        result = guilty.drive();
        ++steps;
      } while (result.status.ok());
      CHECK(steps == (nodes == 1 ? 4 : 2));
      INFO(result.status.text());
      CHECK(contains(result.status.text(), "in node '"));
      const std::string cause = result.status.message();
      for (FakeWorld* world : {&innocent, &innocent, &guilty}) {
        world->start();
        const Status later = world->drive().status;
        INFO(later.text());
        CHECK(later.code() == Code::internal);
        CHECK(contains(later.text(), cause));
        CHECK(contains(later.text(), "nothing runs on stream"));
        CHECK(contains(later.text(), device->name().text()));
        CHECK_FALSE(contains(later.text(), "in node '"));
      }
    }
}

TEST_CASE("an abort lets the device finish what it was given") {
  auto device = fake({.max_delay = std::chrono::microseconds(2000)});
  FakeWorld w(*device);
  auto x = w.host_value("x", 1);
  auto up = w.copy("up", w.draft.out(x), MemorySpace::device);
  auto k = w.later("k", {w.draft.out(up)});
  auto in = w.role("in", Role::recv, {}, 1);
  w.draft.info(in).channel = 4;
  w.later("never", {w.draft.out(k)});
  w.make();
  w.start();
  (void)w.run();
  w.step->abort(cancelled("enough"));
  StepResult result = w.drive();
  CHECK(result.status == cancelled("enough"));
}

TEST_CASE("random graphs on a slow device with several streams give the host's values") {
  const auto seed = std::uint64_t(std::random_device{}());
  INFO("seed " << seed);
  Random random(seed);
  for (int round = 0; round < 10; ++round) {
    auto device = fake({.seed = random(), .streams = 1 + int(random.below(3))});
    FakeWorld w(*device);
    std::vector<std::uint32_t> slots;
    std::vector<float> values;
    std::vector<bool> on_device;
    for (int i = 0; i < 40; ++i) {
      const std::string name = "n" + std::to_string(i);
      if (slots.empty() || random.below(6) == 0) {
        slots.push_back(w.draft.out(w.host_value(name, float(i))));
        values.push_back(float(i));
        on_device.push_back(false);
        continue;
      }
      const auto from = std::size_t(random.below(slots.size()));
      if (!on_device[from] || random.below(3) == 0) {
        const bool up = !on_device[from];
        slots.push_back(
            w.draft.out(w.copy(name, slots[from], up ? MemorySpace::device : MemorySpace::host)));
        values.push_back(values[from]);
        on_device.push_back(up);
        continue;
      }
      std::vector<std::uint32_t> inputs{slots[from]};
      float value = values[from];
      for (std::size_t k = 0; k < slots.size() && inputs.size() < 3; ++k)
        if (on_device[k] && values[k] < 1e5f && random.below(3) == 0) {
          inputs.push_back(slots[k]);
          value += values[k];
        }
      slots.push_back(w.draft.out(w.later(name, inputs)));
      values.push_back(value);
      on_device.push_back(true);
    }
    std::vector<float> wanted;
    for (std::size_t k = 0; k < slots.size(); ++k)
      if (!on_device[k]) {
        w.draft.fetch(slots[k]);
        wanted.push_back(values[k]);
      }
    w.make();
    for (int again = 0; again < 2; ++again) {
      w.start();
      StepResult result = w.drive();
      REQUIRE_MESSAGE(result.status.ok(), result.status.text());
      for (std::size_t k = 0; k < wanted.size(); ++k)
        CHECK(result.fetches.at(k).value.data<float>()[2] == wanted[k]);
    }
  }
}

TEST_CASE("a loop over values of a device waits for its predicate alone, and fails with its work") {
  constexpr int kTrips = 40;
  for (std::uint64_t fail_at : {0, 60}) {
    std::atomic<int> decided{0};
    int issued = 0;
    auto device = fake({.fail_at = fail_at, .streams = 2});
    FakeWorld w(*device);
    auto zero = w.host_value("zero", 0), one = w.host_value("one", 1),
         limit = w.host_value("limit", kTrips);
    auto less = [](KernelContext& c) {
      c.set_output(0, Tensor::scalar(c.input(0).data<float>()[2] < c.input(1).data<float>()[2]));
      return ok_status();
    };
    auto first = w.copy("first", w.draft.out(zero), MemorySpace::device);
    auto step = w.copy("step", w.draft.out(one), MemorySpace::device);
    auto p0 = w.kernel("p0", {w.draft.out(zero), w.draft.out(limit)}, less);
    auto loop = w.role("loop", Role::loop,
                       {w.draft.out(p0), w.draft.out(first), w.draft.out(first), w.draft.out(limit),
                        w.draft.out(step)},
                       2);
    for (std::uint32_t v : {0u, 1u}) w.draft.slot(w.draft.out(loop, v)).space = MemorySpace::device;
    auto down = w.copy("down", w.draft.out(loop, 1), MemorySpace::host);
    w.draft.fetch(w.draft.out(down));
    auto body = w.draft.begin_loop(loop);  // i, total, limit, step
    for (std::uint32_t v : {0u, 1u, 3u})
      w.draft.slot(w.draft.out(body, v)).space = MemorySpace::device;
    auto i = w.later("i", {w.draft.out(body, 0), w.draft.out(body, 3)});
    auto seen = w.copy("seen", w.draft.out(i), MemorySpace::host);
    auto again =
        w.kernel("again", {w.draft.out(seen), w.draft.out(body, 2)}, [&](KernelContext& c) {
          ++decided;
          decided.notify_all();
          return less(c);
        });
    // Whose work is not over before it is known whether there is another iteration.
    auto total = w.kernel("total", {w.draft.out(body, 1), w.draft.out(i)}, [&](KernelContext& c) {
      TROUPE_TRY(Tensor out, c.allocate(DType::f32, Shape{4}));
      host_stream(c.device())
          .enqueue([&decided, fail_at, iteration = issued++,
                    a = device_alias(c.device(), c.input(0)),
                    b = device_alias(c.device(), c.input(1)),
                    to = device_alias(c.device(), out)]() mutable {
            for (int now; fail_at == 0 && (now = decided) <= iteration;) decided.wait(now);
            for (int k = 0; k < 4; ++k)
              to.mutable_data<float>()[k] = a.data<float>()[k] + b.data<float>()[k];
            return ok_status();
          });
      c.set_output(0, std::move(out));
      return ok_status();
    });
    w.draft.slot(w.draft.out(total)).space = MemorySpace::device;
    w.draft.end_loop({w.draft.out(again), w.draft.out(i), w.draft.out(total)});
    w.make();
    w.start();
    StepResult result = w.drive();
    CHECK(w.waits <= kTrips + 2);  // for each predicate, and at most one for each stream
    if (fail_at == 0) {
      REQUIRE_MESSAGE(result.status.ok(), result.status.text());
      CHECK(result.fetches.at(0).value.data<float>()[3] == kTrips * (kTrips + 1) / 2);
    } else {
      CHECK_MESSAGE(contains(result.status.text(), "of 'loop'"), result.status.text());
    }
  }
}

TEST_CASE("calls over values of a device wait for their predicates alone, and fail with its work") {
  constexpr int kDepth = 30;
  for (std::uint64_t fail_at : {0, 40}) {
    auto device = fake({.fail_at = fail_at, .streams = 2});
    FakeWorld w(*device);
    auto k = w.host_value("k", kDepth), two = w.host_value("two", 2);
    auto x = w.copy("x", w.draft.out(two), MemorySpace::device);
    auto call = w.role("f", Role::invoke, {w.draft.out(k), w.draft.out(x)}, 1);
    auto down = w.copy("down", w.draft.out(call), MemorySpace::host);
    w.draft.fetch(w.draft.out(down));
    auto body = w.draft.begin_function(call, 2, 1);  // f(k, x) = k > 0 ? f(k - 1, x) + x : x
    auto p = w.kernel("p", {w.draft.out(body)}, [](KernelContext& c) {
      c.set_output(0, Tensor::scalar(c.input(0).data<float>()[0] > 0));
      return ok_status();
    });
    auto k_side = w.role("k_side", Role::switch_, {w.draft.out(body, 0), w.draft.out(p)}, 2);
    auto x_side = w.role("x_side", Role::switch_, {w.draft.out(body, 1), w.draft.out(p)}, 2);
    auto less = w.kernel("less", {w.draft.out(k_side, 1)}, [](KernelContext& c) {
      const float less = c.input(0).data<float>()[0] - 1;
      c.set_output(0, Tensor::of<float>(Shape{4}, {less, less, less, less}));
      return ok_status();
    });
    auto seen = w.copy("seen", w.draft.out(x_side, 1), MemorySpace::host);  // makes the call wait
    auto back = w.copy("back", w.draft.out(seen), MemorySpace::device);
    auto again = w.role("again", Role::invoke, {w.draft.out(less), w.draft.out(back)}, 1);
    w.draft.calls(again, body);
    auto sum = w.later("sum", {w.draft.out(again), w.draft.out(back)});
    auto merge = w.role("merge", Role::merge, {w.draft.out(x_side, 0), w.draft.out(sum)}, 1);
    w.draft.end_function({w.draft.out(merge)});
    for (std::uint32_t slot : {w.draft.out(call), w.draft.out(body, 1), w.draft.out(x_side, 0),
                               w.draft.out(x_side, 1), w.draft.out(again), w.draft.out(merge)})
      w.draft.slot(slot).space = MemorySpace::device;
    w.make();
    w.start();
    StepResult result = w.drive();
    CHECK(w.waits <= kDepth + 2);  // for what each call looks at, and one for each stream
    if (fail_at == 0) {
      REQUIRE_MESSAGE(result.status.ok(), result.status.text());
      CHECK(result.fetches.at(0).value.data<float>()[3] == 2 * (kDepth + 1));
    } else {
      CHECK_FALSE(result.status.ok());
    }
  }
}

TEST_CASE("a kernel that is refused memory runs again, unless it has issued work") {
  enum Issues { nothing, copy, work };  // a copy on a stream of its own
  for (const Issues issues : {nothing, copy, work}) {
    CAPTURE(int(issues));
    auto device = fake({.streams = 2});
    FakeWorld w(*device);
    std::atomic<bool> asked{false};
    int runs = 0;
    // What is under way when the kernel is refused is over when that is looked into.
    auto under_way = w.kernel("under_way", {}, [&](KernelContext& c) -> Status {
      TROUPE_TRY(Tensor out, c.allocate(DType::f32, Shape{4}));
      host_stream(c.device()).enqueue([&asked, to = device_alias(c.device(), out)]() mutable {
        asked.wait(false);
        std::fill_n(to.mutable_data<float>(), 4, 3.f);
        return ok_status();
      });
      c.set_output(0, std::move(out));
      return ok_status();
    });
    auto refused = w.kernel("refused", {},
                            [&](KernelContext& c) -> Status {
                              HostStream& stream = host_stream(c.device());
                              if (issues == work) stream.enqueue([] { return ok_status(); });
                              if (issues == copy) {
                                TROUPE_TRY(Tensor there, c.allocate(DType::f32, Shape{}));
                                stream.wait(c.device().copy(Tensor::scalar(1.f), there));
                              }
                              asked = true;
                              asked.notify_all();
                              while (!stream.last().complete()) std::this_thread::yield();
                              if (++runs == 1) return resource_exhausted("no memory");
                              c.set_output(0, Tensor::scalar(1.f));
                              return ok_status();
                            },
                            1, {under_way});
    w.draft.slot(w.draft.out(under_way)).space = MemorySpace::device;
    auto down = w.copy("down", w.draft.out(under_way), MemorySpace::host);
    w.draft.fetch(w.draft.out(down));
    w.draft.fetch(w.draft.out(refused));
    w.make();
    w.start();
    const StepResult result = w.drive();
    CHECK(result.status.code() == (issues == work ? Code::resource_exhausted : Code::ok));
    CHECK(runs == (issues == work ? 1 : 2));
  }
}

namespace {

// Pushes values onto lists, by kernels or by keeps.
struct SavingWorld : FakeWorld {
  explicit SavingWorld(FakeDevice& device) : FakeWorld(device) {}

  std::uint32_t value(std::string name, std::int64_t elements, float of, std::uint32_t after) {
    const Compute compute = [elements, of](KernelContext& c) -> Status {
      TROUPE_TRY(Tensor out, c.allocate(DType::f32, Shape{elements}));
      host_stream(c.device()).enqueue([of, to = device_alias(c.device(), out)]() mutable {
        std::fill_n(to.mutable_data<float>(), to.elements(), of);
        return ok_status();
      });
      c.set_output(0, std::move(out));
      return ok_status();
    };
    auto node = kernel(std::move(name), {}, compute, 1, {after});
    draft.slot(draft.out(node)).space = MemorySpace::device;
    return node;
  }
  std::uint32_t push(std::string name, std::uint32_t list, std::uint32_t value, bool keep) {
    if (keep) return role(std::move(name), Role::keep, {list, value}, 1);
    auto node = kernel(std::move(name), {list, value}, [](KernelContext& c) {
      List made = list_in(c.input(0));
      made.push(c.input(1));
      c.set_output(0, list_tensor(std::move(made)));
      return ok_status();
    });
    draft.info(node).def.out_types = {DType::list};
    return node;
  }
};

}  // namespace

TEST_CASE("large values alone that are pushed onto a list leave a device that is nearly full") {
  constexpr std::int64_t kLarge = 256 * 1024, kSmall = 512;  // elements: 1 MiB and 2 KiB
  constexpr std::int64_t kTimes = 20;
  for (const bool keep : {false, true})
    for (const bool full : {false, true})
      for (int streams : {1, 3}) {
        CAPTURE(keep);
        CAPTURE(full);
        CAPTURE(streams);
        const std::size_t memory = full ? std::size_t{16} << 20 : std::size_t{64} << 20;
        auto device = fake({.streams = streams, .memory = memory});
        SavingWorld w(*device);
        auto out = [&](std::uint32_t node, std::uint32_t k = 0) { return w.draft.out(node, k); };
        auto list = w.kernel("empty", {}, [](KernelContext& c) {
          c.set_output(0, list_tensor({}));
          return ok_status();
        });
        for (std::int64_t i = 0; i < kTimes; ++i) {
          const std::string name = std::to_string(i);
          auto large = w.value("large" + name, kLarge, float(i), list);
          auto small = w.value("small" + name, kSmall, float(i) / 2, list);
          list = w.push("push_large" + name, out(list), out(large), keep);
          list = w.push("push_small" + name, out(list), out(small), keep);
        }
        std::vector<MemorySpace> spaces;
        auto look = w.kernel("look", {out(list)}, [&](KernelContext& c) {
          spaces.clear();
          list_in(c.input(0)).for_each([&](const Tensor& t) { spaces.push_back(t.space()); });
          c.set_output(0, c.input(0));
          return ok_status();
        });
        w.draft.fetch(out(look));
        w.make();
        for (int again = 0; again < 2; ++again) {
          w.start();
          StepResult result = w.drive();
          REQUIRE_MESSAGE(result.status.ok(), result.status.text());
          const List& made = list_in(std::as_const(result.fetches[0].value));
          REQUIRE(made.size() == 2 * kTimes);
          REQUIRE(spaces.size() == 2 * kTimes);
          int left = 0;
          for (std::int64_t i = 0; i < 2 * kTimes; ++i) {
            const bool large = i % 2 == 0, host = spaces[std::size_t(i)] == MemorySpace::host;
            if (!large) CHECK(!host);
            left += host;
            const Tensor& there = made.get(i);
            const Tensor seen = device->alias(there);
            CHECK(seen.data<float>()[seen.elements() - 1] ==
                  (large ? float(i / 2) : float(i / 2) / 2));
          }
          CHECK((full ? left >= kTimes / 3 : left == 0));
        }
      }
}

TEST_CASE("a value that is pushed again and again stays on a device that is nearly full, once") {
  constexpr std::int64_t kElements = 256 * 1024;  // 1 MiB
  constexpr std::int64_t kTimes = 20;
  for (const bool keep : {false, true}) {
    CAPTURE(keep);
    auto device = fake({.streams = 2, .memory = std::size_t{16} << 20});
    SavingWorld w(*device);
    auto out = [&](std::uint32_t node, std::uint32_t k = 0) { return w.draft.out(node, k); };
    auto list = w.kernel("empty", {}, [](KernelContext& c) {
      c.set_output(0, list_tensor({}));
      return ok_status();
    });
    auto host = w.kernel("host", {}, [](KernelContext& c) -> Status {
      c.set_output(
          0, Tensor::of<float>(Shape{kElements}, std::vector<float>(std::size_t(kElements), 7)));
      return ok_status();
    });
    auto same = w.copy("same", out(host), MemorySpace::device);
    for (std::int64_t i = 0; i < kTimes; ++i) {
      const std::string name = std::to_string(i);
      auto other = w.value("other" + name, kElements, float(i), list);
      list = w.push("push_same" + name, out(list), out(same), keep);
      list = w.push("push_other" + name, out(list), out(other), keep);
    }
    std::vector<const void*> places;
    int left = 0;
    auto look = w.kernel("look", {out(list)}, [&](KernelContext& c) {
      places.clear();
      left = 0;
      std::int64_t i = 0;
      list_in(c.input(0)).for_each([&](const Tensor& t) {
        if (i++ % 2 == 0)
          places.push_back(t.space() == MemorySpace::device ? t.raw() : nullptr);
        else
          left += t.space() == MemorySpace::host;
      });
      c.set_output(0, c.input(0));
      return ok_status();
    });
    w.draft.fetch(out(look));
    w.make();
    w.start();
    StepResult result = w.drive();
    REQUIRE_MESSAGE(result.status.ok(), result.status.text());
    REQUIRE(places.size() == std::size_t(kTimes));
    CHECK(places[0] != nullptr);
    for (const void* place : places) CHECK(place == places[0]);
    CHECK(left >= kTimes / 3);  // of the others, or the device would not have been full
    CHECK(w.device.bytes_in_use() < std::size_t(16) << 20);
  }
}
