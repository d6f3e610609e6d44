#include "actors/resources/variable_store.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <numeric>

using namespace troupe;
using Store = VariableStore;

namespace {

// f32 vectors; Assign takes any shape, AssignAdd needs a value of the operand's shape.
class TestRules : public UpdateRules {
 public:
  Status check(const LoggedWrite& write, std::span<VariableMeta> targets) const override {
    for (VariableMeta& t : targets) {
      const Tensor& x = write.operands.at(0);
      if (x.dtype() != t.dtype) return invalid_argument("dtype of " + t.name);
      if (write.rule->op != "Assign") {
        if (!t.initialised)
          return failed_precondition("Attempting to use uninitialized value " + t.name);
        if (!(t.shape == x.shape())) return invalid_argument("shape of " + t.name);
      }
      t.initialised = true;
      t.shape = x.shape();
    }
    return ok_status();
  }
  Expected<std::vector<Tensor>> reserve(std::span<const VariableMeta> variables,
                                        std::vector<WriteReduction>&) const override {
    if (!memory) return resource_exhausted("no memory");
    std::vector<Tensor> room;
    for (const VariableMeta& v : variables)
      room.push_back(v.in_place ? Tensor() : *Tensor::make(v.dtype, v.shape));
    return room;
  }
  bool memory = true;
};

struct StoreFixture {
  TestRules rules;
  Store store{"c", rules};
  Store::Outputs out;
  std::uint64_t next_id = 1;

  StoreFixture() {
    REQUIRE(store.declare({"w", DType::f32, PartialShape{-1}}).ok());
    REQUIRE(store.declare({"b", DType::f32, PartialShape{1}}).ok());
  }
  static AttemptInfo attempt(std::uint64_t a, CommitNumber snapshot, CommitNumber min_live = 0) {
    return {{1, a}, {1, a}, snapshot, a, min_live, 0};
  }
  static Tensor vec(std::initializer_list<float> x) {
    return Tensor::of<float>(Shape{std::int64_t(x.size())}, x);
  }
  static LoggedWrite write(std::uint32_t node, const char* op, const char* target, Tensor x,
                           std::uint32_t replica = 0, std::uint32_t replicas = 1,
                           Combine combine = Combine::sum) {
    auto rule = std::make_shared<UpdateRule>();
    rule->op = op;
    rule->node = "node" + std::to_string(node);
    rule->targets = {target};
    rule->replicas = replicas;
    rule->combine = combine;
    return {{node, replica, {}}, rule, {std::move(x)}};
  }
  template <class T>
  T take() {
    REQUIRE(!out.empty());
    auto* got = std::get_if<T>(&out.front());
    REQUIRE(got != nullptr);
    T value = std::move(*got);
    out.erase(out.begin());
    return value;
  }
  Status log(const AttemptInfo& a, std::vector<LoggedWrite> writes, CommitNumber commit = 0) {
    store.log({next_id++, a, std::move(writes), commit}, out);
    return take<Store::LogReply>().status;
  }
  void read(const AttemptInfo& a, std::vector<std::string> names,
            std::vector<std::uint32_t> after = {}) {
    store.read({next_id++, a, std::move(names), std::move(after), 0, false}, out);
  }
  // What the device would do with Assign and AssignAdd, sums in replica order.
  std::vector<Tensor> apply(Store::Task& task) {
    for (auto& r : task.reductions) {
      std::vector<float> x(std::size_t(r.contributions[0][0].elements()), 0.f);
      for (auto& c : r.contributions)
        for (std::size_t i = 0; i < x.size(); ++i) x[i] += c[0].data<float>()[i];
      Tensor& v = task.variables[r.targets[0]].value;
      if (r.rule->op == "AssignAdd")
        for (std::size_t i = 0; i < x.size(); ++i) x[i] += v.data<float>()[i];
      v = Tensor::of<float>(Shape{std::int64_t(x.size())}, std::span<const float>(x));
    }
    std::vector<Tensor> values;
    for (auto& v : task.variables) values.push_back(v.value);
    return values;
  }
  // What the device would do with contributions: sums in replica order.
  void run_join() {
    auto join = take<Store::Join>();
    std::vector<Tensor> values;
    for (auto& write : join.writes) {
      std::vector<float> x(std::size_t(write.contributions[0][0].elements()), 0.f);
      for (auto& c : write.contributions)
        for (std::size_t i = 0; i < x.size(); ++i) x[i] += c[0].data<float>()[i];
      values.push_back(Tensor::of<float>(Shape{std::int64_t(x.size())}, std::span<const float>(x)));
    }
    store.applied(join.id, std::move(values), out);
  }
  void run_task() {
    auto task = take<Store::Task>();
    auto values = apply(task);
    store.applied(task.id, std::move(values), out);
  }
  void stage(CommitNumber s, std::uint64_t a, std::uint32_t keys, CommitNumber min_live = 0) {
    store.stage({s, {1, a}, keys, min_live}, out);
  }
  static LiveList live(std::uint64_t sequence, CommitNumber decided, std::uint64_t next_a,
                       std::vector<std::uint64_t> alive = {}, CommitNumber min_live = 0) {
    LiveList list{1, sequence, decided, min_live, next_a, {}};
    for (std::uint64_t a : alive) list.live.push_back({a, {1, a}, a});
    return list;
  }
  // Commit 1: w = {1, 2}.
  void initialise() {
    REQUIRE(log(attempt(1, 0), {write(1, "Assign", "w", vec({1, 2}))}).ok());
    stage(1, 1, 1);
    take<ResourceStaged>();
    store.live(live(1, 1, 2, {}, 1), out);
    run_task();
    REQUIRE(out.empty());
  }
  std::vector<float> values(const Tensor& t) {
    auto s = t.span<float>();
    return {s.begin(), s.end()};
  }
};

}  // namespace

