// Norms against plain loops, values and slopes.
#include <numeric>

#include "tests/ops/kernels/reference.hpp"

using namespace troupe;
using namespace troupe::test;

namespace {

struct NormRoot : nn::Module {
  using Module::Module;
};

// x [n, positions, channels].
Numbers group_norm_of(const std::vector<Numbers>& in, std::size_t n, std::size_t channels,
                      std::size_t groups, double epsilon) {
  const Numbers& x = in[0];
  const std::size_t positions = x.size() / n / channels, part = channels / groups;
  Numbers y(x.size());
  for (std::size_t b = 0; b < n; ++b)
    for (std::size_t g = 0; g < groups; ++g) {
      const auto each = [&](auto f) {
        for (std::size_t p = 0; p < positions; ++p)
          for (std::size_t c = g * part; c < (g + 1) * part; ++c)
            f((b * positions + p) * channels + c, c);
      };
      double mean = 0, variance = 0;
      const double count = double(positions * part);
      each([&](std::size_t i, std::size_t) { mean += x[i] / count; });
      each([&](std::size_t i, std::size_t) { variance += (x[i] - mean) * (x[i] - mean) / count; });
      each([&](std::size_t i, std::size_t c) {
        y[i] = (x[i] - mean) / std::sqrt(variance + epsilon) * in[1][c] + in[2][c];
      });
    }
  return y;
}

Numbers rms_norm_of(const std::vector<Numbers>& in, std::size_t n, double epsilon) {
  Numbers y(in[0].size());
  for (std::size_t i = 0; i < y.size(); i += n) {
    double square = 0;
    for (std::size_t j = 0; j < n; ++j) square += in[0][i + j] * in[0][i + j] / double(n);
    for (std::size_t j = 0; j < n; ++j)
      y[i + j] = in[0][i + j] / std::sqrt(square + epsilon) * in[1][j];
  }
  return y;
}

template <class Layer>
void check_norm(Graph& g, const Layer& layer, const PartialShape& known, const Shape& shape,
                std::function<Numbers(const std::vector<Numbers>&)> model) {
  Output x = placeholder<double>(g, known), y = layer(x);
  CHECK(y.shape().accepts(shape));
  Interpreter run(g);
  run.init();
  std::vector<Numbers> values{draw(1, shape.elements())};
  std::vector<Output> inputs{x};
  for (const Variable& v : layer.parameters()) {
    inputs.push_back(v.handle());
    values.push_back(draw(values.size() + 5, v.shape().shape().elements()));
  }
  set(run, layer.parameters(), {values.begin() + 1, values.end()});
  Compared{g, y, inputs, values, std::move(model)}.check(run,
                                                         {{x.node(), tensor(shape, values[0])}});
}

}  // namespace

TEST_CASE("a group norm and an instance norm equal their loops") {
  for (const PartialShape& known :
       {PartialShape{2, 3, 2, 6}, PartialShape{-1, -1, -1, 6}, PartialShape{2, -1, 2, -1}}) {
    Graph g;
    NormRoot root{g.scope("net")};
    nn::GroupNorm groups{root, "groups", 3, 6, {.epsilon = 0.1, .dtype = DType::f64}};
    nn::InstanceNorm own{root, "own", 6, {.epsilon = 0.1, .dtype = DType::f64}};
    check_norm(g, groups, known, {2, 3, 2, 6},
               [](const std::vector<Numbers>& in) { return group_norm_of(in, 2, 6, 3, 0.1); });
    check_norm(g, own, known, {2, 3, 2, 6},
               [](const std::vector<Numbers>& in) { return group_norm_of(in, 2, 6, 6, 0.1); });
  }
  Graph g;
  NormRoot root{g.scope("net")};
  nn::GroupNorm rows{root, "rows", 2, 4, {.dtype = DType::f64}};
  check_norm(g, rows, {3, 4}, {3, 4},
             [](const std::vector<Numbers>& in) { return group_norm_of(in, 3, 4, 2, 1e-5); });
}

