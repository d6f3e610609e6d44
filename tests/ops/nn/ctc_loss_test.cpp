// The loss of label sequences, beside the sum over all paths.
#include <doctest/doctest.h>

#include "tests/ops/kernels/reference.hpp"

using namespace troupe;
using namespace troupe::test;

namespace {

// What a path spells: repeats are one, blanks none.
std::vector<std::int64_t> spelled(const std::vector<std::int64_t>& path, std::int64_t blank) {
  std::vector<std::int64_t> out;
  for (std::size_t t = 0; t < path.size(); ++t)
    if (path[t] != blank && (t == 0 || path[t] != path[t - 1])) out.push_back(path[t]);
  return out;
}

// -log of the sum of the probabilities of all paths of `frames` frames of x [frames, classes] that
// spell `labels`.
double over_paths(const Numbers& x, std::int64_t frames, std::int64_t classes,
                  const std::vector<std::int64_t>& labels, std::int64_t blank) {
  double sum = 0;
  std::vector<std::int64_t> path(std::size_t(frames), 0);
  while (true) {
    if (spelled(path, blank) == labels) {
      double p = 1;
      for (std::int64_t t = 0; t < frames; ++t) {
        double all = 0;
        for (std::int64_t k = 0; k < classes; ++k) all += std::exp(x[std::size_t(t * classes + k)]);
        p *= std::exp(x[std::size_t(t * classes + path[std::size_t(t)])]) / all;
      }
      sum += p;
    }
    std::size_t t = 0;
    while (t < path.size() && ++path[t] == classes) path[t++] = 0;
    if (t == path.size()) return -std::log(sum);
  }
}

}  // namespace

TEST_CASE("the loss of labels without places is that of all paths that spell them") {
  const std::vector<std::vector<std::int64_t>> all = {{},     {1},    {2, 1},   {1, 1},
                                                      {0, 2}, {2, 2}, {1, 2, 1}};
  for (const std::int64_t blank : {0, 2})
    for (const auto& labels : all) {
      if (std::count(labels.begin(), labels.end(), blank) > 0) continue;
      const std::int64_t frames = 5, classes = 3;
      Graph g;
      const Output x = placeholder<double>(g, {frames, 1, classes});
      const auto number = [&](std::size_t n) {
        return constant(g, Tensor::of<std::int64_t>(Shape{1}, {std::int64_t(n)}));
      };
      Tensor list = Tensor::make(DType::i64, Shape{1, std::int64_t(labels.size())}).value();
      std::copy(labels.begin(), labels.end(), list.mutable_data<std::int64_t>());
      const Output loss = ctc_loss(x, constant(g, list), number(labels.size()),
                                   number(std::size_t(frames)), {.blank = blank});
      Interpreter run(g);
      const Numbers values = draw(7, frames * classes);
      Compared{g,
               loss,
               {x},
               {values},
               [&](const std::vector<Numbers>& in) {
                 return Numbers{over_paths(in[0], frames, classes, labels, blank)};
               }}
          .check(run, {{x.node(), tensor(Shape{frames, 1, classes}, values)}});
    }
}

TEST_CASE("long sequences of equal classes lose nothing") {
  // Of T frames without information, paths that spell one label are T (T + 1) / 2 of 2^T.
  const std::int64_t frames = 3000;
  Graph g;
  const Output one = constant(g, Tensor::of<std::int64_t>(Shape{1}, {1}));
  const Output loss =
      ctc_loss(zeros(g, {frames, 1, 2}), constant(g, {{std::int64_t{1}}}), one, one * frames);
  Interpreter run(g);
  const double want = double(frames) * std::log(2.0) - std::log(frames * (frames + 1) / 2.0);
  CHECK(run.run({loss})[0].data<float>()[0] == doctest::Approx(want).epsilon(1e-6));
}

TEST_CASE("gradients of the loss are numbers where a symbol cannot be") {
  Graph g;
  const Output x = placeholder<double>(g, {3, 1, 2});
  const auto number = [&](std::int64_t n) {
    return constant(g, Tensor::of<std::int64_t>(Shape{1}, {n}));
  };
  const Output labels = constant(g, Tensor::of<std::int64_t>(Shape{1, 1}, {1}));
  const Output loss = ctc_loss(x, labels, number(1), number(3), {.blank = 0});
  const Output first = gradients(sum(loss), {x})[0];
  const Output second = gradients(sum(square(first)), {x})[0];
  Interpreter run(g);
  Numbers values(6, 0.0);
  values[3] = -std::numeric_limits<double>::infinity();  // of frame 1, symbol 1
  for (const Tensor& t :
       run.run({loss, first, second}, {}, {{x.node(), tensor({3, 1, 2}, values)}}))
    for (const double v : t.span<double>()) CHECK(std::isfinite(v));
}
