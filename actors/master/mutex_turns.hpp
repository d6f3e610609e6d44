// The mutexes that runs hold.
#pragma once

#include <compare>
#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/transaction.hpp"

namespace troupe {

// The name of a mutex of the job, formed as for variables and queues. All sessions share mutexes.
struct MutexName {
  std::string container;  // "" is the default one
  std::string name;       // shared_name or node name
  friend auto operator<=>(const MutexName&, const MutexName&) = default;
  std::string text() const;  // "mutex 'm'", "mutex 'm' of container 'c'"
};

// A mutex that runs of a step acquire, perhaps in a branch, and the first node that does.
struct MutexUse {
  MutexName mutex;
  std::string node, op, site = {};
};
using MutexUses = std::vector<MutexUse>;  // each mutex once

// Runs that acquire the same mutex one after the other.
//
// A run takes all its mutexes at once when it begins, and holds them until it is over, whatever its
// result and however often it is repeated. A waiting run never overtakes an older one that needs
// the same mutex. So a run waits only for runs under way and for older waiting ones, never in a
// cycle: mutexes cause no deadlock, in whatever order a step's nodes acquire them.
//
// A state machine without clock; part of the coordinator.
class MutexTurns {
 public:
  // Goes through the waiting runs, the oldest first.
  class Line {
   public:
    explicit Line(const MutexTurns& turns) : turns_(turns) {}
    // The mutex that the next run must wait for; null: it may begin.
    const MutexUse* obstacle(const MutexUses& wanted) const;
    // The run waits, for a mutex or something else: later runs do not overtake it.
    void waits(const RunId& run, const MutexUses& wanted);
    // The run that holds the mutex, or else the first waiting run that needs it.
    std::optional<RunId> before(const MutexName& mutex) const;

   private:
    const MutexTurns& turns_;
    std::map<MutexName, RunId> wanted_;
  };

  // The run begins, perhaps once more. REQUIRES: none is held by another run.
  void take(const RunId& run, const MutexUses& wanted);
  // The run is over.
  void end(const RunId& run, const MutexUses& wanted);
  // Null: the mutex is free.
  const RunId* holder(const MutexName& mutex) const;
  std::size_t held() const { return holders_.size(); }

 private:
  std::map<MutexName, RunId> holders_;
};

}  // namespace troupe
