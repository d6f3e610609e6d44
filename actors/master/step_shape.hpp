// What the master must know of a compiled step while runs of it exist.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "actors/master/dataset_places.hpp"
#include "actors/master/mutex_turns.hpp"
#include "core/transaction.hpp"

namespace troupe {

// Immutable, shared by all runs of the step: they may outlive its entry in the step table.
struct StepShape {
  // A value that the client gets.
  struct Fetch {
    std::uint32_t index = 0;
    DType dtype = DType::invalid;
    PartialShape shape;
  };
  struct Partition {
    TaskId task{};                        // where it runs
    std::string device;                   // for errors
    std::vector<std::uint32_t> datasets;  // those that it reads: indices into StepShape::datasets
    std::vector<Fetch> fetches;
    std::vector<std::uint32_t> feeds;  // those of the request that it takes, in its plan's order
  };
  std::vector<Partition> partitions;
  std::vector<DatasetPlaces::Share> datasets;
  MutexUses mutexes;      // that a run holds from its beginning to its end
  bool may_write = true;  // the plan has write nodes
  bool draws = false;     // and nodes that draw random numbers
  // And nodes that see what is committed when they ask, which the snapshot may not know of.
  bool current = false;
  // One partition, at most one written resource and that a variable container of the same task,
  // one write message, sent after every other node has succeeded, and no queue operation: log,
  // stage and commit may travel together.
  bool fast_path = false;
};

// Whether what a process says of its partition can be true of the step: that the step has such a
// partition, that the values are those that it fetches there, of their types, and that it wrote
// nothing that is not its own. What another process says may be anything. internal otherwise.
Status check_done(const StepShape& step, const PartitionDone& message);

}  // namespace troupe
