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

// One step, compiled for the cluster as it was then. The plans themselves live where they run.
struct StepEntry {
  CompiledId id = 0;
  std::uint64_t session = 0;
  std::string key;
  CompileRequest request;
  std::shared_ptr<const StepShape> shape;
  std::set<std::string> containers;            // whose variables or queues it uses
  std::set<TaskId> loading;                    // who has not answered LoadStep yet
  std::vector<std::shared_ptr<Call>> waiting;  // compile calls to answer then
  std::uint32_t running = 0;                   // runs under way
  std::int64_t since_ns = 0;                   // coarse_now_ns() when it was compiled
};

// The text that two equal requests share.
std::string request_key(const CompileRequest& request);

// What the coordinator must know of a compiled graph.
std::shared_ptr<const StepShape> step_shape(const CompiledGraph& graph);

// Steps by id and by (session, request), bounded: beyond `most` of one session the least recently
// used one that no run holds is evicted.
class StepTable {
 public:
  explicit StepTable(std::size_t most) : most_(most) {}

  StepEntry* find(CompiledId id);  // counts as a use
  StepEntry* find(std::uint64_t session, const std::string& key);
  // Adds one, and returns the ids it evicted.
  std::vector<CompiledId> add(StepEntry step);
  void erase(CompiledId id);
  std::vector<CompiledId> of_session(std::uint64_t session) const;
  // Those that use one of the containers.
  std::vector<CompiledId> that_use(const std::set<std::string>& containers) const;
  std::vector<const StepEntry*> loading() const;  // not yet loaded by all
  std::size_t size() const { return steps_.size(); }

 private:
  void use(CompiledId id);
  std::size_t most_;
  std::map<CompiledId, StepEntry> steps_;
  std::map<std::pair<std::uint64_t, std::string>, CompiledId> by_key_;
  std::list<CompiledId> recent_;  // least recently used first
};

}  // namespace troupe
