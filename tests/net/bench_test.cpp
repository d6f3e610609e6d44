#include <doctest/doctest.h>

#include <cstdlib>

#include "apps/bench/channel_bench.hpp"

using namespace troupe;

TEST_CASE("the channel benchmark reports every row with its peer [slow]") {
  ChannelBench options;
  options.rounds = 1;
  options.scale = 0.005;
  auto rows = bench_channel(options);
  REQUIRE_MESSAGE(rows.ok(), rows.status().text());
  CHECK(rows->size() == 14);
  for (const ChannelRow& r : *rows) {
    // In so short a time, under a sanitizer, some of 64 peers may not get anything through.
    CHECK_MESSAGE((r.value > 0 || r.name == "channel.64_peers.fairness"), r.name);
    CHECK_MESSAGE(r.peer_value > 0, r.name);
  }
}

TEST_CASE("the channel benchmark at full length [slow]") {
  ChannelBench options;
  if (const char* only = std::getenv("TROUPE_BENCH_ONLY")) options.only = only;
  auto rows = bench_channel(options);
  REQUIRE_MESSAGE(rows.ok(), rows.status().text());
  for (const ChannelRow& r : *rows)
    MESSAGE(r.name << " " << r.value << " " << r.unit << " " << r.peer << " " << r.peer_value << " "
                   << r.ratio);
}
