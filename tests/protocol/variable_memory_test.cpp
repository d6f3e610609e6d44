// What a variable store holds: the values that a listed attempt may read, and no more.
#include <doctest/doctest.h>

#include <algorithm>
#include <map>
#include <set>

#include "actors/resources/variable_store.hpp"
#include "core/hash.hpp"

using namespace troupe;
using Store = VariableStore;

namespace {

constexpr std::int64_t kElements = 1024;
constexpr std::uint64_t kBytes = kElements * sizeof(float);

// Counts what it has handed out.
class Counting final : public Allocator {
 public:
  void* allocate(std::size_t bytes) override {
    void* data = heap_allocator().allocate(bytes);
    if (data) now += bytes;
    peak = std::max(peak, now);
    return data;
  }
  void deallocate(void* data, std::size_t bytes) noexcept override {
    heap_allocator().deallocate(data, bytes);
    now -= bytes;
  }
  std::uint64_t now = 0, peak = 0;
};

class Rules final : public UpdateRules {
 public:
  Status check(const LoggedWrite& write, std::span<VariableMeta> targets) const override {
    targets[0].initialised = true;
    targets[0].shape = write.operands[0].shape();
    return ok_status();
  }
};

// A store of one variable, `w`, whose updates add; the device that applies them, when told to.
struct Container {
  explicit Container(std::uint64_t most_unapplied = Store::kMostUnapplied)
      : store("c", rules, most_unapplied) {
    REQUIRE(store.declare({"w", DType::f32, PartialShape{kElements}}).ok());
  }

  Tensor filled(float x) {
    Tensor t = *Tensor::make(DType::f32, Shape{kElements}, memory);
    std::fill_n(t.mutable_data<float>(), kElements, x);
    return t;
  }
  static AttemptInfo attempt(std::uint64_t a, CommitNumber snapshot, CommitNumber min_live) {
    return {{1, a}, {1, a}, snapshot, a, min_live, 0};
  }
  void write(const AttemptInfo& a, const char* op, float x, CommitNumber commit) {
    auto rule = std::make_shared<UpdateRule>();
    rule->op = op;
    rule->node = "update";
    rule->targets = {"w"};
    store.log({a.id.a, a, {{{1, 0, {}}, rule, {filled(x)}}}, commit}, out);
    take_outputs();
  }
  void tell(CommitNumber decided, std::uint64_t next_a, std::vector<LiveAttempt> live) {
    LiveList list{1, ++sequence, decided, decided, next_a, std::move(live)};
    for (const LiveAttempt& l : list.live) list.min_live = std::min(list.min_live, l.snapshot);
    store.live(list, out);
    take_outputs();
  }
  void read(const AttemptInfo& a) {
    store.read({a.id.a, a, {"w"}, {}, 0, false}, out);
    take_outputs();
  }
  void take_outputs() {
    for (auto& output : out) {
      if (auto* task = std::get_if<Store::Task>(&output)) {
        REQUIRE_MESSAGE(!task_, "one commit is applied at a time");
        task_ = std::move(*task);
        in_place = task_->variables[0].in_place;
      } else if (auto* logged = std::get_if<Store::LogReply>(&output)) {
        REQUIRE_MESSAGE(logged->status.ok(), logged->status.text());
        logged_.insert(logged->id);
      } else if (auto* read = std::get_if<Store::ReadReply>(&output)) {
        REQUIRE_MESSAGE(read->status.ok(), read->status.text());
        reads[read->id] = read->values[0].data<float>()[kElements - 1];
      }
    }
    out.clear();
  }
  bool apply() {
    if (!task_) return false;
    Store::Task task = *std::exchange(task_, {});
    Tensor value = std::move(task.variables[0].value);
    for (auto& r : task.reductions) {
      const Tensor& x = r.contributions[0][0];
      if (r.rule->op == "Assign") {
        value = x;
      } else {
        if (!(task.variables[0].in_place && value.unique())) {
          Tensor copy = filled(0);
          std::copy_n(value.data<float>(), kElements, copy.mutable_data<float>());
          value = std::move(copy);
        }
        for (std::int64_t i = 0; i < kElements; ++i)
          value.mutable_data<float>()[i] += x.data<float>()[i];
      }
    }
    const std::uint64_t id = task.id;
    task = {};
    store.applied(id, std::vector<Tensor>{std::move(value)}, out);
    take_outputs();
    return true;
  }
  void initialise() {
    write(attempt(1, 0, 0), "Assign", 1, 1);
    tell(1, 2, {});
    while (apply()) {
    }
  }

