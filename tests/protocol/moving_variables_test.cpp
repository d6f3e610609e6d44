// A container of variables that goes on elsewhere: what it holds, and what is staged, as bytes and
// back; and how large a record is.
#include <doctest/doctest.h>

#include <memory>
#include <random>
#include <string>

#include "actors/resources/variable_store.hpp"
#include "core/hash.hpp"
#include "tests/protocol/moving_attempts.hpp"

using namespace troupe;

namespace {

using Store = VariableStore;

// f32 vectors. AssignAdd wants a value, "Append" applies each replica's contribution by itself.
class MovingRules final : public UpdateRules {
 public:
  Status check(const LoggedWrite& write, std::span<VariableMeta> targets) const override {
    if (write.operands.size() != 1) return invalid_argument("one operand");
    const Tensor& x = write.operands[0];
    for (VariableMeta& t : targets) {
      if (x.dtype() != t.dtype || x.rank() != 1) return invalid_argument("dtype of " + t.name);
      if (write.rule->op != "Assign" && !t.initialised)
        return failed_precondition("Attempting to use uninitialized value " + t.name);
      if (write.rule->op != "Assign" && t.shape != x.shape())
        return invalid_argument("shape of " + t.name);
      t.initialised = true;
      t.shape = x.shape();
    }
    return ok_status();
  }
  Expected<std::shared_ptr<const UpdateRule>> make(const UpdateRule& value) const override {
    if (value.op == "Unknown") return invalid_argument("no such rule");
    return std::shared_ptr<const UpdateRule>(std::make_shared<UpdateRule>(value));
  }
};

void add_to(std::vector<float>& sum, const Tensor& x) {
  for (std::size_t i = 0; i < sum.size(); ++i) sum[i] = sum[i] * 1.25f + x.data<float>()[i];
}
Tensor vector_of(const std::vector<float>& x) {
  return Tensor::of<float>(Shape{std::int64_t(x.size())}, std::span<const float>(x));
}

std::string text_of_values(const std::vector<Tensor>& values) {
  std::string all;
  for (const Tensor& t : values)
    all += t.defined() ? " " + std::to_string(hash_bytes(t.raw(), t.bytes())) : " none";
  return all;
}

// A store with the device that applies what it is told to, at once or later.
struct HeldVariables {
  MovingRules rules;
  Store store{"c", rules};
  std::string said;
  std::vector<Store::Task> tasks;

