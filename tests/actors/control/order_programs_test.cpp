// Writes of variables in branches, loops and functions happen one after the other, as the program
// reads, however little of that a client orders: random programs beside a plain interpreter.
#include <doctest/doctest.h>

#include <cstdlib>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "apps/troupe.hpp"
#include "core/hash.hpp"

using namespace troupe;

namespace order_programs {
namespace {

constexpr int kVariables = 2;
using Values = std::array<double, kVariables>;

struct Statement;
using Block = std::vector<Statement>;

struct Statement {
  enum Kind { add, set, read, branch, loop, call };
  Kind kind = add;
  int variable = 0;
  int value = 0;         // of add and set; of a branch: is it taken; of a loop: how often
  bool fed = false;      // that comes from a feed, not from a constant
  bool ordered = false;  // after the statements before it, as the client says
  Block then, otherwise;
  int function = 0;
};

struct Program {
  std::vector<Block> functions;  // none calls another
  Block main;
};

class Draw {
 public:
  explicit Draw(std::uint64_t seed) : random_(seed) {}

  Program program() {
    Program p;
    functions_ = 0;
    for (std::uint64_t n = random_.below(3); n > 0; --n) p.functions.push_back(block(1, 3));
    functions_ = int(p.functions.size());
    p.main = block(0, 9);
    return p;
  }

 private:
  Block block(int depth, std::uint64_t most) {
    Block b;
    for (std::uint64_t n = random_.below(most) + (depth == 0); n > 0; --n)
      b.push_back(statement(depth));
    return b;
  }
  Statement statement(int depth) {
    Statement s;
    const std::uint64_t kind = random_.below(depth < 3 ? 10 : 6);
    s.kind = kind < 3   ? Statement::add
             : kind < 4 ? Statement::set
             : kind < 6 ? Statement::read
             : kind < 8 ? Statement::branch
             : kind < 9 ? Statement::loop
                        : Statement::call;
    if (s.kind == Statement::call && functions_ == 0) s.kind = Statement::branch;
    s.variable = random_.below(4) == 0;
    s.fed = random_.below(2) == 0;
    s.ordered = random_.below(4) == 0;
    s.value = 1 + int(random_.below(9));
    if (s.kind == Statement::branch) {
      s.value = int(random_.below(2));
      s.then = block(depth + 1, 4);
      s.otherwise = block(depth + 1, 3);
    } else if (s.kind == Statement::loop) {
      s.value = int(random_.below(4));
      s.then = block(depth + 1, 4);
    } else if (s.kind == Statement::call) {
      s.function = int(random_.below(std::uint64_t(functions_)));
    }
    return s;
  }

  Random random_;
  int functions_ = 0;
};

// Which reads say something: those that come after every earlier write of their variable. Others
// see the values as of the beginning of the run.
using Known = std::array<bool, kVariables>;
constexpr Known kAll = {true, true};

struct Writes {
  const Program& program;
  bool operator()(const Block& block, int variable) const {
    for (const Statement& s : block)
      if ((s.kind <= Statement::set && s.variable == variable) || (*this)(s.then, variable) ||
          (*this)(s.otherwise, variable) ||
          (s.kind == Statement::call &&
           (*this)(program.functions[std::size_t(s.function)], variable)))
        return true;
    return false;
  }
};

// What a block has of each variable: is there a statement in it already that may write it?
struct Position {
  Known inherited = kAll;
  std::array<bool, kVariables> written = {};

  bool knows(int v) const { return written[std::size_t(v)] || inherited[std::size_t(v)]; }
  // At the beginning of a block of `s`, which stands here.
  Known inside(const Statement& s) const {
    Known known;
    for (int v = 0; v < kVariables; ++v)
      known[std::size_t(v)] = written[std::size_t(v)] ? s.ordered : inherited[std::size_t(v)];
    return known;
  }
  void pass(const Statement& s, const Writes& writes) {
    for (int v = 0; v < kVariables; ++v)
      if (writes({s}, v)) written[std::size_t(v)] = true;
  }
};

// --- the interpreter ---

class Interpreter {
 public:
  Interpreter(const Program& program, Values& values)
      : program_(program), writes_{program}, values_(values) {}

  // The results of the statements of main that have one.
  std::vector<double> run() {
    std::vector<double> results;
    Position here;
    for (const Statement& s : program_.main) {
      if (s.kind > Statement::set)
        results.push_back(statement(s, 1, here));
      else
        statement(s, 1, here);
      here.pass(s, writes_);
    }
    return results;
  }

