#include "actors/master/blocked_reports.hpp"

#include <algorithm>

namespace troupe {
namespace {

// Shards repeat their reports every 50 ms; older ones expire.
constexpr Instant kReportLife = std::chrono::milliseconds(200);

}  // namespace

bool BlockedReports::take(const BlockedReport& message, Instant now) {
  Report& report = reports_[message.shard];
  if (message.sequence <= report.sequence) return false;
  report = {message.sequence, now, message.waiting, message.marked};
  return true;
}

bool BlockedReports::expire(Instant now) {
  bool any = false;
  for (auto& [shard, report] : reports_) {
    if (now - report.at < kReportLife) continue;
    any |= !report.waiting.empty();
    report.waiting.clear();
    report.marked.clear();
  }
  return any;
}

std::set<AttemptId> BlockedReports::waiting() const {
  std::set<AttemptId> waiting;
  for (const auto& [shard, report] : reports_)
    waiting.insert(report.waiting.begin(), report.waiting.end());
  return waiting;
}

std::set<RunId> BlockedReports::marked() const {
  std::set<RunId> marked;
  for (const auto& [shard, report] : reports_)
    marked.insert(report.marked.begin(), report.marked.end());
  return marked;
}

bool BlockedReports::anybody_waits() const {
  return std::any_of(reports_.begin(), reports_.end(),
                     [](const auto& entry) { return !entry.second.waiting.empty(); });
}

std::size_t BlockedReports::count() const {
  std::size_t n = 0;
  for (const auto& [shard, report] : reports_) n += report.waiting.size();
  return n;
}

Instant BlockedReports::next_expiry() const {
  Instant at = kNever;
  for (const auto& [shard, report] : reports_)
    if (!report.waiting.empty()) at = std::min(at, report.at + kReportLife);
  return at;
}

}  // namespace troupe