TEST_CASE_FIXTURE(StoreFixture, "a variable that was never written is uninitialised") {
  read(attempt(1, 0), {"w"});
  auto reply = take<Store::ReadReply>();
  CHECK(reply.status.code() == Code::failed_precondition);
  CHECK(reply.status.message() ==
        "Attempting to use uninitialized value w: Session::init() gives variables their first "
        "values");
  CHECK(log(attempt(1, 0), {write(2, "AssignAdd", "w", vec({1}))}).code() ==
        Code::failed_precondition);
  CHECK(log(attempt(1, 0), {write(2, "Assign", "nobody", vec({1}))}).code() == Code::not_found);
  store.read({9, attempt(1, 0), {"w"}, {}, 0, true}, out);
  CHECK(take<Store::ReadReply>().values.at(0).item<bool>() == false);
}

TEST_CASE_FIXTURE(StoreFixture, "a declaration can be repeated, not changed") {
  CHECK(store.declare({"w", DType::f32, PartialShape{-1}}).ok());
  CHECK(store.declare({"w", DType::f64, PartialShape{-1}}).code() == Code::already_exists);
}

TEST_CASE_FIXTURE(StoreFixture, "writes are invisible until their number is decided") {
  initialise();
  REQUIRE(log(attempt(2, 1), {write(1, "AssignAdd", "w", vec({10, 10}))}).ok());
  stage(2, 2, 1);
  take<ResourceStaged>();
  read(attempt(3, 1), {"w"});
  CHECK(values(take<Store::ReadReply>().values[0]) == std::vector<float>{1, 2});
  // A snapshot of 2 says that 2 is decided: it commits first, and the read waits for it.
  read(attempt(4, 2, 1), {"w"});
  auto task = take<Store::Task>();
  CHECK(task.commit == 2);
  CHECK_FALSE(task.variables[0].in_place);  // attempt 3 may still read number 1
  CHECK(out.empty());
  store.applied(task.id, apply(task), out);
  CHECK(values(take<Store::ReadReply>().values[0]) == std::vector<float>{11, 12});
  read(attempt(3, 1), {"w"});
  CHECK(values(take<Store::ReadReply>().values[0]) == std::vector<float>{1, 2});
  CHECK(store.tables().old_versions == 1);
  store.live(live(2, 2, 5, {}, 2), out);
  CHECK(store.tables().empty());
}

TEST_CASE_FIXTURE(StoreFixture, "a commit that nobody looks behind may overwrite") {
  initialise();
  REQUIRE(log(attempt(2, 1), {write(1, "AssignAdd", "w", vec({1, 1}))}).ok());
  stage(2, 2, 1);
  take<ResourceStaged>();
  store.live(live(2, 2, 3, {}, 2), out);
  auto task = take<Store::Task>();
  CHECK(task.variables[0].in_place);
  CHECK(task.variables[0].value.unique());
  store.applied(task.id, apply(task), out);
  CHECK(store.tables().empty());
}

