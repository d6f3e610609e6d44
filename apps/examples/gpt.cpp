// A small GPT (Radford and others, 2018) that learns a text character by character, then writes one
// of its own: a loop in the graph draws the next character, with the keys and values of those
// before it in a cache. --data FILE reads a text instead of the tales that the program draws.
// Prints the loss on the last tenth of the text, what it wrote, and how far what the cache computes
// is from what the network computes of the whole.
#include <memory>

#include "first_step.hpp"
using namespace troupe;

struct Sizes {
  std::int64_t vocabulary, context, width, heads, layers;
};

// The normalisation is before each half.
struct Block : nn::Module {
  Block(Module& parent, std::string_view name, const Sizes& s, DType t)
      : Module(parent, name),
        before(*this, "norm1", s.width, {.dtype = t}),
        attention(*this, "attention", s.width, s.heads, {.dtype = t}),
        between(*this, "norm2", s.width, {.dtype = t}),
        wide(*this, "wide", s.width, 4 * s.width, {.dtype = t}),
        narrow(*this, "narrow", 4 * s.width, s.width, {.dtype = t}) {}
  Output operator()(Output x) const {
    const Output h = before(x);
    return rest(x + attention(h, h, h, {.causal = true}));
  }
  // Of the next positions.
  std::pair<Output, nn::KeyValueCache> operator()(Output x, const nn::KeyValueCache& cache) const {
    const auto [y, next] = attention(before(x), cache);
    return {rest(x + y), next};
  }
  Output rest(Output x) const { return x + narrow(gelu(wide(between(x)))); }

  nn::LayerNorm before;
  nn::MultiHeadAttention attention;
  nn::LayerNorm between;
  nn::Linear wide, narrow;
};

struct Gpt : nn::Module {
  Gpt(Scope scope, const Sizes& s, DType t)
      : Module(std::move(scope)),
        tokens(*this, "tokens", s.vocabulary, s.width, {.stddev = 0.02, .dtype = t}),
        places(*this, "places", s.context, s.width, {.stddev = 0.02, .dtype = t}),
        blocks(blocks_of(s, t)),
        last(*this, "norm", s.width, {.dtype = t}),
        head(*this, "head", s.width, s.vocabulary, {.dtype = t}) {}
  // Logits [batch,time,vocabulary] of what follows each of ids [batch,time].
  Output operator()(Output ids) const {
    Output x = tokens(ids) + places(numbers(shape(ids)[1]));
    for (const auto& block : blocks) x = (*block)(x);
    return head(last(x));
  }
  // Draws `count` characters, of which the first follows `start`, i64 [1,1]: these, i64 [count],
  // and the logits [count,vocabulary] that they are drawn from.
  std::tuple<Output, Output> write(Output start, std::int64_t count) const {
    std::vector<Output> state{start};
    for (const auto& block : blocks) {
      const auto cache = block->attention.empty_cache(start, count);
      state.insert(state.end(), {cache.keys, cache.values, cache.length});
    }
    const auto one_more = [&](const std::vector<Output>& now, Output at) {
      Output x = tokens(now[0]) + places(at);
      std::vector<Output> next = now;
      for (std::size_t i = 0, c = 1; i < blocks.size(); ++i, c += 3) {
        auto [y, cache] = (*blocks[i])(x, {now[c], now[c + 1], now[c + 2]});
        next[c] = cache.keys, next[c + 1] = cache.values, next[c + 2] = cache.length;
        x = y;
      }
      const Output logits = squeeze(head(last(x)), {1});
      next[0] = categorical(logits, 1);
      return std::pair{next, std::tuple{squeeze(next[0], {0, 1}), squeeze(logits, {0})}};
    };
    return scan(numbers(constant(graph(), count)), state, one_more).second;
  }
  // 0, 1, ... below `end`.
  static Output numbers(Output end) { return range(zeros_like(end), end, ones_like(end)); }
  std::vector<std::unique_ptr<Block>> blocks_of(const Sizes& s, DType t) {
    std::vector<std::unique_ptr<Block>> all;
    for (std::int64_t i = 0; i < s.layers; ++i)
      all.push_back(std::make_unique<Block>(*this, "block" + std::to_string(i), s, t));
    return all;
  }

  nn::Embedding tokens, places;
  std::vector<std::unique_ptr<Block>> blocks;
  nn::LayerNorm last;
  nn::Linear head;
};

Output loss_of(const Gpt& net, Output ids, Output next) {
  return mean(softmax_cross_entropy(net(ids), next));
}

int first_step() {
  Graph g;
  const Output i = Gpt::numbers(constant(g, std::int64_t{12}));
  const Output ids = reshape(mod(i * 7, 5), {2, 6}), next = reshape(mod((i + 1) * 7, 5), {2, 6});
  const Sizes sizes{.vocabulary = 5, .context = 8, .width = 8, .heads = 2, .layers = 2};
  Gpt net{g.scope("gpt"), sizes, DType::f64};
  return example::print_first_step(g, loss_of(net, ids, next));
}

int main(int argc, char** argv) {
  const example::Arguments arguments(argc, argv);
  if (arguments.has("--first-step")) return first_step();
  const std::int64_t steps = arguments.number("--steps", 400), context = 64, batch = 16;
  const std::string file = arguments.text("--data");
  const auto letters =
      file.empty() ? data::Vocabulary(draw_tales(1, 500'000)) : data::Vocabulary::of_file(file);
  auto part = [&](double from, double to, std::int64_t stride) {
    const data::TextOptions options{
        .window = context, .stride = stride, .from = from, .to = to, .vocabulary = letters};
    return file.empty() ? data::tales(500'000, options) : data::text(file, options);
  };
  Graph g;
  auto [ids, next] =
      part(0, 0.9, 7).shuffle(50'000).repeat().batch(batch).prefetch(2).outputs<2>(g, "train");
  auto [test_ids, test_next] = part(0.9, 1, context).batch(batch).prefetch(2).outputs<2>(g, "test");
  Gpt net{g.scope("gpt"), {letters.size(), context, 64, 4, 2}, DType::f32};
  Output loss = loss_of(net, ids, next), tested = loss_of(net, test_ids, test_next);
  const auto rate = optim::warm_up(50, optim::cosine({.rate = 3e-3, .steps = steps}));
  Op train = optim::AdamW{.lr = rate}.apply(optim::clip_by_global_norm(optim::gradients(loss), 1));
  const Output start = constant(g, {{letters.number(' ')}});
  auto [written, logits] = net.write(start, context);
  // The same from all characters at once.
  const Output before = concat({start, reshape(written[range(0, -1)], {1, -1})}, 1);
  const Output apart = max(abs(squeeze(net(before), {0}) - logits));

  Session session{g, Cluster::from_args(argc, argv)};
  session.init();
  auto step = session.compile({loss}, {train});
  example::StepTimes times;
  for (std::int64_t i = 1; i <= steps; ++i) {
    auto [l] = times.time([&] { return step.run<float>(); });
    if (i % 100 == 0 || i == steps) print("{} loss {:.3f}\n", i, l);
  }
  double sum = 0, batches = 0;
  for (auto [l] : session.compile({tested}).pass<float>()) sum += l, ++batches;
  const auto sample = session.run({written, apart});
  const auto drawn = sample[0].span<std::int64_t>();
  const float difference = sample[1].item<float>();
  print("{}\n", letters.decode({drawn.begin(), drawn.end()}));
  print("of the last tenth: loss {:.3f}; with the cache within {:.1e}\n", sum / batches,
        difference);
  return times.conclude(sum / batches < 0.9 && difference < 1e-3);
}
