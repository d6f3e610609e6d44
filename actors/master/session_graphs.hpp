// The graphs of a master's sessions, and what is made of them. No actors in here.
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

// What a CompileStep became.
struct CompiledStepDraft {
  Status status;
  CompiledGraph graph;
  std::map<TaskId, LoadGraph> loads;        // nodes that tasks with a part in it do not have
  std::map<std::string, DeviceName> fixed;  // Target::fixed of its compile
};

// Knows where the job's resources are: sessions share them, so a resource that one of them placed
// is there for all.
//
// Owned by a master; after it was made only the compile thread touches it. The table outlives it.
class SessionGraphs {
 public:
  explicit SessionGraphs(const OpTable& ops) : ops_(ops), host_(ops) {}

  // The number of nodes that the session's graph then has. An error leaves it as it was:
  // `aborted` when the nodes that the session has are not those that the message goes on from.
  Expected<std::uint64_t> extend(const ExtendSession& message);

  struct Work {
    std::uint64_t session = 0;
    CompileRequest request;
    Target target;                             // devices and settings; compile() adds `fixed`
    std::map<TaskId, std::uint64_t> versions;  // nodes that each task has
    std::int32_t replicas = 1;                 // of the job, however many the request is for
  };
  // Variables of the graph are fixed where variable_homes() says; with several replicas all are.
  CompiledStepDraft compile(Work work);

  void forget(std::uint64_t session) { graphs_.erase(session); }

 private:
  struct Known {
    std::unique_ptr<GraphImport> import;
    GraphIndex index;                         // of import->graph()
    std::uint64_t hash = 0;                   // of the functions and nodes as they were sent
    std::vector<std::size_t> functions_from;  // behind how many nodes each function came
    // Of variable_homes() for the first nodes of the graph, on these devices.
    std::map<std::string, DeviceName> homes;
    std::size_t homes_of = 0;
    std::vector<DeviceName> devices;
    bool spread = false;
  };
  void find_homes(Known& known, const Target& target, bool spread);
  Status replace(Known& known, const ExtendSession& message);
  Status append(Known& known, const ExtendSession& message);

  const OpTable& ops_;
  const CompileHost host_;
  std::map<std::uint64_t, Known> graphs_;
  std::map<std::string, DeviceName> placed_;  // by resource_key()
};

}  // namespace troupe
