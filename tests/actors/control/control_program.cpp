#include "tests/actors/control/control_program.hpp"

#include <algorithm>
#include <functional>

#include "core/hash.hpp"

namespace troupe::test::control {
namespace {

constexpr Type number = Type::number, integer = Type::integer, vector = Type::vector,
               four = Type::four, list = Type::list;

bool any_statement(const Block& block, const std::function<bool(const Statement&)>& holds) {
  return std::any_of(block.statements.begin(), block.statements.end(), [&](const Statement& s) {
    return holds(s) || std::any_of(s.blocks.begin(), s.blocks.end(),
                                   [&](const Block& b) { return any_statement(b, holds); });
  });
}

// The statement, those in its blocks and those that it calls, each with how many functions it may
// call and whether it is in one.
using Holds = std::function<bool(const Statement&, std::size_t functions, bool in_function)>;

class Reached {
 public:
  Reached(const Program& program, const Holds& holds) : program_(program), holds_(holds) {}

  bool any(const Statement& s, std::size_t functions, bool in_function) {
    if (holds_(s, functions, in_function)) return true;
    for (const Block& block : s.blocks)
      if (any(block, functions, in_function)) return true;
    if (s.kind == Kind::call && callee(s, functions) >= 0)
      return any_of(std::size_t(callee(s, functions)));
    return s.kind == Kind::recur && any_of(functions);
  }

 private:
  bool any(const Block& block, std::size_t functions, bool in_function) {
    return std::any_of(block.statements.begin(), block.statements.end(),
                       [&](const Statement& s) { return any(s, functions, in_function); });
  }
  // Once: it may call itself.
  bool any_of(std::size_t function) {
    return seen_.insert(function).second && any(program_.functions[function].body, function, true);
  }

  const Program& program_;
  const Holds& holds_;
  std::set<std::size_t> seen_;
};

bool any_reached(const Program& program, std::size_t functions, const Statement& statement,
                 const Holds& holds, bool in_function = false) {
  return Reached(program, holds).any(statement, functions, in_function);
}

class Drawing {
 public:
  Drawing(std::uint64_t seed, bool deep) : random_(seed), deep_(deep) {}

  Program program() {
    const std::uint64_t functions = random_.below(3);
    const bool recursive = random_.below(3) == 0;
    for (std::uint64_t f = 0; f < functions; ++f) {
      Function function;
      const bool itself = recursive && random_.below(3) > 0;
      function.takes = types(1, 3, false);
      function.gives = types(1, 2, false);
      callable_ = f;
      Place place{.depth = 1, .in_function = true, .recursive = recursive};
      place.variables = random_.below(3) == 0;
      if (itself) {
        function.takes.insert(function.takes.begin(), integer);
        place.gives = function.gives.size();
      }
      function.body = block(place, function.gives, 1 + random_.below(3));
      if (itself) function.body.statements.push_back(recur(place));
      made_.functions.push_back(std::move(function));
    }
    callable_ = functions;
    made_.main = block(Place{}, {}, 3 + random_.below(5));
    made_.main.results = {0, 1, 2, 3, 4, 5, 0, 0, 1, 0, 0, 1};  // what was made last
    return std::move(made_);
  }

 private:
  struct Place {
    int depth = 0;
    bool in_loop = false;
    bool variables = true;  // may be used
    bool in_function = false;
    bool recursive = false;  // a function here may call itself
    std::size_t gives = 0;   // of the function around, which calls itself; 0: it does not
    Place inside(bool loop) const {
      Place inner = *this;
      ++inner.depth;
      inner.in_loop |= loop;
      return inner;
    }
    bool in_recursion() const { return in_function && recursive; }
    // What a function reads would depend on where it is called. Queues are not for functions that
    // call themselves.
    bool allows(Kind kind) const {
      if (kind == Kind::read_weight)
        return variables && !(in_loop && in_function) && !in_recursion();
      if (kind == Kind::read_state) return !in_function;
      if (kind == Kind::put || kind == Kind::take) return variables && !in_recursion();
      return !is_effect(kind) || variables;
    }
  };

