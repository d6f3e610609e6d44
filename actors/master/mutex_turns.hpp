// Which run holds which mutexes.
#pragma once

#include <compare>
#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/transaction.hpp"

namespace troupe {

// A mutex of the job. Named as variables and queues are: steps of all sessions share it.
struct MutexName {
  std::string container;  // "" is the default one
  std::string name;       // shared_name or node name
  friend auto operator<=>(const MutexName&, const MutexName&) = default;
  std::string text() const;  // "mutex 'm'", "mutex 'm' of container 'c'"
};

// One that runs of a step acquire, or may acquire in a branch, and the first node that does.
struct MutexUse {
  MutexName mutex;
  std::string node, op, site = {};
};
using MutexUses = std::vector<MutexUse>;  // each mutex once

// Lets runs begin one after the other that acquire the same mutex.
//
// A run takes all its mutexes at once when it begins, and none later; it holds them until it is
// over, however it ends and however often it is done again. Of the runs that wait none overtakes an
// older one which wants one of the same. So a run waits for runs that are under way and for older
// ones that wait, never in a circle, and each gets its turn once those before it are over: there
// are no deadlocks among mutexes, in whatever order a step's nodes acquire them.
//
// A machine without clock; part of the coordinator.
class MutexTurns {
 public:
  // Goes through the runs that wait, in the order in which they came.
  class Line {
   public:
    explicit Line(const MutexTurns& turns) : turns_(turns) {}
    // Which of them the next run has to wait for; null: it may begin.
    const MutexUse* obstacle(const MutexUses& wanted) const;
    // It waits, for this or for something else: those behind it do not get before it.
    void waits(const RunId& run, const MutexUses& wanted);
    // Who holds that mutex, or the first run in the line that wants it.
    std::optional<RunId> before(const MutexName& mutex) const;

   private:
    const MutexTurns& turns_;
    std::map<MutexName, RunId> wanted_;
  };

  // The run begins, perhaps once more. REQUIRES: none is held by another run.
  void take(const RunId& run, const MutexUses& wanted);
  // The run is over.
  void end(const RunId& run, const MutexUses& wanted);
  // Null: it is free.
  const RunId* holder(const MutexName& mutex) const;
  std::size_t held() const { return holders_.size(); }

 private:
  std::map<MutexName, RunId> holders_;
};

}  // namespace troupe
