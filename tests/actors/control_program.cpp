#include "tests/actors/control_program.hpp"

#include <algorithm>
#include <functional>

#include "troupe/core/hash.hpp"

namespace troupe::test::control {
namespace {

constexpr Type number = Type::number, integer = Type::integer, vector = Type::vector,
               list = Type::list;

bool any_statement(const Block& block, const std::function<bool(const Statement&)>& holds) {
  return std::any_of(block.statements.begin(), block.statements.end(), [&](const Statement& s) {
    return holds(s) || std::any_of(s.blocks.begin(), s.blocks.end(),
                                   [&](const Block& b) { return any_statement(b, holds); });
  });
}

// Of the statement, those in its blocks and those that it calls.
bool any_reached(const Program& program, std::size_t functions, const Statement& statement,
                 const std::function<bool(const Statement&)>& holds) {
  auto reached = [&](const Statement& s) {
    if (holds(s)) return true;
    const int called = s.kind == Kind::call ? callee(s, functions) : -1;
    if (called < 0) return false;
    const auto& body = program.functions[std::size_t(called)].body.statements;
    return std::any_of(body.begin(), body.end(), [&](const Statement& inner) {
      return any_reached(program, std::size_t(called), inner, holds);
    });
  };
  return reached(statement) ||
         std::any_of(statement.blocks.begin(), statement.blocks.end(),
                     [&](const Block& b) { return any_statement(b, reached); });
}

class Drawing {
 public:
  explicit Drawing(std::uint64_t seed) : random_(seed) {}

  Program program() {
    const std::uint64_t functions = random_.below(3);
    for (std::uint64_t f = 0; f < functions; ++f) {
      Function function;
      function.takes = types(1, 3, false);
      function.gives = types(1, 2, false);
      callable_ = f;
      const bool variables = random_.below(3) == 0;
      function.body = block(Place{.depth = 1, .variables = variables, .in_function = true},
                            function.gives, 1 + random_.below(3));
      made_.functions.push_back(std::move(function));
    }
    callable_ = functions;
    made_.main = block(Place{}, {}, 3 + random_.below(5));
    made_.main.results = {0, 1, 2, 3, 4, 5, 0, 0, 1, 0};  // what was made last
    return std::move(made_);
  }

 private:
  struct Place {
    int depth = 0;
    bool in_loop = false;
    bool variables = true;  // may be used
    bool in_function = false;
    Place inside(bool loop) const { return {depth + 1, in_loop || loop, variables, in_function}; }
    // What a function reads would depend on where it is called.
    bool allows(Kind kind) const {
      if (kind == Kind::read_weight) return variables && !(in_loop && in_function);
      if (kind == Kind::read_state) return !in_function;
      return !is_effect(kind) || variables;
    }
  };

  // Mostly what was made last.
  unsigned back() { return unsigned(random_.below(random_.below(3) ? 3 : 12)); }
  std::vector<Type> types(std::uint64_t least, std::uint64_t most, bool lists) {
    std::vector<Type> all(least + random_.below(most - least + 1));
    for (Type& type : all) {
      const std::uint64_t k = random_.below(lists ? 9 : 7);
      type = k < 4 ? number : k < 5 ? integer : k < 7 ? vector : list;
    }
    return all;
  }

  Block block(Place place, const std::vector<Type>& results, std::uint64_t statements) {
    Block made;
    for (std::uint64_t s = 0; s < statements; ++s) made.statements.push_back(statement(place));
    for (std::size_t r = 0; r < results.size(); ++r)
      made.results.push_back(random_.below(2) ? 0 : back());
    return made;
  }
  Block inner(Place place, const std::vector<Type>& results) {
    return block(place, results, 1 + random_.below(3));
  }

  Statement statement(Place place) {
    Statement made = random_.below(20) < 9 && place.depth < 3 ? control(place) : simple(place);
    made.device = unsigned(random_.below(8));
    return made;
  }

  Statement simple(Place place) {
    Statement made;
    constexpr Kind kOfStates[] = {Kind::read_state, Kind::assign, Kind::assign_add};
    do
      made.kind = random_.below(6) ? Kind(random_.below(std::uint64_t(Kind::branch)))
                                   : kOfStates[random_.below(3)];
    while (!place.allows(made.kind));
    for (std::size_t k = 0; k < signature(made.kind).takes.size(); ++k)
      made.picks.push_back(back());
    made.value = int(random_.below(16));
    return made;
  }

  Statement control(Place place) {
    Statement made;
    for (int k = 0; k < 6; ++k) made.picks.push_back(back());
    made.value = 1 + int(random_.below(4));
    switch (random_.below(9)) {
      case 0:
      case 1:
        return branch(std::move(made), place, Kind::branch, 2);
      case 2:
        return branch(std::move(made), place, Kind::choose, 2 + random_.below(3));
      case 3:
      case 4:
      case 5:
        made.kind = Kind::loop;
        made.types = types(1, 3, true);
        if (random_.below(3)) made.picks[1] = 0;
        made.blocks = {inner(place.inside(true), made.types)};
        return made;
      case 6:
        return scan(std::move(made), place);
      default:
        return call(std::move(made), place);
    }
  }
  Statement branch(Statement made, Place place, Kind kind, std::uint64_t blocks) {
    made.kind = kind;
    made.types = types(1, 2, true);
    for (std::uint64_t b = 0; b < blocks; ++b)
      made.blocks.push_back(inner(place.inside(false), made.types));
    return made;
  }
  Statement scan(Statement made, Place place) {
    made.kind = Kind(std::uint64_t(Kind::scan) + random_.below(3));
    if (made.kind != Kind::map) made.types = types(1, 2, true);
    std::vector<Type> results = made.types;
    if (made.kind != Kind::fold) results.push_back(number);
    made.blocks = {inner(place.inside(true), results)};
    return made;
  }
  Statement call(Statement made, Place place) {
    made.kind = Kind::call;
    made.value = int(random_.below(16));
    return callable_ == 0 ? simple(place) : made;
  }

