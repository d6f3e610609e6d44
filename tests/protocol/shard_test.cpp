#include "actors/worker/shard.hpp"

#include <doctest/doctest.h>

#include "actors/resources/list_wish.hpp"

using namespace troupe;

namespace {
const ResourceId kStore{TaskId{2}, 0}, kQueue{TaskId{2}, 1};
const AttemptId kAttempt{1, 4};

// The first PREPARE of each number: its round is the number's.
Prepare prepare(CommitNumber s, std::vector<ResourceWrites> resources) {
  return {1, s, kAttempt, {0, 4}, std::move(resources), 0, s};
}
template <class T>
std::size_t count(const Shard::Outputs& out) {
  std::size_t n = 0;
  for (auto& o : out) n += std::holds_alternative<T>(o);
  return n;
}
}  // namespace

TEST_CASE("a shard has staged when all resources the run wrote to have") {
  Shard shard(TaskId{2}, 1);
  Shard::Outputs out;
  shard.prepare(prepare(1, {{kStore, 3}, {kQueue, 1}}), out);
  CHECK(count<Shard::StageResource>(out) == 2);
  shard.prepare(prepare(1, {{kStore, 3}, {kQueue, 1}}), out);  // sent again
  CHECK(count<Shard::StageResource>(out) == 2);
  shard.staged(kStore, {1, kAttempt, 77, {}}, out);
  shard.staged(kStore, {1, kAttempt, 77, {}}, out);
  CHECK(count<Staged>(out) == 0);
  shard.staged(kQueue, {1, kAttempt, 78, {}}, out);
  REQUIRE(count<Staged>(out) == 1);
  out.clear();
  shard.prepare(prepare(1, {{kStore, 3}, {kQueue, 1}}), out);
  REQUIRE(out.size() == 1);  // answered again, staged once
  CHECK(std::get<Staged>(out[0]).s == 1);
  CHECK(shard.at_rest());
}

TEST_CASE("a shard that the run did not touch stages an empty record at once") {
  Shard shard(TaskId{2}, 1);
  Shard::Outputs out;
  shard.prepare(prepare(5, {}), out);
  REQUIRE(out.size() == 1);
  CHECK(std::get<Staged>(out[0]).shard == TaskId{2});
}

TEST_CASE("a shard is deaf to other views and to decided numbers") {
  Shard shard(TaskId{2}, 1);
  Shard::Outputs out;
  auto stale = prepare(1, {});
  stale.view = 0;
  shard.prepare(stale, out);
  CHECK(out.empty());
  shard.prepare(prepare(3, {}), out);
  out.clear();
  shard.prepare(prepare(2, {{kStore, 1}}), out);
  CHECK(out.empty());
  LiveList list{1, 2, 3, 3, 9, {}};
  shard.live(list, out);
  CHECK(count<Shard::TaskLive>(out) == 1);
  list.sequence = 1;
  shard.live(list, out);
  CHECK(count<Shard::TaskLive>(out) == 1);
}

TEST_CASE("a commit costs a shard what the resources cost that are in use") {
  Shard shard(TaskId{2}, 1);
  Shard::Outputs out;
  const auto resource = [](std::uint64_t n) { return ResourceId{TaskId{2}, n}; };
  shard.wish_lists(resource(7), true, out);
  CHECK(out.empty());  // there is no list yet
  LiveList list{1, 1, 3, 3, 9, {}};
  shard.live(list, out);
  REQUIRE(count<Shard::ResourceLive>(out) == 1);
  CHECK(std::get<Shard::ResourceLive>(out[1]).resource == resource(7));
  out.clear();
  // Who asks later is told what the last one was.
  shard.wish_lists(resource(8), true, out);
  shard.wish_lists(resource(8), true, out);
  REQUIRE(out.size() == 1);
  CHECK(std::get<Shard::ResourceLive>(out[0]).resource == resource(8));
  CHECK(std::get<Shard::ResourceLive>(out[0]).list.sequence == 1);
  // 16,384 that were used and are at rest again are not told.
  for (std::uint64_t n = 100; n < 100 + 16'384; ++n) {
    shard.wish_lists(resource(n), true, out);
    shard.wish_lists(resource(n), false, out);
  }
  shard.wish_lists(resource(7), false, out);
  out.clear();
  list.sequence = 2;
  shard.live(list, out);
  CHECK(out.size() == 2);  // the task, and resource 8
}

TEST_CASE("a resource asks for lists while it is used, and not in each step again") {
  ListWish wish;
  CHECK(!wish.used(true));  // a read that leaves nothing
  CHECK(wish.used(false));
  CHECK(!wish.used(false));
  CHECK(!wish.told(false));
  CHECK(!wish.told(true));  // it was used since the list before
  CHECK(!wish.used(false));
  CHECK(!wish.told(true));
  CHECK(!wish.used(true));
  CHECK(!wish.told(true));
  CHECK(wish.told(true));
  CHECK(!wish.told(true));
  CHECK(wish.used(false));
}

