// word2vec: vectors of words, learned from which words stand beside which (skip-gram; Mikolov et
// al., 2013). Of the logits of all words a step computes those of the words beside and of 64 drawn
// ones (noise-contrastive estimation).
//
// The text is drawn: a topic lasts for some words, which are of that topic. In the end a word's
// nearest words should be of its topic. word2vec [--steps N] [--threads N] [--first-step]
#include "first_step.hpp"

#include <random>
#include <troupe/troupe.hpp>
using namespace troupe;

constexpr int kWords = 5000, kTopics = 50, kSize = 64, kBatch = 256, kDrawn = 64;

struct SkipGram : nn::Module {
  SkipGram(Scope scope, std::int64_t words, std::int64_t size, DType dtype)
      : Module(std::move(scope)), vectors(*this, "vectors", words, size, {0.1, dtype}) {
    const Shape shape{words, size};
    weights = parameter(
        "W", nn::initial_weights(graph(), nn::Init::normal(0.1), shape, words, size, dtype));
    biases = parameter("b", nn::zeros(dtype, {words}));
  }
  Output loss(Output words, Output beside, const nn::Candidates& drawn) const {
    return mean(nn::nce(weights, biases, beside, vectors(words), drawn));
  }
  nn::Embedding vectors;
  Variable weights, biases;
};

// Word w is of topic w mod kTopics; low numbers are frequent.
Tensor draw_text(std::int64_t length) {
  std::mt19937 random(1);
  std::uniform_real_distribution<double> unit;
  std::vector<std::int64_t> text;
  for (int topic = 0; std::int64_t(text.size()) < length;) {
    if (unit(random) < 0.05) topic = int(unit(random) * kTopics);
    const double rank = std::exp(unit(random) * std::log(kWords / kTopics + 1.0)) - 1;
    text.push_back(int(rank) * kTopics + topic);
  }
  return Tensor::of<std::int64_t>(Shape{length}, text);
}

// Each word with each of the two words on either side.
std::pair<Tensor, Tensor> pairs_of(const Tensor& text) {
  std::vector<std::int64_t> words, beside;
  const auto at = text.span<std::int64_t>();
  for (std::size_t i = 2; i + 2 < at.size(); ++i)
    for (const std::size_t j : {i - 2, i - 1, i + 1, i + 2})
      words.push_back(at[i]), beside.push_back(at[j]);
  const Shape shape{std::int64_t(words.size())};
  return {Tensor::of<std::int64_t>(shape, words), Tensor::of<std::int64_t>(shape, beside)};
}

int first_step() {
  Graph g;
  SkipGram net{g.scope("net"), 10, 4, DType::f64};
  const Output words = constant<std::int64_t>(g, {3}, {1, 7, 1}),
               beside = constant<std::int64_t>(g, {3}, {2, 9, 0});
  const nn::Candidates drawn{constant<std::int64_t>(g, {4}, {0, 3, 5, 8}),
                             constant(g, {0.5, 0.125, 0.75}), constant(g, {0.75, 0.5, 0.25, 0.25})};
  return example::print_first_step(g, net.loss(words, beside, drawn));
}

int main(int argc, char** argv) {
  const example::Arguments arguments(argc, argv);
  if (arguments.has("--first-step")) return first_step();
  const std::int64_t steps = arguments.number("--steps", 3000);
  const auto [all_words, all_beside] = pairs_of(draw_text(300'000));
  Graph g;
  auto [words, beside] = data::tensors({all_words, all_beside})
                             .shuffle(100'000)
                             .repeat()
                             .batch(kBatch)
                             .prefetch(4)
                             .outputs<2>(g);
  SkipGram net{g.scope("net"), kWords, kSize, DType::f32};
  const nn::Candidates drawn = nn::log_uniform_candidates(beside, kDrawn, kWords);
  const Output loss = net.loss(words, beside, drawn);
  const Op train = optim::Adagrad{.lr = 0.2}.minimize(loss);

  // Of the 8 words nearest to each of the first 1000: how many have its topic?
  const Output table = net.vectors.table();
  const Output unit = table * rsqrt(sum(square(table), {1}, true));
  const Output asked = unit[{range(0, 1000)}];
  const Output nearest = top_k(matmul(asked, unit, {.transpose_b = true}), 9).indices;
  const Output topics = mod(nearest, kTopics);
  const Output same =
      mean(cast<float>(topics[{whole, range(1, 9)}] == topics[{whole, range(0, 1)}]));

  Session session{g, Cluster::from_args(argc, argv)};
  session.init();
  auto step = session.compile({loss}, {train});
  example::StepTimes times;
  double sum = 0;
  for (std::int64_t i = 1; i <= steps; ++i) {
    sum += std::get<0>(times.time([&] { return step.run<float>(); }));
    if (i % 1000 == 0 || i == steps) print("{} loss {:.3f}\n", i, sum / double((i - 1) % 1000 + 1));
    if (i % 1000 == 0) sum = 0;
  }
  const double share = session.run({same})[0].item<float>();
  print("of the 8 nearest words {:.1f} % are of the same topic; by chance {:.1f} %\n", 100 * share,
        100.0 / kTopics);
  return times.conclude(share > 0.5);
}
