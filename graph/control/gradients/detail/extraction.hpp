// From a tape to a gradient function.
#pragma once

#include <set>
#include <vector>

#include "graph/control/gradients/detail/tape.hpp"
#include "graph/control/gradients/detail/tape_copies.hpp"

namespace troupe {

// Makes a function's body from the new nodes of a tape. The constructor adds the function's
// arguments; run() adds the rest, once the tape is differentiated. Values older than the gradient
// are used by name (Saved). Lives as long as the body is open.
class Extraction {
 public:
  // `branch`: index of the function among those of the call. `vague`: its callers may know less
  // about shapes than the tape.
  Extraction(Tape& tape, Body& body, std::size_t branch, bool vague);
  Extraction(const Extraction&) = delete;
  Extraction& operator=(const Extraction&) = delete;
  // Closes the body, which returns the gradients of the inputs `results`. Throws Error.
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