  void carry_out(Store::Outputs out) {
    for (auto& output : out) {
      if (auto* read = std::get_if<Store::ReadReply>(&output)) {
        said += "read " + std::to_string(read->id) + " " + read->status.text() +
                text_of_values(read->values) + "\n";
      } else if (auto* logged = std::get_if<Store::LogReply>(&output)) {
        said += "logged " + std::to_string(logged->id) + " " + logged->status.text() + "\n";
      } else if (auto* staged = std::get_if<ResourceStaged>(&output)) {
        said += "staged " + std::to_string(staged->s) + " " + std::to_string(staged->hash) + " " +
                staged->status.text() + "\n";
      } else if (auto* task = std::get_if<Store::Task>(&output)) {
        tasks.push_back(std::move(*task));
      } else if (auto* join = std::get_if<Store::Join>(&output)) {
        std::vector<Tensor> values;
        for (auto& write : join->writes) values.push_back(joined(write.contributions));
        Store::Outputs more;
        store.applied(join->id, std::move(values), more);
        carry_out(std::move(more));
      } else {
        FAIL("a commit could not be applied");
      }
    }
  }
  static Tensor joined(const std::vector<std::vector<Tensor>>& contributions) {
    const auto first = contributions[0][0].span<float>();
    std::vector<float> sum(first.begin(), first.end());
    for (std::size_t c = 1; c < contributions.size(); ++c) add_to(sum, contributions[c][0]);
    return vector_of(sum);
  }
  void apply_one() {
    if (tasks.empty()) return;
    Store::Task task = std::move(tasks.front());
    tasks.erase(tasks.begin());
    for (auto& r : task.reductions) {
      Tensor& value = task.variables[r.targets[0]].value;
      const bool each = r.rule->combine == Combine::each;
      std::vector<std::vector<Tensor>> times;
      if (each)
        times = r.contributions;
      else
        times = {{joined(r.contributions)}};
      for (const auto& operands : times) {
        std::vector<float> x(std::size_t(operands[0].elements()), 0.f);
        if (r.rule->op != "Assign") {
          const auto old = value.span<float>();
          x.assign(old.begin(), old.end());
        }
        add_to(x, operands[0]);
        value = vector_of(x);
      }
    }
    std::vector<Tensor> values;
    for (auto& v : task.variables) values.push_back(v.value);
    Store::Outputs out;
    store.applied(task.id, std::move(values), out);
    carry_out(std::move(out));
  }
  template <class Do>
  void with(Do what) {
    Store::Outputs out;
    what(store, out);
    carry_out(std::move(out));
  }
  // What is decided is applied before it is saved.
  Expected<ResourceState> save() {
    for (int tries = 0;; ++tries) {
      Store::Outputs out;
      auto state = store.save(out);
      carry_out(std::move(out));
      if (state.ok() || state.status().code() != Code::unavailable || tries > 100) return state;
      apply_one();
    }
  }
};

std::vector<std::byte> encoded(const Expected<ResourceState>& state) {
  return value_or_throw(encode_state(value_or_throw(state)));
}

std::shared_ptr<const UpdateRule> moving_rule(const std::string& op, const std::string& target,
                                              std::uint32_t replicas, Combine combine) {
  auto rule = std::make_shared<UpdateRule>();
  rule->op = op;
  rule->node = op + "/" + target;
  rule->attrs = {{"T", DType::f32}};
  rule->combine = combine;
  rule->replicas = replicas;
  rule->targets = {target};
  return rule;
}

class VariablesLife : public testing::MovingAttempts {
 public:
  explicit VariablesLife(std::uint64_t seed) : MovingAttempts(seed) {
    for (const char* target : {"a", "b", "late"}) {
      rules_.push_back(moving_rule("Assign", target, 1, Combine::sum));
      rules_.push_back(moving_rule("AssignAdd", target, 1, Combine::sum));
      rules_.push_back(moving_rule("AssignAdd", target, 3, Combine::mean));
      rules_.push_back(moving_rule("Append", target, 2, Combine::each));
    }
  }
  void declare(HeldVariables& held) const {
    throw_if_error(held.store.declare({"a", DType::f32, PartialShape{-1}}));
    throw_if_error(held.store.declare({"b", DType::f32, PartialShape{2}}));
    throw_if_error(held.store.declare({"late", DType::f32, PartialShape::unknown()}));
  }
  void step(const std::vector<HeldVariables*>& all) {
    const std::uint64_t dice = random_.below(100);
    if (dice < 12 || alive_.empty()) {
      begin();
    } else if (dice < 50) {
      write(all);
    } else if (dice < 60) {
      read(all);
    } else if (dice < 72) {
      stage(all);
    } else if (dice < 84) {
      if (random_.below(5) > 0) decide();
      tell(all);
    } else if (dice < 95) {
      for (HeldVariables* held : all) held->apply_one();
    } else {
      end_one();
      tell(all);
    }
  }
  void end_all(const std::vector<HeldVariables*>& all, bool decided) {
    end_alive(decided);
    tell(all);
    for (HeldVariables* held : all)
      while (!held->tasks.empty()) held->apply_one();
  }

 private:
  void write(const std::vector<HeldVariables*>& all) {
    const AttemptInfo& a = any();
    if (is_staged(a)) return;
    const auto& rule = rules_[random_.below(rules_.size())];
    const std::uint32_t node = next_node_++;
    const std::int64_t size = rule->targets[0] == "b" ? 2 : 3;
    std::vector<LoggedWrite> writes;
    for (std::uint32_t replica = 0; replica < rule->replicas; ++replica) {
      std::vector<float> x;
      for (std::int64_t i = 0; i < size; ++i) x.push_back(float(random_.uniform(-1, 1)));
      writes.push_back({{node, replica, {}}, rule, {vector_of(x)}});
    }
    const std::uint64_t id = next_id_++;
    const std::size_t before = all[0]->said.size();
    for (HeldVariables* held : all)
      held->with([&](Store& store, auto& out) { store.log({id, a, writes, 0}, out); });
    if (all[0]->said.find("logged " + std::to_string(id) + " ok", before) != std::string::npos)
      keys_[a.id] += rule->replicas;
  }
  void read(const std::vector<HeldVariables*>& all) {
    const AttemptInfo& a = any();
    const std::uint64_t id = next_id_++;
    std::vector<std::uint32_t> after;
    for (std::uint32_t n = 1; n < next_node_ && random_.below(3) > 0; ++n) after.push_back(n);
    for (HeldVariables* held : all)
      held->with([&](Store& store, auto& out) {
        store.read({id, a, {"a", "b"}, after, 0, false}, out);
      });
  }
  void stage(const std::vector<HeldVariables*>& all) {
    if (anything_staged()) return;
    const AttemptInfo& a = any();
    if (keys_[a.id] == 0) return;
    const StageRequest request = to_stage(a, keys_[a.id]);
    for (HeldVariables* held : all)
      held->with([&](Store& store, auto& out) { store.stage(request, out); });
  }
  void tell(const std::vector<HeldVariables*>& all) {
    const LiveList list = live_list();
    for (HeldVariables* held : all)
      held->with([&](Store& store, auto& out) { store.live(list, out); });
  }

