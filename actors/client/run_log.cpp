#include "actors/client/run_log.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "core/hash.hpp"

namespace troupe {
namespace {

constexpr std::size_t kOfAnEntry = 256;  // approximate bytes of an entry
constexpr std::size_t kSmall = 4 << 10;  // bytes of fetches that are compared

// Whether a repetition may end differently. A reset aborts the runs that are under way, perhaps one
// that began when nothing was.
bool by_chance(Code code) {
  return code == Code::deadline_exceeded || code == Code::cancelled || code == Code::aborted ||
         code == Code::resource_exhausted;
}

}  // namespace

std::string RunLog::Outcome::text() const {
  if (code != Code::ok) return std::string(code_name(code));
  return fmt::format("commit {}, fetches {:x}", committed, fetches_hash);
}

RunLog::Outcome RunLog::outcome_of(const CallResult& result) {
  Outcome outcome{result.status.code(), result.committed, 0};
  if (!result.status.ok()) return outcome;
  std::size_t bytes = 0;
  for (const Tensor& fetch : result.fetches) bytes += fetch.bytes();
  if (bytes > kSmall) return outcome;
  for (const Tensor& fetch : result.fetches) {
    if (fetch.dtype() == DType::string || fetch.dtype() == DType::list || fetch.bytes() == 0)
      continue;
    outcome.fetches_hash =
        hash_combine(outcome.fetches_hash, hash_bytes(fetch.raw(), fetch.bytes()));
  }
  return outcome;
}

void RunLog::set_order_matters(bool matters) {
  std::lock_guard lock(mutex_);
  order_matters_ = matters;
}

void RunLog::make_room(std::size_t bytes) {
  if (writes_down() && (entries_.size() >= kMostEntries || bytes_ + bytes > kMostBytes))
    forget(fmt::format("since the state was kept there were {} runs, which were given {} MiB",
                       entries_.size(), bytes_ >> 20));
}

std::uint64_t RunLog::enter(std::weak_ptr<Call> call, std::size_t bytes, Again again, bool takes,
                            std::vector<std::string> files) {
  std::lock_guard lock(mutex_);
  bytes += kOfAnEntry;
  make_room(bytes);
  const auto together = [&] { return order_matters_ ? open_ > 0 : takes && open_takers_ > 0; };
  if (writes_down() && together()) {
    settle();  // some may be over, not yet reported by their clients
    if (together())
      forget(order_matters_
                 ? "several runs were under way at once since the state was kept"
                 : "several runs that dequeue were under way at once since the state was kept");
  }
  if (!writes_down()) {  // entered only to see when it is over
    again = nullptr;
    bytes = 0;
    files.clear();
  }
  bytes_ += bytes;
  ++open_;
  open_takers_ += takes;
  entries_.push_back(
      {next_, std::move(call), true, takes, {}, 0, bytes, std::move(again), std::move(files)});
  return next_++;
}

void RunLog::answered(std::uint64_t number, const CallResult& result) {
  std::lock_guard lock(mutex_);
  const auto it =
      std::lower_bound(entries_.begin(), entries_.end(), number,
                       [](const Entry& entry, std::uint64_t n) { return entry.number < n; });
  if (it != entries_.end() && it->number == number && it->open) close(it, result);
}

void RunLog::enter_done(Again again, std::size_t bytes, CommitNumber seen) {
  std::lock_guard lock(mutex_);
  bytes += kOfAnEntry;
  make_room(bytes);
  if (!writes_down()) return;
  bytes_ += bytes;
  entries_.push_back({next_++, {}, false, false, {}, seen, bytes, std::move(again)});
}

void RunLog::broke(const std::string& why) {
  std::lock_guard lock(mutex_);
  forget(why);
}

bool RunLog::quiet() {
  std::lock_guard lock(mutex_);
  settle();
  return open_ == 0;
}

void RunLog::kept() {
  std::lock_guard lock(mutex_);
  entries_.clear();
  bytes_ = 0;
  taken_ = 0;
  broken_.clear();
}

void RunLog::taken() {
  std::lock_guard lock(mutex_);
  taken_ = next_;
}

void RunLog::not_taken() {
  std::lock_guard lock(mutex_);
  taken_ = 0;
  if (!broken_.empty()) forget(std::string(broken_));
}

bool RunLog::taken_is_kept() {
  std::lock_guard lock(mutex_);
  if (taken_ == 0) return false;
  while (!entries_.empty() && entries_.front().number < taken_) {
    bytes_ -= entries_.front().bytes;
    open_ -= entries_.front().open;
    open_takers_ -= entries_.front().open && entries_.front().takes;
    entries_.pop_front();
  }
  taken_ = 0;
  broken_.clear();
  return true;
}

std::vector<std::string> RunLog::files() const {
  std::lock_guard lock(mutex_);
  std::vector<std::string> all;
  for (const Entry& entry : entries_) all.insert(all.end(), entry.files.begin(), entry.files.end());
  return all;
}

Status RunLog::whole() const {
  std::lock_guard lock(mutex_);
  return broken_.empty() ? ok_status() : failed_precondition(broken_);
}

Expected<std::vector<RunLog::Done>> RunLog::done() {
  std::lock_guard lock(mutex_);
  settle();
  if (!broken_.empty()) return failed_precondition(broken_);
  // Clients on several threads may enter commits out of order.
  struct Placed {
    CommitNumber after;
    bool commits;
    Done done;
  };
  std::vector<Placed> placed;
  CommitNumber last = 0;
  for (const Entry& entry : entries_) {
    if (entry.open) return failed_precondition("a run has no answer");
    const CommitNumber s = entry.outcome.committed;
    const CommitNumber after = s != 0 ? s : entry.after != 0 ? entry.after : last;
    last = std::max(last, after);
    placed.push_back({after, s != 0, {entry.outcome, entry.again}});
  }
  std::stable_sort(placed.begin(), placed.end(), [](const Placed& a, const Placed& b) {
    return a.after != b.after ? a.after < b.after : a.commits && !b.commits;
  });
  std::vector<Done> all;
  for (Placed& each : placed) all.push_back(std::move(each.done));
  return all;
}

// Records the answers of all finished Calls.
void RunLog::settle() {
  if (open_ == 0) return;
  for (std::size_t i = 0; i < entries_.size();) {
    const auto entry = entries_.begin() + std::ptrdiff_t(i);
    const std::size_t before = entries_.size();
    if (entry->open)
      if (const auto call = entry->call.lock(); call && call->done()) close(entry, call->result());
    if (entries_.size() == before) ++i;
    if (entries_.size() + 1 < before) i = 0;  // the log broke: also those before it went
  }
}

void RunLog::close(std::deque<Entry>::iterator entry, const CallResult& result) {
  --open_;
  open_takers_ -= entry->takes;
  entry->open = false;
  entry->outcome = outcome_of(result);
  // A dequeue that failed since its queue was closed would wait for ever before that commit, which
  // is later than its snapshot.
  const bool late = entry->takes && !result.status.ok();
  entry->after = late ? result.seen : result.snapshot;
  const Code code = entry->outcome.code;
  // A run that only read has no effect, nor has a lost one or one that never began.
  const bool read = result.status.ok() && result.committed == 0 && !result.moved;
  if (!writes_down() || read || code == Code::unavailable || result.unloaded) {
    bytes_ -= entry->bytes;
    entries_.erase(entry);
  }
  if (writes_down() && by_chance(code))
    forget(fmt::format("a run ended with {} since the state was kept", code_name(code)));
  if (writes_down() && result.behind != 0)
    forget("a run since the state was kept made updates of values that others had changed");
}

void RunLog::forget(const std::string& why) {
  broken_ = why;
  taken_ = 0;
  std::erase_if(entries_, [](const Entry& entry) { return !entry.open; });
  for (Entry& entry : entries_) {
    entry.again = nullptr;
    entry.bytes = 0;
    entry.files.clear();
  }
  bytes_ = 0;
}

}  // namespace troupe
