// Copies nodes of a tape into another builder.
#pragma once

#include <functional>
#include <map>
#include <vector>

#include "graph/builder.hpp"

namespace troupe {

// The value of a port if it is a constant small enough to copy instead of saving it, else nullptr.
const Tensor* small_constant(const GraphBuilder& from, Port p);

// Copies nodes of one builder into another, in the order of the calls of copy(). Small constants
// are copied on demand. Both builders outlive it.
class TapeCopies {
 public:
  // `missing` makes the value of a port that was neither copied nor mapped.
  TapeCopies(const GraphBuilder& from, GraphBuilder& to, std::function<Output(Port)> missing)
      : from_(from), to_(to), missing_(std::move(missing)) {}

  // Maps the port to `value`, unless it is already mapped.
  void map(Port p, const Output& value) { values_.emplace(p, value); }
  bool has(Port p) const { return values_.contains(p); }
  // The value of the port in the other builder.
  Output value(Port p);
  // Copies a node. Control edges from nodes that were not copied are left out.
  void copy(NodeId id);

 private:
  const GraphBuilder& from_;
  GraphBuilder& to_;
  std::function<Output(Port)> missing_;
  std::map<Port, Output> values_;
  std::map<NodeId, Op> made_;
};

}  // namespace troupe
