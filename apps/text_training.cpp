#include "apps/text_training.hpp"

#include <cmath>

#include "core/hash.hpp"
#include "ops/data/tales.hpp"

namespace troupe {
namespace {

constexpr std::int64_t kDrawn = 500'000;  // characters, unless there is a file
constexpr double kHeldOut = 0.9;          // from there on
constexpr std::int64_t kWindow = 50, kStride = 10, kTestWindow = 500, kTestBatch = 16;

struct Text {
  std::string path;  // empty: drawn
  data::Vocabulary vocabulary;

  static Expected<Text> of(const TrainOptions& options) {
    if (options.data.empty()) return Text{{}, data::Vocabulary(draw_tales(1, kDrawn))};
    TROUPE_TRY(auto vocabulary, data::Vocabulary::try_of_file(options.data));
    return Text{options.data, std::move(vocabulary)};
  }
  data::FixedExamples<2> windows(std::int64_t window, std::int64_t stride, double from,
                                 double to) const {
    const data::TextOptions options{
        .window = window, .stride = stride, .from = from, .to = to, .vocabulary = vocabulary};
    return path.empty() ? data::tales(kDrawn, options) : data::text(path, options);
  }
  data::FixedExamples<2> to_train() const { return windows(kWindow, kStride, 0, kHeldOut); }
};

// Batches come as [batch, time].
Output by_time(Output batch) { return transpose(batch, {.perm = {1, 0}}); }

// The losses of all characters of a batch, [time batch].
Output losses(const CharLstm& model, Output x, Output y) {
  return softmax_cross_entropy(model(by_time(x)).logits, reshape(by_time(y), {-1}));
}

CharLstm::Options network(const Text& text, const TrainOptions& options) {
  return {.characters = text.vocabulary.size(), .dropout = 0.2, .over_time = options.over_time};
}

}  // namespace

Writer::Writer(GraphBuilder& graph, const CharLstm& model, data::Vocabulary vocabulary)
    : vocabulary_(std::move(vocabulary)) {
  auto scope = graph.with_scope("writer");
  character_ = placeholder<std::int64_t>(graph, {1, 1}, "character");
  CharLstm::State state;
  for (std::int64_t units : model.layer_units()) {
    state.push_back(
        {placeholder<float>(graph, {1, units}, "h"), placeholder<float>(graph, {1, units}, "c")});
    before_.insert(before_.end(), {state.back().h, state.back().c});
  }
  const CharLstm::Guess guess = model(character_, state);
  likely_ = softmax(guess.logits);
  for (const auto& layer : guess.last) after_.insert(after_.end(), {layer.h, layer.c});
}

Expected<std::string> Writer::write(Session& session, std::int64_t characters,
                                    std::uint64_t seed) const {
  std::vector<Output> fetches{likely_}, feeds{character_};
  fetches.insert(fetches.end(), after_.begin(), after_.end());
  feeds.insert(feeds.end(), before_.begin(), before_.end());
  TROUPE_TRY(CompiledStep step, session.try_compile(fetches, {}, feeds, {.replicas = 1}));

  std::int64_t last = std::max<std::int64_t>(vocabulary_.number('\n'), 0);
  std::vector<Tensor> fed{Tensor()};
  for (const Output& state : before_) {
    TROUPE_TRY(Tensor zero, Tensor::zeros(DType::f32, state.shape().shape()));
    fed.push_back(std::move(zero));
  }
  Random random(seed);
  std::string text;
  while (std::int64_t(text.size()) < characters) {
    fed[0] = Tensor::of<std::int64_t>({1, 1}, {last});
    TROUPE_TRY(std::vector<Tensor> fetched, step.try_run(fed));
    const auto likely = fetched[0].span<float>();
    double left = random.uniform();
    for (last = 0; last + 1 < std::int64_t(likely.size()); ++last)
      if ((left -= double(likely[std::size_t(last)])) < 0) break;
    text += vocabulary_.characters()[std::size_t(last)];
    std::move(fetched.begin() + 1, fetched.end(), fed.begin() + 1);
  }
  return text;
}

Expected<std::array<Output, 2>> text_windows(Graph& graph, const TrainOptions& options,
                                             std::string_view name) {
  TROUPE_TRY(const Text text, Text::of(options));
  return text.to_train().outputs(graph, name);
}

Expected<TextTraining> build_text_training(Graph& graph, const TrainOptions& options,
                                           std::int64_t steps) {
  TROUPE_TRY(const Text text, Text::of(options));
  TextTraining out;
  auto [x, y] = text.to_train()
                    .shuffle(1'000'000, options.seed)
                    .repeat()
                    .batch(options.batch, data::Remainder::drop)
                    .prefetch(2 * options.cluster.replicas)
                    .outputs(graph);
  out.model = std::make_unique<CharLstm>(graph.scope("char_lstm"), network(text, options));
  {
    auto training = out.model->train();
    out.loss = mean(losses(*out.model, x, y));
  }
  auto [held_out, follows] = text.windows(kTestWindow, kTestWindow, kHeldOut, 1)
                                 .batch(kTestBatch)
                                 .prefetch(1)
                                 .outputs(graph, "test");
  out.held_out = follows;
  out.its_loss = sum(losses(*out.model, held_out, follows));
  const double rate = options.learning_rate > 0 ? options.learning_rate : 2e-3;
  const optim::Gradients gradients = optim::clip_by_global_norm(optim::gradients(out.loss), 1);
  const optim::Schedule wave =
      optim::cosine({.rate = rate, .steps = std::max<std::int64_t>(steps, 1), .least = rate / 50});
  const optim::Schedule noted([&](Output step) { return out.rate = wave(step); });
  out.train = optim::Adam{.lr = noted}.apply(gradients);
  out.writer = std::make_unique<Writer>(graph, *out.model, text.vocabulary);
  return out;
}

}  // namespace troupe
