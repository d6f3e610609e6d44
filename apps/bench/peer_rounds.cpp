#include "apps/bench/peer_rounds.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <chrono>

#include "apps/bench/statistics.hpp"

namespace troupe {
namespace {

std::string text_of(const std::vector<double>& rounds) {
  return fmt::format("{:.4f}", fmt::join(rounds, " "));
}

}  // namespace

void PeerRounds::begin(std::string of) {
  of_ = std::move(of);
  for (auto& rounds : rounds_) rounds.clear();
}

Status PeerRounds::take(double seconds) {
  for (std::size_t i = 0; i < peers_.size(); ++i) {
    TROUPE_TRY(const PeerScript::Round round, peers_[i].script.round(seconds, of_));
    rounds_[i].push_back(round);
  }
  return ok_status();
}

void PeerRounds::compare(BenchRow& row, const std::vector<double>& ours, Figure figure) const {
  row.value = median(ours);
  row.details["rounds"] = text_of(ours);
  for (std::size_t i = 0; i < peers_.size(); ++i) {
    std::vector<double> theirs;
    for (const PeerScript::Round& round : rounds_[i])
      theirs.push_back(figure(round, peers_[i].units));
    const double value = median(theirs);
    row.details["rounds of " + peers_[i].name] = text_of(theirs);
    if (!row.peer.empty() && row.peer_value <= value) continue;
    row.peer = peers_[i].name;
    row.peer_value = value;
    row.ratio = median_ratio(ours, theirs);
  }
}

Expected<BenchRow> time_in_turns(std::string name, int rounds, RoundLength length,
                                 PeerRounds& peers, FunctionRef<Status()> call) {
  using Clock = std::chrono::steady_clock;
  for (int i = 0; i < length.first; ++i) TROUPE_TRY(call());
  std::vector<double> ours;
  for (int round = 0; round < rounds; ++round) {
    const Clock::time_point end = Clock::now() + std::chrono::duration_cast<Clock::duration>(
                                                     std::chrono::duration<double>(length.seconds));
    std::vector<double> times;
    while (Clock::now() < end || times.size() < length.least) {
      const Clock::time_point begin = Clock::now();
      TROUPE_TRY(call());
      times.push_back(std::chrono::duration<double, std::milli>(Clock::now() - begin).count());
    }
    ours.push_back(median(std::move(times)));
    TROUPE_TRY(peers.take(length.seconds));
  }
  BenchRow row{std::move(name), median(ours), "ms"};
  peers.compare(row, ours, [](const PeerScript::Round& round, double) { return round.ms; });
  return row;
}

}  // namespace troupe