// As an immediate run does, which is not done again because of what others have committed.
TEST_CASE("a first value of another shape than another run's is not staged") {
  for (const bool fast : {false, true}) {
    CAPTURE(fast);
    StoreFixture f;
    REQUIRE(f.log(f.attempt(1, 0), {f.write(1, "Assign", "w", f.vec({1, 2, 3}))}).ok());
    REQUIRE(f.log(f.attempt(2, 0), {f.write(1, "Assign", "w", f.vec({1, 2}))}).ok());
    f.stage(1, 2, 1);
    REQUIRE(f.take<ResourceStaged>().status.ok());
    f.store.live(f.live(1, 1, 3, {1}), f.out);
    f.run_task();
    Status late;
    if (fast) {
      late = f.log(f.attempt(1, 0), {}, 2);
    } else {
      f.stage(2, 1, 1);
      late = f.take<ResourceStaged>().status;
    }
    CHECK(late.code() == Code::failed_precondition);
    CHECK_MESSAGE(
        late.message().find("has shape [2] by now and cannot become [3]") != std::string::npos,
        late.text());
  }
}

TEST_CASE_FIXTURE(StoreFixture, "a repeated key is acknowledged and ignored") {
  initialise();
  auto w = write(1, "AssignAdd", "w", vec({1, 1}));
  for (int i = 0; i < 3; ++i) REQUIRE(log(attempt(2, 1), {w}).ok());
  stage(2, 2, 1);
  take<ResourceStaged>();
  REQUIRE(log(attempt(2, 1), {w}).ok());  // even when it was staged
  store.live(live(2, 2, 3, {}, 2), out);
  run_task();
  CHECK(log(attempt(2, 1), {w}).code() == Code::aborted);  // over
  read(attempt(5, 2), {"w"});
  CHECK(values(take<Store::ReadReply>().values[0]) == std::vector<float>{2, 3});
}

TEST_CASE_FIXTURE(StoreFixture,
                  "what cannot be applied is refused when it is logged, all or nothing") {
  initialise();
  auto bad = write(2, "AssignAdd", "w", vec({1, 2, 3}));
  Status s = log(attempt(2, 1), {write(1, "AssignAdd", "w", vec({1, 1})), bad});
  CHECK(s.code() == Code::invalid_argument);
  CHECK(s.text().find("node2") != std::string::npos);
  CHECK(store.tables().logs == 0);
  // A shape may be chosen once; the declaration holds always.
  CHECK(log(attempt(2, 1), {write(1, "Assign", "w", vec({1}))}).code() ==
        Code::failed_precondition);
  CHECK(log(attempt(2, 1), {write(1, "Assign", "b", vec({1, 2}))}).code() ==
        Code::invalid_argument);
}

TEST_CASE_FIXTURE(StoreFixture, "staging waits for the keys that were promised") {
  initialise();
  REQUIRE(log(attempt(2, 1), {write(1, "AssignAdd", "w", vec({1, 1}))}).ok());
  stage(2, 2, 2);
  CHECK(out.empty());
  store.log({7, attempt(2, 1), {write(2, "Assign", "b", vec({3}))}, 0}, out);
  take<Store::LogReply>();
  auto first = take<ResourceStaged>();
  stage(2, 2, 2);
  CHECK(take<ResourceStaged>().hash == first.hash);  // asked again, answered again
}

