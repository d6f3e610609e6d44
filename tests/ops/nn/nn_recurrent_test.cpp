// Recurrent kernels at sizes at which they are cut into chunks, in f32.
#include "tests/ops/nn/nn_kernels.hpp"

namespace troupe::test {
namespace {

Tensor drawn(const Shape& shape, unsigned seed, float scale = 1) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal(0, scale);
  std::vector<float> values(std::size_t(shape.elements()));
  for (float& value : values) value = normal(random);
  return Tensor::of(shape, std::span<const float>(values));
}

// Rows [first, first + shape[0]) of x, in another shape.
Tensor rows(const Tensor& x, std::int64_t first, const Shape& shape) {
  const std::int64_t row = x.elements() / x.dim(0);
  return Tensor::of(
      shape, x.span<float>().subspan(std::size_t(first * row), std::size_t(shape.elements())));
}

void check_close(std::span<const float> got, std::span<const float> want) {
  REQUIRE(got.size() == want.size());
  for (std::size_t i = 0; i < got.size(); ++i)
    REQUIRE(got[i] == doctest::Approx(want[i]).epsilon(1e-4).scale(1));
}

constexpr std::int64_t kSteps = 3, kBatch = 20, kUnits = 336;  // three products of several chunks

struct Sequence {
  Tensor x = drawn({kSteps, kBatch, 4 * kUnits}, 1), r = drawn({kUnits, 4 * kUnits}, 2, 0.05f);
  Tensor h0 = drawn({kBatch, kUnits}, 3), c0 = drawn({kBatch, kUnits}, 4);
  AttrMap attrs{{"steps", kSteps}};
};

}  // namespace

TEST_CASE("an LSTM over many units gives what its steps give one by one") {
  const Sequence s;
  const auto all = run("LstmSequence", {s.x, s.h0, s.c0, s.r}, s.attrs);
  Tensor h = s.h0, c = s.c0;
  for (std::int64_t t = 0; t < kSteps; ++t) {
    const Tensor product = run("MatMul", {h, s.r})[0];
    const auto step = run("LstmCell", {rows(s.x, t, {kBatch, 4 * kUnits}), product, c});
    h = step[0], c = step[1];
    for (std::size_t i = 0; i < 3; ++i)
      check_close(rows(all[i], t, step[i].shape()).span<float>(), step[i].span<float>());
  }
}

TEST_CASE("the gradient of an LSTM over many units is that of its steps one by one") {
  const Sequence s;
  const auto y = run("LstmSequence", {s.x, s.h0, s.c0, s.r}, s.attrs);
  const Tensor dh = drawn(y[0].shape(), 5), dc = drawn(y[1].shape(), 6);
  const auto all = run("LstmSequenceGrad", {dh, dc, y[2], y[0], y[1], s.h0, s.c0, s.r}, s.attrs);
  const Shape state{kBatch, kUnits}, wide{kBatch, 4 * kUnits};
  Tensor from_h = Tensor::zeros(DType::f32, state).value(), from_c = from_h;
  Tensor dr = Tensor::zeros(DType::f32, s.r.shape()).value();
  for (std::int64_t t = kSteps; t-- > 0;) {
    const auto step =
        run("LstmCellGrad", {run("Add", {rows(dh, t, state), from_h})[0],
                             run("Add", {rows(dc, t, state), from_c})[0], rows(y[2], t, wide),
                             t == 0 ? s.c0 : rows(y[1], t - 1, state), rows(y[1], t, state)});
    check_close(rows(all[0], t, wide).span<float>(), step[0].span<float>());
    from_h = run("MatMul", {step[0], s.r}, {{"transpose_b", true}})[0];
    from_c = step[1];
    const Tensor before = t == 0 ? s.h0 : rows(y[0], t - 1, state);
    dr = run("Add", {dr, run("MatMul", {before, step[0]}, {{"transpose_a", true}})[0]})[0];
  }
  check_close(all[1].span<float>(), from_h.span<float>());
  check_close(all[2].span<float>(), from_c.span<float>());
  check_close(all[3].span<float>(), dr.span<float>());
}

TEST_CASE("gates that overflow and NaN are what the functions say") {
  const float huge = 1e30f, nan = std::nanf("");
  const Tensor zero = Tensor::zeros(DType::f32, {1, 8}).value();
  const Tensor x = Tensor::of<float>({1, 8}, {huge, -huge, -huge, nan, -huge, 0, huge, 0});
  const auto y = run("LstmCell", {x, zero, Tensor::of<float>({1, 2}, {3, 5})});
  // Units (huge, -huge, -huge, huge) and (-huge, nan, 0, 0), as i, f, g, o.
  CHECK(y[2].span<float>()[0] == 1);
  CHECK(y[2].span<float>()[1] == 0);
  CHECK(y[2].span<float>()[2] == 0);
  CHECK(std::isnan(y[2].span<float>()[3]));
  CHECK(y[2].span<float>()[4] == -1);
  CHECK(y[1].span<float>()[0] == -1);
  CHECK(y[0].span<float>()[0] == doctest::Approx(std::tanh(-1.0)));
  CHECK(std::isnan(y[0].span<float>()[1]));
}

// Squares of what is near 1 end before what they are apart from 1 does.
TEST_CASE("the gradient of an LSTM's cell keeps its digits where a gate is near 1") {
  const float g = 1 - 5 * 0x1p-20f;
  const Tensor gates = Tensor::of<float>(Shape{1, 4}, {1, 0.5f, g, 1});
  const auto state = [](float value) { return Tensor::of<float>(Shape{1, 1}, {value}); };
  const Tensor slopes =
      run("LstmCellGrad", {state(0), state(1), gates, state(0.25f), state(0.5f)})[0];
  const double want = (1 - double(g)) * (1 + double(g));
  CHECK(std::abs(slopes.data<float>()[2] - want) <= 0x1p-22 * want);
}

}  // namespace troupe::test
