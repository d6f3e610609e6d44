// While state is threaded through loops.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "graph/control/state/detail/variable_uses.hpp"

namespace troupe::detail {

// What goes into something in a loop beside its arguments, in that order, and comes out of it.
struct StateSignature {
  std::vector<std::string> written;  // variables: values in and out
  std::vector<std::string> flagged;  // of these: whether they were written, in and out
  std::vector<std::string> read;     // items: in alone
};

// Where it comes in and out of a function.
enum class StatePlace : std::uint8_t {
  call,       // behind its arguments and results
  condition,  // of a loop: what is written is behind the variables
  body,
};

struct ThreadedFunction {
  std::string name;
  // Of the values that it takes: what it looks at, and what it may hand on as it is.
  std::set<std::string> needs, passes;
};

// State that goes through one function in a loop.
struct StateInLoop {
  StateSignature state;
  StatePlace place = StatePlace::call;
  std::size_t variables = 0;  // of the loop
  bool ran = false;           // one bool more behind what is written, which becomes true
};

// Makes other functions of those of a step: loops and calls of them take state as values. Each is
// made once for what it takes. Lives for one pass over a step.
class StateThreading {
 public:
  StateThreading(const std::vector<FunctionDef>& functions, const OpRegistry& ops)
      : users(functions, ops), ops_(ops) {}

  const OpRegistry& ops() const { return ops_; }
  // The function of that name. invalid_argument, naming the call, if there is none.
  Expected<const FunctionDef*> function(const std::string& name, const NodeDef& call) const;
  // unimplemented if the condition of a loop changes state.
  Status check_condition(const VariableUses& uses) const;

  // From now on a loop is threaded that does not always write `flagged`.
  void begin_loop(std::set<std::string> flagged) { flagged_ = std::move(flagged); }
  // What goes in and out of something in that loop.
  StateSignature signature_of(const VariableUses& uses) const;
  // Makes the function that stands for `f` in that loop. `bound`: the resources of its arguments.
  Expected<ThreadedFunction> inside(const FunctionDef& f, const std::vector<std::string>& bound,
                                    const StateInLoop& in);
  // The name of the function that stands for `f` outside of loops.
  Expected<std::string> outside_function(const FunctionDef& f,
                                         const std::vector<std::string>& bound);
  // The name of a function that takes pairs of handle and value, of variables with these keys. It
  // assigns the values if it `writes`, and else does nothing.
  std::string write_function(const std::vector<std::string>& keys, bool writes);
  std::vector<FunctionDef> take() { return std::move(made_); }

  VariableUsers users;
  std::map<std::string, NodeDef> handles;  // of each variable in a loop

 private:
  std::string fresh_name(const FunctionDef& f);

  const OpRegistry& ops_;
  std::vector<FunctionDef> made_;
  int versions_ = 0;
  std::map<std::vector<std::string>, ThreadedFunction> inside_;
  std::map<std::vector<std::string>, std::string> outside_;
  std::set<std::string> flagged_;
};

}  // namespace troupe::detail
