// Replaces a client loop by a While.
#pragma once

#include <string>
#include <vector>

#include "graph/control/paper_loops/detail/client_loop.hpp"
#include "graph/unique_names.hpp"

namespace troupe::detail {

// The functions made for raised loops.
class RaisedFunctions {
 public:
  explicit RaisedFunctions(const std::vector<FunctionDef>& known);

  // A name that no function has.
  std::string fresh_name(const std::string& wanted) { return names_.take(wanted); }
  void add(FunctionDef f) { made_.push_back(std::move(f)); }
  std::vector<FunctionDef> take() { return std::move(made_); }

 private:
  UniqueNames names_;
  std::vector<FunctionDef> made_;
};

// Moves the nodes of the loop into functions, and puts into the frame around it: a While with that
// name, under the LoopCond's number; if the condition is called, the call, under the number of an
// Enter; and an Identity for each Leave. Returns the numbers of these.
Expected<std::vector<NodeId>> raise_loop(const ClientLoop& loop, const std::string& name,
                                         std::vector<NodeDef>& nodes, const ClientFrames& frames,
                                         RaisedFunctions& functions, const OpRegistry& ops);

}  // namespace troupe::detail
