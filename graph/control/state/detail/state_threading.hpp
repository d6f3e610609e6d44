// The process of threading state through loops.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "graph/control/state/detail/variable_uses.hpp"

namespace troupe::detail {

// The state that a loop or function takes besides its arguments, in that order, and returns.
struct StateSignature {
  std::vector<std::string> written;  // variables: values in and out
  std::vector<std::string> flagged;  // those with a flag, in and out: whether they were written
  std::vector<std::string> read;     // items: in only
};

// The position of state among a function's arguments and results.
enum class StatePlace : std::uint8_t {
  call,       // after its arguments and results
  condition,  // of a loop: written state is after the variables
  body,
};

struct ThreadedFunction {
  std::string name;
  // Of its state: what it reads, and what it may pass on unchanged.
  std::set<std::string> needs, passes;
};

// The state of one function in a loop.
struct StateInLoop {
  StateSignature state;
  StatePlace place = StatePlace::call;
  std::size_t variables = 0;  // of the loop
  bool ran = false;           // another bool after the written state, set to true
};

// Makes new functions from those of a step, whose loops and calls take state as values. Each is
// made once for each set of state, as long as the nodes of all are in proportion to those of the
// step: functions may be called with more combinations of variables than there is time for. Lives
// for one pass over a step.
class StateThreading {
 public:
  StateThreading(const GraphDef& graph, const OpRegistry& ops);

  const OpRegistry& ops() const { return ops_; }
  // The function of that name. invalid_argument, naming the call, if there is none.
  Expected<const FunctionDef*> function(const std::string& name, const NodeDef& call) const;
  // unimplemented if the condition of a loop changes state.
  Status check_condition(const VariableUses& uses) const;

  // Begins a loop that does not always write `flagged`.
  void begin_loop(std::set<std::string> flagged) { flagged_ = std::move(flagged); }
  // The state of a function or node in that loop.
  StateSignature signature_of(const VariableUses& uses) const;
  // The function that replaces `f` in that loop. `bound`: the resources of its arguments.
  Expected<ThreadedFunction> inside(const FunctionDef& f, const std::vector<std::string>& bound,
                                    const StateInLoop& in);
  // The name of the function that replaces `f` outside loops.
  Expected<std::string> outside_function(const FunctionDef& f,
                                         const std::vector<std::string>& bound);
  // The name of a function that takes (handle, value) pairs of variables with these keys, and
  // assigns the values if it `writes`; otherwise it does nothing.
  std::string write_function(const std::vector<std::string>& keys, bool writes);
  std::vector<FunctionDef> take() { return std::move(made_); }

  VariableUsers users;
  std::map<std::string, NodeDef> handles;  // by variable in a loop

 private:
  std::string fresh_name(const FunctionDef& f);
  // resource_exhausted once too many nodes have been made with those of `f`.
  Status spend_on(const FunctionDef& f);

  const OpRegistry& ops_;
  std::vector<FunctionDef> made_;
  int versions_ = 0;
  std::size_t most_nodes_, nodes_ = 0;
  std::map<std::vector<std::string>, ThreadedFunction> inside_;
  std::map<std::vector<std::string>, std::string> outside_;
  std::set<std::string> flagged_;
};

}  // namespace troupe::detail
