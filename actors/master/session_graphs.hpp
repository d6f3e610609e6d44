// The graphs of a master's sessions, and their compilation. No actors in here.
#pragma once

#include <cstdint>
#include <map>
#include <memory>

#include "actors/messages.hpp"
#include "graph/compile.hpp"
#include "graph/graph_index.hpp"
#include "graph/import.hpp"
#include "ops/compile_host.hpp"

namespace troupe {

// The result of a CompileStep.
struct CompiledStepDraft {
  Status status;
  CompiledGraph graph;
  std::map<TaskId, LoadGraph> loads;        // the nodes that its tasks do not have yet
  std::map<std::string, DeviceName> fixed;  // Target::fixed when it was compiled
};

// Keeps the graphs of all sessions and the devices of the job's resources: a resource that one
// session placed is there for all.
//
// Owned by a master; used only by the compile thread. The table outlives it.
class SessionGraphs {
 public:
  explicit SessionGraphs(const OpTable& ops) : ops_(ops), host_(ops) {}

  struct Extended {
    std::uint64_t version = 0;  // nodes of the session's graph now
    bool changed = false;       // some of those before are others: loops were closed
  };
  // An error leaves the graph unchanged: `failed_precondition` if the message continues from other
  // nodes than the session has. A whole graph may close loops of the one that the session has.
  Expected<Extended> extend(const ExtendSession& message);

  struct Work {
    std::uint64_t session = 0;
    CompileRequest request;
    Target target;                             // devices and settings; compile() adds `fixed`
    std::map<TaskId, std::uint64_t> versions;  // nodes that each task has
    std::int32_t replicas = 1;                 // of the job; a request may use fewer
  };
  // Fixes variables of the graph at the devices from variable_homes(); with several replicas, all.
  CompiledStepDraft compile(Work work);

  void forget(std::uint64_t session) { graphs_.erase(session); }

 private:
  struct Known {
    std::unique_ptr<GraphImport> import;
    GraphIndex index;                         // of import->graph()
    std::uint64_t hash = 0;                   // of the functions and nodes as they were sent
    std::vector<std::size_t> functions_from;  // by function: the number of nodes before it
    // variable_homes() for the first `homes_of` nodes on these devices.
    std::map<std::string, DeviceName> homes;
    std::size_t homes_of = 0;
    std::vector<DeviceName> devices;
    bool spread = false;
  };
  void find_homes(Known& known, const Target& target, bool spread);
  // Returns whether nodes have changed.
  Expected<bool> replace(Known& known, const ExtendSession& message);
  Status append(Known& known, const ExtendSession& message);

  const OpTable& ops_;
  const CompileHost host_;
  std::map<std::uint64_t, Known> graphs_;
  std::map<std::string, DeviceName> placed_;  // by resource_key()
};

}  // namespace troupe
