#include "tests/actors/control_interpreter.hpp"

#include <algorithm>
#include <cmath>

namespace troupe::test::control {
namespace {

constexpr std::size_t kMostArithmetic = 6000;
constexpr double kLargest = 1e4;

struct Number {
  double value = 0;
  std::int32_t at = -1;  // where it was computed; -1: a constant
};

struct Value {
  std::vector<Number> numbers;
  std::int32_t integer = 0;
};

Value of(Number x) { return {{x}, 0}; }
Value of(std::int32_t i) { return {{}, i}; }
std::int32_t modulo(std::int32_t a, std::int32_t b) { return ((a % b) + b) % b; }

// All arithmetic, in the order in which it was done.
class Tape {
 public:
  Number input(double value) { return made(value, -1, 0, -1, 0); }
  Number add(Number a, Number b) { return made(a.value + b.value, a.at, 1, b.at, 1); }
  Number subtract(Number a, Number b) { return made(a.value - b.value, a.at, 1, b.at, -1); }
  Number multiply(Number a, Number b) {
    return made(a.value * b.value, a.at, b.value, b.at, a.value);
  }
  Number divide(Number a, Number b) {
    return made(a.value / b.value, a.at, 1 / b.value, b.at, -a.value / (b.value * b.value));
  }
  Number negate(Number a) { return made(-a.value, a.at, -1, -1, 0); }

  std::vector<Slope> slopes(Number y) const {
    std::vector<Slope> all(done_.size());
    if (y.at >= 0) all[std::size_t(y.at)] = {1, 1};
    for (std::size_t i = done_.size(); i-- > 0;)
      for (auto [from, by] : {std::pair(done_[i].a, done_[i].da), {done_[i].b, done_[i].db}}) {
        if (from < 0) continue;
        all[std::size_t(from)].value += all[i].value * by;
        all[std::size_t(from)].size += all[i].size * std::abs(by);
      }
    return all;
  }
  std::size_t size() const { return done_.size(); }
  bool sound() const { return sound_; }
  void give_up() { sound_ = false; }
  void enter_loop(bool in) { loops_ += in ? 1 : -1; }
  bool in_loop(std::size_t i) const { return done_[i].in_loop; }

 private:
  struct Done {
    std::int32_t a, b;
    double da, db;
    bool in_loop;
  };
  Number made(double value, std::int32_t a, double da, std::int32_t b, double db) {
    if (!(std::abs(value) < kLargest) || done_.size() > kMostArithmetic) sound_ = false;
    done_.push_back({a, b, da, db, loops_ > 0});
    return {value, std::int32_t(done_.size() - 1)};
  }

  std::vector<Done> done_;
  bool sound_ = true;
  int loops_ = 0;
};

class Interpreter {
 public:
  Interpreter(const Program& program, Variables& variables, Fault fault)
      : program_(program), variables_(variables), snapshot_(variables), fault_(fault) {}

  Ran run(const Inputs& inputs) {
    Number x[2], weights[kWeights];
    for (int w = 0; w < kWeights; ++w) weights[w] = tape_.input(variables_.weights[w]);
    for (int k = 0; k < 2; ++k) x[k] = tape_.input(inputs.x[k]);
    std::vector<Number> xs;
    for (double v : inputs.xs) xs.push_back(tape_.input(v));
    weights_ = weights;
    for (Number w : weights) inputs_.add(Type::number, of(w));
    for (Number v : x) inputs_.add(Type::number, of(v));
    for (std::int32_t n : inputs.n) inputs_.add(Type::integer, of(n));
    inputs_.add(Type::vector, {xs, 0});
    inputs_.add(Type::list, of(x[0]));

    const std::vector<Value> results =
        returned(program_.main, kMainResults, inputs_, program_.functions.size());
    Number y;
    for (std::size_t r = 0; r < results.size(); ++r) {
      std::vector<double> plain;
      if (kMainResults[r] == Type::integer) plain.push_back(results[r].integer);
      for (Number v : results[r].numbers) {
        plain.push_back(v.value);
        y = tape_.add(y, v);
      }
      ran_.results.push_back(plain);
    }
    differentiate(y, x, weights, xs);
    return std::move(ran_);
  }

