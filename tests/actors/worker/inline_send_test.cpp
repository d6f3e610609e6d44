#include "actors/inline_send.hpp"

#include <doctest/doctest.h>

#include <atomic>
#include <caf/send.hpp>
#include <caf/typed_event_based_actor.hpp>
#include <functional>
#include <map>
#include <thread>
#include <vector>

#include "actors/interfaces.hpp"
#include "ops/api.hpp"
#include "tests/actors/support/actor_system.hpp"
#include "tests/actors/support/sessions.hpp"

using namespace troupe;
using namespace troupe::testing;

namespace {

using Ticker = caf::typed_actor<caf::reacts_to<Tick>, caf::reacts_to<UnloadStep>>;
using Heard = std::function<void(CompiledId)>;

struct Short {
  static constexpr InlineWork kInline = InlineWork::short_work;
};
struct Passes {
  static constexpr InlineWork kInline = InlineWork::passes_on;
};
struct Long {
  static constexpr const char* name = "an actor that computes";
};

// Calls `heard` with the number of each message.
template <class State>
Ticker ticker(System& system, Heard heard) {
  return system.spawn(
      [](Ticker::stateful_pointer<State> self, Heard heard) -> Ticker::behavior_type {
        note_inline(self);
        return {[heard](const Tick&) { heard(0); },
                [heard](const UnloadStep& m) { heard(m.compiled); }};
      },
      std::move(heard));
}

// Which thread heard which message.
struct Record {
  std::mutex mutex;
  std::condition_variable changed;
  std::vector<std::pair<CompiledId, std::thread::id>> all;

  void note(CompiledId id) {
    std::lock_guard lock(mutex);
    all.emplace_back(id, std::this_thread::get_id());
    changed.notify_all();
  }
  std::vector<std::pair<CompiledId, std::thread::id>> wait_for(std::size_t count) {
    std::unique_lock lock(mutex);
    REQUIRE(changed.wait_for(lock, std::chrono::seconds(60), [&] { return all.size() >= count; }));
    return all;
  }
};

}  // namespace

TEST_CASE("an idle actor handles a message on the sender's thread before the call returns") {
  Record record;
  System system;
  auto actor = ticker<Short>(system, [&](CompiledId id) { record.note(id); });
  settle(actor);
  const std::uint64_t before = inline_messages();
  for (CompiledId i = 1; i <= 3; ++i) {
    send_inline(actor, UnloadStep{i});
    auto all = record.wait_for(0);
    REQUIRE(all.size() == i);
    CHECK(all.back().first == i);
    CHECK(all.back().second == std::this_thread::get_id());
  }
  CHECK(inline_messages() - before == 3);
}

TEST_CASE("an actor whose work may be long never works on the sender's thread") {
  Record record;
  System system;
  auto actor = ticker<Long>(system, [&](CompiledId id) { record.note(id); });
  settle(actor);
  send_inline(actor, UnloadStep{1});
  CHECK(record.wait_for(1).back().second != std::this_thread::get_id());
}

TEST_CASE("what a short actor sends to short ones stays on the thread, the rest leaves it") {
  Record record;
  System system;
  auto computes = ticker<Long>(system, [&](CompiledId id) { record.note(id); });
  auto last = ticker<Short>(system, [&](CompiledId id) { record.note(id); });
  auto first = ticker<Short>(system, [&](CompiledId) {
    record.note(1);
    send_inline(last, UnloadStep{2});
    send_inline(computes, UnloadStep{3});
    record.note(4);  // the others come after this one
  });
  settle(computes);
  settle(last);
  settle(first);
  send_inline(first, UnloadStep{1});
  auto all = record.wait_for(4);
  std::map<CompiledId, std::thread::id> by;
  for (const auto& [id, thread] : all) by[id] = thread;
  CHECK(all[0].first == 1);
  CHECK(by.at(2) == std::this_thread::get_id());
  CHECK(by.at(3) != std::this_thread::get_id());
  CHECK(std::find_if(all.begin(), all.end(), [](const auto& x) { return x.first == 4; }) <
        std::find_if(all.begin(), all.end(), [](const auto& x) { return x.first == 2; }));
}