  std::vector<std::shared_ptr<const UpdateRule>> rules_;
  std::uint64_t next_id_ = 1;
  std::uint32_t next_node_ = 1;
  std::map<AttemptId, std::uint32_t> keys_;
};

struct MovedVariables {
  VariablesLife life;
  std::unique_ptr<HeldVariables> first = std::make_unique<HeldVariables>(),
                                 second = std::make_unique<HeldVariables>();
  bool had_staged = false;

  MovedVariables(std::uint64_t seed, int steps) : life(seed) {
    life.declare(*first);
    for (int i = 0; i < steps; ++i) life.step({first.get()});
  }
  void move() {
    const auto state = value_or_throw(decode_state(encoded(first->save())));
    throw_if_error(second->store.load(state));
    ToldRules told;
    auto record = first->store.record(told);
    had_staged = record.ok();
    if (!had_staged) return;
    KnownRules known(second->rules);
    const auto moved = value_or_throw(decode_state(encoded(record)));
    second->with(
        [&](Store& store, auto& out) { throw_if_error(store.stage_record(moved, known, out)); });
  }
};

}  // namespace

TEST_CASE("variables that go on elsewhere, at any point, become what they would have been here") {
  const std::uint64_t first_seed = std::random_device{}();
  int staged = 0, initialised = 0;
  for (std::uint64_t seed = first_seed; seed < first_seed + 300; ++seed) {
    INFO("seed " << seed);
    Random random(mix64(seed));
    MovedVariables m(seed, int(random.below(150)));
    m.move();
    staged += m.had_staged;
    initialised += m.first->store.variables()[0].initialised;
    m.life.end_all({m.first.get(), m.second.get()}, random.below(2) == 0);
    CHECK(encoded(m.first->save()) == encoded(m.second->save()));
    m.first->said = m.second->said = "";
    for (int i = 0; i < 120; ++i) m.life.step({m.first.get(), m.second.get()});
    m.life.end_all({m.first.get(), m.second.get()}, true);
    REQUIRE(m.first->said == m.second->said);
    CHECK(encoded(m.first->save()) == encoded(m.second->save()));
    CHECK(m.second->store.tables().empty());
  }
  CHECK(staged > 20);
  CHECK(initialised > 100);
}

TEST_CASE("hostile bytes of variables are refused, or make some that could be") {
  const std::uint64_t first_seed = std::random_device{}();
  int refused = 0, taken = 0;
  for (std::uint64_t seed = first_seed; seed < first_seed + 200; ++seed) {
    INFO("seed " << seed);
    Random random(mix64(seed));
    MovedVariables m(seed, 100);
    m.move();
    const ResourceState good = value_or_throw(m.first->save());
    for (int i = 0; i < 20; ++i) {
      ToldRules told;
      const bool record = m.had_staged && i % 2 == 0;
      ResourceState state = record ? value_or_throw(m.first->store.record(told)) : good;
      if (!state.tensors.empty() && random.below(5) == 0)
        state.tensors[random.below(state.tensors.size())] =
            random.below(2) == 0 ? Tensor() : Tensor::scalar<std::int64_t>(1);
      else if (random.below(6) == 0)
        state.words.resize(random.below(state.words.size() / 8 + 1) * 8);
      else
        state.words[random.below(state.words.size())] ^= std::byte(1 + random.below(255));
      HeldVariables other;
      KnownRules known(other.rules);
      if (record) throw_if_error(other.store.load(good));
      const auto before = encoded(other.save());
      Status status;
      other.with([&](Store& store, auto& out) {
        status = record ? store.stage_record(state, known, out) : store.load(state);
      });
      if (!status.ok()) {
        ++refused;
        CHECK(other.store.tables().empty());
        CHECK(encoded(other.save()) == before);
        continue;
      }
      ++taken;
      other.with([&](Store& store, auto& out) {
        store.live({9, 1, ~std::uint64_t{0} >> 1, 0, ~std::uint64_t{0}, {}}, out);
      });
      while (!other.tasks.empty()) other.apply_one();
      CHECK(other.store.tables().empty());
      HeldVariables again;
      CHECK(again.store.load(value_or_throw(other.save())).ok());
    }
  }
  CHECK(refused > 500);
  CHECK(taken > 50);
}