// Rows of lanes that are not full, groups that are one channel, and images of several blocks.
TEST_CASE("group norms of any size equal their loops") {
  struct Case {
    std::int64_t n, positions, channels, groups;
  };
  for (const Case& k : {Case{2, 37, 3, 3}, Case{1, 1, 40, 8}, Case{3, 19, 1, 1},
                        Case{2, 700, 50, 5}, Case{1, 5000, 9, 1}, Case{9, 17, 33, 11}}) {
    CAPTURE(k.positions);
    Graph g;
    NormRoot root{g.scope("net")};
    nn::GroupNorm norm{root, "norm", k.groups, k.channels, {.dtype = DType::f64}};
    const Shape shape{k.n, k.positions, k.channels};
    Output x = placeholder<double>(g, {k.n, k.positions, k.channels}), y = norm(x);
    const Numbers xs = draw(1, shape.elements()), weights = draw(2, shape.elements());
    Interpreter run(g);
    run.init();
    const Numbers ones(std::size_t(k.channels), 1), zeros(std::size_t(k.channels), 0);
    const std::vector<Numbers> in{xs, ones, zeros};
    const auto model = [&](const std::vector<Numbers>& in) {
      return group_norm_of(in, std::size_t(k.n), std::size_t(k.channels), std::size_t(k.groups),
                           1e-5);
    };
    std::vector<Output> wanted{y};
    Output loss = sum(y * constant(g, tensor(shape, weights)));
    std::vector<Output> inputs{x};
    for (const Variable& v : norm.parameters()) inputs.push_back(v.handle());
    for (Output slope : gradients(loss, inputs)) wanted.push_back(slope);
    const auto got = run.run(wanted, {}, {{x.node(), tensor(shape, xs)}});
    const Numbers want = model(in);
    for (std::size_t i = 0; i < want.size(); ++i)
      REQUIRE(got[0].data<double>()[i] == doctest::Approx(want[i]).epsilon(1e-12).scale(1));
    // The sums of dy h and of dy.
    Numbers along(ones.size(), 0), sums(ones.size(), 0);
    for (std::size_t i = 0; i < want.size(); ++i) {
      along[i % ones.size()] += want[i] * weights[i];
      sums[i % ones.size()] += weights[i];
    }
    for (std::size_t j = 0; j < ones.size(); ++j) {
      CHECK(got[2].data<double>()[j] == doctest::Approx(along[j]).epsilon(1e-11).scale(1));
      CHECK(got[3].data<double>()[j] == doctest::Approx(sums[j]).epsilon(1e-11).scale(1));
    }
    // Of some elements the slope is a difference.
    for (std::size_t at = 0; at < xs.size(); at += xs.size() / 5 + 1) {
      const auto loss_at = [&](double by) {
        std::vector<Numbers> moved = in;
        moved[0][at] += by;
        const Numbers y = model(moved);
        return std::inner_product(y.begin(), y.end(), weights.begin(), 0.0);
      };
      const double slope = (loss_at(1e-4) - loss_at(-1e-4)) / 2e-4;
      CHECK(got[1].data<double>()[at] == doctest::Approx(slope).epsilon(1e-5).scale(1));
    }
  }
}

TEST_CASE("norms with parameters of f32 give the 16 bits that they are given") {
  for (const DType dtype : {DType::f16, DType::bf16}) {
    CAPTURE(dtype_name(dtype));
    Graph g;
    NormRoot root{g.scope("net")};
    nn::GroupNorm groups{root, "groups", 2, 4};
    nn::InstanceNorm own{root, "own", 4};
    nn::RmsNorm rows{root, "rows", 4};
    const Output x = cast(constant(g, tensor({2, 16, 4}, draw(1, 128))), DType::f32);
    const Output narrow = cast(x, dtype);
    const auto both = [&](const auto& norm) { return std::pair{norm(narrow), norm(x)}; };
    Interpreter run(g);
    run.init();
    for (const auto& [y, exact] : {both(groups), both(own), both(rows)}) {
      CHECK(y.dtype() == dtype);
      const auto values = run.run({cast(y, DType::f32), exact});
      for (std::int64_t i = 0; i < values[1].elements(); ++i)
        CHECK(
            values[0].data<float>()[i] ==
            doctest::Approx(values[1].data<float>()[i]).epsilon(dtype == DType::f16 ? 0.01 : 0.1));
    }
  }
}

