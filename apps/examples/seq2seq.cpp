// seq2seq: from one sequence to another, with attention (Bahdanau et al., 2015; Luong et al.,
// 2015). The task is to write a sequence backwards. Sequences of similar length form a batch, in
// which each is read as far as its length; the answer is written symbol by symbol, in a loop.
// seq2seq [--steps N] [--threads N] [--first-step]
#include "first_step.hpp"

#include <troupe/troupe.hpp>
using namespace troupe;

constexpr int kSymbols = 16, kMost = 10, kSize = 32, kHidden = 64, kBatch = 64;
constexpr std::int64_t kEnd = 1;  // begins and ends an answer; 0 is padding

struct Batch {
  Output source, length;  // i64 [batch, time] and [batch]
  Output given, answer;   // i64 [batch, time + 1]: kEnd, then the answer; the answer, then kEnd
};

struct Seq2Seq : nn::Module {
  Seq2Seq(Scope scope, std::int64_t symbols, std::int64_t size, std::int64_t hidden, DType dtype)
      : Module(std::move(scope)),
        source(*this, "source", symbols, size, {.stddev = 0.3, .dtype = dtype}),
        encoder(*this, "encoder", size, hidden, {.dtype = dtype}),
        target(*this, "target", symbols, size, {.stddev = 0.3, .dtype = dtype}),
        decoder(*this, "decoder", size, 2 * hidden, {.dtype = dtype}),
        mixed(*this, "mixed", 4 * hidden, 2 * hidden, {.dtype = dtype}),
        out(*this, "out", 2 * hidden, symbols, {.dtype = dtype}) {}

  struct Encoded {
    Output h, open;  // [batch, time, 2 hidden], and bool [batch, 1, time]
    nn::LstmCell::State last;
  };
  Encoded encode(const Batch& x) const {
    const auto read = encoder.with_lengths(source(transpose(x.source)), x.length);
    return {transpose(read.h, {1, 0, 2}),
            expand_dims(x.source > 0, 1),
            {concat({read.forward.h, read.backward.h}, 1),
             concat({read.forward.c, read.backward.c}, 1)}};
  }
  // What comes next, from the decoder's states h [batch, steps, 2 hidden].
  Output logits(const Encoded& encoded, Output h) const {
    const Output found =
        nn::scaled_dot_product_attention(h, encoded.h, encoded.h, {.mask = encoded.open});
    return out(tanh(mixed(concat({h, found}, 2))));
  }
  // The mean over all symbols of all answers.
  Output loss(const Batch& x) const {
    const Encoded encoded = encode(x);
    const Output h = decoder(target(transpose(x.given)), encoded.last).h;
    const Output each = softmax_cross_entropy(logits(encoded, transpose(h, {1, 0, 2})), x.answer);
    const Output counts = cast(x.answer > 0, each.dtype());
    return sum(each * counts) / sum(counts);
  }
  // Greedily, as many symbols as the answers of the batch have: [batch, time + 1].
  Output write(const Batch& x) const {
    const Encoded encoded = encode(x);
    const Output first = x.length * 0 + kEnd;
    const auto written =
        scan(transpose(x.answer), std::tuple{encoded.last.h, encoded.last.c, first},
             [&](Output h, Output c, Output symbol, Output) {
               const auto next = decoder.cell()(target(symbol), {h, c});
               const Output best = argmax(squeeze(logits(encoded, expand_dims(next.h, 1)), {1}), 1);
               return std::pair{std::tuple{next.h, next.c, best}, best};
             });
    return transpose(written.second);
  }

  nn::Embedding source;
  nn::Bidirectional<nn::Lstm> encoder;
  nn::Embedding target;
  nn::Lstm decoder;
  nn::Linear mixed, out;
};

// Endless new examples; or `count` of them.
data::Examples sequences(Graph& g, std::int64_t count) {
  return data::generate(g, count, [&](Output) {
    const Output length = random_uniform_int(g, {1}, kMost - 2) + 3;
    const Output source = slice(random_uniform_int(g, {kMost}, kSymbols - 2) + 2,
                                constant(g, {std::int64_t{0}}), length);
    const Output end = constant(g, {kEnd}), turned = reverse(source);
    return std::tuple{source, squeeze(length), concat({end, turned}), concat({turned, end})};
  });
}

int first_step() {
  Graph g;
  Seq2Seq net{g.scope("net"), 6, 3, 2, DType::f64};
  const auto ids = [&](std::int64_t rows, std::initializer_list<std::int64_t> all) {
    return constant<std::int64_t>(g, {rows, std::int64_t(all.size()) / rows}, all);
  };
  const Batch x{ids(2, {2, 5, 4, 3, 5, 2, 0, 0}), constant(g, {std::int64_t{4}, std::int64_t{2}}),
                ids(2, {1, 3, 4, 5, 2, 1, 2, 5, 0, 0}), ids(2, {3, 4, 5, 2, 1, 2, 5, 1, 0, 0})};
  return example::print_first_step(g, net.loss(x));
}

int main(int argc, char** argv) {
  const example::Arguments arguments(argc, argv);
  if (arguments.has("--first-step")) return first_step();
  const std::int64_t steps = arguments.number("--steps", 800);
  Graph g;
  const auto batches = [&](const data::Examples& examples, const char* name) {
    auto [source, length, given, answer] =
        examples.bucket_by_length({5, 8}, {kBatch, kBatch, kBatch}).prefetch(4).outputs<4>(g, name);
    return Batch{source, length, given, answer};
  };
  const Batch x = batches(sequences(g, 20'000).repeat(), "train"),
              tested = batches(sequences(g, 1000), "test");
  Seq2Seq net{g.scope("net"), kSymbols, kSize, kHidden, DType::f32};
  const Output loss = net.loss(x);
  const Op train = optim::Adam{.lr = optim::cosine({.rate = 5e-3, .steps = steps})}.apply(
      optim::clip_by_global_norm(optim::gradients(loss), 5));
  // An answer is right if each symbol of it is.
  const Output written = net.write(tested);
  const Output right = cast<float>(all(written == tested.answer || tested.answer == 0, {1}));

  Session session{g, Cluster::from_args(argc, argv)};
  session.init();
  auto step = session.compile({loss}, {train});
  example::StepTimes times;
  for (std::int64_t i = 1; i <= steps; ++i) {
    const float nats = std::get<0>(times.time([&] { return step.run<float>(); }));
    if (i % 250 == 0) print("{} loss {:.3f}\n", i, nats);
  }
  double hits = 0, count = 0;
  for (auto [sum, n] : session.compile({sum(right), cast<float>(size(right))}).pass<float, float>())
    hits += sum, count += n;
  print("{:.1f} % of {} sequences written backwards without a mistake\n", 100 * hits / count,
        count);
  return times.conclude(hits > 0.8 * count);
}