TEST_CASE_FIXTURE(StoreFixture,
                  "contributions of replicas are joined once all are there, in order") {
  initialise();
  REQUIRE(log(attempt(2, 1), {write(1, "AssignAdd", "w", vec({3, 3}), 2, 3)}).ok());
  REQUIRE(log(attempt(2, 1), {write(1, "AssignAdd", "w", vec({1, 1}), 0, 3)}).ok());
  CHECK(log(attempt(2, 1), {write(1, "AssignAdd", "w", vec({1}), 1, 3)}).code() ==
        Code::invalid_argument);
  CHECK(log(attempt(2, 1), {write(1, "AssignAdd", "w", vec({1, 1}), 3, 3)}).code() ==
        Code::invalid_argument);
  CHECK(out.empty());
  store.log({7, attempt(2, 1), {write(1, "AssignAdd", "w", vec({2, 2}), 1, 3)}, 0}, out);
  take<Store::LogReply>();
  auto join = take<Store::Join>();
  REQUIRE(join.writes.size() == 1);
  REQUIRE(join.writes[0].contributions.size() == 3);
  for (std::size_t i = 0; i < 3; ++i)
    CHECK(join.writes[0].contributions[i][0].data<float>()[0] == float(i + 1));
  stage(2, 2, 3);
  CHECK(out.empty());  // it is not staged before they are one
  // A contribution that is sent again is acknowledged, as ever.
  REQUIRE(log(attempt(2, 1), {write(1, "AssignAdd", "w", vec({2, 2}), 1, 3)}).ok());
  store.applied(join.id, std::vector<Tensor>{vec({6, 6})}, out);
  CHECK(take<ResourceStaged>().status.ok());
  store.live(live(2, 2, 3, {}, 2), out);
  auto task = take<Store::Task>();
  REQUIRE(task.reductions.size() == 1);
  REQUIRE(task.reductions[0].contributions.size() == 1);
  CHECK(task.reductions[0].contributions[0][0].data<float>()[0] == 6);
  store.applied(task.id, apply(task), out);
  read(attempt(3, 2), {"w"});
  CHECK(values(take<Store::ReadReply>().values[0]) == std::vector<float>{7, 8});
  CHECK(store.tables().empty());
}

TEST_CASE_FIXTURE(StoreFixture,
                  "of a write in a branch what has come is joined when it is staged") {
  initialise();
  for (std::uint32_t replica : {0u, 2u}) {
    auto w = write(1, "AssignAdd", "w", vec({1, 1}), replica, 3);
    auto rule = std::make_shared<UpdateRule>(*w.rule);
    rule->some_replicas = true;
    w.rule = rule;
    REQUIRE(log(attempt(2, 1), {w}).ok());
  }
  CHECK(out.empty());
  stage(2, 2, 2);
  run_join();
  CHECK(take<ResourceStaged>().status.ok());
  store.live(live(2, 2, 3, {}, 2), out);
  run_task();
  read(attempt(3, 2), {"w"});
  CHECK(values(take<Store::ReadReply>().values[0]) == std::vector<float>{3, 4});
}

TEST_CASE_FIXTURE(StoreFixture, "contributions that cannot be joined are not staged") {
  initialise();
  for (std::uint32_t replica : {0u, 1u})
    store.log({7, attempt(2, 1), {write(1, "AssignAdd", "w", vec({1, 1}), replica, 2)}, 0}, out);
  take<Store::LogReply>();
  take<Store::LogReply>();
  const auto join = take<Store::Join>();
  read(attempt(2, 1), {"w"}, {1});
  CHECK(out.empty());
  store.applied(join.id, resource_exhausted("no memory to join"), out);
  CHECK(take<Store::ReadReply>().status.code() == Code::resource_exhausted);
  stage(2, 2, 2);
  CHECK(take<ResourceStaged>().status.code() == Code::resource_exhausted);
  REQUIRE(log(attempt(3, 1), {write(1, "AssignAdd", "w", vec({1, 1}))}).ok());
  stage(2, 3, 1);
  CHECK(take<ResourceStaged>().status.ok());
}

TEST_CASE_FIXTURE(StoreFixture, "what was joined for an attempt that is over is nobody's") {
  initialise();
  for (std::uint32_t replica : {0u, 1u})
    store.log({7, attempt(2, 1), {write(1, "AssignAdd", "w", vec({1, 1}), replica, 2)}, 0}, out);
  take<Store::LogReply>();
  take<Store::LogReply>();
  const auto join = take<Store::Join>();
  store.live(live(2, 1, 3, {}, 1), out);
  CHECK(store.tables().tasks == 1);
  store.applied(join.id, std::vector<Tensor>{vec({2, 2})}, out);
  CHECK(out.empty());
  CHECK(store.tables().empty());
}

TEST_CASE_FIXTURE(StoreFixture, "a run reads its own writes, others do not") {
  initialise();
  REQUIRE(log(attempt(2, 1), {write(1, "AssignAdd", "w", vec({5, 5}))}).ok());
  read(attempt(2, 1), {"w"});  // not ordered after the write
  CHECK(values(take<Store::ReadReply>().values[0]) == std::vector<float>{1, 2});
  read(attempt(2, 1), {"w"}, {1});
  auto task = take<Store::Task>();
  CHECK(task.commit == 0);
  CHECK_FALSE(task.variables[0].in_place);
  store.applied(task.id, apply(task), out);
  CHECK(values(take<Store::ReadReply>().values[0]) == std::vector<float>{6, 7});
  read(attempt(3, 1), {"w"}, {1});
  CHECK(values(take<Store::ReadReply>().values[0]) == std::vector<float>{1, 2});
}