  Counting memory;
  Rules rules;
  Store store;
  Store::Outputs out;
  std::uint64_t sequence = 0;
  std::optional<Store::Task> task_;
  bool in_place = false;
  std::set<std::uint64_t> logged_;       // answered, by attempt
  std::map<std::uint64_t, float> reads;  // by attempt
};

}  // namespace

TEST_CASE("a run that waits keeps the value that it may read, not those of all commits since") {
  Container c;
  c.initialise();
  const LiveAttempt waits{2, {1, 2}, 2, 1};  // started after commit 1, and is still there
  c.tell(1, 3, {waits});
  for (CommitNumber s = 2; s <= 200; ++s) {
    const std::uint64_t a = s + 1;
    c.read(c.attempt(a, s - 1, 1));
    while (c.apply()) {
    }
    c.write(c.attempt(a, s - 1, 1), "Add", 1, s);
    c.tell(s, a + 1, {waits});
    while (c.apply()) {
    }
    CHECK(c.reads.at(a) == float(s - 1));
  }
  MESSAGE("at most " << c.memory.peak / kBytes << " values at a time");
  CHECK(c.memory.now == 2 * kBytes);
  CHECK(c.memory.peak <= 4 * kBytes);
  CHECK(c.in_place);  // what is overwritten is not what the waiting run reads
  c.read(c.attempt(2, 1, 1));
  CHECK(c.reads.at(2) == 1);
  c.tell(200, 300, {});
  CHECK(c.memory.now == kBytes);
  CHECK(c.store.tables().empty());
}

TEST_CASE("a list that still names a run which has committed does not make its update copy") {
  Container c;
  c.initialise();
  c.read(Container::attempt(2, 1, 1));
  c.write(Container::attempt(2, 1, 1), "AssignAdd", 5, 2);
  CHECK(c.logged_.contains(2));
  CHECK_FALSE(c.task_);  // the run may still read the value before
  c.tell(1, 3, {{2, {1, 2}, 2, 1}});  // said before the run was over
  CHECK_FALSE(c.task_);
  c.read(Container::attempt(3, 2, 2));  // the next run, after it
  REQUIRE(c.task_);
  CHECK(c.in_place);
  CHECK_FALSE(c.task_->variables[0].room.defined());
  while (c.apply()) {
  }
  CHECK(c.reads.at(3) == 6);
}

TEST_CASE("an attempt that is over gets no value but an error") {
  Container c;
  c.initialise();
  const LiveAttempt first{2, {1, 2}, 2, 1};
  c.write(c.attempt(3, 1, 1), "Add", 1, 2);
  c.write(c.attempt(4, 2, 1), "Add", 1, 3);
  c.tell(3, 5, {first});
  while (c.apply()) {
  }
  // Snapshot 2 is nobody's: the value of commit 1, which is still there, is not that of 2.
  c.store.read({9, c.attempt(9, 2, 1), {"w"}, {}, 0, false}, c.out);
  REQUIRE(c.out.size() == 1);
  CHECK(std::get<Store::ReadReply>(c.out[0]).status.code() == Code::aborted);
}

