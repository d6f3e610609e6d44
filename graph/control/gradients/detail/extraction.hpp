// From a tape to a gradient function.
#pragma once

#include <set>
#include <vector>

#include "graph/control/gradients/detail/tape.hpp"
#include "graph/control/gradients/detail/tape_copies.hpp"

namespace troupe {

// Makes the new nodes of a tape the body of a function. The arguments of the function are there at
// once; what they are used for comes once the tape is differentiated, with run(). A value that is
// older than the gradient is saved by name. Lives as long as the body is open.
class Extraction {
 public:
  // `branch`: of the call that the function belongs to. `vague`: who calls it may know less of
  // shapes than the tape does.
  Extraction(Tape& tape, Body& body, std::size_t branch, bool vague);
  Extraction(const Extraction&) = delete;
  Extraction& operator=(const Extraction&) = delete;
  // Closes the body: it returns the gradients of the inputs `results`. Throws Error.
  void run(const std::vector<std::size_t>& results);

 private:
  ValueType type_of(Port p, bool vague) const;
  std::set<NodeId> needed(const std::vector<std::size_t>& results) const;
  bool is_dy(NodeId id) const;
  Output saved(Port p);

  Tape& tape_;
  Body& body_;
  const std::size_t branch_;
  GraphBuilder& to_;
  GraphBuilder& from_;
  std::vector<Output> saved_;  // handles, by layer
  TapeCopies copies_;
};

}  // namespace troupe