TEST_CASE_FIXTURE(StoreFixture, "reading back a write waits for the other replicas") {
  initialise();
  REQUIRE(log(attempt(2, 1), {write(1, "AssignAdd", "w", vec({5, 5}), 0, 2)}).ok());
  read(attempt(2, 1), {"w"}, {1});
  CHECK(out.empty());
  store.log({7, attempt(2, 1), {write(1, "AssignAdd", "w", vec({1, 1}), 1, 2)}, 0}, out);
  take<Store::LogReply>();
  run_join();
  run_task();
  CHECK(values(take<Store::ReadReply>().values[0]) == std::vector<float>{7, 8});
}

TEST_CASE_FIXTURE(StoreFixture, "a write of an initial value can be read back and added to") {
  REQUIRE(
      log(attempt(1, 0), {write(1, "Assign", "b", vec({1})), write(2, "AssignAdd", "b", vec({2}))})
          .ok());
  read(attempt(1, 0), {"b"}, {1, 2});
  run_task();
  CHECK(values(take<Store::ReadReply>().values[0]) == std::vector<float>{3});
}

TEST_CASE_FIXTURE(StoreFixture,
                  "what had no value at the snapshot cannot be read with an update of it") {
  const AttemptInfo early = attempt(5, 0);  // began before the first value was committed
  initialise();
  store.live(live(2, 1, 2, {}, 0), out);
  REQUIRE(log(early, {write(1, "AssignAdd", "w", vec({1, 1}))}).ok());  // blind: there is one now
  read(early, {"w"}, {1});
  CHECK(take<Store::ReadReply>().status.code() == Code::failed_precondition);
  CHECK(out.empty());
}

TEST_CASE_FIXTURE(StoreFixture, "the fast path logs, stages and commits in one message, once") {
  initialise();
  auto w = write(1, "AssignAdd", "w", vec({1, 1}));
  store.log({5, attempt(2, 1, 1), {w}, 2}, out);
  CHECK(take<Store::LogReply>().committed == 2);
  CHECK(out.empty());  // held back: the next snapshot will tell whether it may overwrite
  store.log({6, attempt(2, 1, 1), {w}, 2}, out);
  CHECK(take<Store::LogReply>().committed == 2);
  read(attempt(3, 2, 2), {"w"});
  auto task = take<Store::Task>();
  CHECK(task.variables[0].in_place);
  store.applied(task.id, apply(task), out);
  CHECK(values(take<Store::ReadReply>().values[0]) == std::vector<float>{2, 3});
  // Refused is refused, and the number stays free.
  store.log({7, attempt(4, 2, 2), {write(1, "AssignAdd", "w", vec({1}))}, 3}, out);
  auto refused = take<Store::LogReply>();
  CHECK(refused.status.code() == Code::invalid_argument);
  CHECK(refused.committed == 0);
  CHECK(store.committed() == 2);
}

TEST_CASE_FIXTURE(StoreFixture, "an ended attempt leaves nothing and is refused") {
  initialise();
  REQUIRE(log(attempt(2, 1), {write(1, "AssignAdd", "w", vec({5, 5}), 0, 2)}).ok());
  read(attempt(2, 1), {"w"}, {1});
  store.live(live(2, 1, 4, {3}, 1), out);
  CHECK(take<Store::ReadReply>().status.code() == Code::aborted);
  CHECK(store.tables().empty());
  CHECK(log(attempt(2, 1), {write(1, "AssignAdd", "w", vec({5, 5}))}).code() == Code::aborted);
  CHECK(log(attempt(3, 1), {write(1, "AssignAdd", "w", vec({5, 5}))}).ok());
  store.live(live(1, 1, 4, {}, 1), out);  // an older list changes nothing
  CHECK(store.tables().logs == 1);
}

