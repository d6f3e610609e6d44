#include "tests/actors/control/control_interpreter.hpp"

#include <algorithm>
#include <cmath>

#include "core/tensor.hpp"

namespace troupe::test::control {
namespace {

constexpr std::size_t kMostArithmetic = 6000;
constexpr int kMostStatements = 20'000;
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
  struct Done {
    std::int32_t a, b;
    double da, db;
    const Statement* statement;
    Standing standing;
    bool in_loop;
  };
  const Done& done(std::size_t i) const { return done_[i]; }

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
  // What is done from here on.
  void begin(const Statement* statement, const Standing& standing, bool in_loop) {
    statement_ = statement;
    standing_ = standing;
    in_loop_ = in_loop;
  }

 private:
  Number made(double value, std::int32_t a, double da, std::int32_t b, double db) {
    if (!(std::abs(value) < kLargest) || done_.size() > kMostArithmetic) sound_ = false;
    done_.push_back({a, b, da, db, statement_, standing_, in_loop_});
    return {value, std::int32_t(done_.size() - 1)};
  }

  std::vector<Done> done_;
  bool sound_ = true;
  const Statement* statement_ = nullptr;
  Standing standing_;
  bool in_loop_ = false;
};

class Interpreter {
 public:
  Interpreter(const Program& program, Variables& variables, Fault fault)
      : program_(program),
        variables_(variables),
        snapshot_(variables),
        fault_(fault),
        numbers_(numbered(program)) {}

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
    inputs_.add(Type::four, {{x[0], x[1], x[1], x[0]}, 0});

    const std::vector<Value> results =
        returned(program_.main, kMainResults, inputs_, program_.functions.size());
    tape_.begin(nullptr, {}, false);
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
      const Tape::Done& done = tape_.done(i);
      if (slopes[i].size == 0 || !done.statement) continue;
      ran_.seen.gradients_through_loops += done.in_loop;
      ran_.seen.differentiated.emplace(done.statement, done.standing);
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
    if (++done_ > kMostStatements) tape_.give_up();
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
      case Kind::recur:
        return recur(s, scope, functions);
      case Kind::assign:
      case Kind::assign_add:
        return write(s, scope);
      case Kind::put:
        return put(s, scope);
      default:
        tape_.begin(&s, {functions, calls_ > 0}, loops_ > 0);
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
      case Kind::one_of_four:
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
      case Kind::print:
        return print(s, number(0));
      case Kind::draw:
        ran_.draws[numbers_.at(&s)] +=
            !(branches_ > 0 && fault_ == Fault::draws_are_lost_in_branches);
        ran_.seen.draws_in_loops += loops_ > 0;
        return of(tape_.add(number(0), {0, -1}));
      case Kind::take:
        return take();
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
    if (signature(s.kind).gives == Type::four) return four(s, scope);
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

  Value four(const Statement& s, Values& scope) {
    const std::vector<Type>& takes = signature(s.kind).takes;
    const std::vector<Number> first = scope.pick(takes[0], s.pick(0)).numbers;
    const Value other = takes.size() > 1 ? scope.pick(takes[1], s.pick(1)) : Value{};
    ran_.seen.fours_in_loops += loops_ > 0;
    ran_.seen.fours_in_calls += calls_ > 0;
    Value made;
    for (std::size_t k = 0; k < 4; ++k) {
      switch (s.kind) {
        case Kind::sums:
          made.numbers.push_back(tape_.add(first[k], other.numbers[k]));
          break;
        case Kind::multiples:
          made.numbers.push_back(tape_.multiply(first[k], other.numbers[0]));
          break;
        case Kind::turned: {
          const int by = modulo(other.integer, 4) + (fault_ == Fault::four_turn_too_far);
          made.numbers.push_back(first[(k + std::size_t(by)) % 4]);
          break;
        }
        case Kind::slid_in:
          made.numbers.push_back(k == 0 ? other.numbers.back() : first[k - 1]);
          break;
        case Kind::filled:
          made.numbers.push_back(first[0]);
          break;
        default:  // reshaped
          made.numbers.push_back(first[k]);
      }
    }
    return made;
  }

  Number squashed(Number x) { return tape_.divide(x, tape_.add({1, -1}, tape_.multiply(x, x))); }

  // --- effects ---

  Value print(const Statement& s, Number x) {
    std::vector<std::string>& all = ran_.prints[numbers_.at(&s)];
    const bool again = loops_ > 0 && fault_ == Fault::prints_in_loops_happen_again;
    all.insert(all.end(), again ? 2 : 1, Tensor::scalar(x.value).text());
    ran_.seen.prints_in_loops += loops_ > 0;
    return of(x);
  }