TEST_CASE("an RMS norm equals its loop") {
  for (const PartialShape& known : {PartialShape{2, 3, 4}, PartialShape{-1, -1, 4}}) {
    Graph g;
    NormRoot root{g.scope("net")};
    nn::RmsNorm norm{root, "norm", 4, {.epsilon = 0.01, .dtype = DType::f64}};
    check_norm(g, norm, known, {2, 3, 4},
               [](const std::vector<Numbers>& in) { return rms_norm_of(in, 4, 0.01); });
  }
}

TEST_CASE("an RMS norm of f16 sums squares that f16 cannot hold") {
  Graph g;
  Output x = cast(constant(g, {1000.f, -1000.f}), DType::f16);
  Output y = cast(rms_norm(x, cast(constant(g, {1.f, 2.f}), DType::f16)), DType::f32);
  Interpreter run(g);
  CHECK(Tensor::same(run.run({y})[0], Tensor::of<float>(Shape{2}, {1, -2})));
}

TEST_CASE("a local response norm equals its loop") {
  for (std::int64_t radius : {0, 1, 2, 9}) {
    Graph g;
    const Shape shape{2, 2, 5};
    Output x = placeholder<double>(g, {-1, 2, 5});
    Output y = local_response_norm(x, {.radius = radius, .bias = 2, .alpha = 0.7, .beta = 0.75});
    const Numbers xs = draw(1, 20);
    Interpreter run(g);
    const auto model = [&](const std::vector<Numbers>& in) {
      Numbers out(20);
      for (std::int64_t i = 0; i < 20; ++i) {
        double sum = 0;
        for (std::int64_t j = i / 5 * 5; j < i / 5 * 5 + 5; ++j)
          if (std::abs(i - j) <= radius) sum += in[0][std::size_t(j)] * in[0][std::size_t(j)];
        out[std::size_t(i)] = in[0][std::size_t(i)] / std::pow(2 + 0.7 * sum, 0.75);
      }
      return out;
    };
    Compared{g, y, {x}, {xs}, model}.check(run, {{x.node(), tensor(shape, xs)}});
  }
}

TEST_CASE("norms that cannot be are refused where they are written") {
  Graph g;
  NormRoot root{g.scope("net")};
  Output x = placeholder<float>(g, {2, 6}), v = zeros(g, {6}), w = zeros(g, {5});
  CHECK_THROWS_WITH_AS(group_norm(x, v, v, 4), doctest::Contains("4 groups do not divide 6"),
                       Error);
  CHECK_THROWS_WITH_AS(group_norm(x, v, v, 0), doctest::Contains("0 groups"), Error);
  CHECK_THROWS_WITH_AS(group_norm(x, w, v, 2), doctest::Contains("scale has shape [5]"), Error);
  CHECK_THROWS_WITH_AS(instance_norm(x, v, w), doctest::Contains("offset has shape [5]"), Error);
  CHECK_THROWS_WITH_AS(rms_norm(x, w), doctest::Contains("scale has shape [5]"), Error);
  CHECK_THROWS_WITH_AS(rms_norm(x, v, {.epsilon = -1}), doctest::Contains("epsilon"), Error);
  CHECK_THROWS_WITH_AS(local_response_norm(x, {.radius = -1}), doctest::Contains("radius"), Error);
  CHECK_THROWS_WITH_AS(local_response_norm(placeholder<float>(g, {2, -1})),
                       doctest::Contains("known"), Error);
  CHECK_THROWS_AS((nn::GroupNorm{root, "a", 4, 6}), Error);
  CHECK_THROWS_AS((nn::RmsNorm{root, "b", 0}), Error);
}

