// Assigns dataset elements to runs: the master's count.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "core/status.hpp"
#include "core/transaction.hpp"
#include "serialization/resource_state.hpp"

namespace troupe {

// The positions of a job's datasets. Part of the coordinator; no clock, no messages.
//
// When a run first starts, it takes the lowest free elements of each dataset that its step reads,
// one for each replica. A repeated attempt keeps them. If the run succeeds, they are used up. If it
// fails, they are free again, and the next run takes them; concurrent runs keep theirs. So,
// whatever fails:
//   - each element is used by at most one successful run;
//   - the elements used by successful runs, held by runs under way, or left by failed runs are
//     all elements from 0 to the last;
//   - runs that one client issues one after the other, each after the end of the one before, use
//     0, 1, 2, ... in order. A run that fails past the end of a finite dataset changes nothing: the
//     next one fails there, too.
// A run whose loops take elements holds the whole dataset until it is over, since the number of
// elements is known only then: it uses the free ones, from the lowest on. Other runs that take
// elements of that dataset start after it.
class DatasetPlaces {
 public:
  // What each run of a step takes of one dataset.
  struct Share {
    DatasetName dataset;
    std::uint32_t elements = 1;  // one for each replica
    bool open = false;           // any number, in rounds of `elements`
  };
  // By share, the numbers of its elements, ascending; for an open one see element_number.
  using Elements = std::vector<std::vector<std::uint64_t>>;

  // Whether no run holds one of them as a whole.
  bool free(const std::vector<Share>& shares) const;
  // REQUIRES: they are free.
  Elements take(const std::vector<Share>& shares);
  // The run that took them is over. `used`: it succeeded; `counts`: how many of each open share.
  void end(const std::vector<Share>& shares, const Elements& elements, bool used,
           const std::vector<std::uint64_t>& counts = {});

  // Counts only elements used by successful runs. Datasets at their beginning are left out.
  std::vector<DatasetPlace> places() const;
  // The job has committed: these places are the commit's.
  void commit();
  // The places as of the last commit. A program that goes on from it repeats what runs without a
  // commit have used, and what was rewound, since then.
  std::vector<DatasetPlace> committed() const;
  // REQUIRES: no run is under way. Datasets that are not listed are at their beginning.
  void restore(const std::vector<DatasetPlace>& places);
  // The same as values that leave the process. load() is invalid_argument, and changes nothing, for
  // values that save() does not produce.
  ResourceState save() const;
  Status load(const ResourceState& state);
  // Back to the beginning. REQUIRES: no run that is under way has taken elements of them.
  void rewind(const std::set<std::string>& containers);

  // The same for the datasets that a step reads. failed_precondition, and no change, while a run
  // under way has taken elements of one; invalid_argument if the step reads none.
  Status rewind(const std::vector<Share>& shares);

  std::size_t held() const;  // elements held by runs under way; a whole dataset counts as one

 private:
  struct Place {
    std::uint64_t next = 0;              // all below are used, held or left
    std::set<std::uint64_t> left, held;  // left by failed runs; held by runs under way
    bool open = false;                   // a run holds `left` and all from `next` on
    bool changed = false;                // since the last commit
  };
  static DatasetPlace known(const DatasetName& dataset, const Place& place);
  static void use(Place& place, const std::vector<std::uint64_t>& given, std::uint64_t count);
  std::map<DatasetName, Place> places_;
  std::map<DatasetName, DatasetPlace> committed_;
};

}  // namespace troupe
