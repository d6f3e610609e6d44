// The graph that a session ships to the master.
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

// The name of a variable in the state of a job, independent of its node's name: its own name, or
// "CONTAINER/NAME" in a container other than the default.
std::string state_name(const NodeDef& variable);

// The client's nodes in order and, between them, nodes of the session, which the client's graph
// does not contain. Shipped nodes keep their positions: later nodes come after them. Its owner
// locks it. The client's graph outlives it.
class ShippedGraph {
 public:
  explicit ShippedGraph(const GraphBuilder& graph) : graph_(graph) {}

  // The number of nodes to ship, including the session's own.
  std::size_t size() const { return graph_.def().nodes.size() + own_; }
  // The nodes to ship; the client's graph itself while there are no others. Valid until the next
  // call. Takes time for nodes added since the last call, and for Merges, which may have changed.
  const GraphDef& whole();

  // The client's variables by name: by state_name(), else by node name.
  std::unordered_map<std::string, NodeId> variables() const;

  // Adds nodes that assign fed values to variables (named as in variables()); the request has one
  // feed and one target for each, in order. not_found for a name that is not a variable of the
  // graph or occurs twice. Nothing is added after an error.
  Expected<CompileRequest> add_assignments(
      const std::vector<std::pair<std::string, Tensor>>& values);
  // The same for values that are not known yet.
  struct Assigned {
    std::string name;
    DType dtype = DType::invalid;
    Shape shape;
  };
  Expected<CompileRequest> add_assignments(const std::vector<Assigned>& values);

  // Variables that one device writes into the folder of a checkpoint.
  struct ShardSave {
    std::string device;              // in host memory; "": any
    std::vector<std::string> names;  // in the checkpoint
    std::vector<NodeId> reads;       // nodes of the client's graph that read them, or handles
    friend auto operator<=>(const ShardSave&, const ShardSave&) = default;
  };
  // Adds nodes that do so, once for equal arguments. The request has one fetch for each, in order:
  // what was written. Its feeds are the folder and its token.
  Expected<CompileRequest> add_shard_saves(const std::vector<ShardSave>& saves, bool refuse_nan);

  // Variables that one device reads from a file of a checkpoint.
  struct ShardRestore {
    std::string device;
    std::string file;
    std::vector<StoredTensor> tensors;  // the names are those of the variables, see state_name()
  };
  // Adds nodes that do so and assign the values: the targets. Errors as of add_assignments().
  Expected<CompileRequest> add_shard_restores(const std::vector<ShardRestore>& restores);

  // Adds nodes, once per variable, that read these variables (handles of the client's graph) and
  // wait for no others.
  Status add_reads(const std::vector<NodeId>& handles);
  // The name of that node. REQUIRES: it was added.
  const std::string& read_of(NodeId handle) const { return reads_.at(handle).name; }

  // Adds nodes, once per resource, that save these resources (handles of the client's graph), and
  // their results as further fetches to the request, in order.
  Status add_saves(const std::vector<NodeId>& handles, CompileRequest& request);
  // Adds nodes that load fed states into these resources, and a feed and a target for each to the
  // request, in order. Nothing is added after an error.
  Status add_loads(const std::vector<NodeId>& handles, CompileRequest& request);

  // Adds nodes, once per variable, that check whether these variables (handles of the client's
  // graph) have a value: the fetches of the request, in order.
  Expected<CompileRequest> add_checks(const std::vector<NodeId>& handles);

 private:
  struct Own {
    NodeId after;                // number of client nodes before them
    std::vector<NodeDef> nodes;  // inputs use shipped numbers
  };
  NodeId shipped(NodeId of_client) const;
  void insert(Own own);
  std::vector<Port> shipped(std::vector<Port> inputs) const;

  const GraphBuilder& graph_;
  std::vector<Own> insertions_;  // by `after`
  std::size_t own_ = 0;
  std::map<NodeId, std::string> checks_;  // by the variable's handle
  std::map<NodeId, std::string> saves_;   // by the resource's handle
  struct Read {
    std::string name;
    NodeId shipped;  // its number
  };
  std::map<NodeId, Read> reads_;  // by the variable's handle
  std::map<std::pair<std::vector<ShardSave>, bool>, CompileRequest> shard_saves_;
  GraphDef merged_;  // client and own nodes, once there are own ones
  std::size_t merged_client_ = 0, merged_insertions_ = 0;
  std::vector<NodeId> merges_;  // client Merges in it
};

}  // namespace troupe