TEST_CASE_FIXTURE(StoreFixture,
                  "a commit that cannot be applied is reported, and so to all who ask") {
  initialise();
  store.log({5, attempt(2, 1, 1), {write(1, "AssignAdd", "w", vec({1, 1}))}, 2}, out);
  take<Store::LogReply>();
  read(attempt(3, 2, 2), {"w"});
  auto task = take<Store::Task>();
  store.applied(task.id, resource_exhausted("no memory"), out);
  CHECK(take<Store::Failed>().status.code() == Code::data_loss);
  CHECK(take<Store::ReadReply>().status.code() == Code::data_loss);
  CHECK(log(attempt(4, 2), {write(1, "Assign", "b", vec({1}))}).code() == Code::data_loss);
}

TEST_CASE_FIXTURE(StoreFixture, "restored values are there from their number on") {
  REQUIRE(store.restore(7, {{"w", vec({4})}}).ok());
  CHECK(store.restore(7, {{"b", vec({4, 4})}}).code() == Code::invalid_argument);
  read(attempt(1, 7), {"w"});
  CHECK(values(take<Store::ReadReply>().values[0]) == std::vector<float>{4});
  CHECK(store.committed() == 7);
}

TEST_CASE_FIXTURE(StoreFixture, "what cannot be reserved is not staged") {
  initialise();
  REQUIRE(log(attempt(2, 1), {write(1, "AssignAdd", "w", vec({10, 10}))}).ok());
  rules.memory = false;
  stage(2, 2, 1);
  auto refused = take<ResourceStaged>();
  CHECK(refused.attempt == AttemptId{1, 2});
  CHECK(refused.status.code() == Code::resource_exhausted);
  rules.memory = true;
  REQUIRE(log(attempt(3, 1), {write(1, "AssignAdd", "w", vec({1, 1}))}).ok());
  stage(2, 3, 1);
  CHECK(take<ResourceStaged>().status.ok());
  store.live(live(2, 2, 4, {}, 1), out);
  run_task();
  read(attempt(4, 2), {"w"});
  CHECK(values(take<Store::ReadReply>().values[0]) == std::vector<float>{2, 3});
}

TEST_CASE_FIXTURE(StoreFixture, "a staged update of what nobody else may read takes no memory") {
  initialise();
  REQUIRE(log(attempt(2, 1, 1), {write(1, "AssignAdd", "w", vec({10, 10}))}).ok());
  stage(2, 2, 1, 1);
  REQUIRE(take<ResourceStaged>().status.ok());
  read(attempt(3, 2, 2), {"w"});
  auto task = take<Store::Task>();
  CHECK(task.variables[0].in_place);
  CHECK(task.variables[0].value.unique());
  CHECK_FALSE(task.variables[0].room.defined());
  auto results = apply(task);
  store.applied(task.id, std::move(results), out);
  CHECK(values(take<Store::ReadReply>().values[0]) == std::vector<float>{11, 12});
}

TEST_CASE_FIXTURE(StoreFixture,
                  "a staged update has memory where values before the last may be read") {
  initialise();
  REQUIRE(log(attempt(2, 1, 1), {write(1, "AssignAdd", "w", vec({10, 10}))}, 2).ok());
  read(attempt(3, 2, 1), {"w"});  // applies it
  run_task();
  REQUIRE(take<Store::ReadReply>().status.ok());
  REQUIRE(log(attempt(3, 2, 1), {write(1, "AssignAdd", "w", vec({10, 10}))}).ok());
  stage(3, 3, 1, 1);
  REQUIRE(take<ResourceStaged>().status.ok());
  store.live(live(2, 3, 4, {}, 3), out);
  auto task = take<Store::Task>();
  CHECK(task.variables[0].room.defined());
}