TEST_CASE("a shard repeats who is blocked until nobody is") {
  using namespace std::chrono_literals;
  Shard shard(TaskId{2}, 1);
  Shard::Outputs out;
  shard.blocked(kQueue, {kAttempt}, {{0, 3}}, 0ms, out);
  REQUIRE(count<BlockedReport>(out) == 1);
  CHECK(std::get<BlockedReport>(out[0]).marked.size() == 1);
  CHECK(shard.next_wakeup() == 50ms);
  shard.tick(50ms, out);
  CHECK(count<BlockedReport>(out) == 2);
  shard.blocked(kQueue, {}, {}, 60ms, out);
  CHECK(std::get<BlockedReport>(out.back()).waiting.empty());
  CHECK(shard.next_wakeup() == kNever);
  CHECK(shard.at_rest());
}

TEST_CASE("a shard names the oldest of more runs than a report may have, and each once") {
  Shard shard(TaskId{2}, 1);
  Shard::Outputs out;
  std::vector<AttemptId> waiting;
  std::vector<RunId> marked;
  for (std::uint64_t a = 1; a <= BlockedReport::kMost; ++a) {
    waiting.push_back({1, a});
    marked.push_back({0, a});
  }
  shard.blocked(kQueue, waiting, marked, Instant{}, out);
  waiting.push_back({1, BlockedReport::kMost + 1});
  marked.push_back({0, BlockedReport::kMost + 1});
  shard.blocked(kStore, waiting, marked, Instant{}, out);
  const auto& report = std::get<BlockedReport>(out.back());
  waiting.pop_back();
  marked.pop_back();
  CHECK((report.waiting == waiting));
  CHECK((report.marked == marked));
}

TEST_CASE("what was staged is taken back from the resources, once, and for good") {
  Shard shard(TaskId{2}, 1);
  Shard::Outputs out;
  shard.prepare(prepare(1, {{kStore, 3}, {kQueue, 1}}), out);
  shard.staged(kStore, {1, kAttempt, 77, {}}, out);
  out.clear();
  auto back = prepare(1, {});
  back.round = 2;
  back.order = StageOrder::withdraw;
  for (int again = 0; again < 2; ++again) shard.prepare(back, out);
  CHECK(count<Shard::StageResource>(out) == 2);
  for (const auto& o : out)
    if (auto* stage = std::get_if<Shard::StageResource>(&o))
      CHECK(stage->request.order == StageOrder::withdraw);
  CHECK(count<Staged>(out) == 2);
  out.clear();
  shard.prepare(prepare(1, {{kStore, 3}, {kQueue, 1}}), out);  // of the first round: late
  shard.staged(kQueue, {1, kAttempt, 78, {}}, out);
  CHECK(out.empty());
  CHECK(shard.at_rest());
  auto next = prepare(1, {{kStore, 1}});  // the number is another attempt's now
  next.attempt = {1, 9};
  next.round = 3;
  shard.prepare(next, out);
  CHECK(count<Shard::StageResource>(out) == 1);
  shard.staged(kStore, {1, kAttempt, 77, {}}, out);
  CHECK(count<Staged>(out) == 0);
  shard.staged(kStore, {1, {1, 9}, 77, {}}, out);
  REQUIRE(count<Staged>(out) == 1);
  CHECK(std::get<Staged>(out.back()).round == 3);
}

TEST_CASE("a shard says at once why one of its resources cannot stage") {
  Shard shard(TaskId{2}, 1);
  Shard::Outputs out;
  shard.prepare(prepare(1, {{kStore, 3}, {kQueue, 1}}), out);
  shard.staged(kStore, {1, kAttempt, 0, resource_exhausted("no memory")}, out);
  REQUIRE(count<Staged>(out) == 1);
  CHECK(std::get<Staged>(out.back()).status.code() == Code::resource_exhausted);
  out.clear();
  shard.staged(kQueue, {1, kAttempt, 78, {}}, out);
  CHECK(out.empty());
  shard.prepare(prepare(1, {{kStore, 3}, {kQueue, 1}}), out);
  REQUIRE(out.size() == 1);  // the same answer again
  CHECK_FALSE(std::get<Staged>(out[0]).status.ok());
}

TEST_CASE("a shard says that what is decided is applied when its resources have") {
  Shard shard(TaskId{2}, 1);
  Shard::Outputs out;
  shard.prepare(prepare(1, {{kStore, 3}, {kQueue, 1}}), out);
  shard.staged(kStore, {1, kAttempt, 77, {}}, out);
  shard.staged(kQueue, {1, kAttempt, 78, {}}, out);
  out.clear();
  auto apply = prepare(1, {{kQueue, 1}});
  apply.round = 2;
  apply.order = StageOrder::apply;
  shard.prepare(apply, out);
  REQUIRE(count<Shard::StageResource>(out) == 1);
  CHECK(std::get<Shard::StageResource>(out[0]).request.order == StageOrder::apply);
  CHECK(count<Staged>(out) == 0);
  shard.staged(kQueue, {1, kAttempt, 0, {}}, out);
  REQUIRE(count<Staged>(out) == 1);
  CHECK(std::get<Staged>(out.back()).round == 2);
  shard.prepare(apply, out);  // asked again
  CHECK(count<Staged>(out) == 2);
  CHECK(shard.at_rest());
}
