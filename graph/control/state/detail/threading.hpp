// While state is threaded through loops.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "graph/control/state/detail/variable_uses.hpp"
#include "graph/unique_names.hpp"

namespace troupe::detail {

// Nodes on their way into another list.
class NodeCopies {
 public:
  explicit NodeCopies(const std::vector<NodeDef>& from);

  // With inputs and control in new numbers; its name is made unique.
  NodeId append(NodeDef node);
  // Old node `id` with inputs and control in new numbers, to be appended.
  NodeDef moved(NodeId id) const;
  // Appends that, and maps the old one to it.
  NodeId replace(NodeId id, NodeDef node);
  void map_port(Port from, Port to) { ports_[from] = to; }
  NodeId node(NodeId id) const { return nodes_[id]; }
  Port port(Port from) const;
  const NodeDef& made(NodeId id) const { return made_[id]; }
  DType dtype(Port made) const { return made_[made.node].out_types[made.index]; }
  std::vector<NodeDef> take() { return std::move(made_); }

 private:
  const std::vector<NodeDef>& from_;
  std::vector<NodeDef> made_;
  std::vector<NodeId> nodes_;
  std::map<Port, Port> ports_;
  UniqueNames names_;
};

// The writes of each variable among some nodes, in their order, and which of them each node comes
// after. A write comes after the one before it.
class WritesBefore {
 public:
  explicit WritesBefore(const std::vector<NodeDef>& nodes) : nodes_(nodes), of_(nodes.size()) {}

  // In the order of nodes: what it comes after by its inputs and control.
  void visit(NodeId id);
  // REQUIRES: it is the node visited last.
  void write(NodeId id, const std::string& key);
  // Without writing: it comes after all writes so far.
  void come_after_all(NodeId id, const std::string& key);
  // How many writes of the variable node `id` comes after, and how many there are so far.
  std::size_t before(NodeId id, const std::string& key) const;
  std::size_t count(const std::string& key) const;

 private:
  void come_after(NodeId id, NodeId other);
  std::size_t number(const std::string& key);

  const std::vector<NodeDef>& nodes_;
  std::map<std::string, std::size_t> numbers_;
  std::vector<std::vector<NodeId>> writes_;     // by variable
  std::vector<std::vector<std::uint32_t>> of_;  // by node and variable; as long as need be
};

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

// Makes other functions of those of a step. Lives for one pass over it.
class StateThreading {
 public:
  StateThreading(const std::vector<FunctionDef>& functions, const OpRegistry& ops)
      : users(functions, ops), ops_(ops) {}

  // Of nodes outside of all loops. `keys`: of those nodes.
  Status outside(const std::vector<NodeDef>& nodes, const Keys& keys, NodeCopies& out);
  std::vector<FunctionDef> take() { return std::move(made_); }

  VariableUsers users;
  std::map<std::string, NodeDef> handles;  // of each variable in a loop

 private:
  friend class OutsideThreading;
  friend class BodyThreading;
  struct InLoop {
    StateSignature state;
    StatePlace place = StatePlace::call;
    std::size_t variables = 0;  // of the loop
    bool ran = false;           // one bool more behind what is written, which becomes true
  };
  Expected<std::string> outside_function(const FunctionDef& f,
                                         const std::vector<std::string>& bound);
  Expected<ThreadedFunction> inside(const FunctionDef& f, const std::vector<std::string>& bound,
                                    const InLoop& in);
  Expected<const FunctionDef*> function(const std::string& name, const NodeDef& call) const;
  Status check_condition(const VariableUses& uses) const;
  StateSignature signature_of(const VariableUses& uses) const;
  std::string fresh_name(const FunctionDef& f);
  std::string write_function(const std::vector<std::string>& keys, bool writes);

  const OpRegistry& ops_;
  std::vector<FunctionDef> made_;
  int versions_ = 0;
  std::map<std::vector<std::string>, ThreadedFunction> inside_;
  std::map<std::vector<std::string>, std::string> outside_;
  std::set<std::string> flagged_;  // of the loop that is being threaded: not always written
};

NodeDef scalar_constant(std::string name, Tensor value, const Site& site);
void name_functions(NodeDef& call, const std::vector<std::string>& names);
// A call that takes and gives state: `first` behind the variables of a loop, which are as many, or
// behind all arguments of another call, and behind the results; `last` behind the arguments.
void add_state_to(NodeDef& call, std::size_t variables, const std::vector<Port>& first,
                  const std::vector<Port>& last, const NodeCopies& copies);
// A value that nobody looks at.
Tensor none_of(DType dtype);
// The dtype of the variable behind a handle; of a dataset, that of how many elements were taken.
DType dtype_of_variable(const NodeDef& handle);

}  // namespace troupe::detail
