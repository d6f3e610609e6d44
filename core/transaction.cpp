#include "core/transaction.hpp"

#include <algorithm>
#include <functional>
#include <iterator>
#include <tuple>

#include "core/hash.hpp"

namespace troupe {

bool Acknowledged::covers(std::uint64_t n) const {
  return n < below && !std::binary_search(but.begin(), but.end(), n);
}

void Acknowledged::merge(const Acknowledged& other) {
  // What both know of is open only if neither knows better.
  const std::uint64_t known = std::min(below, other.below);
  const auto mine = std::lower_bound(but.begin(), but.end(), known);
  const auto others = std::lower_bound(other.but.begin(), other.but.end(), known);
  std::vector<std::uint64_t> open;
  std::set_intersection(but.begin(), mine, other.but.begin(), others, std::back_inserter(open));
  open.insert(open.end(), mine, but.end());
  open.insert(open.end(), others, other.but.end());
  but = std::move(open);
  below = std::max(below, other.below);
}

std::string ResourceName::text() const {
  const std::string of = kind + (name.empty() ? "s" : " '" + name + "'");
  return container.empty() ? of : of + " of container '" + container + "'";
}

std::uint64_t resource_hash(std::string_view device, const ResourceName& name) {
  const std::uint64_t of_kind = hash_text(name.kind, hash_text(name.container, hash_text(device)));
  return hash_text(name.name, of_kind);
}

bool DatasetPlace::possible() const {
  return next <= kMostElements &&
         std::adjacent_find(left.begin(), left.end(), std::greater_equal<>()) == left.end() &&
         (left.empty() || left.back() < next);
}

bool LiveList::newer_than(const LiveList& other) const {
  return std::tie(view, sequence) > std::tie(other.view, other.sequence);
}

bool LiveList::over(const AttemptId& attempt) const {
  if (attempt.view != view) return attempt.view < view;
  if (attempt.a >= next_a) return false;
  auto at = std::lower_bound(live.begin(), live.end(), attempt.a,
                             [](const LiveAttempt& l, std::uint64_t a) { return l.a < a; });
  return at == live.end() || at->a != attempt.a;
}

bool LiveList::may_read(CommitNumber from, CommitNumber before) const {
  from = std::max(from, min_live);
  if (from >= before) return false;
  return before > decided || std::any_of(live.begin(), live.end(), [&](const LiveAttempt& l) {
           return from <= l.snapshot && l.snapshot < before;
         });
}

bool LiveList::keeps_marks(const RunId& run, std::uint64_t a) const {
  if (a >= next_a) return true;
  return std::any_of(live.begin(), live.end(), [&](const LiveAttempt& l) {
    return l.run == run && a >= l.marks_from && a <= l.a;
  });
}

PartitionDone PartitionDone::failed(const AttemptId& attempt, const RunId& run,
                                    std::uint32_t partition, Status why) {
  PartitionDone done;
  done.attempt = attempt;
  done.run = run;
  done.partition = partition;
  done.status = std::move(why);
  return done;
}

}  // namespace troupe
