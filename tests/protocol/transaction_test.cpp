#include <doctest/doctest.h>

#include <cstdlib>

#include "tests/protocol/transaction_sim.hpp"

using namespace troupe;
using troupe::sim::Bug;
using troupe::sim::Simulation;

namespace {

struct Sum {
  Simulation::Counters count;
  std::uint64_t seeds = 0;
  std::string violation;

  bool run(std::uint64_t seed, Bug bug = Bug::none) {
    Simulation simulation(seed, bug);
    const bool fine = simulation.run();
    ++seeds;
    const auto& c = simulation.count;
    count.events += c.events;
    count.fast += c.fast;
    count.commits += c.commits;
    count.read_only += c.read_only;
    count.conflicts += c.conflicts;
    count.withdrawn += c.withdrawn;
    count.failed += c.failed;
    count.lost_processes += c.lost_processes;
    count.gave_up += c.gave_up;
    count.taken_back += c.taken_back;
    count.revoked += c.revoked;
    count.published += c.published;
    count.held_back += c.held_back;
    count.joined += c.joined;
    count.noted += c.noted;
    count.dropped += c.dropped;
    count.restored += c.restored;
    count.not_restored += c.not_restored;
    count.rewound += c.rewound;
    count.stale += c.stale;
    if (!fine) violation = simulation.violation;
    return fine;
  }
  std::string text() const {
    return std::to_string(seeds) + " seeds, " + std::to_string(count.events) + " events, " +
           std::to_string(count.commits) + " commits, " + std::to_string(count.fast) +
           " fast commits, " + std::to_string(count.read_only) + " read-only, " +
           std::to_string(count.conflicts) + " conflicts, " + std::to_string(count.withdrawn) +
           " withdrawn, " + std::to_string(count.failed) + " failed, " +
           std::to_string(count.lost_processes) + " workers lost, " +
           std::to_string(count.gave_up) + " given up, " + std::to_string(count.taken_back) +
           " numbers taken back, " + std::to_string(count.revoked) + " grants revoked, " +
           std::to_string(count.held_back) + " writes held back, " + std::to_string(count.dropped) +
           " dropped, " + std::to_string(count.restored) + " restored, " +
           std::to_string(count.not_restored) + " not restored, " + std::to_string(count.rewound) +
           " rewound, " + std::to_string(count.stale) + " stale";
  }
};

std::uint64_t from_environment(const char* name, std::uint64_t otherwise) {
  const char* text = std::getenv(name);
  return text ? std::strtoull(text, nullptr, 10) : otherwise;
}

void check_seeds(std::uint64_t from, std::uint64_t to) {
  Sum sum;
  for (std::uint64_t seed = from; seed < to; ++seed)
    if (!sum.run(seed)) {
      FAIL_CHECK("seed " << seed << ": " << sum.violation);
      break;
    }
  MESSAGE(sum.text());
  // A schedule that exercises nothing proves nothing.
  if (to - from < 100) return;
  CHECK(sum.count.conflicts > 0);
  CHECK(sum.count.withdrawn > 0);
  CHECK(sum.count.fast > 0);
  CHECK(sum.count.read_only > 0);
  CHECK(sum.count.lost_processes > 0);
  CHECK(sum.count.taken_back > 0);
  CHECK(sum.count.revoked > 0);
  CHECK(sum.count.published > 0);
  CHECK(sum.count.held_back > 0);
  CHECK(sum.count.joined > 0);
  CHECK(sum.count.noted > 0);
  CHECK(sum.count.dropped > 0);
  CHECK(sum.count.restored > 0);
  CHECK(sum.count.not_restored > 0);
  CHECK(sum.count.rewound > 0);
  CHECK(sum.count.stale > 0);
}

}  // namespace

TEST_CASE("runs are transactions under every schedule tried") {
  const std::uint64_t first = from_environment("TROUPE_SEED", 1);
  check_seeds(first, first + from_environment("TROUPE_FAST_SEEDS", 120));
}

// TROUPE_SEEDS sets the budget: 200,000 make one evening.
TEST_CASE("runs are transactions under many more schedules [slow]") {
  const std::uint64_t first = from_environment("TROUPE_SEED", 1);
  check_seeds(first, first + from_environment("TROUPE_SEEDS", 20000));
}

TEST_CASE("a seed gives the same schedule twice") {
  Simulation a(7), b(7);
  CHECK(a.run());
  CHECK(b.run());
  CHECK(a.count.events == b.count.events);
}

TEST_CASE("planted mistakes are seen") {
  struct Row {
    Bug bug;
    std::string name;
    std::uint64_t first;  // seed that is tried: about there it was found
  };
  const Row rows[] = {
      {Bug::no_conflict_check, "no conflict check", 1},
      {Bug::decided_by_the_first_shard, "decided by the first shard", 1},
      {Bug::snapshots_not_pinned, "snapshots not pinned", 1},
      {Bug::attempts_never_over, "attempts never over", 1},
      {Bug::keys_change_when_sent_again, "keys change when sent again", 13},
      {Bug::key_without_replica, "key without replica", 11},
      {Bug::reduced_in_any_order, "reduced in any order", 11},
      {Bug::own_dequeue_not_a_read, "own dequeue is not a read", 28},
      {Bug::deadlocks_stay, "deadlocks stay", 1},
      {Bug::random_index_fixed, "random index fixed", 1},
      {Bug::read_sees_the_newest, "a read sees the newest value", 13},
      {Bug::marks_not_kept, "marks not kept for a redo", 72},
      {Bug::own_writes_not_a_read, "what own writes depend on is not a read", 256},
      {Bug::update_in_place_always, "always updated in place", 1},
      {Bug::elements_by_commit, "elements numbered by commits", 1},
      {Bug::elements_anew_for_a_redo, "a redo takes other elements", 1},
      {Bug::number_given_while_granted, "a number given while it is granted", 1},
      {Bug::number_given_before_it_is_back, "a number given before it is back", 239},
      {Bug::revoked_grant_used, "a revoked grant used", 1},
      {Bug::answers_of_other_rounds_count, "answers of other rounds count", 54},
      {Bug::refusal_ignored, "refusals ignored", 1},
      {Bug::nobody_is_ever_alone, "nobody is ever alone", 1},
      {Bug::answered_before_it_is_applied, "answered before it is applied", 10},
      {Bug::published_when_staged, "published when it is staged", 96},
      {Bug::listed_snapshots_not_pinned, "listed snapshots not pinned", 1},
      {Bug::only_the_oldest_snapshot_pinned, "only the oldest snapshot pinned", 1},
      {Bug::rewound_as_often_as_asked, "rewound as often as it is asked for", 101},
      {Bug::deaf_while_in_use, "deaf while in use", 1},
      {Bug::never_asks_for_lists, "never asks for lists", 1},
  };
  for (const Row& row : rows) {
    Sum sum;
    std::uint64_t seed = row.first;
    while (seed < row.first + 300 && sum.run(seed, row.bug)) ++seed;
    INFO(row.name);
    CHECK(!sum.violation.empty());
    MESSAGE(row.name << ": " << sum.violation);
  }
}
