// Losses over some of the classes, against plain loops, and against the loss over all of them.
#include "ops/nn/sampled_losses.hpp"

#include <algorithm>
#include <limits>

#include "tests/contains.hpp"
#include "tests/misuse.hpp"
#include "tests/ops/kernels/reference.hpp"

using namespace troupe;
using namespace troupe::test;

namespace {

constexpr std::size_t kRowsOfX = 3, kSizeOfX = 4, kAllClasses = 7;
using LabelList = std::vector<std::vector<std::int64_t>>;

// What stands for all classes, beside the labels of each row. Class 5 is a label, too.
struct SampledSetting {
  LabelList labels;
  std::vector<std::int64_t> sampled{5, 0, 6};
  Numbers sampled_expected{0.5, 2, 0.25}, labels_expected;

  explicit SampledSetting(LabelList of_rows) : labels(std::move(of_rows)) {
    for (std::size_t i = 0; i < labels.size() * labels[0].size(); ++i)
      labels_expected.push_back(0.3 + 0.2 * double(i));
  }
  std::size_t k() const { return labels[0].size(); }
  // [batch] where each row has one label.
  Shape shape() const {
    return k() == 1 ? Shape{std::int64_t(kRowsOfX)}
                    : Shape{std::int64_t(kRowsOfX), std::int64_t(k())};
  }
  Output labels_in(Graph& g) const {
    std::vector<std::int64_t> all;
    for (const auto& row : labels) all.insert(all.end(), row.begin(), row.end());
    return constant(g, Tensor::of<std::int64_t>(shape(), all));
  }
  nn::Candidates candidates(Graph& g) const {
    return {constant(g, sampled), constant(g, tensor(shape(), labels_expected)),
            constant(g, sampled_expected)};
  }
  bool hit(std::size_t row, std::int64_t c) const {
    return std::find(labels[row].begin(), labels[row].end(), c) != labels[row].end();
  }
};

double logit(const std::vector<Numbers>& in, std::size_t row, std::int64_t c) {
  double sum = in[1][std::size_t(c)];
  for (std::size_t j = 0; j < kSizeOfX; ++j)
    sum += in[2][row * kSizeOfX + j] * in[0][std::size_t(c) * kSizeOfX + j];
  return sum;
}

double softplus_of(double x) { return std::log1p(std::exp(-std::abs(x))) + std::max(x, 0.0); }

Numbers softmax_model(const SampledSetting& s, const std::vector<Numbers>& in) {
  Numbers losses;
  for (std::size_t row = 0; row < kRowsOfX; ++row) {
    double all = 0, right = 0;
    for (std::size_t k = 0; k < s.k(); ++k) {
      const double x =
          logit(in, row, s.labels[row][k]) - std::log(s.labels_expected[row * s.k() + k]);
      all += std::exp(x);
      right += x / double(s.k());
    }
    for (std::size_t i = 0; i < s.sampled.size(); ++i)
      if (!s.hit(row, s.sampled[i]))
        all += std::exp(logit(in, row, s.sampled[i]) - std::log(s.sampled_expected[i]));
    losses.push_back(std::log(all) - right);
  }
  return losses;
}

Numbers nce_model(const SampledSetting& s, bool remove_hits, const std::vector<Numbers>& in) {
  Numbers losses;
  for (std::size_t row = 0; row < kRowsOfX; ++row) {
    double loss = 0;
    for (std::size_t k = 0; k < s.k(); ++k) {
      const double x =
          logit(in, row, s.labels[row][k]) - std::log(s.labels_expected[row * s.k() + k]);
      loss += softplus_of(x) - x / double(s.k());
    }
    for (std::size_t i = 0; i < s.sampled.size(); ++i)
      if (!remove_hits || !s.hit(row, s.sampled[i]))
        loss += softplus_of(logit(in, row, s.sampled[i]) - std::log(s.sampled_expected[i]));
    losses.push_back(loss);
  }
  return losses;
}

struct SampledInputs {
  Graph g;
  std::vector<Numbers> values{draw(3, kAllClasses* kSizeOfX), draw(4, kAllClasses),
                              draw(5, kRowsOfX* kSizeOfX)};
  Output w = constant(g, tensor({kAllClasses, kSizeOfX}, values[0]));
  Output b = constant(g, values[1]);
  Output x = constant(g, tensor({kRowsOfX, kSizeOfX}, values[2]));

  void compare(Output y, std::function<Numbers(const std::vector<Numbers>&)> model) {
    Interpreter run(g);
    Compared{g, y, {w, b, x}, values, std::move(model)}.check(run);
  }
};

const LabelList kOneLabel{{2}, {5}, {0}}, kTwoLabels{{2, 3}, {5, 1}, {6, 0}};

}  // namespace

TEST_CASE("a sampled softmax has the losses and gradients of its formula") {
  for (const LabelList& labels : {kOneLabel, kTwoLabels}) {
    const SampledSetting s(labels);
    SampledInputs in;
    in.compare(nn::sampled_softmax(in.w, in.b, s.labels_in(in.g), in.x, s.candidates(in.g)),
               [&](const std::vector<Numbers>& v) { return softmax_model(s, v); });
  }
}

TEST_CASE("noise-contrastive estimation has the losses and gradients of its formula") {
  for (const LabelList& labels : {kOneLabel, kTwoLabels})
    for (const bool remove : {false, true}) {
      const SampledSetting s(labels);
      SampledInputs in;
      in.compare(nn::nce(in.w, in.b, s.labels_in(in.g), in.x, s.candidates(in.g),
                         {.remove_accidental_hits = remove}),
                 [&](const std::vector<Numbers>& v) { return nce_model(s, remove, v); });
    }
}

