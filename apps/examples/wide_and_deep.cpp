// wide_and_deep: whether somebody likes a thing (Cheng et al., 2016). A wide part has a weight for
// each pair of user and thing, by its hash; a deep part has vectors of users, things and the things
// seen before, of which there are some for each example, and a network over them. A step changes
// the rows that it looked up, of tables with a million. wide_and_deep [--rows N] [--steps N]
// [--threads N] [--first-step]
//
// Examples are drawn: users and things have hidden tastes, and frequent ones are seen often.
#include "first_step.hpp"

#include <random>
#include <troupe/troupe.hpp>
using namespace troupe;

constexpr int kSize = 16, kHidden = 64, kMost = 5, kTastes = 4, kBatch = 256;
constexpr std::int64_t kExamples = 600'000;

struct Batch {
  Output user, thing, seen, seen_count, age;  // i64 [n], [n], [n, most], [n], and floats [n, 1]
};

struct WideAndDeep : nn::Module {
  WideAndDeep(Scope scope, std::int64_t rows, std::int64_t size, std::int64_t units, DType dtype)
      : Module(std::move(scope)),
        rows(rows),
        pairs(*this, "pairs", rows, 1, {.stddev = 0.01, .dtype = dtype}),
        users(*this, "users", rows, size, {.stddev = 0.1, .dtype = dtype}),
        things(*this, "things", rows, size, {.stddev = 0.1, .dtype = dtype}),
        hidden(*this, "hidden", 3 * size + 1, units, {.dtype = dtype}),
        out(*this, "out", units, 1, {.dtype = dtype}) {}
  Output logits(const Batch& x) const {
    const Output wide = pairs(mod(x.user * 1'000'003 + x.thing, rows));
    const Output before = things(nn::bags(x.seen, x.seen_count), {.combiner = nn::Combiner::sqrtn});
    const Output all = concat({users(x.user), things(x.thing), before, x.age}, 1);
    return squeeze(wide + out(relu(hidden(all))), {1});
  }
  std::int64_t rows;
  nn::Embedding pairs, users, things;
  nn::Linear hidden, out;
};

struct Drawn {
  std::vector<std::int64_t> user, thing, seen, seen_count;
  std::vector<float> age, liked;

  data::Examples examples() const {
    const std::int64_t n = std::int64_t(user.size());
    const auto ints = [](Shape shape, const std::vector<std::int64_t>& v) {
      return Tensor::of<std::int64_t>(shape, v);
    };
    return data::tensors({ints({n}, user), ints({n}, thing), ints({n, kMost}, seen),
                          ints({n}, seen_count), Tensor::of<float>(Shape{n, 1}, age),
                          Tensor::of<float>(Shape{n}, liked)});
  }
};

// Number i is drawn with a probability of about 1 / (i + 1). Its taste is i mod kTastes.
Drawn draw_examples(std::int64_t count, std::int64_t rows, unsigned seed) {
  std::mt19937_64 random(seed);
  std::uniform_real_distribution<double> unit;
  const auto number = [&] {
    return std::int64_t(std::exp(unit(random) * std::log(double(rows)))) - 1;
  };
  Drawn all;
  for (std::int64_t i = 0; i < count; ++i) {
    const std::int64_t user = number(), thing = number();
    double liking = std::sin(double(user)) + std::sin(2.0 * double(thing));
    liking += user % kTastes == thing % kTastes ? 2 : -0.5;
    const auto seen = std::int64_t(unit(random) * (kMost + 1));
    for (std::int64_t k = 0; k < kMost; ++k) {
      const std::int64_t before = number();
      if (k < seen) liking += before % kTastes == thing % kTastes ? 0.5 : -0.2;
      all.seen.push_back(before);
    }
    const double age = unit(random);
    liking += thing % 2 == 0 ? 2 * age - 1 : 1 - 2 * age;
    all.user.push_back(user), all.thing.push_back(thing), all.seen_count.push_back(seen);
    all.age.push_back(float(age));
    all.liked.push_back(unit(random) < 1 / (1 + std::exp(-2 * liking)) ? 1.0f : 0.0f);
  }
  return all;
}

int first_step() {
  Graph g;
  WideAndDeep net{g.scope("net"), 11, 3, 4, DType::f64};
  const Batch x{constant<std::int64_t>(g, {4}, {0, 10, 7, 0}),
                constant<std::int64_t>(g, {4}, {3, 1, 1, 10}),
                constant<std::int64_t>(g, {4, 3}, {4, 5, 4, 0, 0, 0, 9, 3, 0, 1, 0, 0}),
                constant<std::int64_t>(g, {4}, {3, 0, 2, 1}),
                constant<double>(g, {4, 1}, {0.25, -0.5, 1, 0.125})};
  const Output liked = constant(g, {1.0, 0.0, 0.0, 1.0});
  return example::print_first_step(g, mean(sigmoid_cross_entropy(net.logits(x), liked)));
}

int main(int argc, char** argv) {
  const example::Arguments arguments(argc, argv);
  if (arguments.has("--first-step")) return first_step();
  const std::int64_t steps = arguments.number("--steps", 2000),
                     rows = arguments.number("--rows", 1'000'000);
  Graph g;
  auto [user, thing, seen, count, age, liked] =
      draw_examples(steps < kExamples / kBatch ? steps * kBatch : kExamples, rows, 1)
          .examples()
          .shuffle(kExamples)
          .repeat()
          .batch(kBatch)
          .prefetch(4)
          .outputs<6>(g, "train");
  auto [user2, thing2, seen2, count2, age2, liked2] =
      draw_examples(20'000, rows, 2).examples().batch(1000).outputs<6>(g, "test");
  WideAndDeep net{g.scope("net"), rows, kSize, kHidden, DType::f32};
  const Output loss =
      mean(sigmoid_cross_entropy(net.logits({user, thing, seen, count, age}), liked));
  const Op train = optim::Adagrad{.lr = 0.1}.minimize(loss);
  const Output score = sigmoid(net.logits({user2, thing2, seen2, count2, age2}));
  const auto auc = metrics::auc(g.scope("auc"), score, liked2);

  Session session{g, Cluster::from_args(argc, argv)};
  session.init();
  auto step = session.compile({loss}, {train});
  auto test = session.compile({}, {auc.update});
  example::StepTimes times;
  double sum = 0, area = 0;
  for (std::int64_t i = 1; i <= steps; ++i) {
    sum += std::get<0>(times.time([&] { return step.run<float>(); }));
    if (i % 1000 != 0 && i != steps) continue;
    session.run({}, {auc.reset});
    for ([[maybe_unused]] const auto& none : test.pass()) {
    }
    area = session.run({auc.value})[0].item<double>();
    print("{} loss {:.3f}, of new examples the area under the curve is {:.3f}\n", i,
          sum / double((i - 1) % 1000 + 1), area);
    sum = 0;
  }
  return times.conclude(area > 0.7);
}