  Random random_;
  Program made_;
  std::size_t callable_ = 0;
};

// Counts down over all that can be made smaller, and makes that smaller at which it arrives at 0.
class Smaller {
 public:
  explicit Smaller(int n) : left_(n) {}

  bool operator()(Program& program) {
    if (in(program.main)) return true;
    for (Function& f : program.functions)
      if (in(f.body)) return true;
    return false;
  }

 private:
  bool here() { return left_-- == 0; }

  bool in(Block& block) {
    auto& all = block.statements;
    for (std::size_t s = all.size(); s-- > 0;)
      if (here()) return all.erase(all.begin() + std::ptrdiff_t(s)), true;
    for (std::size_t s = 0; s < all.size(); ++s) {
      for (std::size_t b = 0; b < all[s].blocks.size(); ++b)
        if (here()) return hoist(all, s, b), true;
      if (in(all[s])) return true;
    }
    return to_zero(block.results);
  }
  bool in(Statement& s) {
    if (s.kind == Kind::choose && s.blocks.size() > 1 && here()) return s.blocks.pop_back(), true;
    for (std::size_t t = 0; s.types.size() > 1 && t < s.types.size(); ++t)
      if (here()) return drop_type(s, t), true;
    if (s.kind == Kind::loop && s.value > 1 && here()) return --s.value, true;
    if (s.device && here()) return s.device = 0, true;
    if (to_zero(s.picks)) return true;
    return std::any_of(s.blocks.begin(), s.blocks.end(), [&](Block& b) { return in(b); });
  }
  bool to_zero(std::vector<unsigned>& picks) {
    for (unsigned& pick : picks)
      if (pick != 0 && here()) return pick = 0, true;
    return false;
  }
  static void hoist(std::vector<Statement>& all, std::size_t s, std::size_t b) {
    std::vector<Statement> inner = std::move(all[s].blocks[b].statements);
    const auto at = all.erase(all.begin() + std::ptrdiff_t(s));
    all.insert(at, inner.begin(), inner.end());
  }
  static void drop_type(Statement& s, std::size_t t) {
    s.types.erase(s.types.begin() + std::ptrdiff_t(t));
    for (Block& b : s.blocks)
      if (t < b.results.size()) b.results.erase(b.results.begin() + std::ptrdiff_t(t));
  }

  int left_;
};

}  // namespace

const Signature& signature(Kind kind) {
  static const Signature all[] = {
      {"add", {number, number}, number},
      {"subtract", {number, number}, number},
      {"multiply", {number, number}, number},
      {"negate", {number}, number},
      {"squash", {number}, number},
      {"scale", {number}, number},
      {"to_number", {integer}, number},
      {"element", {vector, integer}, number},
      {"get", {list, integer}, number},
      {"read_weight", {}, number},
      {"read_state", {}, number},
      {"sum", {integer, integer}, integer},
      {"product", {integer, integer}, integer},
      {"fixed", {}, integer},
      {"less", {number, number}, integer},
      {"length", {list}, integer},
      {"scaled", {vector, number}, vector},
      {"shifted", {vector, number}, vector},
      {"squared", {vector}, vector},
      {"appended", {vector, number}, vector},
      {"stacked", {list}, vector},
      {"begin", {number}, list},
      {"unstacked", {vector}, list},
      {"push", {list, number}, list},
      {"set", {list, integer, number}, list},
      {"assign", {number}, number},
      {"assign_add", {number}, number},
  };
  return all[std::size_t(kind)];
}

bool writes(const Program& program, std::size_t functions, const Statement& statement, int state) {
  return any_reached(program, functions, statement, [&](const Statement& s) {
    return is_effect(s.kind) && s.value % kStates == state;
  });
}

bool uses_variables(const Program& program, std::size_t functions, const Statement& statement) {
  return any_reached(program, functions, statement, [](const Statement& s) {
    return is_effect(s.kind) || s.kind == Kind::read_weight || s.kind == Kind::read_state;
  });
}

bool uses_lists(const Program& program, std::size_t functions, const Statement& statement) {
  return any_reached(program, functions, statement, [](const Statement& s) {
    if (s.kind == Kind::scan || s.kind == Kind::map || s.kind == Kind::fold) return true;
    if (is_control(s.kind)) return std::count(s.types.begin(), s.types.end(), list) > 0;
    const Signature& simple = signature(s.kind);
    return simple.gives == list || std::count(simple.takes.begin(), simple.takes.end(), list) > 0;
  });
}

bool has_loop(const Block& block) {
  return any_statement(block, [](const Statement& s) { return is_loop(s.kind); });
}

Program draw_program(std::uint64_t seed) { return Drawing(seed).program(); }

bool make_smaller(Program& program, int n) { return Smaller(n)(program); }

}  // namespace troupe::test::control
