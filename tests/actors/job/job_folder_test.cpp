#include "actors/job/job_folder.hpp"

#include <doctest/doctest.h>
#include <sys/resource.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/serialization/temporary.hpp"

using namespace troupe;
using troupe::testing::TemporaryDir;

TEST_CASE("a line of a job's log that found no room leaves no half of it before the next") {
  const TemporaryDir dir;
  const auto folder = value_or_throw(JobFolder::open(dir.path("job")));
  REQUIRE(folder->log({{"event", "first"}}).ok());
  rlimit old{};
  REQUIRE(getrlimit(RLIMIT_FSIZE, &old) == 0);
  rlimit tight = old;
  tight.rlim_cur = 1000;  // no file may be longer
  REQUIRE(setrlimit(RLIMIT_FSIZE, &tight) == 0);
  const Status lost = folder->log({{"event", std::string(2000, 'x')}});
  REQUIRE(setrlimit(RLIMIT_FSIZE, &old) == 0);
  CHECK(lost.code() == Code::data_loss);
  REQUIRE(folder->log({{"event", "second"}}).ok());
  std::ifstream log(dir.path("job") + "/lives.log");
  std::vector<std::string> events;
  for (std::string line; std::getline(log, line);)
    events.push_back(nlohmann::json::parse(line)["event"]);
  CHECK(events == std::vector<std::string>{"first", "second"});
}