TEST_CASE_FIXTURE(StoreFixture,
                  "an update waits for who may read the old value when memory is short") {
  initialise();
  REQUIRE(log(attempt(3, 1, 1), {write(1, "AssignAdd", "w", vec({10, 10}))}).ok());
  stage(2, 3, 1, 1);
  REQUIRE(take<ResourceStaged>().status.ok());
  LiveList list = live(2, 2, 4, {2}, 1);
  list.live[0].snapshot = 1;
  rules.memory = false;
  store.live(list, out);
  read(attempt(4, 2, 1), {"w"});
  CHECK(out.empty());
  SUBCASE("until it is over") {
    store.live(live(3, 2, 5, {4}, 2), out);
    auto task = take<Store::Task>();
    CHECK(task.variables[0].in_place);
    auto results = apply(task);
    store.applied(task.id, std::move(results), out);
  }
  SUBCASE("or there is memory again") {
    rules.memory = true;
    read(attempt(5, 2, 1), {"b"});
    take<Store::ReadReply>();  // of another variable, which nobody has written
    read(attempt(6, 2, 1), {"w"});
    auto task = take<Store::Task>();
    CHECK_FALSE(task.variables[0].in_place);
    CHECK(task.variables[0].room.defined());
    auto results = apply(task);
    store.applied(task.id, std::move(results), out);
    CHECK(values(take<Store::ReadReply>().values[0]) == std::vector<float>{11, 12});
    read(attempt(2, 1, 1), {"w"});
    CHECK(values(std::get<Store::ReadReply>(out.back()).values[0]) == std::vector<float>{1, 2});
    out.pop_back();
  }
  CHECK(values(take<Store::ReadReply>().values[0]) == std::vector<float>{11, 12});
}

TEST_CASE_FIXTURE(StoreFixture,
                  "of variables with one value all but the last get memory for theirs") {
  REQUIRE(store.declare({"x", DType::f32, PartialShape{1}}).ok());
  REQUIRE(store.declare({"y", DType::f32, PartialShape{1}}).ok());
  bool held = false;
  SUBCASE("and the last when somebody else has it, too") { held = true; }
  SUBCASE("when nobody else has it") {}
  Tensor zero = vec({0});
  REQUIRE(log(attempt(1, 0),
              {write(1, "Assign", "b", zero), write(2, "Assign", "x", zero),
               write(3, "Assign", "y", vec({7}))},
              1)
              .ok());
  auto task = take<Store::Task>();
  std::vector<Tensor> first;
  for (auto& r : task.reductions) first.push_back(std::move(r.contributions[0][0]));
  task = {};
  const std::uint64_t id = 1;
  store.applied(id, std::move(first), out);
  if (!held) zero = {};
  REQUIRE(log(attempt(2, 1, 1),
              {write(1, "AssignAdd", "b", vec({1})), write(2, "AssignAdd", "y", vec({1})),
               write(3, "AssignAdd", "x", vec({1}))},
              2)
              .ok());
  read(attempt(3, 2, 2), {"b", "x", "y"});
  task = take<Store::Task>();
  REQUIRE(task.variables.size() == 3);
  CHECK(task.variables[0].room.defined());
  CHECK_FALSE(task.variables[1].room.defined());
  CHECK(task.variables[2].room.defined() == held);
}

TEST_CASE_FIXTURE(StoreFixture, "a grant is not used when there is no memory for a copy") {
  initialise();
  read(attempt(2, 1, 1), {"w"});
  auto held = take<Store::ReadReply>();  // so that the value cannot be overwritten
  rules.memory = false;
  CHECK(log(attempt(2, 1, 1), {write(1, "AssignAdd", "w", vec({1, 1}))}, 2).code() ==
        Code::resource_exhausted);
  CHECK(store.committed() == 1);
  CHECK(store.tables().logs == 0);
  rules.memory = true;
  CHECK(log(attempt(3, 1, 1), {write(1, "AssignAdd", "w", vec({1, 1}))}, 2).ok());
  CHECK(store.committed() == 2);
}

TEST_CASE_FIXTURE(StoreFixture, "a staged write that is withdrawn leaves nothing") {
  initialise();
  REQUIRE(log(attempt(2, 1), {write(1, "AssignAdd", "w", vec({10, 10}))}).ok());
  stage(2, 2, 1);
  take<ResourceStaged>();
  store.stage({2, {1, 2}, 0, 1, StageOrder::withdraw}, out);
  CHECK(out.empty());
  CHECK(store.tables().staged == 0);
  store.stage({2, {1, 2}, 0, 1, StageOrder::withdraw}, out);  // said again
  REQUIRE(log(attempt(3, 1), {write(1, "AssignAdd", "w", vec({1, 1}))}).ok());
  stage(2, 3, 1);  // the same number, of another attempt
  CHECK(take<ResourceStaged>().attempt == AttemptId{1, 3});
  store.live(live(2, 2, 4, {}, 2), out);
  run_task();
  read(attempt(4, 2, 2), {"w"});
  CHECK(values(take<Store::ReadReply>().values[0]) == std::vector<float>{2, 3});
}

