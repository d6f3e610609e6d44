#include "actors/job/position.hpp"

#include <doctest/doctest.h>

#include "core/hash.hpp"

using namespace troupe;

TEST_CASE("a job's position goes through a note and back") {
  for (const JobPosition& position :
       {JobPosition{}, JobPosition{12, 3, {}, 0, "mine"}, JobPosition{1, 0, 0.1, 1, ""},
        JobPosition{std::int64_t{1} << 60, 7, -1e-300, 5, std::string("a\nb\0c", 5)}}) {
    const auto back = JobPosition::parse(position.text());
    REQUIRE(back.ok());
    CHECK(back->step == position.step);
    CHECK(back->worse == position.worse);
    CHECK(back->best == position.best);
    CHECK(back->best_step == position.best_step);
    CHECK(back->note == position.note);
  }
}

TEST_CASE("hostile notes are refused, or are those of a position") {
  for (const char* text :
       {"", "\n", "troupe job 1", "troupe job 1\n", "troupe job 1 5\n", "troupe job 1 -5 0\n",
        "troupe job 1 5 0 3\n", "troupe job 1 5 0 3 x\n", "troupe job 1 5 0 3 1.5 7\n",
        "troupe job 2 5 0\n", "troupe job 1 5  0\n", "troupe job 1 99999999999999999999 0\n"})
    CHECK_MESSAGE(JobPosition::parse(text).status().code() == Code::data_loss, text);
  const std::string good = JobPosition{12, 3, 2.5, 9, "mine"}.text();
  for (std::uint64_t seed = 0; seed < 20'000; ++seed) {
    std::string text = good;
    text[mix64(seed) % text.size()] = char(mix64(seed + 1'000'000));
    const auto position = JobPosition::parse(text);
    if (position.ok()) CHECK((position->step >= 0 && position->worse >= 0));
  }
}