 private:
  void differentiate(Number y, const Number* x, const Number* weights,
                     const std::vector<Number>& xs) {
    const std::vector<Slope> slopes = tape_.slopes(y);
    auto of_input = [&](Number v) { return slopes[std::size_t(v.at)]; };
    for (int k = 0; k < 2; ++k) ran_.x[k] = of_input(x[k]);
    for (int w = 0; w < kWeights; ++w) ran_.weights[w] = of_input(weights[w]);
    for (Number v : xs) ran_.xs.push_back(of_input(v));
    for (std::size_t i = 0; i < slopes.size(); ++i) {
      if (slopes[i].size > kLargest * kLargest) tape_.give_up();
      ran_.seen.gradients_through_loops += tape_.in_loop(i) && slopes[i].size > 0;
    }
    ran_.sound = tape_.sound();
  }

  using Values = Scope<Value>;
  // A block's results, with what is in scope around it.
  std::vector<Value> returned(const Block& block, const std::vector<Type>& types, Values scope,
                              std::size_t functions) {
    for (const Statement& s : block.statements) {
      if (!tape_.sound()) break;
      run(s, scope, functions);
    }
    std::vector<Value> results;
    for (std::size_t r = 0; r < types.size(); ++r)
      results.push_back(scope.pick(types[r], r < block.results.size() ? block.results[r] : 0));
    return results;
  }

  void run(const Statement& s, Values& scope, std::size_t functions) {
    switch (s.kind) {
      case Kind::branch:
      case Kind::choose:
        return branch(s, scope, functions);
      case Kind::loop:
        return loop(s, scope, functions);
      case Kind::scan:
      case Kind::map:
      case Kind::fold:
        return scan(s, scope, functions);
      case Kind::call:
        return call(s, scope, functions);
      case Kind::assign:
      case Kind::assign_add:
        return write(s, scope);
      default:
        scope.add(signature(s.kind).gives, simple(s, scope));
    }
  }

  Value simple(const Statement& s, Values& scope) {
    const std::vector<Type>& takes = signature(s.kind).takes;
    auto value = [&](std::size_t k) -> const Value& { return scope.pick(takes[k], s.pick(k)); };
    auto number = [&](std::size_t k) { return value(k).numbers[0]; };
    auto integer = [&](std::size_t k) { return value(k).integer; };
    switch (s.kind) {
      case Kind::add:
        return of(tape_.add(number(0), number(1)));
      case Kind::subtract:
        return of(tape_.subtract(number(0), number(1)));
      case Kind::multiply:
        return of(tape_.multiply(number(0), number(1)));
      case Kind::negate:
        return of(tape_.negate(number(0)));
      case Kind::squash:
        return of(squashed(number(0)));
      case Kind::scale:
        return of(tape_.multiply(number(0), {s.value / 8.0, -1}));
      case Kind::to_number:
        return of(Number{double(integer(0)), -1});
      case Kind::element:
      case Kind::get: {
        const auto& all = value(0).numbers;
        Number found = all[std::size_t(modulo(integer(1), std::int32_t(all.size())))];
        if (fault_ == Fault::no_gradient_of_lists && s.kind == Kind::get) found.at = -1;
        return of(found);
      }
      case Kind::read_weight:
        return of(weights_[s.value % kWeights]);
      case Kind::read_state:
        return of(read(s.value % kStates));
      case Kind::sum:
        return of(modulo(integer(0) + integer(1), 16));
      case Kind::product:
        return of(modulo(integer(0) * integer(1) + s.value, 16));
      case Kind::fixed:
        return of(std::int32_t(s.value));
      case Kind::less:
        return of(std::int32_t(number(0).value < number(1).value));
      case Kind::length:
        return of(modulo(std::int32_t(value(0).numbers.size()), 16));
      default:
        return several(s, scope);
    }
  }

