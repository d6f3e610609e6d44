// How char-lstm is trained: windows of a text, what is held out of it, and text of its own.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "apps/char_lstm.hpp"
#include "apps/training.hpp"

namespace troupe {

// One character after another from a network, each drawn as likely as the network takes it to be.
class Writer {
 public:
  Writer(GraphBuilder& graph, const CharLstm& model, data::Vocabulary vocabulary);
  // The seed decides what is drawn. Begins after a line's end, where the vocabulary has one.
  Expected<std::string> write(Session& session, std::int64_t characters, std::uint64_t seed) const;

 private:
  data::Vocabulary vocabulary_;
  Output character_, likely_;           // i64 [1,1]; f32 [1,characters]
  std::vector<Output> before_, after_;  // the state: h and c of each layer
};

struct TextTraining {
  std::unique_ptr<CharLstm> model;
  Output loss;  // nats a character, the mean over a batch
  // Of the part that is held out: the characters that follow those of the next batch, and the sum
  // of their losses.
  Output held_out, its_loss;
  Op train;
  Output rate;  // the learning rate of a step: f64
  std::unique_ptr<Writer> writer;
};

// Windows of 50 characters that begin at multiples of 10 of the first nine tenths of the text, in
// random order, each read from an empty state; the last tenth is held out, in windows of 500. Adam,
// its rate half a wave over `steps`, gradients of norm 1 at most.
Expected<TextTraining> build_text_training(Graph& graph, const TrainOptions& options,
                                           std::int64_t steps);

// What of the text is trained on, once and in order.
Expected<std::array<Output, 2>> text_windows(Graph& graph, const TrainOptions& options,
                                             std::string_view name);

}  // namespace troupe
