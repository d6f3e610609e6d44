#include "actors/client/run_log.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace troupe {

std::uint64_t RunLog::enter(std::weak_ptr<Call> call, std::size_t bytes, Again again) {
  std::lock_guard lock(mutex_);
  if (!broken_.empty()) return 0;
  if (entries_.size() >= kMostEntries || bytes_ + bytes > kMostBytes) {
    broken_ = fmt::format("since the state was kept there were {} runs, with {} MiB of feeds",
                          entries_.size(), bytes_ >> 20);
    entries_.clear();
    bytes_ = 0;
    return 0;
  }
  bytes_ += bytes;
  entries_.push_back({next_, std::move(call), true, 0, bytes, std::move(again)});
  return next_++;
}

void RunLog::answered(std::uint64_t number, bool ok, CommitNumber committed) {
  std::lock_guard lock(mutex_);
  const auto it =
      std::lower_bound(entries_.begin(), entries_.end(), number,
                       [](const Entry& entry, std::uint64_t n) { return entry.number < n; });
  if (it == entries_.end() || it->number != number || !it->open) return;
  if (!ok) return erase(it);
  it->open = false;
  it->committed = committed;
}

void RunLog::enter_done(Again again) {
  const std::uint64_t number = enter({}, 0, std::move(again));
  answered(number, true, 0);
}

void RunLog::broke(const std::string& why) {
  std::lock_guard lock(mutex_);
  broken_ = why;
  entries_.clear();
  bytes_ = 0;
}

std::uint64_t RunLog::taking() const {
  std::lock_guard lock(mutex_);
  return next_;
}

void RunLog::kept(std::uint64_t taking, CommitNumber committed) {
  std::lock_guard lock(mutex_);
  broken_.clear();
  std::deque<Entry> left;
  bytes_ = 0;
  for (Entry& entry : entries_) {
    const bool has = !entry.open &&
                     (entry.committed != 0 ? entry.committed <= committed : entry.number < taking);
    if (has) continue;
    bytes_ += entry.bytes;
    left.push_back(std::move(entry));
  }
  entries_ = std::move(left);
}

Status RunLog::whole() const {
  std::lock_guard lock(mutex_);
  return broken_.empty() ? ok_status() : failed_precondition(broken_);
}

Expected<std::vector<RunLog::Done>> RunLog::done() {
  TROUPE_TRY(whole());
  std::lock_guard lock(mutex_);
  for (auto it = entries_.begin(); it != entries_.end();) {
    const auto call = it->open ? it->call.lock() : nullptr;
    const bool answered = call && call->done() && call->result().status.ok();
    if (it->open && !answered) {
      bytes_ -= it->bytes;
      it = entries_.erase(it);
      continue;
    }
    if (it->open) it->committed = call->result().committed;
    it->open = false;
    ++it;
  }
  // Clients on several threads learn of their commits in any order.
  std::vector<Done> all;
  std::vector<std::size_t> places;
  std::vector<Done> commits;
  for (const Entry& entry : entries_) {
    if (entry.committed != 0) {
      places.push_back(all.size());
      commits.push_back({entry.committed, entry.again});
    }
    all.push_back({entry.committed, entry.again});
  }
  std::stable_sort(commits.begin(), commits.end(),
                   [](const Done& a, const Done& b) { return a.committed < b.committed; });
  for (std::size_t i = 0; i < places.size(); ++i) all[places[i]] = std::move(commits[i]);
  return all;
}

void RunLog::erase(std::deque<Entry>::iterator entry) {
  bytes_ -= entry->bytes;
  entries_.erase(entry);
}

}  // namespace troupe
