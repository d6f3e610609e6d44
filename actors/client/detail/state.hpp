// The state of a session: what a checkpoint has of it, read in runs, and assigned in runs.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <unordered_set>
#include <utility>
#include <vector>

#include "actors/client/detail/runs.hpp"
#include "serialization/safetensors.hpp"

namespace troupe::detail {

// The origin of a run: the session itself may write before the program has asked for its place.
enum class RunFor : std::uint8_t { session, program };

// Runs a request once, as one replica.
Expected<CallResult> run_single(const std::shared_ptr<SessionCore>& core, CompileRequest request,
                                std::vector<Tensor> feeds, RunFor whom = RunFor::session,
                                bool only_reads = false,
                                std::shared_ptr<const JobPlace> resume = nullptr,
                                std::vector<std::string> files = {});

// A queue or a resource of a kind that the program defines, with its first handle.
struct NamedHandle {
  NodeId node;
  ResourceName resource;
};
// All that the graph has handles of, each once; but for variables, datasets and mutexes.
std::vector<NamedHandle> other_resources(const GraphBuilder& graph);

// A variable, and a node that reads it at the run's snapshot; the variable's handle, if no node of
// the graph does that: ShippedGraph::read_of() is for those.
struct VariableRead {
  const NodeDef* variable;
  const NodeDef* read;
};
// The variables that the graph uses: with a node that reads them, behind others or in a function,
// too, or that changes what they hold. One that is only assigned says nothing to anybody.
std::vector<VariableRead> variable_reads(const GraphDef& graph, const OpRegistry& ops);
// Each variable once, even if it has several handles. already_exists if two variables would have
// the same name in a checkpoint.
Expected<std::vector<VariableRead>> state_reads(const GraphBuilder& graph);
// The reads of these variables. invalid_argument for one of another graph, or one that the graph
// does not read.
Expected<std::vector<VariableRead>> reads_of(const SessionCore& core,
                                             const std::vector<Variable>& variables);

void take_place(JobPlace place, JobState& state);
// Reads these variables and resources in one run. Without any, the state is empty.
Expected<JobState> read_state(const std::shared_ptr<SessionCore>& core,
                              const std::vector<VariableRead>& variables,
                              const std::vector<NamedHandle>& resources = {});

// The CPU of the task that has each variable; "" for one that is not placed yet.
Expected<std::vector<std::string>> hosts_of(SessionCore& core,
                                            const std::vector<const NodeDef*>& variables);

using NamedTensors = std::vector<std::pair<std::string, Tensor>>;
using NameInFile = std::function<std::string(const std::string&)>;
// The variables with their values in the file, or what does not match. `all`: the file must contain
// all of them. `name_in_file`: see RestoreFileOptions; may be empty.
Expected<NamedTensors> match_variables(const GraphDef& graph,
                                       const std::vector<VariableRead>& variables,
                                       const SafetensorsFile& file, bool all,
                                       const NameInFile& name_in_file = {});
// A request that assigns such values. Its nodes are made once for the same variables.
Expected<CompileRequest> assignments_of(SessionCore& core, const NamedTensors& values);
// A request that assigns these variables, each read by the process that has it. Variables that are
// not placed yet are placed first, as by a step that assigns all of them.
Expected<CompileRequest> restores_of(const std::shared_ptr<SessionCore>& core,
                                     const std::vector<StoredVariable>& stored);
Status write_variables(const std::string& path, const NamedTensors& variables);

// The assignment of a variable's initial value.
struct Initializer {
  NodeId assign, handle;
};
std::vector<Initializer> initializers_of(const GraphBuilder& graph);
// The initializers of variables without a value. REQUIRES: core.initialising is held.
Expected<std::vector<Initializer>> without_value(const std::shared_ptr<SessionCore>& core,
                                                 std::vector<Initializer> of);
// The same initializers in rounds, of which each computes its values from those of the rounds
// before it, and the first one from no variable that is assigned: neither by one of them nor, with
// the resource keys `first`, by what runs together with the first round. There is at least one
// round, which may be empty.
std::vector<std::vector<Initializer>> in_rounds(const GraphBuilder& graph,
                                                const std::vector<Initializer>& all,
                                                const std::unordered_set<std::string>& first);
// The resource keys of restored variables.
std::unordered_set<std::string> keys_of(const GraphBuilder& graph, const NamedTensors& restored);
// The initializers of variables that are not restored.
std::vector<Initializer> others(const GraphBuilder& graph, const NamedTensors& restored);
void add_targets(const GraphBuilder& graph, const std::vector<Initializer>& initializers,
                 CompileRequest& request);

// Restores the state in a session without runs.
Status resume(const std::shared_ptr<SessionCore>& core, const JobState& state);
// Replaces the program's note.
Status move_place(const std::shared_ptr<SessionCore>& core, const std::string& note);
// The same by the thread that holds the gate, to keep the state: until that is kept, a recovery
// repeats it.
Status move_place_alone(const std::shared_ptr<SessionCore>& core, const std::string& note);

}  // namespace troupe::detail
