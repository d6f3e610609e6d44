#include <doctest/doctest.h>

#include <algorithm>

#include "apps/bench/rows.hpp"
#include "tests/apps/command.hpp"

using namespace troupe;
using nlohmann::json;

namespace {

void check_rows(const Ended& ended, const std::vector<std::string>& names) {
  INFO(ended.err);
  REQUIRE(ended.code == 0);
  json rows = ended.json();
  REQUIRE(rows.is_array());
  for (const std::string& name : names) {
    INFO(name);
    auto row =
        std::find_if(rows.begin(), rows.end(), [&](const json& r) { return r["name"] == name; });
    REQUIRE(row != rows.end());
    CHECK((*row)["value"].get<double>() > 0);
    CHECK_FALSE((*row)["unit"].get<std::string>().empty());
    bool compared = !(*row)["peer"].get<std::string>().empty();
    CHECK((*row)["peer_value"].is_number() == compared);
    CHECK((*row)["ratio"].is_number() == compared);
    if (compared)
      CHECK((*row)["ratio"].get<double>() ==
            doctest::Approx((*row)["value"].get<double>() / (*row)["peer_value"].get<double>()));
  }
}

}  // namespace

TEST_CASE("percentiles are values that occurred") {
  CHECK(percentile({3, 1, 2}, 0.5) == 2);
  CHECK(percentile({4, 3, 1, 2}, 0.5) == 2);
  CHECK(percentile({5}, 0.99) == 5);
  std::vector<double> hundred;
  for (int i = 100; i >= 1; --i) hundred.push_back(i);
  CHECK(percentile(hundred, 0.99) == 99);
  CHECK(percentile(hundred, 1.0) == 100);
  CHECK(percentile(hundred, 0.0) == 1);
}

TEST_CASE("the benchmark of executors prints well-formed rows") {
  check_rows(troupe_command("bench executor --rounds 1 --only 1024x16 --output json"),
             {"executor.noop.1024x16", "executor.identity.1024x16"});
}

TEST_CASE("functions of the API are timed as steps on one lane and on two") {
  check_rows(troupe_command("bench kernels --rounds 1 --only kernels.api.roll --output json"),
             {"kernels.api.roll.t1", "kernels.api.roll.t2"});
}

TEST_CASE("ends of endless loops are timed, and the longest of them [slow]") {
  Ended ended = troupe_command("bench executor --rounds 1 --only end_by --output json");
  check_rows(ended, {"executor.loop.end_by_deadline", "executor.loop.end_by_close",
                     "executor.loop.end_by_deadline_two_processes",
                     "executor.loop.end_by_close_two_processes"});
  for (const json& row : ended.json())
    CHECK(std::stod(row["worst_ms"].get<std::string>()) >= row["value"].get<double>() * 0.999);
}

TEST_CASE("the benchmark of steps prints well-formed rows") {
  check_rows(troupe_command("bench step --rounds 1 --only step.local --output json"),
             {"step.local.p50", "step.local.p99", "step.local.cold_p50"});
}

TEST_CASE("a step of two processes is measured as one of one is") {
  check_rows(troupe_command("bench step --rounds 1 --only two_process.p --output json"),
             {"step.two_process.p50", "step.two_process.p99"});
}

TEST_CASE("training is timed on one and two threads, to the same bits [slow]") {
  Ended ended = troupe_command("bench train --rounds 1 --only train.mlp --output json");
  check_rows(ended, {"train.mlp.t1", "train.mlp.t2"});
  json rows = ended.json();
  CHECK(rows[0]["params_sha256"].get<std::string>().size() == 64);
  CHECK(rows[0]["params_sha256"] == rows[1]["params_sha256"]);
}

TEST_CASE("the memory of a step is measured beside the bound of its plan [slow]") {
  check_rows(troupe_command("bench train --rounds 1 --only peak_bytes --output json"),
             {"train.lenet.peak_bytes"});
}

TEST_CASE("rows that nobody has are an error") {
  Ended ended = troupe_command("bench executor --rounds 1 --only no-such-row");
  CHECK(ended.code == 1);
  CHECK(contains(ended.err, "no-such-row"));
}

TEST_CASE("the table has a line for each row") {
  Ended ended = troupe_command("bench executor --rounds 1 --only 1024x16 --quiet");
  REQUIRE(ended.code == 0);
  CHECK(std::count(ended.out.begin(), ended.out.end(), '\n') == 3);
  CHECK(contains(ended.out, "executor.noop.1024x16"));
  CHECK(ended.err.empty());
}