  // Vectors and lists.
  Value several(const Statement& s, Values& scope) {
    const std::vector<Type>& takes = signature(s.kind).takes;
    Value made = scope.pick(takes[0], s.pick(0));
    std::vector<Number>& all = made.numbers;
    const Number last = takes.back() == Type::number
                            ? scope.pick(Type::number, s.pick(takes.size() - 1)).numbers[0]
                            : Number{};
    ran_.seen.lists_in_loops += loops_ > 0 && (s.kind == Kind::push || s.kind == Kind::set);
    switch (s.kind) {
      case Kind::scaled:
        for (Number& x : all) x = tape_.multiply(x, last);
        break;
      case Kind::shifted:
        for (Number& x : all) x = tape_.add(x, last);
        break;
      case Kind::squared:
        for (Number& x : all) x = tape_.multiply(x, x);
        break;
      case Kind::appended:
      case Kind::push:
        all.push_back(last);
        break;
      case Kind::set: {
        const std::int32_t i = scope.pick(Type::integer, s.pick(1)).integer;
        const auto at = std::size_t(modulo(i, std::int32_t(all.size()) + 1));
        if (at == all.size()) all.push_back(last);
        all[at] = last;
        break;
      }
      default:  // begin, stacked, unstacked: the same numbers
        break;
    }
    if (fault_ == Fault::lists_are_shared && (s.kind == Kind::push || s.kind == Kind::set))
      const_cast<Value&>(scope.pick(Type::list, s.pick(0))) = made;
    return made;
  }

  Number squashed(Number x) { return tape_.divide(x, tape_.add({1, -1}, tape_.multiply(x, x))); }

  Number read(int state) {
    ran_.seen.reads_after_writes += written_[state];
    ran_.seen.reads_in_loops += loops_ > 0 && written_[state];
    if (fault_ == Fault::reads_in_loops_see_what_was_before && loops_ > 0)
      return {before_loop_.states[state], -1};
    const bool old = fault_ == Fault::reads_see_the_snapshot;
    return {old ? snapshot_.states[state] : variables_.states[state], -1};
  }
  void write(const Statement& s, const Values& scope) {
    const int state = s.value % kStates;
    double& variable = variables_.states[state];
    const double value = scope.pick(Type::number, s.pick(0)).numbers[0].value;
    variable = s.kind == Kind::assign ? value : variable + value;
    if (!(std::abs(variable) < kLargest)) tape_.give_up();
    written_[state] = true;
    ran_.seen.writes_in_branches += branches_ > 0;
    ran_.seen.writes_in_loops += loops_ > 0;
  }

  bool holds(const Statement& s, const Values& scope) const {
    auto number = [&](std::size_t k) {
      return scope.pick(Type::number, s.pick(k)).numbers[0].value;
    };
    auto integer = [&](std::size_t k) { return scope.pick(Type::integer, s.pick(k)).integer; };
    if (s.value % 3 == 0) return number(0) < number(1);
    if (s.value % 3 == 1) return integer(0) < integer(1);
    return modulo(integer(0), 2) == 0;
  }

  void branch(const Statement& s, Values& scope, std::size_t functions) {
    std::size_t taken;
    if (s.kind == Kind::branch) {
      taken = holds(s, scope) ? 0 : 1;
    } else {
      const std::int64_t index = scope.pick(Type::integer, s.pick(0)).integer - 1;
      const bool outside = index < 0 || index >= std::int64_t(s.blocks.size());
      taken = !outside                                    ? std::size_t(index)
              : fault_ == Fault::out_of_range_takes_first ? 0
                                                          : s.blocks.size() - 1;
      ran_.seen.out_of_range += outside;
    }
    ran_.seen.branches_in_loops += loops_ > 0;
    for (std::size_t b = 0; b < s.blocks.size(); ++b)
      if (b != taken) ran_.seen.dead_loops += has_loop(s.blocks[b]);
    ++branches_;
    if (fault_ == Fault::other_branch_writes)
      returned(s.blocks[(taken + 1) % s.blocks.size()], s.types, scope, functions);
    const auto results = returned(s.blocks[taken], s.types, scope, functions);
    --branches_;
    add(scope, s.types, results);
  }

