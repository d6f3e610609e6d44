// What a session ships of its client's graph.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "core/status.hpp"
#include "graph/builder.hpp"
#include "graph/request.hpp"
#include "serialization/stored_tensor.hpp"

namespace troupe {

// What the state of a job calls a variable, whatever its node is called: its name, in a container
// other than the default one "CONTAINER/NAME".
std::string state_name(const NodeDef& variable);

// The client's nodes in their order and, between them, nodes of the session's own, which the
// client's graph does not show. What was shipped once stays where it is: later nodes come after it.
// One owner, who locks. The client's graph outlives it.
class ShippedGraph {
 public:
  explicit ShippedGraph(const GraphBuilder& graph) : graph_(graph) {}

  // How many nodes there are to ship, the session's own included.
  std::size_t size() const { return graph_.def().nodes.size() + own_; }
  // The nodes to ship: the client's own while there are no others. Good until the next call. Costs
  // what was added since the last one, and what may have changed: Merges.
  const GraphDef& whole();

  // The client's variables as a restore names them: by state_name(), else by their nodes.
  std::unordered_map<std::string, NodeId> variables() const;

  // Adds nodes that assign fed values to these variables, one for each in order: the feeds and
  // targets of the request. They are named as by state_name(), else by their nodes. not_found
  // for a name that is no variable of the graph, or comes twice. Nothing is added after an error.
  Expected<CompileRequest> add_assignments(
      const std::vector<std::pair<std::string, Tensor>>& values);
  // The same for values that nobody has yet.
  struct Assigned {
    std::string name;
    DType dtype = DType::invalid;
    Shape shape;
  };
  Expected<CompileRequest> add_assignments(const std::vector<Assigned>& values);

  // Variables that one device writes into the folder of a checkpoint.
  struct ShardSave {
    std::string device;              // in host memory; "" is anywhere
    std::vector<std::string> names;  // as the checkpoint calls them
    std::vector<NodeId> reads;       // what reads them, in the client's graph
    friend auto operator<=>(const ShardSave&, const ShardSave&) = default;
  };
  // Adds nodes that do so: a fetch each, in order, of what they wrote; the feeds are the folder and
  // its token. Of those that were asked for before the nodes are there.
  Expected<CompileRequest> add_shard_saves(const std::vector<ShardSave>& saves, bool refuse_nan);

  // Variables that one device reads from a file of a checkpoint.
  struct ShardRestore {
    std::string device;
    std::string file;
    std::vector<StoredTensor> tensors;  // the names are those of the variables, see state_name()
  };
  // Adds nodes that do so, and assign what was read: the targets. Errors as of add_assignments().
  Expected<CompileRequest> add_shard_restores(const std::vector<ShardRestore>& restores);

  // Adds nodes that say what these resources hold, handles of the client's graph: further fetches
  // of the request, in order. Of those that were asked for before the nodes are there.
  Status add_saves(const std::vector<NodeId>& handles, CompileRequest& request);
  // Adds nodes that put fed states into these: further feeds and targets of the request, one each
  // in order. Nothing is added after an error.
  Status add_loads(const std::vector<NodeId>& handles, CompileRequest& request);

  // Adds nodes that say whether these variables, handles of the client's graph, have a value: the
  // fetches of the request, in order. Of those that were asked for before the nodes are there.
  Expected<CompileRequest> add_checks(const std::vector<NodeId>& handles);

 private:
  struct Own {
    NodeId after;                // of the client's nodes
    std::vector<NodeDef> nodes;  // inputs in shipped numbers
  };
  NodeId shipped(NodeId of_client) const;
  void insert(Own own);
  std::vector<Port> shipped(std::vector<Port> inputs) const;

  const GraphBuilder& graph_;
  std::vector<Own> insertions_;  // by `after`
  std::size_t own_ = 0;
  std::map<NodeId, std::string> checks_;  // by the variable's handle
  std::map<NodeId, std::string> saves_;   // by the resource's handle
  std::map<std::pair<std::vector<ShardSave>, bool>, CompileRequest> shard_saves_;
  GraphDef merged_;  // once there are nodes of its own: both, as far as they were shipped
  std::size_t merged_client_ = 0, merged_insertions_ = 0;
  std::vector<NodeId> merges_;  // of the client's nodes in it
};

}  // namespace troupe