TEST_CASE("commits that nobody reads wait for their application, bounded by bytes") {
  Container c(8 * kBytes);
  c.initialise();
  c.write(c.attempt(2, 1, 1), "Add", 1, 2);
  c.tell(2, 3, {});
  REQUIRE(c.task_);  // the device is busy with it
  std::uint64_t a = 3;
  for (; a < 203; ++a) {
    c.write(c.attempt(a, 2, 2), "Add", 1, c.store.committed() + 1);
    if (!c.logged_.contains(a)) break;  // its client waits
  }
  MESSAGE("held back after " << a - 3 << " commits, with " << c.memory.now / kBytes << " values");
  CHECK(a < 3 + 9);
  CHECK(c.memory.now <= 12 * kBytes);
  CHECK(c.store.unapplied_bytes() <= 9 * kBytes);
  CHECK(c.store.tables().waiting_writes == 1);
  for (int applied = 0; applied < 3; ++applied) REQUIRE(c.apply());
  CHECK(c.logged_.contains(a));
  while (c.apply()) {
  }
  c.tell(c.store.committed(), a + 1, {});
  while (c.apply()) {
  }
  CHECK(c.memory.now == kBytes);
  CHECK(c.store.unapplied_bytes() == 0);
  CHECK(c.store.tables().empty());
  c.read(c.attempt(a + 1, c.store.committed(), c.store.committed()));
  CHECK(c.reads.at(a + 1) == float(1 + 1 + (a - 3) + 1));
}

TEST_CASE("a write that is held back is answered when its attempt ends") {
  Container c(kBytes / 2);
  c.initialise();
  c.write(c.attempt(2, 1, 1), "Add", 1, 2);
  c.tell(2, 3, {});
  REQUIRE(c.task_);
  c.write(c.attempt(3, 2, 2), "Add", 1, 3);
  CHECK_FALSE(c.logged_.contains(3));
  c.store.live({1, ++c.sequence, 2, 2, 4, {}}, c.out);
  REQUIRE(c.out.size() == 1);
  CHECK(std::get<Store::LogReply>(c.out[0]).status.code() == Code::aborted);
  CHECK(c.store.committed() == 2);
}

TEST_CASE("what a listed run reads never changes under it, whatever comes when") {
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    CAPTURE(seed);
    Random random(mix64(seed));
    Container c(random.below(6) * kBytes);
    c.initialise();
    std::map<CommitNumber, float> history{{1, 1.f}};
    std::map<std::uint64_t, CommitNumber> live;  // attempt -> its snapshot
    std::uint64_t next_a = 2;
    CommitNumber decided = 1;
    auto oldest = [&] {
      CommitNumber least = decided;
      for (const auto& [a, snapshot] : live) least = std::min(least, snapshot);
      return least;
    };
    auto read = [&](std::uint64_t a) {
      const std::uint64_t id = a;
      c.reads.erase(id);
      c.read(c.attempt(a, live.at(a), 0));
      while (!c.reads.contains(id)) REQUIRE(c.apply());
      CHECK(c.reads.at(id) == history.at(live.at(a)));
    };
    for (int step = 0; step < 120; ++step) {
      const auto what = random.below(10);
      if (what < 3) {  // a run starts
        live.emplace(next_a, decided);
        if (random.below(2)) read(next_a);
        ++next_a;
      } else if (what < 6) {  // a blind one comes and goes
        const AttemptInfo a = c.attempt(next_a++, decided, oldest());
        const auto x = float(random.below(5));
        c.write(a, "Add", x, decided + 1);
        while (!c.logged_.contains(a.id.a)) REQUIRE(c.apply());
        history[decided + 1] = history[decided] + x;
        ++decided;
      } else if (what < 7 && !live.empty()) {
        live.erase(std::next(live.begin(), std::ptrdiff_t(random.below(live.size()))));
      } else if (what < 8) {
        std::vector<LiveAttempt> list;
        for (const auto& [a, snapshot] : live) list.push_back({a, {1, a}, a, snapshot});
        c.tell(decided, next_a, std::move(list));
        std::set<CommitNumber> kept{decided};
        for (const auto& [a, snapshot] : live) kept.insert(snapshot);
        while (c.apply()) {
        }
        CHECK(c.memory.now <= kept.size() * kBytes);
      } else if (!live.empty()) {
        read(std::next(live.begin(), std::ptrdiff_t(random.below(live.size())))->first);
      }
    }
  }
}