TEST_CASE("with all classes as candidates a sampled softmax is the softmax over all") {
  SampledInputs in;
  const SampledSetting s(kOneLabel);
  for (const bool log_uniform : {false, true}) {
    const auto draw_all = log_uniform ? nn::log_uniform_candidates : nn::uniform_candidates;
    nn::Candidates all =
        draw_all(s.labels_in(in.g), kAllClasses, kAllClasses, {.dtype = DType::f64}, Site::here());
    if (log_uniform) {  // each is there once, though not surely
      all.labels_expected = ones_like(all.labels_expected);
      all.sampled_expected = ones_like(all.sampled_expected);
    }
    const Output some = nn::sampled_softmax(in.w, in.b, s.labels_in(in.g), in.x, all);
    const Output whole =
        softmax_cross_entropy(matmul(in.x, in.w, {.transpose_b = true}) + in.b, s.labels_in(in.g));
    Interpreter run(in.g);
    const auto values = run.run({some, whole, all.sampled_expected});
    if (log_uniform) check_near(values[0], numbers(values[1]));
    std::vector<std::int64_t> drawn;
    const Tensor sampled = run.run({all.sampled})[0];
    drawn.assign(sampled.span<std::int64_t>().begin(), sampled.span<std::int64_t>().end());
    std::sort(drawn.begin(), drawn.end());
    for (std::size_t c = 0; c < kAllClasses; ++c) CHECK(drawn[c] == std::int64_t(c));
  }
}

TEST_CASE("a large table of classes changes by rows") {
  Graph g;
  const Variable w = variable(g, "w", zeros(g, {70'000, 2})),
                 b = variable(g, "b", zeros(g, {70'000}));
  const Output labels = constant(g, {std::int64_t{3}, std::int64_t{39'999}});
  const Output x = constant(g, {{1.0f, 2.0f}, {3.0f, 4.0f}});
  const auto drawn = nn::log_uniform_candidates(labels, 5, 40'000);
  const Output loss =
      mean(nn::nce(w, b, labels, x, drawn)) + mean(nn::sampled_softmax(w, b, labels, x, drawn));
  optim::Sgd{.lr = 0.1}.minimize(loss);
  const auto& nodes = g.def().nodes;
  const auto count = [&](std::string_view op) {
    return std::count_if(nodes.begin(), nodes.end(), [&](const NodeDef& n) { return n.op == op; });
  };
  CHECK(count("ApplySparseGradientDescent") == 2);
  CHECK(count("ApplyGradientDescent") == 0);
}

TEST_CASE("losses over some classes refuse what does not fit, with the line") {
  SampledInputs in;
  const SampledSetting s(kOneLabel);
  const Output labels = s.labels_in(in.g);
  check_refused({
      {"the weights are", [&] { nn::nce(in.b, in.b, labels, in.x, s.candidates(in.g)); }},
      {"the biases are", [&] { nn::nce(in.w, in.w, labels, in.x, s.candidates(in.g)); }},
      {"the rows of x are",
       [&] { nn::sampled_softmax(in.w, in.b, labels, in.b, s.candidates(in.g)); }},
      {"the labels", [&] { nn::sampled_softmax(in.w, in.b, Output(), in.x, s.candidates(in.g)); }},
      {"the candidates", [&] { nn::sampled_softmax(in.w, in.b, labels, in.x, {}); }},
      {"the biases are [7] beside the others, not [6]",
       [&] { nn::nce(in.w, in.b[range(0, 6)], labels, in.x, s.candidates(in.g)); }},
      {"the rows of x are",
       [&] { nn::nce(in.w, in.b, labels, in.x[range(0, 1)], s.candidates(in.g)); }},
      {"the expected counts of labels are",
       [&] {
         nn::Candidates drawn = s.candidates(in.g);
         drawn.labels_expected = expand_dims(drawn.labels_expected, 1);
         nn::nce(in.w, in.b, labels, in.x, drawn);
       }},
      {"the expected counts of candidates are",
       [&] {
         nn::Candidates drawn = s.candidates(in.g);
         drawn.sampled_expected = drawn.sampled_expected[range(0, 1)];
         nn::sampled_softmax(in.w, in.b, labels, in.x, drawn);
       }},
      {"8 different classes of 7", [&] { nn::uniform_candidates(labels, 8, 7); }},
  });
}

TEST_CASE("losses over some classes stretch nothing that only a run knows") {
  SampledInputs in;
  const SampledSetting s(kOneLabel);
  const PartialShape any_length = PartialShape::unknown_of_rank(1);
  const Output labels = placeholder<std::int64_t>(in.g, any_length);
  const Output x = placeholder<double>(in.g, {PartialShape::kUnknown, kSizeOfX});
  const Output expected = placeholder<double>(in.g, any_length);
  const nn::Candidates fixed = s.candidates(in.g),
                       fed{fixed.sampled, expected, fixed.sampled_expected};
  Interpreter run(in.g);
  const Tensor all_labels = run.run({s.labels_in(in.g)})[0], all_x = run.run({in.x})[0],
               all_expected = run.run({fixed.labels_expected})[0];
  for (const Output& losses :
       {nn::sampled_softmax(in.w, in.b, labels, x, fed), nn::nce(in.w, in.b, labels, x, fed)}) {
    const auto failure = [&](const Tensor& rows, const Tensor& counts) {
      return run.failure_of(
          {losses}, {{labels.node(), all_labels}, {x.node(), rows}, {expected.node(), counts}});
    };
    CHECK(failure(all_x, all_expected) == "");
    CHECK(contains(failure(run.run({in.x[range(0, 1)]})[0], all_expected), "must be equal"));
    CHECK(contains(failure(all_x, tensor({1}, {0.5})), "must be equal"));
  }
}
