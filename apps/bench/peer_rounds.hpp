// A row beside its peers, measured in turns: what else a machine does meanwhile is done to all.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "apps/bench/peer_script.hpp"
#include "apps/bench/rows.hpp"
#include "core/function_ref.hpp"

namespace troupe {

// The peers of a row, which take a round each after each one of ours.
class PeerRounds {
 public:
  PeerRounds() = default;  // nobody
  explicit PeerRounds(std::vector<PeerStep> peers)
      : peers_(std::move(peers)), rounds_(peers_.size()) {}

  // Forgets its rounds; those that follow are of the peers' step `of`.
  void begin(std::string of);
  Status take(double seconds);

  // Of a peer's round, in the unit of the row; `units` as in PeerStep.
  using Figure = FunctionRef<double(const PeerScript::Round&, double units)>;
  // Puts the fastest of them beside `ours`, a figure for each round taken, whose median is the
  // row's value: the ratio is the median of those of the rounds. Of all of them the rounds are in
  // the row's details.
  void compare(BenchRow& row, const std::vector<double>& ours, Figure figure) const;

 private:
  std::vector<PeerStep> peers_;
  std::string of_;                                      // empty where each peer has one step
  std::vector<std::vector<PeerScript::Round>> rounds_;  // of each
};

// How long the rounds of a row are.
struct RoundLength {
  double seconds = 0;
  std::size_t least = 1;  // calls, however long they take
  int first = 0;          // calls before the first round
};

// A row of what `call` takes, in ms: the median of the medians of `rounds` rounds, beside `peers`.
Expected<BenchRow> time_in_turns(std::string name, int rounds, RoundLength length,
                                 PeerRounds& peers, FunctionRef<Status()> call);

}  // namespace troupe
