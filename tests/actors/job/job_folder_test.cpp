#include "actors/job/job_folder.hpp"

#include <doctest/doctest.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/core/file_limit.hpp"
#include "tests/serialization/temporary.hpp"

using namespace troupe;
using troupe::testing::FileLimit;
using troupe::testing::TemporaryDir;

TEST_CASE("a line of a job's log that found no room leaves no half of it before the next") {
  const TemporaryDir dir;
  const auto folder = value_or_throw(JobFolder::open(dir.path("job")));
  REQUIRE(folder->log({{"event", "first"}}).ok());
  const Status lost = [&] {
    const FileLimit limit(1000);
    return folder->log({{"event", std::string(2000, 'x')}});
  }();
  CHECK(lost.code() == Code::data_loss);
  REQUIRE(folder->log({{"event", "second"}}).ok());
  std::ifstream log(dir.path("job") + "/lives.log");
  std::vector<std::string> events;
  for (std::string line; std::getline(log, line);)
    events.push_back(nlohmann::json::parse(line)["event"]);
  CHECK(events == std::vector<std::string>{"first", "second"});
}