  // Mostly what was made last.
  unsigned back() { return unsigned(random_.below(random_.below(3) ? 3 : 12)); }
  std::vector<Type> types(std::uint64_t least, std::uint64_t most, bool lists) {
    std::vector<Type> all(least + random_.below(most - least + 1));
    for (Type& type : all) {
      const std::uint64_t k = random_.below(lists ? 11 : 9);
      type = k < 4 ? number : k < 5 ? integer : k < 7 ? vector : k < 9 ? four : list;
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
    const std::uint64_t controls = deep_ ? 13 : 9;
    Statement made =
        random_.below(20) < controls && place.depth < 3 ? control(place) : simple(place);
    made.device = unsigned(random_.below(8));
    return made;
  }

  Statement simple(Place place) {
    Statement made;
    constexpr Kind kWithEffects[] = {Kind::read_state, Kind::assign, Kind::assign_add, Kind::print,
                                     Kind::draw,       Kind::put,    Kind::take};
    do
      made.kind = random_.below(5) ? Kind(random_.below(std::uint64_t(Kind::branch)))
                                   : kWithEffects[random_.below(std::size(kWithEffects))];
    while (!place.allows(made.kind));
    for (std::size_t k = 0; k < signature(made.kind).takes.size(); ++k)
      made.picks.push_back(back());
    made.value = int(random_.below(16));
    if (place.in_recursion() && is_effect(made.kind)) made.value &= ~1;  // state0: it is at home
    return made;
  }

  Statement control(Place place) {
    Statement made;
    for (int k = 0; k < 6; ++k) made.picks.push_back(back());
    made.value = 1 + int(random_.below(4));
    if (place.gives && random_.below(4) == 0) return recur(place);
    switch (deep_ ? 3 + random_.below(6) : random_.below(9)) {
      case 0:
      case 1:
        return branch(std::move(made), place, Kind::branch, 2);
      case 2:
        return branch(std::move(made), place, Kind::choose, 2 + random_.below(3));
      case 3:
      case 4:
      case 5:
        made.kind = Kind::loop;
        made.value = 1 + int(random_.below(6));
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
  Statement recur(Place place) {
    Statement made;
    made.kind = Kind::recur;
    for (std::size_t k = 0; k < 4 + place.gives; ++k) made.picks.push_back(back());
    return made;
  }

  Random random_;
  const bool deep_;
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
      {"one_of_four", {four, integer}, number},
      {"get", {list, integer}, number},
      {"read_weight", {}, number},
      {"read_state", {}, number},
      {"print", {number}, number},
      {"draw", {number}, number},
      {"take", {}, number},
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
      {"widened", {four}, vector},
      {"sums", {four, four}, four},
      {"multiples", {four, number}, four},
      {"reshaped", {four}, four},
      {"turned", {four, integer}, four},
      {"slid_in", {four, vector}, four},
      {"filled", {number}, four},
      {"begin", {number}, list},
      {"unstacked", {vector}, list},
      {"push", {list, number}, list},
      {"set", {list, integer, number}, list},
      {"assign", {number}, number},
      {"assign_add", {number}, number},
      {"put", {number}, number},
  };
  return all[std::size_t(kind)];
}

int resource_of(const Statement& s) {
  if (s.kind == Kind::put) return kPuts;
  if (s.kind == Kind::take) return kTakes;
  return is_effect(s.kind) ? s.value % kStates : -1;
}

bool changes(const Program& program, std::size_t functions, const Statement& statement,
             int resource) {
  return any_reached(program, functions, statement, [&](const Statement& s, std::size_t, bool) {
    return resource_of(s) == resource;
  });
}

bool has_effects(const Program& program, std::size_t functions, const Statement& statement) {
  return any_reached(program, functions, statement, [](const Statement& s, std::size_t, bool) {
    return resource_of(s) >= 0 || s.kind == Kind::print || s.kind == Kind::draw;
  });
}

bool uses_lists(const Program& program, std::size_t functions, const Statement& statement) {
  return any_reached(program, functions, statement, [](const Statement& s, std::size_t, bool) {
    if (s.kind == Kind::scan || s.kind == Kind::map || s.kind == Kind::fold) return true;
    if (is_control(s.kind)) return std::count(s.types.begin(), s.types.end(), list) > 0;
    const Signature& simple = signature(s.kind);
    return simple.gives == list || std::count(simple.takes.begin(), simple.takes.end(), list) > 0;
  });
}

bool has_loop(const Block& block) {
  return any_statement(block, [](const Statement& s) { return is_loop(s.kind); });
}

bool calls_itself(const Function& f) {
  return any_statement(f.body, [](const Statement& s) { return s.kind == Kind::recur; });
}
bool calls_itself(const Program& program) {
  return std::any_of(program.functions.begin(), program.functions.end(),
                     [](const Function& f) { return calls_itself(f); });
}

std::unordered_map<const Statement*, int> numbered(const Program& program) {
  std::unordered_map<const Statement*, int> all;
  auto number_it = [&](const Statement& s) {
    all.emplace(&s, int(all.size()));
    return false;
  };
  any_statement(program.main, number_it);
  for (const Function& f : program.functions) any_statement(f.body, number_it);
  return all;
}

std::size_t device_of_resource(int resource, const Placement& placement) {
  return std::size_t(resource) % placement.devices.size();
}

std::size_t device_of(const Program& program, std::size_t functions, const Statement& s,
                      bool in_function, const Placement& placement) {
  if (s.kind == Kind::read_weight) return 0;
  if (s.kind == Kind::read_state) return device_of_resource(s.value % kStates, placement);
  if (const int resource = resource_of(s); resource >= 0)
    return device_of_resource(resource, placement);
  // Functions that call themselves run on one device, with all that they call.
  const bool with_recursion = calls_itself(program) && (in_function || s.kind == Kind::call);
  const bool at_home =
      with_recursion || (!placement.lists_travel && uses_lists(program, functions, s));
  return at_home ? 0 : s.device % placement.devices.size();
}

std::set<std::size_t> devices_of(const Program& program, std::size_t functions,
                                 const Statement& statement, bool in_function,
                                 const Placement& placement) {
  std::set<std::size_t> all;
  auto insert = [&](const Statement& s, std::size_t may_call, bool there) {
    all.insert(device_of(program, may_call, s, there, placement));
    return false;
  };
  any_reached(program, functions, statement, insert, in_function);
  return all;
}

Program draw_program(std::uint64_t seed, bool deep) { return Drawing(seed, deep).program(); }

bool make_smaller(Program& program, int n) { return Smaller(n)(program); }

}  // namespace troupe::test::control