TEST_CASE("only the message that woke an actor is handled inline") {
  Record record;
  System system;
  Ticker actor;
  actor = ticker<Short>(system, [&](CompiledId id) {
    if (id == 1) caf::anon_send(actor, UnloadStep{2});
    record.note(id);
  });
  settle(actor);
  send_inline(actor, UnloadStep{1});
  auto all = record.wait_for(2);
  CHECK(all[0] == std::pair{CompiledId{1}, std::this_thread::get_id()});
  CHECK(all[1].first == 2);
  CHECK(all[1].second != std::this_thread::get_id());
  settle(actor);
  actor = nullptr;
}

TEST_CASE("of a device, which only passes work on, all messages are handled inline") {
  Record record;
  System system;
  auto device = ticker<Passes>(system, [&](CompiledId id) { record.note(id); });
  auto sender = ticker<Short>(system, [&](CompiledId) {
    for (CompiledId i = 1; i <= 3; ++i) send_inline(device, UnloadStep{i});
  });
  settle(device);
  settle(sender);
  send_inline(sender, UnloadStep{1});
  const auto all = record.wait_for(0);
  REQUIRE(all.size() == 3);
  for (CompiledId i = 0; i < 3; ++i) CHECK(all[i] == std::pair{i + 1, std::this_thread::get_id()});
}

TEST_CASE(
    "actors that answer each other for long leave the sender's thread after so many messages") {
  constexpr CompiledId kLast = 3 * kInlineMessages;
  Record record;
  System system;
  Ticker here, there;
  const auto answer = [&](Ticker& other) {
    return [&](CompiledId id) {
      record.note(id);
      if (id < kLast) send_inline(other, UnloadStep{id + 1});
    };
  };
  here = ticker<Short>(system, answer(there));
  there = ticker<Short>(system, answer(here));
  settle(here);
  settle(there);
  send_inline(here, UnloadStep{1});
  auto all = record.wait_for(kLast);
  for (CompiledId i = 0; i < kLast; ++i) {
    CHECK(all[i].first == i + 1);
    CHECK((all[i].second == std::this_thread::get_id()) == (i < kInlineMessages));
  }
  settle(here);
  settle(there);
  here = there = nullptr;
}

TEST_CASE("messages of many threads arrive once each, in the order of each sender") {
  constexpr int kThreads = 4;
  constexpr CompiledId kEach = 20'000;
  std::vector<CompiledId> next(kThreads, 0);  // the actor's: one handler at a time
  std::atomic<int> wrong{0}, heard{0};
  System system;
  auto actor = ticker<Short>(system, [&](CompiledId id) {
    if (next[id % kThreads]++ != id / kThreads) ++wrong;
    ++heard;
  });
  std::vector<std::thread> senders;
  for (int t = 0; t < kThreads; ++t)
    senders.emplace_back([&, t] {
      for (CompiledId i = 0; i < kEach; ++i) {
        UnloadStep message{i * kThreads + CompiledId(t)};
        if (i % 3 == 0)
          caf::anon_send(actor, message);
        else
          send_inline(actor, message);
      }
    });
  for (auto& sender : senders) sender.join();
  while (heard < int(kThreads * kEach)) std::this_thread::yield();
  CHECK(wrong == 0);
}

TEST_CASE("an actor that has ended drops what is sent inline") {
  System system;
  auto actor = ticker<Short>(system, [](CompiledId) {});
  settle(actor);
  caf::anon_send_exit(actor, caf::exit_reason::user_shutdown);
  while (system.running() > 0) std::this_thread::yield();
  send_inline(actor, UnloadStep{1});
}

// The threads of CAF's sleep meanwhile: the client, or the lane, handles what leads to the work and
// what follows it.
TEST_CASE("a step that computes and writes wakes no thread but its lane's and its client's") {
  constexpr int kSteps = 50;
  Graph g;
  Variable w = variable(g, "w", Tensor::zeros(DType::f32, Shape{256, 256}).value());
  Op step = assign_add(w, mat_mul(w.value(), w.value()));
  Session session(g, test::one_thread());
  session.init();
  session.run({}, {step});
  std::uint64_t most = 0;
  for (int i = 0; i < kSteps; ++i) {
    const std::uint64_t before = inline_messages();
    session.run({}, {step});
    most = std::max(most, inline_messages() - before);
  }
  CHECK(most > 8);  // those before the work, its end, the commit, the update, the answer
}
