// What a session did since its state was kept.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "actors/call.hpp"
#include "core/status.hpp"

namespace troupe {

// The runs of a session that a kept state does not have, in order, so that a session that had to go
// back to that state can do them again. Any thread; plain data but for the Calls that it looks at.
//
// A run is entered before it is sent. It counts once it has an answer that is no error; what failed
// left nothing. Bounded: a log that has become too long, or in which something happened that cannot
// be done again, is broken until the state is kept anew.
class RunLog {
 public:
  static constexpr std::size_t kMostBytes = std::size_t{256} << 20;  // of feeds
  static constexpr std::size_t kMostEntries = 200'000;

  // Does it again; the commit number that it got.
  using Again = std::function<Expected<CommitNumber>()>;

  // Enters a run, before it is sent: its number here. `bytes`: what `again` holds.
  std::uint64_t enter(std::weak_ptr<Call> call, std::size_t bytes, Again again);
  // Its answer.
  void answered(std::uint64_t number, bool ok, CommitNumber committed);
  // Enters something else that moved the place of the job, and is over.
  void enter_done(Again again);
  // The state cannot be reached any more by doing things again: why.
  void broke(const std::string& why);

  // A state is about to be taken: what is entered later is not in it, unless it commits in time.
  std::uint64_t taking() const;
  // It was taken, as of `committed`; what it has need not be done again.
  void kept(std::uint64_t taking, CommitNumber committed);

  // failed_precondition: why what was done cannot be done again.
  Status whole() const;

  struct Done {
    CommitNumber committed = 0;  // 0: it wrote nothing
    Again again;
  };
  // What is to be done again, commits in their order; the error of whole(). To be called when no
  // run of the log is under way any more; one without an answer is taken for failed.
  Expected<std::vector<Done>> done();

 private:
  struct Entry {
    std::uint64_t number = 0;
    std::weak_ptr<Call> call;
    bool open = true;
    CommitNumber committed = 0;
    std::size_t bytes = 0;
    Again again;
  };
  void erase(std::deque<Entry>::iterator entry);

  mutable std::mutex mutex_;
  std::deque<Entry> entries_;
  std::uint64_t next_ = 1;
  std::size_t bytes_ = 0;
  std::string broken_;
};

}  // namespace troupe
