// Who takes which elements of a dataset: the master's count.
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

// How far the datasets of a job are read. Part of the coordinator; no clock, no messages.
//
// A run takes its elements when it first starts: of each dataset that its step reads the lowest
// that nobody has taken, one for each replica. Starting again it keeps them. When it ends well they
// are used up. When it fails they are free, and the run that starts next takes them; what runs
// beside it have taken meanwhile stays with those. So, whatever fails:
//   - each element is used by at most one run that ends well;
//   - the elements used by runs that ended well, and those that runs under way hold, are all from 0
//     to the last, but for those that failed runs have left;
//   - runs that one client issues one after the other, each after the end of the one before, use
//     0, 1, 2, ... in order. One that fails past the end of a finite dataset changes nothing: the
//     next one fails there, too.
// A run whose loops take elements holds the whole dataset until it is over, since only then it is
// known how many it has used: those that nobody has, from the lowest on. Runs that take elements
// of that dataset start after it.
class DatasetPlaces {
 public:
  // What runs of a step take.
  struct Share {
    DatasetName dataset;
    std::uint32_t elements = 1;  // one for each replica
    bool open = false;           // as many as it likes, in rounds of so many
  };
  // Per share, the numbers of its elements, ascending; of an open one see element_number.
  using Elements = std::vector<std::vector<std::uint64_t>>;

  // No run holds one of them as a whole.
  bool free(const std::vector<Share>& shares) const;
  // REQUIRES: they are free.
  Elements take(const std::vector<Share>& shares);
  // The run that took them is over. `used`: it ended well, having used so many of each open share.
  void end(const std::vector<Share>& shares, const Elements& elements, bool used,
           const std::vector<std::uint64_t>& counts = {});

  // Counting only what runs that ended well have used. Datasets at their beginning are left out.
  std::vector<DatasetPlace> places() const;
  // The job has committed: these places are the commit's.
  void commit();
  // The places as of the last commit. What runs without a commit have used since, and what was
  // rewound since, a program that goes on from that commit does again.
  std::vector<DatasetPlace> committed() const;
  // REQUIRES: no run is under way. Datasets that are not named are at their beginning.
  void restore(const std::vector<DatasetPlace>& places);
  // The same as values that leave the process, and back. invalid_argument for what save() does not
  // give, and then nothing has changed.
  ResourceState save() const;
  Status load(const ResourceState& state);
  // Back to the beginning. REQUIRES: no run that is under way has taken elements of them.
  void rewind(const std::set<std::string>& containers);

  // The same of those that runs of a step take. failed_precondition, and nothing is changed, while
  // a run that is under way has taken elements of one; invalid_argument when there are none.
  Status rewind(const std::vector<Share>& shares);

  std::size_t held() const;  // elements that runs under way have taken; a whole dataset is one

 private:
  struct Place {
    std::uint64_t next = 0;              // all below are used, held or left
    std::set<std::uint64_t> left, held;  // by failed runs; by runs under way
    bool open = false;                   // a run holds `left` and all from `next` on
    bool changed = false;                // since the last commit
  };
  static DatasetPlace known(const DatasetName& dataset, const Place& place);
  static void use(Place& place, const std::vector<std::uint64_t>& given, std::uint64_t count);
  std::map<DatasetName, Place> places_;
  std::map<DatasetName, DatasetPlace> committed_;
};

}  // namespace troupe
