#include "apps/char_lstm.hpp"

#include <fmt/format.h>

namespace troupe {

CharLstm::CharLstm(Scope scope, const Options& options)
    : Module(std::move(scope)),
      table_(*this, "table", options.characters, options.units),
      out_(*this, "out", options.units, options.characters),
      units_(options.units) {
  for (int i = 0; i < options.layers; ++i)
    layers_.emplace_back(*this, fmt::format("layer{}", i), options.units, options.units,
                         nn::RecurrentOptions{.over_time = options.over_time});
  for (int i = 0; options.dropout > 0 && i <= options.layers; ++i)
    dropouts_.emplace_back(*this, fmt::format("dropout{}", i), options.dropout);
}

CharLstm::Guess CharLstm::operator()(Output characters) const {
  return through_layers(embed(characters), nullptr);
}

CharLstm::Guess CharLstm::operator()(Output characters, const State& first) const {
  return through_layers(embed(characters), &first);
}

Output CharLstm::embed(Output characters) const {
  const Output x = table_(characters);
  return dropouts_.empty() ? x : dropouts_[0](x);
}

CharLstm::Guess CharLstm::through_layers(Output x, const State* first) const {
  Guess guess;
  for (std::size_t i = 0; i < layers_.size(); ++i) {
    const auto y = first ? layers_[i](x, (*first)[i]) : layers_[i](x);
    x = dropouts_.empty() ? y.h : dropouts_[i + 1](y.h);
    guess.last.push_back(y.last);
  }
  guess.logits = out_(reshape(x, {-1, units_}));
  return guess;
}

}  // namespace troupe
