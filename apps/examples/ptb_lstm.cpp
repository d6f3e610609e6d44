// ptb_lstm: a language model of words (Zaremba et al., 2014). Twenty streams of a text are read
// side by side, 20 words at a time; the state of the LSTM stays from step to step in variables,
// and gradients go back as far as a step begins. ptb_lstm [--data FILE] [--steps N] [--threads N]
// [--first-step]; FILE has words, as ptb.train.txt does. Without it a text is drawn: what follows
// a word depends on the word before it and on the mood, which a word long ago said.
#include "first_step.hpp"

#include <algorithm>
#include <fstream>
#include <iterator>
#include <map>
#include <random>
#include <troupe/troupe.hpp>
using namespace troupe;

constexpr int kStreams = 20, kTime = 20, kSize = 128, kLayers = 2;

struct Model : nn::Module {
  Model(Scope scope, std::int64_t words, std::int64_t size, std::int64_t streams, DType dtype)
      : Module(std::move(scope)),
        meaning(*this, "meaning", words, size, {.stddev = 0.1, .dtype = dtype}),
        lstm(*this, "lstm", size, size, kLayers, {.dtype = dtype}),
        out(*this, "out", size, words, {.dtype = dtype}) {
    const Tensor zeros = nn::zeros(dtype, {kLayers, streams, size});
    h = parameter("h", zeros, Site::here(), {.trainable = false});
    c = parameter("c", zeros, Site::here(), {.trainable = false});
  }
  // The loss of each word y [time, streams] behind the words x, and the write that keeps the state.
  std::pair<Output, Op> losses(Output x, Output y) const {
    const auto read = lstm(meaning(x), {state(0), state(1)});
    const Op keep =
        group(graph(), {assign(h, stack({read.layers[0].last.h, read.layers[1].last.h})),
                        assign(c, stack({read.layers[0].last.c, read.layers[1].last.c}))});
    return {softmax_cross_entropy(out(read.h), y), keep};
  }
  Op forget() const { return group(graph(), {assign(h, zeros_like(h)), assign(c, zeros_like(c))}); }
  nn::LstmCell::State state(int layer) const { return {h.value()[layer], c.value()[layer]}; }

  nn::Embedding meaning;
  nn::Stacked<nn::Lstm> lstm;
  nn::Linear out;
  Variable h, c;
};

std::string draw_text(int words) {
  std::mt19937 random(1);
  std::string text;
  for (int i = 0, word = 0, mood = 0; i < words; ++i) {
    const int choice = random() % 8 < 5 ? 0 : int(random() % 4);
    word = random() % 30 == 0 ? 400 + int(random() % 4)
                              : (word * 7 + mood * 101 + choice * 13 + 1) % 400;
    if (word >= 400) mood = word - 400;
    text += "w" + std::to_string(word) + ' ';
  }
  return text;
}

// Text as rows for data::tensors: row t has words t * kTime, ... of each stream, [time, streams].
struct Streams {
  Tensor x, y;
  std::int64_t rows;
};
Streams streams_of(const std::vector<std::int64_t>& words) {
  const auto length = (std::int64_t(words.size()) - 1) / kStreams, rows = length / kTime;
  const Shape shape{rows, kTime, kStreams};
  std::vector<std::int64_t> x, y;
  for (std::int64_t t = 0; t < rows * kTime; ++t)
    for (std::int64_t s = 0; s < kStreams; ++s)
      x.push_back(words[s * length + t]), y.push_back(words[s * length + t + 1]);
  return {Tensor::of<std::int64_t>(shape, x), Tensor::of<std::int64_t>(shape, y), rows};
}

int first_step() {
  Graph g;
  Model net{g.scope("model"), 7, 4, 2, DType::f64};
  const Output x = constant<std::int64_t>(g, {3, 2}, {0, 4, 6, 2, 2, 5}),
               y = constant<std::int64_t>(g, {3, 2}, {6, 2, 2, 5, 1, 3});
  const auto [losses, keep] = net.losses(x, y);
  // Of the second of two steps, whose state is what the first one left.
  return example::print_first_step(g, {{.loss = mean(losses)}}, {keep});
}

int main(int argc, char** argv) {
  const example::Arguments arguments(argc, argv);
  if (arguments.has("--first-step")) return first_step();
  std::string text = draw_text(120'000);
  if (const std::string path = arguments.text("--data"); !path.empty()) {
    std::ifstream file(path);
    if (!file) throw Error(not_found("cannot read " + path));
    text.assign(std::istreambuf_iterator<char>(file), {});
  }
  std::vector<std::int64_t> words;
  std::map<std::string, std::int64_t> numbers;
  for (std::size_t end = 0, at; (at = text.find_first_not_of(" \n", end)) != text.npos;) {
    end = std::min(text.find_first_of(" \n", at), text.size());
    const auto next = std::int64_t(numbers.size());
    words.push_back(numbers.try_emplace(text.substr(at, end - at), next).first->second);
  }
  const auto held_out = words.end() - std::ptrdiff_t(words.size() / 10);
  const Streams train_on = streams_of({words.begin(), held_out}),
                test_on = streams_of({held_out, words.end()});
  const std::int64_t steps = arguments.number("--steps", 3 * train_on.rows);

  Graph g;
  auto [x, y] = data::tensors({train_on.x, train_on.y}).repeat().prefetch(2).outputs<2>(g, "train");
  auto [tested, follows] = data::tensors({test_on.x, test_on.y}).outputs<2>(g, "test");
  Model net{g.scope("model"), std::int64_t(numbers.size()), kSize, kStreams, DType::f32};
  const auto [losses, keep] = net.losses(x, y);
  const auto [test_losses, keep_test] = net.losses(tested, follows);
  const Output loss = mean(losses);
  const Op forget = net.forget();
  const Op train = optim::Adam{.lr = optim::cosine({.rate = 3e-3, .steps = steps})}.apply(
      optim::clip_by_global_norm(optim::gradients(loss), 5));

  Session session{g, Cluster::from_args(argc, argv)};
  session.init();
  auto step = session.compile({loss}, {train, keep});
  auto test = session.compile({mean(test_losses)}, {keep_test});
  example::StepTimes times;
  double perplexity = 0;
  for (std::int64_t i = 1; i <= steps; ++i) {
    times.time([&] { return step.run<float>(); });
    if (i % train_on.rows != 0 && i != steps) continue;
    session.run({}, {forget});
    double sum = 0;
    for (auto [nats] : test.pass<float>()) sum += nats;
    session.run({}, {forget});
    perplexity = std::exp(sum / double(test_on.rows));
    print("after {} steps: perplexity {:.2f} of the last tenth\n", i, perplexity);
  }
  std::map<std::int64_t, double> counts;
  for (const std::int64_t word : words) counts[word] += 1;
  double entropy = 0;
  for (const auto& [word, n] : counts)
    entropy -= n / double(words.size()) * std::log(n / double(words.size()));
  print("of {} words; by their frequencies alone {:.2f}\n", counts.size(), std::exp(entropy));
  return times.conclude(perplexity < 0.5 * std::exp(entropy));
}