TEST_CASE_FIXTURE(StoreFixture, "a container that lost its state says so instead of staging") {
  initialise();
  REQUIRE(log(attempt(2, 1), {write(1, "AssignAdd", "w", vec({1, 1}))}).ok());
  stage(2, 2, 1);
  take<ResourceStaged>();
  store.live(live(2, 2, 3, {}, 2), out);
  auto task = take<Store::Task>();
  store.applied(task.id, internal_error("the device failed"), out);
  CHECK(take<Store::Failed>().status.code() == Code::data_loss);
  stage(3, 3, 1);
  CHECK(take<ResourceStaged>().status.code() == Code::data_loss);
}

TEST_CASE_FIXTURE(StoreFixture,
                  "numbers that contradict each other are refused, and change nothing") {
  initialise();
  auto add = [&](std::uint64_t a) {
    return std::vector{write(1, "AssignAdd", "w", vec({float(a), 0}))};
  };
  stage(1, 2, 0);  // of a commit that is decided
  CHECK(take<ResourceStaged>().status.code() == Code::failed_precondition);
  REQUIRE(log(attempt(2, 1), add(2)).ok());
  stage(4, 2, 1);
  REQUIRE(take<ResourceStaged>().status.ok());
  CHECK(log(attempt(3, 1), add(3), 5).code() == Code::failed_precondition);  // 4 is undecided
  stage(3, 4, 0);
  CHECK(take<ResourceStaged>().status.code() == Code::failed_precondition);
  stage(4, 5, 0);  // of another attempt
  CHECK(take<ResourceStaged>().status.code() == Code::failed_precondition);
  store.live(live(2, 4, 9, {}, 4), out);
  run_task();
  CHECK(store.committed() == 4);
  stage(6, 10, 1);  // its key is still to come
  CHECK(log(attempt(11, 4), add(11), 7).code() == Code::failed_precondition);
  CHECK(store.committed() == 4);
  read(attempt(12, 4, 4), {"w"});
  CHECK(values(take<Store::ReadReply>().values[0]) == std::vector<float>{3, 2});
  CHECK(out.empty());
}

TEST_CASE_FIXTURE(StoreFixture, "a commit that somebody waits for is applied when that is said") {
  initialise();
  REQUIRE(log(attempt(2, 1), {write(1, "AssignAdd", "w", vec({1, 1}))}).ok());
  stage(2, 2, 1, 2);
  take<ResourceStaged>();
  store.stage({2, {1, 2}, 1, 2, StageOrder::apply}, out);
  CHECK(store.committed() == 2);
  run_task();
  CHECK(take<ResourceStaged>().status.ok());
  store.stage({3, {1, 7}, 1, 2, StageOrder::apply}, out);  // nothing of it is here
  CHECK(take<ResourceStaged>().status.code() == Code::failed_precondition);
}

// Linear in the writes, or it takes minutes.
TEST_CASE_FIXTURE(StoreFixture, "a run may write twenty thousand variables") {
  constexpr int kVariables = 20'000;
  std::vector<std::string> names;
  for (int i = 0; i < kVariables; ++i) {
    names.push_back("a parameter with a name of some length/" + std::to_string(i));
    REQUIRE(store.declare({names.back(), DType::f32, PartialShape{1}}).ok());
  }
  std::vector<LoggedWrite> first, second;
  for (int i = 0; i < kVariables; ++i) {
    const auto node = std::uint32_t(i);
    first.push_back(write(node, "Assign", names[node].c_str(), vec({1}), 0, 2));
    second.push_back(write(node, "Assign", names[node].c_str(), vec({1}), 1, 2));
  }
  REQUIRE(log(attempt(1, 0), std::move(first)).ok());
  store.log({next_id++, attempt(1, 0), std::move(second), 0}, out);
  std::vector<Store::Output> order = std::exchange(out, {});
  for (auto& output : order)  // the join before what the log answers, or behind it
    (std::holds_alternative<Store::Join>(output) ? out.insert(out.begin(), std::move(output))
                                                 : out.insert(out.end(), std::move(output)));
  run_join();
  CHECK(take<Store::LogReply>().status.ok());
  stage(1, 1, 2 * kVariables);
  REQUIRE(take<ResourceStaged>().status.ok());
  store.live(live(1, 1, 2, {}, 1), out);
  run_task();
  CHECK(store.committed() == 1);
}
