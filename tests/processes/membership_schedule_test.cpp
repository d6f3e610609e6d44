// Joining, membership and loss, master's side and workers' side together, under every schedule.
// TROUPE_SCHEDULES in the environment asks for more seeds.
#include <doctest/doctest.h>

#include <cstdlib>

#include "tests/processes/job_sim.hpp"

using namespace troupe;
using namespace troupe::testing;

namespace {

struct Count {
  std::size_t runs = 0, started = 0, failed = 0, lost = 0, spared = 0;
  std::uint64_t events = 0;
};

void play(std::uint64_t seed, Count& count) {
  Random random(seed);
  JobSim::Plan plan = JobSim::Plan::draw(random);
  CAPTURE(seed);
  CAPTURE(plan.text());
  JobSim sim(random(), plan);
  for (const std::string& wrong : sim.run()) FAIL_CHECK(wrong);
  ++count.runs;
  count.events += sim.events();
  count.lost += sim.lost();
  count.spared += sim.spared();
  if (sim.started()) ++(sim.started()->ok() ? count.started : count.failed);
}

}  // namespace

TEST_CASE("a job starts, runs and ends as it should under every schedule of joins and losses") {
  const char* text = std::getenv("TROUPE_SCHEDULES");
  const std::uint64_t seeds =
      std::max<std::uint64_t>(10'000, text ? std::strtoull(text, nullptr, 10) : 0);
  Count count;
  for (std::uint64_t seed = 0; seed < seeds; ++seed) play(seed, count);
  CHECK(count.started > seeds / 3);
  CHECK(count.failed > seeds / 20);
  CHECK(count.lost > seeds / 10);
  CHECK(count.spared > seeds / 20);
  MESSAGE("schedules: " << count.runs << ", events: " << count.events << ", jobs that ran: "
                        << count.started << ", that could not: " << count.failed
                        << ", workers lost: " << count.lost << ", spares: " << count.spared);
}
