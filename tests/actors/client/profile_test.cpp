// The numeric profile: what decides bits beside the program, the same in all processes of a job.
#include <doctest/doctest.h>

#include "ops/isa.hpp"
#include "ops/op.hpp"
#include "tests/actors/worker/hostile_job.hpp"
#include "tests/environment_variable.hpp"

using namespace troupe;
using namespace troupe::testing;

namespace {

// What a worker of this build answers to a master that computes like that.
Status answer_to(const NumericProfile& profile) {
  HostileJob job;
  Welcome welcome = HostileJob::welcome();
  welcome.profile = profile;
  REQUIRE(job.send(welcome));
  auto ready = job.await([](const WireMessage& m) { return std::holds_alternative<Ready>(m); });
  REQUIRE(ready);
  return std::get<Ready>(*ready).status;
}

}  // namespace

TEST_CASE("the numeric profile names the libraries of the kernels and Eigen's cache sizes") {
  NumericProfile profile = numeric_profile();
  CHECK(profile.kernels.find("Eigen 3.") != std::string::npos);
  CHECK(profile.kernels.find("oneDNN ") != std::string::npos);
  CHECK(profile.l1 == ops::cache_sizes().l1);
  CHECK(profile.l2 == ops::cache_sizes().l2);
  CHECK(profile.l3 == ops::cache_sizes().l3);
  CHECK(profile.l1 > 0);
  std::string text = profile_text(profile);
  CHECK(text.find(profile.kernels) != std::string::npos);
  CHECK(text.find(std::to_string(profile.l3)) != std::string::npos);
  CHECK(text.find("x86-64-" + ops::isa_name(ops::isa_level()) + ",") != std::string::npos);
}

TEST_CASE("a worker that cannot compute as the master does refuses to join, with the reason") {
  ops::settle();  // from here on the cache sizes of this process are chosen
  CHECK(answer_to(numeric_profile()).ok());
  NumericProfile other = numeric_profile();
  other.l2 *= 2;
  Status refused = answer_to(other);
  CHECK(refused.code() == Code::failed_precondition);
  CHECK(refused.message().find("cache sizes") != std::string::npos);
  other.l2 = -1;
  CHECK(answer_to(other).code() == Code::invalid_argument);
  other = numeric_profile();
  other.kernels += "0";
  CHECK(answer_to(other).code() == Code::failed_precondition);
  other = numeric_profile();
  other.isa = ops::kTileLevel + 1;
  CHECK(answer_to(other).code() == Code::failed_precondition);
}

TEST_CASE("a worker that may not round to TF32 as its master may is refused, and the reverse") {
  const NumericProfile exact = numeric_profile();
  CHECK(exact.kernels.find("TF32") == std::string::npos);
  const test::EnvironmentVariable allowed("TROUPE_CUDA_TF32", "1");
  const NumericProfile rounding = numeric_profile();
  CHECK(answer_to(rounding).ok());
  const Status refused = answer_to(exact);
  CHECK(refused.code() == Code::failed_precondition);
  CHECK(refused.message().find("TF32 on GPUs") != std::string::npos);
  const test::EnvironmentVariable exactly("TROUPE_CUDA_TF32", "0");
  CHECK(answer_to(exact).ok());
  CHECK(answer_to(rounding).code() == Code::failed_precondition);
  const test::EnvironmentVariable measures("TROUPE_CUDA_TUNE", "1");
  CHECK(answer_to(exact).message().find("measured choices on GPUs") != std::string::npos);
}

TEST_CASE("a worker of x86-64-v4 takes its master's level, with AMX or without") {
  ops::builtin();  // as in every worker that joins
  const NumericProfile mine = numeric_profile();
  NumericProfile other = mine;
  other.isa = std::uint32_t(mine.isa == 4 ? ops::kTileLevel : 4);
  if (mine.isa < 4 || !ops::can_compute_at(int(other.isa))) {
    MESSAGE("skipped: this process has one level");
    return;
  }
  for (const NumericProfile& master : {other, mine}) {
    Status answer = answer_to(master);
    CHECK_MESSAGE(answer.ok(), answer.text());
    CHECK(numeric_profile() == master);
  }
}
