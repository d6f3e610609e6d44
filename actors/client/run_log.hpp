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
// A run is entered before it is sent. What came of it is written down when its answer is there, to
// be compared when it is done again: it may also have failed, by what will make it fail again. One
// that was lost with a part of the job left nothing.
//
// It is broken, until a state is kept anew, by whatever cannot be done again to the same end: a run
// that was cut short by its deadline or its client, runs of several clients at once where it
// matters which was first, and too much of all. So is a log in which not everything was entered.
class RunLog {
 public:
  static constexpr std::size_t kMostBytes = std::size_t{256} << 20;  // that runs are given
  static constexpr std::size_t kMostEntries = 200'000;

  // What came of a run.
  struct Outcome {
    Code code = Code::ok;
    CommitNumber committed = 0;      // 0: it wrote nothing
    std::uint64_t fetches_hash = 0;  // of small ones; see outcome_of()
    friend bool operator==(const Outcome&, const Outcome&) = default;
    std::string text() const;
  };
  static Outcome outcome_of(const CallResult& result);
  using Again = std::function<Outcome()>;

  // Whether runs of several clients at once may be done again one after the other.
  void set_order_matters(bool matters);

  // A run, before it is sent: its number here. `bytes`: what `again` holds.
  std::uint64_t enter(std::weak_ptr<Call> call, std::size_t bytes, Again again);
  void answered(std::uint64_t number, const CallResult& result);
  // Something else that moved the place of the job, and is over.
  void enter_done(Again again);
  // The state cannot be reached any more by doing things again: why.
  void broke(const std::string& why);

  // A state was taken while no run began. False: runs are under way, of which nobody knows whether
  // the state has them; all stays as it was. To be asked before, too.
  bool quiet();
  void kept();
  // The same for a state that takes long to be kept, while runs go on: taken now; and once it is
  // kept, or is not. What was done before it was taken counts until then. A second one takes the
  // place of the first. False: it is of no use, since something broke the log meanwhile.
  void taken();
  bool taken_is_kept();

  // failed_precondition: why what was done cannot be done again.
  Status whole() const;
  struct Done {
    Outcome outcome;
    Again again;
  };
  // What is to be done again, commits in their order; the error of whole(). To be called when no
  // run of the log is under way any more.
  Expected<std::vector<Done>> done();

 private:
  struct Entry {
    std::uint64_t number = 0;
    std::weak_ptr<Call> call;
    bool open = true;
    Outcome outcome;
    std::size_t bytes = 0;
    Again again;
  };
  void settle();
  void close(std::deque<Entry>::iterator entry, const CallResult& result);
  bool writes_down() const { return broken_.empty() || taken_ != 0; }
  void forget(const std::string& why);

  mutable std::mutex mutex_;
  std::deque<Entry> entries_;  // when broken those without an answer only
  std::uint64_t next_ = 1;
  std::size_t bytes_ = 0, open_ = 0;
  bool order_matters_ = true;
  std::string broken_ = "its state was not kept";
  std::uint64_t taken_ = 0;  // the first run that the taken state does not have; 0: none is taken
};

}  // namespace troupe
