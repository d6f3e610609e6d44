// Writes the nodes that lowering makes.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "graph/control/lowering/detail/values.hpp"
#include "graph/passes/pass.hpp"
#include "graph/unique_names.hpp"

namespace troupe::detail {

// Appends nodes to the step being lowered. All nodes of lowering go through it, so their names are
// unique. Lives for one pass over a step, as long as its Rewriter.
class StepWriter {
 public:
  StepWriter(const OpRegistry& ops, Rewriter& out) : ops_(ops), out_(out) {}

  const OpRegistry& ops() const { return ops_; }
  // Nodes made here will not get this name.
  void reserve_name(const std::string& name) { names_.insert(name); }

  // --- nodes that exist ---

  // A node of the new step. The reference is valid until the next node is appended.
  const NodeDef& node(NodeId id) const { return out_.graph().nodes[id]; }
  // The same, to be changed.
  NodeDef& edit(NodeId id) { return out_.edit(id); }
  DType dtype(Port port) const { return node(port.node).out_types[port.index]; }
  const PartialShape& shape(Port port) const { return node(port.node).out_shapes[port.index]; }
  bool is_handle(NodeId id) const { return troupe::is_handle(role_of(node(id), ops_)); }
  // Whether the value is a resource handle.
  bool is_handle(const Value& value) const {
    return value.run == kNoRun && is_handle(value.port.node);
  }
  // Whether the value is a tensor, neither a handle nor a `saved` output.
  bool is_tensor(const Value& value) const {
    return value.run == kNoRun && !is_handle(value.port.node);
  }
  // The origin of `value`: follows values that loops only pass on.
  Port origin(Port value) const;

  // --- nodes in the making ---

  // A node with the call's line for place `inside`. Not in the step until it is appended.
  NodeDef make(std::string_view name, std::string_view op, const NodeDef& call,
               const Place& inside) const;
  // An Identity of the port, likewise.
  NodeDef make_identity(const NodeDef& call, std::string_view name, Port of,
                        const Place& inside) const;
  // Adds the control edges that keep the node from running too early, or in a branch that is not
  // taken. `inputs` are its input values.
  void anchor(NodeDef& node, const std::vector<Value>& inputs, const Place& place) const;

  // --- nodes that are appended ---

  // Appends the node, whose inputs and control edges use numbers of the new step. Makes its name
  // unique.
  NodeId append(NodeDef node);
  // Appends and returns a node that is dead if one of these values is, or one of these nodes.
  NodeId append_pivot(const NodeDef& call, const std::vector<Value>& values,
                      const std::vector<NodeId>& behind, Place inside);
  // Appends a node whose output is the value.
  NodeId append_result(const NodeDef& call, const Value& value);
  // Appends a trigger that runs after `effects` and is never dead, even if a client's Switch leaves
  // them dead.
  NodeId append_over(const std::string& name, std::vector<NodeId> effects, const NodeDef& like,
                     const Place& place);

 private:
  const OpRegistry& ops_;
  Rewriter& out_;
  UniqueNames names_;
};

}  // namespace troupe::detail
