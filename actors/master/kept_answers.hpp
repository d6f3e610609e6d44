// Open sessions, and the answers that their clients have not acknowledged.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <vector>

#include "core/transaction.hpp"

namespace troupe {

// What a run came to.
struct RunAnswer {
  RunId run;
  Status status;
  std::vector<Fetched> fetches;  // by index, when ok
  CommitNumber committed = 0;    // the run's number; 0: it wrote nothing, or failed
  JobPlace place;                // as of the snapshot, if asked for and ok
  CommitNumber seen = 0;         // nothing that it saw is of a later commit
  bool moved = false;            // places of datasets or draws, with no commit
};

// Makes a repeated request harmless: an answer is kept, and given again, until the client has it.
// Part of the coordinator.
class KeptAnswers {
 public:
  void open(std::uint64_t session) { sessions_.try_emplace(session); }
  // False when there is no such session.
  bool close(std::uint64_t session);
  // Closed ones keep what they have until they are erased.
  void erase(std::uint64_t session) { sessions_.erase(session); }
  bool is_open(std::uint64_t session) const;
  std::vector<std::uint64_t> closing() const;

  // The client has these answers; they are dropped.
  void acknowledge(std::uint64_t session, const Acknowledged& arrived);
  bool acknowledged(const RunId& run) const;
  // The answer of a run that is over, if it is kept.
  const RunAnswer* find(const RunId& run) const;
  // Of a session that is not open, nothing is kept.
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