 private:
  double block(const Block& b, double x, Known known) {
    Position here{known, {}};
    for (const Statement& s : b) {
      x = statement(s, x, here);
      here.pass(s, writes_);
    }
    return x;
  }
  double statement(const Statement& s, double x, const Position& here) {
    double& v = values_[std::size_t(s.variable)];
    switch (s.kind) {
      case Statement::add:
        v += s.value;
        return x;
      case Statement::set:
        v = s.value;
        return x;
      case Statement::read:
        return here.knows(s.variable) ? x * 0.5 + v : x;
      case Statement::branch:
        return block(s.value ? s.then : s.otherwise, x, here.inside(s));
      case Statement::loop:
        for (int i = 0; i < s.value; ++i) x = block(s.then, x, here.inside(s));
        return x;
      case Statement::call:
        // A function is built once for all calls: it counts on nothing that is before it.
        return block(program_.functions[std::size_t(s.function)], x, Known{});
    }
    std::abort();
  }

  const Program& program_;
  const Writes writes_;
  Values& values_;
};

// --- the graph ---

class Builder {
 public:
  Builder(Graph& g, const Program& program, const std::vector<std::string>& devices)
      : graph(g), writes_{program} {
    for (int v = 0; v < kVariables; ++v) {
      auto there = g.with_device(devices[std::size_t(v) % devices.size()]);
      variables.push_back(variable(g, "v" + std::to_string(v), Tensor::scalar(double(v))));
    }
    for (std::size_t f = 0; f < program.functions.size(); ++f)
      functions_.push_back(
          function(g, "f" + std::to_string(f), {f64_scalar}, {f64_scalar},
                   [&](Function&, Output x) { return block(program.functions[f], x, Known{}); }));
    Standing here;
    const Output one = constant(g, 1.0);
    for (const Statement& s : program.main) {
      const Output result = statement(s, one, here);
      if (s.kind > Statement::set) results.push_back(result);
    }
    for (const auto& last : here.last)
      if (!last.empty()) targets.push_back(last);
    for (const Op& op : here.effects) targets.push_back(op);
  }

  std::vector<Variable> variables;
  std::vector<Output> results, feeds;
  std::vector<Tensor> fed;
  std::vector<Op> targets;
  Graph& graph;

 private:
  struct Standing {
    Position position;
    std::array<Op, kVariables> last;  // that may write it
    std::vector<Op> effects;
  };

  Output block(const Block& b, Output x, Known known) {
    Standing here;
    here.position.inherited = known;
    for (const Statement& s : b) x = statement(s, x, here);
    return identity(x);
  }

  static std::vector<Op> after(const Op& last) {
    return last.empty() ? std::vector<Op>{} : std::vector<Op>{last};
  }

  template <class T>
  Output given(const Statement& s, T value) {
    if (!s.fed || graph.innermost().body() != nullptr) return constant(graph, value);
    feeds.push_back(placeholder<T>(graph, PartialShape::scalar()));
    fed.push_back(Tensor::scalar(value));
    return feeds.back();
  }

  Output statement(const Statement& s, const Output& x, Standing& here) {
    Output result = x;
    Op made;
    const Variable& v = variables[std::size_t(s.variable)];
    std::vector<Op> before;
    if (s.ordered)
      for (const Op& last : here.last)
        if (!last.empty()) before.push_back(last);
    switch (s.kind) {
      case Statement::add: {
        auto after = graph.with_control(before);
        made = assign_add(v, constant(graph, double(s.value)));
        break;
      }
      case Statement::set: {
        auto after = graph.with_control(before);
        made = assign(v, constant(graph, double(s.value)));
        break;
      }
      case Statement::read:
        if (here.position.knows(s.variable))
          result = x * 0.5 + read(v, after(here.last[std::size_t(s.variable)]));
        break;
      case Statement::branch: {
        const Output taken = given(s, s.value != 0);
        auto after = graph.with_control(before);
        const Known known = here.position.inside(s);
        result = cond(
            taken, [&] { return block(s.then, x, known); },
            [&] { return block(s.otherwise, x, known); });
        break;
      }
      case Statement::loop: {
        const Output limit = given(s, std::int64_t(s.value));
        auto after = graph.with_control(before);
        const Known known = here.position.inside(s);
        result = std::get<1>(while_loop(
            std::tuple{constant(graph, std::int64_t{0}), x},
            [&](Output i, Output) { return i < limit; },
            [&](Output i, Output y) {
              return std::tuple{i + 1, block(s.then, y, known)};
            }));
        break;
      }
      case Statement::call: {
        auto after = graph.with_control(before);
        result = functions_[std::size_t(s.function)](x);
        break;
      }
    }
    if (s.kind > Statement::read) made = Op(result);
    if (!made.empty()) here.effects.push_back(made);
    for (int i = 0; i < kVariables; ++i)
      if (writes_({s}, i)) here.last[std::size_t(i)] = made;
    here.position.pass(s, writes_);
    return result;
  }

