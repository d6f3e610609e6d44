#include "actors/master/run_table.hpp"

#include <doctest/doctest.h>

#include "core/hash.hpp"

using namespace troupe;

namespace {

using Run = RunTable::Run;
using Phase = RunTable::Phase;

constexpr Phase kPhases[] = {Phase::queued,   Phase::running,  Phase::ready, Phase::preparing,
                             Phase::applying, Phase::aborting, Phase::victim};
constexpr Instant kFirst{50}, kMost{400};

bool in_attempt(Phase phase) {
  return phase == Phase::running || phase == Phase::ready || phase == Phase::preparing ||
         phase == Phase::aborting;
}

// What a run was told, without lists.
struct Plain {
  Phase phase = Phase::queued;
  AttemptInfo attempt;
  std::uint64_t order = 0, random_index = 0;
  bool waiting = false, conflicted = false;
  Instant deadline = kNever, resend_at = kNever, resend_after{};

  bool resent() const { return phase == Phase::running || phase == Phase::aborting; }
  Instant due() const { return std::min(deadline, resent() ? resend_at : kNever); }
};

// A table, and what its runs were told.
class Told {
 public:
  explicit Told(std::uint64_t seed) : random_(seed) {}

  void change() {
    now_ += Instant{random_.below(30)};
    if (plain_.empty() || (plain_.size() < 12 && random_.below(4) == 0)) return add();
    auto at = std::next(plain_.begin(), std::ptrdiff_t(random_.below(plain_.size())));
    Plain& plain = at->second;
    Run& run = *table_.find(at->first);
    switch (random_.below(8)) {
      case 0:
      case 1:
        return begin(run, plain);
      case 2:
        return move(run, plain, kPhases[random_.below(std::size(kPhases))]);
      case 3:
        table_.sent_again(run, now_, kMost);
        if (!plain.resent()) return;
        plain.resend_after = std::min(2 * plain.resend_after, kMost);
        plain.resend_at = now_ + plain.resend_after;
        return;
      case 4:
        if (plain.phase == Phase::aborting || plain.phase == Phase::applying) return;
        plain.deadline = random_.below(3) == 0 ? kNever : now_ + Instant{random_.below(200)};
        return table_.look_at(run, plain.deadline);
      case 5:
        if (plain.phase != Phase::running) return;
        plain.waiting = random_.below(2) == 0;
        return table_.set_waiting(run, plain.waiting);
      case 6:
        plain.conflicted = true;
        return table_.count_conflict(run);
      case 7:
        table_.erase(at->first);
        plain_.erase(at);
        return;
    }
  }

  void check() {
    std::size_t waiting = 0, contended = 0;
    std::map<Phase, std::map<std::uint64_t, RunId>> phases;
    std::map<std::uint64_t, const Plain*> attempts;
    std::map<std::uint64_t, RunId> due;
    Instant next = kNever;
    for (const auto& [id, plain] : plain_) {
      phases[plain.phase][plain.order] = id;
      waiting += plain.waiting;
      contended += plain.conflicted;
      if (in_attempt(plain.phase)) attempts[plain.attempt.id.a] = &plain;
      next = std::min(next, plain.due());
      if (plain.due() <= now_) due[plain.order] = id;
    }
    REQUIRE(table_.size() == plain_.size());
    REQUIRE(table_.waiting() == waiting);
    REQUIRE(table_.contended() == contended);
    REQUIRE(table_.computing() == phases[Phase::running].size() - waiting);
    REQUIRE(table_.next_due() == next);
    REQUIRE(table_.due(now_) == values(due));
    REQUIRE(table_.queued() == values(phases[Phase::queued]));
    for (const Phase phase : kPhases) {
      REQUIRE(table_.count(phase) == phases[phase].size());
      const Run* first = table_.first_in(phase);
      REQUIRE((first == nullptr) == phases[phase].empty());
      if (first) REQUIRE(first->id == phases[phase].begin()->second);
    }
    check_attempts(attempts);
  }

 private:
  static std::vector<RunId> values(const std::map<std::uint64_t, RunId>& ids) {
    std::vector<RunId> all;
    for (const auto& [_, id] : ids) all.push_back(id);
    return all;
  }

  void check_attempts(const std::map<std::uint64_t, const Plain*>& attempts) {
    CommitNumber oldest = decided_;
    std::map<std::uint64_t, std::uint64_t> marks;  // by session
    for (const auto& [a, plain] : attempts) {
      oldest = std::min(oldest, plain->attempt.snapshot);
      auto [at, first] = marks.try_emplace(plain->attempt.run.session, plain->attempt.marks_from);
      if (!first) at->second = std::min(at->second, plain->attempt.marks_from);
    }
    REQUIRE(table_.oldest_snapshot(decided_) == oldest);
    for (std::uint64_t session = 0; session < 3; ++session) {
      const auto at = marks.find(session);
      const std::uint64_t from = at == marks.end() ? next_a_ : at->second;
      REQUIRE(table_.marks_of_session(session, next_a_) == from);
    }
    const std::vector<LiveAttempt> live = table_.live();
    REQUIRE(live.size() == attempts.size());
    auto each = live.begin();
    for (const auto& [a, plain] : attempts) {
      REQUIRE(each->a == a);
      REQUIRE(each->run == plain->attempt.run);
      REQUIRE(each->marks_from == plain->attempt.marks_from);
      ++each;
    }
  }

  void add() {
    const RunId id{random_.below(3), next_n_++};
    plain_[id].order = next_n_;
    (void)table_.add(id);
  }

  void begin(Run& run, Plain& plain) {
    if (random_.below(2) == 0) ++decided_;
    const std::uint64_t marks = plain.attempt.marks_from;
    plain.attempt.id = {1, next_a_++};
    plain.attempt.run = run.id;
    plain.attempt.snapshot = decided_;
    plain.attempt.marks_from = marks != 0 && random_.below(3) == 0 ? marks : plain.attempt.id.a;
    run.attempt = plain.attempt;
    table_.begin_attempt(run, now_, kFirst);
    plain.phase = Phase::running;
    plain.waiting = false;
    plain.resend_after = kFirst;
    plain.resend_at = now_ + kFirst;
    std::set<std::uint64_t> taken;
    for (const auto& [id, other] : plain_)
      if (&other != &plain && in_attempt(other.phase) && other.attempt.snapshot == decided_)
        taken.insert(other.random_index);
    std::uint64_t least = 2;
    while (taken.contains(least)) ++least;
    REQUIRE(table_.unused_random_index(run, 2) == least);
    run.random_index = plain.random_index = least;
  }

  void move(Run& run, Plain& plain, Phase phase) {
    // The coordinator queues no run again, and what is no attempt begins one.
    if (phase == Phase::running || phase == Phase::queued) return;
    if (in_attempt(phase) && plain.phase != Phase::running) return;
    table_.move(run, phase);
    plain.phase = phase;
    plain.waiting = false;
    if (phase == Phase::aborting || phase == Phase::applying) plain.deadline = kNever;
  }

  Random random_;
  RunTable table_;
  std::map<RunId, Plain> plain_;
  Instant now_{};
  std::uint64_t next_n_ = 0, next_a_ = 1;
  CommitNumber decided_ = 0;
};

}  // namespace

TEST_CASE("what the table keeps in lists is what its runs were told") {
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    CAPTURE(seed);
    Told told(seed);
    for (int i = 0; i < 200; ++i) {
      told.change();
      told.check();
    }
  }
}
