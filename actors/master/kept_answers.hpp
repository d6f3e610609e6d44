// Sessions, and the answers that their clients have not acknowledged.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "core/transaction.hpp"

namespace troupe {

// The answer to a run.
struct RunAnswer {
  RunId run;
  Status status;
  std::vector<Fetched> fetches;           // by index, when ok
  CommitNumber committed = 0;             // the run's number; 0: it wrote nothing, or failed
  std::shared_ptr<const JobPlace> place;  // as of the snapshot, if asked for and ok; else null
  CommitNumber seen = 0;                  // it saw nothing of a later commit
  CommitNumber snapshot = 0;              // of the variables that it read
  // Of an immediate run: how many commits there were since its snapshot, if one of them changed
  // what it read; else 0.
  CommitNumber behind = 0;
  bool moved = false;  // it moved places of datasets or draws without a commit
};

// Makes repeated requests harmless: an answer is kept, and repeated, until the client acknowledges
// it. Part of the coordinator.
class KeptAnswers {
 public:
  void open(std::uint64_t session) { sessions_.try_emplace(session); }
  // False if there is no such session.
  bool close(std::uint64_t session);
  // A closed session keeps its answers until it is erased.
  void erase(std::uint64_t session) { sessions_.erase(session); }
  bool is_open(std::uint64_t session) const;
  std::vector<std::uint64_t> closing() const;

  // The client has received these answers; they are dropped.
  void acknowledge(std::uint64_t session, const Acknowledged& arrived);
  bool acknowledged(const RunId& run) const;
  // The answer of a run, if it is kept.
  const RunAnswer* find(const RunId& run) const;
  // Ignored unless the session is open.
  void keep(const RunAnswer& answer);
  std::size_t size() const;

 private:
  struct Session {
    Acknowledged acknowledged;
    bool closing = false;
    std::map<std::uint64_t, RunAnswer> answers;
  };
  std::map<std::uint64_t, Session> sessions_;
};

}  // namespace troupe
