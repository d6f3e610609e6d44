// A network that guesses the character that follows others, from all that came before it.
#pragma once

#include <deque>
#include <vector>

#include "apps/troupe.hpp"

namespace troupe {

// A table of characters, LSTM layers one upon the other, a linear layer. For training, dropout
// behind the table and each layer.
class CharLstm : public nn::Module {
 public:
  struct Options {
    std::int64_t characters = 128;
    std::int64_t units = 256;  // of the table and each layer
    int layers = 2;
    double dropout = 0;
    nn::OverTime over_time = nn::OverTime::fused;
  };
  using State = std::vector<nn::Lstm::State>;  // of each layer
  struct Guess {
    Output logits;  // [time batch, characters]: row t * batch + b is after character t of text b
    State last;
  };
  CharLstm(Scope scope, const Options& options);

  // Of the numbers of characters, i64 [time, batch]; time is known, unless layers go through it in
  // one node or a loop.
  Guess operator()(Output characters) const;  // from the beginning of a text
  Guess operator()(Output characters, const State& first) const;
  std::vector<std::int64_t> layer_units() const {
    return std::vector<std::int64_t>(layers_.size(), units_);
  }

 private:
  Output embed(Output characters) const;
  Guess through_layers(Output x, const State* first) const;

  nn::Embedding table_;
  std::deque<nn::Lstm> layers_;
  std::deque<nn::Dropout> dropouts_;  // behind the table, then behind each layer; none at rate 0
  nn::Linear out_;
  std::int64_t units_;
};

}  // namespace troupe
