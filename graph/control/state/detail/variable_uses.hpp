// Finds the variables that functions read and write. Taking an element of a dataset counts as a
// write of the number taken.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "graph/control/functions/ops.hpp"
#include "graph/node_query.hpp"

namespace troupe::detail {

// By node, the resource_key of its variable or dataset if it is a handle, else "".
using Keys = std::vector<std::string>;

// The state that a node or function reads and writes.
struct VariableUses {
  std::set<std::string> reads;     // items
  std::set<std::string> writes;    // keys
  std::set<std::string> always;    // those written whatever branches are taken
  std::set<std::string> in_loops;  // those written in a loop
  bool loops = false;              // some of the uses are in a loop

  void add(const VariableUses& other);
  friend bool operator==(const VariableUses&, const VariableUses&) = default;
};

// An item is what a read sees: the value of a variable, whose name is the variable's key, or some
// other property of it. REQUIRES: the functions do not change while it lives.
class VariableUsers {
 public:
  VariableUsers(const std::vector<FunctionDef>& functions, const OpRegistry& ops);

  // nullptr if there is none, which lowering will report.
  const FunctionDef* function(const std::string& name) const;
  Keys keys_of(const std::vector<NodeDef>& nodes) const;
  // `bound`: by argument.
  Keys keys_of(const FunctionDef& f, const std::vector<std::string>& bound) const;
  // The resources of the arguments of the call's functions, by argument.
  std::vector<std::string> bound(const NodeDef& call, const Keys& keys) const;
  // A function is looked at once, whatever it is called with: functions that pass their arguments
  // on in other orders would be called in more ways than there is time for. So of two arguments
  // that are one variable, each written on another side of a branch, `always` knows nothing.
  VariableUses of(const FunctionDef& f, const std::vector<std::string>& bound);
  VariableUses of(const NodeDef& node, const Keys& keys) { return of(node, keys, found_); }
  // How often it has looked at a function.
  std::size_t looks() const { return looks_; }

  // Whether it is a call of a recursive function, which carries state like a loop.
  bool is_recursive(const NodeDef& call) const;
  bool calls_itself(const FunctionDef& f) const { return recursive_.contains(&f); }

  // The item that a node reads; "" if it reads no variable.
  std::string item_of(const NodeDef& node, const Keys& keys) const;
  // A node that reads the item.
  const NodeDef& reader(const std::string& item) const { return *found_.readers.at(item); }
  bool has_reader(const std::string& item) const { return found_.readers.contains(item); }
  // The variable of an item.
  const std::string& key_of(const std::string& item) const { return found_.items.at(item); }
  bool is_value(const std::string& item) const { return key_of(item) == item; }
  // Whether the key is that of a used dataset.
  bool is_dataset(const std::string& key) const { return found_.datasets.contains(key); }
  bool takes_element(const NodeDef& node) const;
  // A node that writes the variable.
  const NodeDef& writer(const std::string& key) const { return *found_.writers.at(key); }

 private:
  // What nodes were found to do, and which of them.
  struct Found {
    std::map<std::string, const NodeDef*> readers, writers;
    std::set<std::string> datasets;
    std::map<std::string, std::string> items;  // item -> key; includes each variable's own key
  };
  // Of a function whose arguments are variables of their own.
  struct Known {
    VariableUses uses;
    Found found;
    bool whole = false;
    std::uint64_t pass = ~std::uint64_t{0};  // that looked at it last
  };
  VariableUses of(const NodeDef& node, const Keys& keys, Found& found);
  VariableUses of(const FunctionDef& f, const std::vector<std::string>& bound, Found& found);
  const Known& known(const FunctionDef& f);

  const OpRegistry& ops_;
  std::unordered_map<std::string_view, const FunctionDef*> by_name_;
  std::map<const FunctionDef*, Known> known_;
  // Over functions that call each other; 0: none is under way.
  std::uint64_t pass_ = 0, passes_ = 0;
  bool changed_ = false;  // in this pass
  std::size_t looks_ = 0;
  std::set<const FunctionDef*> recursive_;
  Found found_;
};

}  // namespace troupe::detail
