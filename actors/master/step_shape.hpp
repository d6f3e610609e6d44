// The properties of a compiled step that the master needs while it has runs.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "actors/master/dataset_places.hpp"
#include "actors/master/mutex_turns.hpp"
#include "core/transaction.hpp"

namespace troupe {

// Immutable, shared by all runs of the step, which may outlive its entry in the step table.
struct StepShape {
  // A value returned to the client.
  struct Fetch {
    std::uint32_t index = 0;
    DType dtype = DType::invalid;
    PartialShape shape;
  };
  struct Partition {
    TaskId task{};                        // where it runs
    std::string device;                   // for errors
    std::vector<std::uint32_t> datasets;  // those it reads: indices into StepShape::datasets
    std::vector<Fetch> fetches;
    std::vector<std::uint32_t> feeds;  // indices into the request's feeds, in the plan's order
  };
  std::vector<Partition> partitions;
  std::vector<DatasetPlaces::Share> datasets;
  MutexUses mutexes;      // held by a run from beginning to end
  bool may_write = true;  // has write nodes
  bool draws = false;     // has nodes that draw random numbers
  // Has nodes that see the last commit when they ask, which may be later than the snapshot.
  bool current = false;
  // Log, stage and commit can be one message: there is one partition, all writes go to one variable
  // container of the same task, in one message that is sent after every other node has succeeded,
  // and there is no queue operation.
  bool fast_path = false;

  // Whether its runs change nothing, also no place, however they end. With a note they commit.
  bool only_reads() const { return !may_write && !draws && datasets.empty(); }
};

// Checks a message of another process against the step: that the step has the partition, that the
// values are its fetches with their types, and that it wrote only its own resources. internal if
// not.
Status check_done(const StepShape& step, const PartitionDone& message);

}  // namespace troupe
