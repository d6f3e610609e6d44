// Programs of branches, loops, calls, lists and effects as data. One is drawn from a seed, built
// into a graph (control_graph.hpp), interpreted (control_interpreter.hpp) and, where the two
// differ, made smaller and printed.
#pragma once

#include <array>
#include <cstdint>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

namespace troupe::test::control {

// f64, i32, f64[n], f64[4] of which a run alone may know that it is, list of f64.
enum class Type : std::uint8_t { number, integer, vector, four, list };

enum class Kind : std::uint8_t {
  // Of one number.
  add,
  subtract,
  multiply,
  negate,
  squash,  // x / (1 + x * x)
  scale,
  to_number,
  element,  // of a vector, at an integer modulo its length
  one_of_four,
  get,  // of a list, likewise
  read_weight,
  read_state,
  print,  // x, and says so
  draw,   // x, and says what it drew
  take,   // from a queue
  // Of one integer, in [0, 16).
  sum,
  product,
  fixed,
  less,
  length,
  // Of one vector.
  scaled,
  shifted,
  squared,
  appended,
  stacked,
  widened,  // four
  // Of four numbers.
  sums,
  multiples,
  reshaped,  // itself
  turned,    // by an integer
  slid_in,   // behind the last of a vector
  filled,
  // Of one list.
  begin,
  unstacked,
  push,
  set,
  // Effects.
  assign,
  assign_add,
  put,  // into a queue
  // Control.
  branch,
  choose,
  loop,
  scan,
  map,
  fold,
  call,
  recur,  // of the function it is in: calls that, unless it is deep enough
};

// What a kind without blocks takes, and the type of its one result.
struct Signature {
  const char* name;
  std::vector<Type> takes;
  Type gives;
};
const Signature& signature(Kind kind);
inline bool is_effect(Kind kind) { return kind >= Kind::assign && kind <= Kind::put; }
inline bool is_control(Kind kind) { return kind >= Kind::branch; }
inline bool is_loop(Kind kind) { return kind >= Kind::loop && kind <= Kind::fold; }

struct Statement;

// Statements, and what the block returns of what is in scope after them.
struct Block {
  std::vector<Statement> statements;
  std::vector<unsigned> results;
};

// A value is named by how many values of its type came after it, modulo how many there are: any
// statement may be dropped, and what is left means something.
struct Statement {
  Kind kind = Kind::fixed;
  std::vector<unsigned> picks;
  int value = 0;
  std::vector<Type> types;  // of results; of a loop, of variables beside the counter
  std::vector<Block> blocks;
  unsigned device = 0;  // modulo how many there are

  unsigned pick(std::size_t i) const { return i < picks.size() ? picks[i] : 0; }
};

struct Function {
  std::vector<Type> takes, gives;  // one that calls itself takes first how deep it may go
  Block body;
};

struct Program {
  std::vector<Function> functions;  // one calls those before it, and maybe itself
  Block main;
};

inline const std::vector<Type> kMainResults{Type::number, Type::number, Type::number,  Type::number,
                                            Type::number, Type::number, Type::integer, Type::vector,
                                            Type::vector, Type::list,   Type::four,    Type::four};

// The values in scope, by type.
template <class Value>
struct Scope {
  std::array<std::vector<Value>, 5> values;

  void add(Type type, Value value) { values[std::size_t(type)].push_back(std::move(value)); }
  const Value& pick(Type type, unsigned back) const {
    const auto& all = values[std::size_t(type)];
    return all[all.size() - 1 - back % all.size()];
  }
};

constexpr int kWeights = 2;  // variables that nobody writes
constexpr int kStates = 2;   // and those that effects write
// What effects have an order in: the states, and the queues.
constexpr int kPuts = kStates, kTakes = kStates + 1;
constexpr int kResources = kStates + 2;
constexpr int kDeepest = 4;  // calls of a function by itself end before

// What a statement by itself changes; -1: nothing.
int resource_of(const Statement& statement);
// Of a program or the first functions of one.
bool changes(const Program& program, std::size_t functions, const Statement& statement,
             int resource);
bool has_effects(const Program& program, std::size_t functions, const Statement& statement);
bool uses_lists(const Program& program, std::size_t functions, const Statement& statement);
bool has_loop(const Block& block);
bool calls_itself(const Function& function);
bool calls_itself(const Program& program);  // one of its functions does
// The function that a call means where so many may be called; -1: none, and nothing happens.
inline int callee(const Statement& call, std::size_t functions) {
  return functions == 0 ? -1 : int(unsigned(call.value) % functions);
}
// By which its prints and draws are told from others.
std::unordered_map<const Statement*, int> numbered(const Program& program);

// Where a program runs.
struct Placement {
  std::vector<std::string> devices;
  bool lists_travel = false;  // from device to device
};
// Of `devices`, which a statement names; what is in it may name others.
std::size_t device_of(const Program& program, std::size_t functions, const Statement& statement,
                      bool in_function, const Placement& placement);
std::size_t device_of_resource(int resource, const Placement& placement);
// All that it and what is in it name.
std::set<std::size_t> devices_of(const Program& program, std::size_t functions,
                                 const Statement& statement, bool in_function,
                                 const Placement& placement);

// `deep`: with more loops in loops.
Program draw_program(std::uint64_t seed, bool deep = false);

// The n-th program that is a little smaller; false when there are not so many.
bool make_smaller(Program& program, int n);

}  // namespace troupe::test::control
