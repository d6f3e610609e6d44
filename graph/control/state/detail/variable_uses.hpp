// Which variables functions read and write, and of which datasets they take elements. That counts
// as a write, of how many were taken.
#pragma once

#include <map>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "graph/control/functions/ops.hpp"
#include "graph/node_query.hpp"

namespace troupe::detail {

// By node, the resource_key of the variable or dataset that it is a handle on; "": none.
using Keys = std::vector<std::string>;

// What something reads of variables, and what it writes.
struct VariableUses {
  std::set<std::string> reads;     // items
  std::set<std::string> writes;    // keys
  std::set<std::string> always;    // of these, whatever branches are taken
  std::set<std::string> in_loops;  // of these, in a loop
  bool loops = false;              // some of it is in a loop

  void add(const VariableUses& other);
  friend bool operator==(const VariableUses&, const VariableUses&) = default;
};

// An item is what a read sees: the value of a variable, whose name is the variable's key, or
// something else about it. Lives as long as the functions do not change.
class VariableUsers {
 public:
  VariableUsers(const std::vector<FunctionDef>& functions, const OpRegistry& ops);

  // nullptr when there is none, as lowering will say.
  const FunctionDef* function(const std::string& name) const;
  Keys keys_of(const std::vector<NodeDef>& nodes) const;
  // `bound`: by argument.
  Keys keys_of(const FunctionDef& f, const std::vector<std::string>& bound) const;
  // By argument of its functions.
  std::vector<std::string> bound(const NodeDef& call, const Keys& keys) const;
  const VariableUses& of(const FunctionDef& f, const std::vector<std::string>& bound);
  VariableUses of(const NodeDef& node, const Keys& keys);

  // A call of a function that calls itself: state goes through it as through a loop.
  bool is_recursive(const NodeDef& call) const;
  bool calls_itself(const FunctionDef& f) const { return recursive_.contains(&f); }

  // The item that a read sees; "": it reads no variable.
  std::string item_of(const NodeDef& node, const Keys& keys) const;
  // A node that reads it.
  const NodeDef& reader(const std::string& item) const { return *readers_.at(item); }
  bool has_reader(const std::string& item) const { return readers_.contains(item); }
  // The variable of an item.
  const std::string& key_of(const std::string& item) const { return items_.at(item); }
  bool is_value(const std::string& item) const { return key_of(item) == item; }
  // Does the key name a dataset? Of those that were found to be used.
  bool is_dataset(const std::string& key) const { return datasets_.contains(key); }
  bool takes_element(const NodeDef& node) const;
  // A node that writes it.
  const NodeDef& writer(const std::string& key) const { return *writers_.at(key); }

 private:
  void forget_what_depends();

  const OpRegistry& ops_;
  std::unordered_map<std::string_view, const FunctionDef*> by_name_;
  using Bound = std::pair<const FunctionDef*, std::vector<std::string>>;
  std::map<Bound, VariableUses> known_;
  std::set<Bound> open_;  // functions that call themselves, while they are looked at
  std::set<const FunctionDef*> recursive_;
  std::map<std::string, const NodeDef*> readers_, writers_;
  std::set<std::string> datasets_;
  std::map<std::string, std::string> items_;  // item -> key; of each variable its own key, too
};

}  // namespace troupe::detail
