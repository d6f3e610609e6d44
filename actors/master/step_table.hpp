// The master's table of compiled steps. No actors in here.
#pragma once

#include <cstdint>
#include <list>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "actors/call.hpp"
#include "actors/master/step_shape.hpp"
#include "graph/compile.hpp"

namespace troupe {

// One step, compiled for the cluster as it was then. The plans themselves are with their executors.
struct StepEntry {
  CompiledId id = 0;
  std::uint64_t session = 0;
  std::string key;
  CompileRequest request;
  std::shared_ptr<const StepShape> shape;
  std::set<std::string> containers;            // containers of the resources it uses
  std::set<TaskId> loading;                    // tasks that have not answered LoadStep
  std::vector<std::shared_ptr<Call>> waiting;  // compile calls to answer after loading
  std::uint32_t running = 0;                   // runs under way
  std::int64_t since_ns = 0;                   // coarse_now_ns() when it was compiled
};

// Equal requests have equal keys.
std::string request_key(const CompileRequest& request);

// The shape of a compiled graph.
std::shared_ptr<const StepShape> step_shape(const CompiledGraph& graph);

// Steps by id and by (session, request). Beyond `most` of one session, the least recently used step
// without runs is evicted.
class StepTable {
 public:
  explicit StepTable(std::size_t most) : most_(most) {}

  StepEntry* find(CompiledId id);  // counts as a use
  StepEntry* find(std::uint64_t session, const std::string& key);
  // Adds a step and returns the ids of evicted ones.
  std::vector<CompiledId> add(StepEntry step);
  void erase(CompiledId id);
  // The session's steps are of a graph that has changed: they are not found by request any more.
  void outdate(std::uint64_t session);
  std::vector<CompiledId> of_session(std::uint64_t session) const;
  // The steps that use one of the containers.
  std::vector<CompiledId> that_use(const std::set<std::string>& containers) const;
  std::vector<const StepEntry*> loading() const;  // not yet loaded by all their tasks
  std::size_t size() const { return steps_.size(); }

 private:
  void use(CompiledId id);
  std::size_t most_;
  std::map<CompiledId, StepEntry> steps_;
  std::map<std::pair<std::uint64_t, std::string>, CompiledId> by_key_;
  std::list<CompiledId> recent_;  // least recently used first
};

}  // namespace troupe