  void put(const Statement& s, const Values& scope) {
    std::vector<double>& all = ran_.puts;
    const bool first = fault_ == Fault::puts_overtake;
    all.insert(first ? all.begin() : all.end(),
               scope.pick(Type::number, s.pick(0)).numbers[0].value);
    ran_.seen.queues_in_loops += loops_ > 0;
  }

  Value take() {
    std::vector<double>& all = variables_.queue;
    if (all.empty()) {
      tape_.give_up();
      return of(Number{});
    }
    const auto at = fault_ == Fault::takes_the_newest ? all.end() - 1 : all.begin();
    const double taken = *at;
    all.erase(at);
    ++ran_.seen.takes;
    ran_.seen.queues_in_loops += loops_ > 0;
    return of(Number{taken, -1});
  }

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
    for (begin_loop(s, functions); more(); ++i) {
      Values around = with_variables(i + 1 < limit ? without_slopes(scope) : scope);
      variables = moved(s, variables, returned(s.blocks[0], s.types, around, functions));
    }
    end_loop(s, i);
    scope.add(Type::integer, of(i));
    add(scope, s.types, variables);
  }

  void scan(const Statement& s, Values& scope, std::size_t functions) {
    const std::vector<Number> slices = scope.pick(Type::vector, s.pick(0)).numbers;
    std::vector<Type> types = s.types;
    if (s.kind != Kind::fold) types.push_back(Type::number);
    std::vector<Value> state = first_values(s, 1, scope);
    Value stacked;
    begin_loop(s, functions);
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
    end_loop(s, int(slices.size()));
    add(scope, s.types, state);
    if (s.kind != Kind::fold) scope.add(Type::vector, stacked);
  }

  void call(const Statement& s, Values& scope, std::size_t functions) {
    const int called = callee(s, functions);
    if (called < 0) return;
    const Function& f = program_.functions[std::size_t(called)];
    std::vector<Value> arguments;
    for (std::size_t k = 0; k < f.takes.size(); ++k)
      arguments.push_back(scope.pick(f.takes[k], s.pick(k)));
    ran_.seen.calls_in_loops += loops_ > 0;
    add(scope, f.gives, called_with(std::size_t(called), arguments));
  }

  // The function around it by itself, unless it is deep enough.
  void recur(const Statement& s, Values& scope, std::size_t function) {
    const Function& f = program_.functions[function];
    if (depth_ == 0) {
      std::vector<Value> results;
      for (std::size_t r = 0; r < f.gives.size(); ++r)
        results.push_back(scope.pick(f.gives[r], s.pick(4 + r)));
      return add(scope, f.gives, results);
    }
    std::vector<Value> arguments{of(depth_ - 1)};
    for (std::size_t k = 1; k < f.takes.size(); ++k)
      arguments.push_back(scope.pick(f.takes[k], s.pick(k)));
    ran_.seen.deepest_call = std::max(ran_.seen.deepest_call, ++inner_calls_);
    add(scope, f.gives, called_with(function, arguments));
    --inner_calls_;
  }

  std::vector<Value> called_with(std::size_t function, const std::vector<Value>& arguments) {
    const Function& f = program_.functions[function];
    const std::int32_t before = depth_;
    depth_ = calls_itself(f) ? modulo(arguments[0].integer, kDeepest) : 0;
    if (depth_ > 0 && inner_calls_ == 0 && fault_ == Fault::calls_go_one_deeper) ++depth_;
    Values inside = inputs_;
    add(inside, f.takes, arguments);
    ++calls_;
    const auto results = returned(f.body, f.gives, inside, function);
    --calls_;
    depth_ = before;
    return results;
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
  void begin_loop(const Statement& s, std::size_t functions) {
    if (loops_ == 0) before_loop_ = variables_;
    open_.push_back(&s);
    ran_.seen.deepest_loop = std::max(ran_.seen.deepest_loop, ++loops_);
    LoopSeen& seen = ran_.seen.loops[&s];
    seen.standing = {functions, calls_ > 0};
    for (std::size_t k = 0; k < open_.size(); ++k) {
      int& nested = ran_.seen.loops[open_[k]].nested;
      nested = std::max(nested, int(open_.size() - k));
    }
  }
  void end_loop(const Statement& s, int trips) {
    int& most = ran_.seen.loops[&s].trips;
    most = std::max(most, trips);
    open_.pop_back();
    --loops_;
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
  const std::unordered_map<const Statement*, int> numbers_;
  std::vector<const Statement*> open_;  // loops
  int loops_ = 0, branches_ = 0, calls_ = 0, inner_calls_ = 0, done_ = 0;
  std::int32_t depth_ = 0;  // that the call it is in may go
};

}  // namespace

Ran interpret(const Program& program, const Inputs& inputs, Variables& variables, Fault fault) {
  return Interpreter(program, variables, fault).run(inputs);
}

}  // namespace troupe::test::control