TEST_CASE("a staged record holds one contribution, however many replicas there are") {
  constexpr std::int64_t kElements = 1000;
  auto bytes_with = [&](std::uint32_t replicas, Combine combine) {
    HeldVariables held;
    VariablesLife(1).declare(held);
    const AttemptInfo first{{1, 1}, {1, 1}, 0, 1, 0, 0};
    const Tensor x = vector_of(std::vector<float>(kElements, 0.5f));
    auto write = [&](const AttemptInfo& a, const auto& rule, std::uint32_t replica) {
      held.with([&](Store& store, auto& out) {
        store.log({a.id.a * 100 + replica, a, {{{1, replica, {}}, rule, {x}}}, 0}, out);
      });
    };
    write(first, moving_rule("Assign", "a", 1, Combine::sum), 0);
    held.with([](Store& store, auto& out) { store.stage({1, {1, 1}, 1, 0}, out); });
    held.with([](Store& store, auto& out) { store.live({1, 1, 1, 1, 2, {}}, out); });
    held.apply_one();
    const AttemptInfo second{{1, 2}, {1, 2}, 1, 2, 1, 0};
    const auto rule =
        moving_rule(combine == Combine::each ? "Append" : "AssignAdd", "a", replicas, combine);
    for (std::uint32_t r = 0; r < replicas; ++r) write(second, rule, r);
    held.with([&](Store& store, auto& out) { store.stage({2, {1, 2}, replicas, 1}, out); });
    ToldRules told;
    return encoded(held.store.record(told)).size();
  };
  const std::size_t one = bytes_with(1, Combine::sum);
  CHECK(one > kElements * 4);
  CHECK(one < kElements * 4 + 1000);
  CHECK(bytes_with(4, Combine::sum) == one);
  CHECK(bytes_with(4, Combine::mean) == one);
  CHECK(bytes_with(4, Combine::first) == one);
  CHECK(bytes_with(4, Combine::each) > 4 * kElements * 4);  // which are applied one by one
}

TEST_CASE("a stream of records tells each rule once, by value and under its hash") {
  HeldVariables from, to;
  VariablesLife(1).declare(from);
  throw_if_error(to.store.load(value_or_throw(from.save())));
  ToldRules told;
  KnownRules known(to.rules);
  const auto rule = moving_rule("Assign", "a", 1, Combine::sum);
  std::vector<std::size_t> sizes;
  for (std::uint64_t s = 1; s <= 3; ++s) {
    const AttemptInfo a{{1, s}, {1, s}, s - 1, s, s - 1, 0};
    from.with([&](Store& store, auto& out) {
      store.log({s, a, {{{1, 0, {}}, rule, {vector_of({float(s), 2})}}}, 0}, out);
      store.stage({s, a.id, 1, s - 1}, out);
    });
    const auto record = value_or_throw(from.store.record(told));
    sizes.push_back(record.words.size());
    to.with([&](Store& store, auto& out) {
      CHECK(store.stage_record(record, known, out).ok());
      // Who was not told it says so.
      KnownRules nothing(to.rules);
      VariableStore other("c", to.rules);
      throw_if_error(other.declare({"a", DType::f32, PartialShape{-1}}));
      const Status untold = other.stage_record(record, nothing, out);
      CHECK(untold.code() == (s == 1 ? Code::ok : Code::failed_precondition));
    });
    const LiveList list{1, s, s, s, s + 1, {}};
    for (HeldVariables* held : {&from, &to}) {
      held->with([&](Store& store, auto& out) { store.live(list, out); });
      held->apply_one();
    }
  }
  CHECK(sizes[1] < sizes[0]);
  CHECK(sizes[2] == sizes[1]);
  CHECK(encoded(from.save()) == encoded(to.save()));
  UpdateRule other = *rule;
  CHECK(rule_hash(other) == rule_hash(*rule));
  other.attrs["T"] = Attr(DType::f64);
  CHECK(rule_hash(other) != rule_hash(*rule));
}