  void loop(const Statement& s, Values& scope, std::size_t functions) {
    const std::int32_t limit = modulo(scope.pick(Type::integer, s.pick(0)).integer, s.value + 1) +
                               (fault_ == Fault::one_iteration_more);
    std::vector<Value> variables = first_values(s, 2, scope);
    std::int32_t i = 0;
    auto with_variables = [&](const Values& around) {
      Values inside = around;
      inside.add(Type::integer, of(i));
      add(inside, s.types, variables);
      return inside;
    };
    auto more = [&] {
      if (i >= limit || !tape_.sound()) return false;
      if (s.pick(1) == 0) return true;
      return with_variables(scope).pick(Type::number, s.pick(1) - 1).numbers[0].value < 0.5;
    };
    if (!more()) ++ran_.seen.no_trips;
    for (begin_loop(); more(); ++i) {
      Values around = with_variables(i + 1 < limit ? without_slopes(scope) : scope);
      variables = moved(s, variables, returned(s.blocks[0], s.types, around, functions));
    }
    end_loop();
    scope.add(Type::integer, of(i));
    add(scope, s.types, variables);
  }

  void scan(const Statement& s, Values& scope, std::size_t functions) {
    const std::vector<Number> slices = scope.pick(Type::vector, s.pick(0)).numbers;
    std::vector<Type> types = s.types;
    if (s.kind != Kind::fold) types.push_back(Type::number);
    std::vector<Value> state = first_values(s, 1, scope);
    Value stacked;
    begin_loop();
    for (Number slice : slices) {
      Values inside = scope;
      add(inside, s.types, state);
      inside.add(Type::number, of(slice));
      std::vector<Value> next = returned(s.blocks[0], types, inside, functions);
      if (s.kind != Kind::fold) {
        stacked.numbers.push_back(next.back().numbers[0]);
        next.pop_back();
      }
      state = next;
    }
    end_loop();
    add(scope, s.types, state);
    if (s.kind != Kind::fold) scope.add(Type::vector, stacked);
  }

  void call(const Statement& s, Values& scope, std::size_t functions) {
    const int called = callee(s, functions);
    if (called < 0) return;
    const Function& f = program_.functions[std::size_t(called)];
    Values inside = inputs_;
    for (std::size_t k = 0; k < f.takes.size(); ++k)
      inside.add(f.takes[k], scope.pick(f.takes[k], s.pick(k)));
    ran_.seen.calls_in_loops += loops_ > 0;
    add(scope, f.gives, returned(f.body, f.gives, inside, std::size_t(called)));
  }

  std::vector<Value> first_values(const Statement& s, std::size_t from, const Values& scope) {
    std::vector<Value> all;
    for (std::size_t v = 0; v < s.types.size(); ++v)
      all.push_back(scope.pick(s.types[v], s.pick(from + v)));
    return all;
  }
  static void add(Values& scope, const std::vector<Type>& types, const std::vector<Value>& values) {
    for (std::size_t v = 0; v < types.size(); ++v) scope.add(types[v], values[v]);
  }
  void begin_loop() {
    if (loops_ == 0) before_loop_ = variables_;
    ran_.seen.deepest_loop = std::max(ran_.seen.deepest_loop, ++loops_);
    tape_.enter_loop(true);
  }
  void end_loop() {
    --loops_;
    tape_.enter_loop(false);
  }

  // --- faults ---

  // What comes next of the variables of a loop.
  std::vector<Value> moved(const Statement& s, const std::vector<Value>& now,
                           std::vector<Value> next) const {
    if (fault_ != Fault::variables_move_one_by_one || now.size() < 2) return next;
    // A variable that takes another one's place sees what that one has become.
    for (std::size_t v = 1; v < now.size(); ++v)
      for (std::size_t u = 0; u < v; ++u)
        if (s.types[u] == s.types[v] && s.types[v] == Type::number &&
            next[v].numbers[0].at == now[u].numbers[0].at)
          next[v] = next[u];
    return next;
  }
  Values without_slopes(const Values& scope) const {
    if (fault_ != Fault::invariants_count_once) return scope;
    Values plain = scope;
    for (auto& all : plain.values)
      for (Value& value : all)
        for (Number& x : value.numbers) x.at = -1;
    return plain;
  }

  const Program& program_;
  Variables& variables_;
  const Variables snapshot_;
  Variables before_loop_ = snapshot_;
  const Fault fault_;
  Tape tape_;
  Ran ran_;
  Values inputs_;
  const Number* weights_ = nullptr;
  bool written_[kStates] = {};
  int loops_ = 0, branches_ = 0;
};

}  // namespace

Ran interpret(const Program& program, const Inputs& inputs, Variables& variables, Fault fault) {
  return Interpreter(program, variables, fault).run(inputs);
}

}  // namespace troupe::test::control
