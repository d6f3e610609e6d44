// The functions of the step being lowered.
#pragma once

#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "graph/control/functions/recursion.hpp"

namespace troupe::detail {

// Finds functions and their nodes by name. Caches what it computes about a body.
// REQUIRES: the functions outlive it and do not change.
class FunctionTable {
 public:
  FunctionTable(const std::vector<FunctionDef>& functions, const OpRegistry& ops);

  const std::vector<FunctionDef>& all() const { return functions_; }
  // nullptr if there is no such function.
  const FunctionDef* find(std::string_view name) const;
  // The index of a function.
  std::size_t index(const FunctionDef& f) const { return std::size_t(&f - functions_.data()); }
  // The node of that name in the body; kNoNode if there is none.
  NodeId find_node(const FunctionDef& f, const std::string& name);
  // By node of the body, whether a Switch of the body may leave one of its outputs dead.
  const std::vector<bool>& may_die(const FunctionDef& f);
  // The recursive functions.
  const Recursion& recursion() const { return recursion_; }

 private:
  const std::vector<FunctionDef>& functions_;
  const OpRegistry& ops_;
  const Recursion recursion_;
  std::unordered_map<std::string_view, const FunctionDef*> by_name_;
  std::unordered_map<const FunctionDef*, std::unordered_map<std::string_view, NodeId>> nodes_of_;
  std::unordered_map<const FunctionDef*, std::vector<bool>> may_die_;
};

}  // namespace troupe::detail