  const Writes writes_;
  std::vector<Function> functions_;
};

void print_block(const Block& block, int indent, std::string& out) {
  for (const Statement& s : block) {
    out += std::string(std::size_t(indent), ' ') + (s.ordered ? "after all before: " : "");
    const std::string v = "v" + std::to_string(s.variable);
    const std::string given = std::to_string(s.value) + (s.fed ? " (fed)" : "");
    switch (s.kind) {
      case Statement::add:
        out += v + " += " + given + "\n";
        break;
      case Statement::set:
        out += v + " = " + given + "\n";
        break;
      case Statement::read:
        out += "read " + v + "\n";
        break;
      case Statement::branch:
        out += "if " + given + "\n";
        print_block(s.then, indent + 2, out);
        out += std::string(std::size_t(indent), ' ') + "else\n";
        print_block(s.otherwise, indent + 2, out);
        break;
      case Statement::loop:
        out += "repeat " + given + "\n";
        print_block(s.then, indent + 2, out);
        break;
      case Statement::call:
        out += "call f" + std::to_string(s.function) + "\n";
        break;
    }
  }
}

std::string text_of(const Program& p) {
  std::string out;
  for (std::size_t f = 0; f < p.functions.size(); ++f) {
    out += "f" + std::to_string(f) + ":\n";
    print_block(p.functions[f], 2, out);
  }
  out += "main:\n";
  print_block(p.main, 2, out);
  return out;
}

bool agrees(std::uint64_t seed, const std::vector<std::string>& devices,
            const std::vector<std::string>& types) {
  const Program program = Draw(seed).program();
  Graph g;
  Builder built(g, program, devices);
  Cluster cluster;
  cluster.threads = 1;
  cluster.devices = types;
  cluster.fake_seed = seed;
  Session s(g, cluster);
  s.init();
  auto step = s.compile(built.results, built.targets, built.feeds);
  Values values = {0, 1};
  const std::vector<Output> state(built.variables.begin(), built.variables.end());
  for (int run = 0; run < 2; ++run) {
    const auto want = Interpreter(program, values).run();
    const auto got = step.run(built.fed);
    const auto left = s.run(state);
    INFO("seed " << seed << ", run " << run << "\n" << text_of(program));
    for (std::size_t i = 0; i < want.size(); ++i) {
      CHECK_MESSAGE(got[i].item<double>() == want[i], "result " << i);
      if (got[i].item<double>() != want[i]) return false;
    }
    for (std::size_t v = 0; v < values.size(); ++v) {
      CHECK_MESSAGE(left[v].item<double>() == values[v], "v" << v);
      if (left[v].item<double>() != values[v]) return false;
    }
  }
  return true;
}

void compare(std::uint64_t programs, const std::vector<std::string>& devices,
             const std::vector<std::string>& types) {
  int wrong = 0;
  for (std::uint64_t seed = 1; seed <= programs && wrong < 3; ++seed)
    if (!agrees(seed, devices, types)) ++wrong;
}

}  // namespace
}  // namespace order_programs

using order_programs::compare;

TEST_CASE("what comes after a branch that is not taken comes after what was before the branch") {
  Graph g;
  const Variable v = variable(g, "v", Tensor::scalar(0.0));
  const Output one = constant(g, 1.0);
  const Op a = assign_add(v, one), b = assign_add(v, one);
  const Op c = cond(
      constant(g, false), [&] { return assign_add(v, constant(g, 5.0)); },
      [&] { return group(g, {}); });
  const Output seen = read(v, {c});
  const auto [i] = while_loop(
      std::tuple{constant(g, std::int64_t{0})}, [](Output k) { return k < 1; },
      [&](Output k) {
        assign_add(v, constant(g, 100.0));
        return std::tuple{k + 1};
      });
  Cluster cluster;
  cluster.threads = 1;
  Session s(g, cluster);
  s.init();
  CHECK(s.run({seen}, {a, b, c, Op(i)})[0].item<double>() == 2);
  CHECK(s.run({v.value()})[0].item<double>() == 102);
}

TEST_CASE("writes in random programs happen one after the other") { compare(60, {""}, {"CPU"}); }

TEST_CASE("writes of variables on two devices in random programs happen one after the other") {
  compare(20, {"/cpu:0", "/cpu:1"}, {"CPU", "CPU"});
  compare(20, {"/cpu:0", "/fake:0"}, {"CPU", "FAKE"});
}

TEST_CASE("writes in 100,000 random programs happen one after the other [slow]") {
  const char* programs = std::getenv("PROGRAMS");
  compare(programs ? std::uint64_t(std::atoll(programs)) : 100'000, {""}, {"CPU"});
  compare(5'000, {"/cpu:0", "/cpu:1"}, {"CPU", "CPU"});
  compare(5'000, {"/cpu:0", "/fake:0"}, {"CPU", "FAKE"});
}
