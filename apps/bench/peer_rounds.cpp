#include "apps/bench/peer_rounds.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

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

}  // namespace troupe