TEST_CASE("boxes of pictures are cut out and resized, with gradients for pictures and boxes") {
  Graph g;
  constexpr std::int64_t kHeight = 3, kWidth = 4, kRows = 3, kColumns = 2;
  const std::vector<std::int64_t> of{1, 0, 1};
  Output x = placeholder<double>(g, {-1, -1, -1, 2}), boxes = placeholder<double>(g, {3, 4});
  Output y = crop_and_resize(x, boxes, constant(g, of), kRows, kColumns, {.outside = 7});
  CHECK(y.shape() == PartialShape{3, kRows, kColumns, 2});
  const auto model = [&](const std::vector<Numbers>& in) {
    Numbers out;
    for (std::size_t b = 0; b < 3; ++b)
      for (std::int64_t i = 0; i < kRows; ++i)
        for (std::int64_t j = 0; j < kColumns; ++j)
          for (std::int64_t c = 0; c < 2; ++c) {
            const double* box = in[1].data() + 4 * b;
            const double v = (box[0] + (box[2] - box[0]) * double(i) / (kRows - 1)) * (kHeight - 1);
            const double u =
                (box[1] + (box[3] - box[1]) * double(j) / (kColumns - 1)) * (kWidth - 1);
            double sum = 0;
            for (std::int64_t r = 0; r < kHeight; ++r)
              for (std::int64_t s = 0; s < kWidth; ++s)
                sum += std::max(0.0, 1 - std::abs(v - double(r))) *
                       std::max(0.0, 1 - std::abs(u - double(s))) *
                       in[0][std::size_t(((of[b] * kHeight + r) * kWidth + s) * 2 + c)];
            const bool inside = v >= 0 && v <= kHeight - 1 && u >= 0 && u <= kWidth - 1;
            out.push_back(inside ? sum : 7);
          }
    return out;
  };
  const Numbers xs = draw(1, 48), bs{0.1, 0.2, 0.8, 0.7, 0.8, 0.3, 0.1, 0.05, -0.3, 0.4, 0.6, 1.2};
  Interpreter run(g);
  Compared{g, y, {x, boxes}, {xs, bs}, model}.check(
      run, {{x.node(), tensor({2, kHeight, kWidth, 2}, xs)}, {boxes.node(), tensor({3, 4}, bs)}});
  CHECK_THROWS_AS(crop_and_resize(x, boxes, constant<std::int64_t>(g, {1, 0}), 2, 2), Error);
  CHECK_THROWS_AS(crop_and_resize(x, boxes, constant(g, of), 0, 2), Error);
  CHECK_THROWS_AS(crop_and_resize(x, constant(g, of), constant(g, of), 2, 2), Error);
  // One picture is not that of all boxes.
  Output some = placeholder<double>(g, {-1, 4}), from = placeholder<std::int64_t>(g, {-1});
  Output parts = crop_and_resize(x, some, from, 2, 2);
  const auto failure = [&](const Tensor& indices) {
    return run.failure_of({parts}, {{x.node(), tensor({2, kHeight, kWidth, 2}, xs)},
                                    {some.node(), tensor({3, 4}, bs)},
                                    {from.node(), indices}});
  };
  CHECK(failure(Tensor::of<std::int64_t>({3}, of)) == "");
  CHECK(failure(Tensor::of<std::int64_t>({1}, {1})) != "");
}

TEST_CASE("pictures are cropped and resized by numbers") {
  Graph g;
  Output x = constant(g, Shape{1, 2, 4, 1}, {1.f, 2.f, 3.f, 4.f, 5.f, 6.f, 7.f, 8.f});
  Interpreter run(g);
  CHECK(Tensor::same(run.run({crop(x, 1, 1, 1, 2)})[0],
                     Tensor::of<float>(Shape{1, 1, 2, 1}, {6, 7})));
  CHECK(Tensor::same(run.run({center_crop(x, 1, 3)})[0],
                     Tensor::of<float>(Shape{1, 1, 3, 1}, {1, 2, 3})));
  CHECK(Tensor::same(run.run({resize(x, 1, 2)})[0],
                     Tensor::of<float>(Shape{1, 1, 2, 1}, {3.5, 5.5})));
  CHECK(resize(x, 5, 6, {.method = "nearest"}).shape() == PartialShape{1, 5, 6, 1});
  CHECK_THROWS_AS(crop(x, 1, 1, 2, 2), Error);
  CHECK_THROWS_AS(center_crop(x, 3, 3), Error);
  CHECK_THROWS_AS(resize(x, -1, 3), Error);
}
