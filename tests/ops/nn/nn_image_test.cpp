// Convolutions and pools against plain loops over every index.
#include "tests/ops/nn/nn_kernels.hpp"

using namespace troupe;
using namespace troupe::test;

namespace {

struct Window {
  std::int64_t in[2], size[2], stride[2], dilation[2] = {1, 1};
  std::string padding = "SAME";
  std::vector<std::int64_t> pads = {};
  std::int64_t groups = 1;

  // {output size, padding before}
  std::pair<std::int64_t, std::int64_t> axis(int i) const {
    std::int64_t reach = (size[i] - 1) * dilation[i] + 1;
    if (padding == "SAME") {
      std::int64_t out = (in[i] + stride[i] - 1) / stride[i];
      return {out, std::max<std::int64_t>(0, (out - 1) * stride[i] + reach - in[i]) / 2};
    }
    std::int64_t before = padding == "EXPLICIT" ? pads[std::size_t(2 * i)] : 0;
    std::int64_t after = padding == "EXPLICIT" ? pads[std::size_t(2 * i + 1)] : 0;
    return {(in[i] + before + after - reach) / stride[i] + 1, before};
  }
  // Calls f(n, oh, ow, r, s, ih, iw) for every tap inside the image.
  template <class F>
  void taps(std::int64_t batch, F f) const {
    auto [out_h, top] = axis(0);
    auto [out_w, left] = axis(1);
    for (std::int64_t n = 0; n < batch; ++n)
      for (std::int64_t oh = 0; oh < out_h; ++oh)
        for (std::int64_t ow = 0; ow < out_w; ++ow)
          for (std::int64_t r = 0; r < size[0]; ++r)
            for (std::int64_t s = 0; s < size[1]; ++s) {
              std::int64_t ih = oh * stride[0] + r * dilation[0] - top;
              std::int64_t iw = ow * stride[1] + s * dilation[1] - left;
              if (ih >= 0 && ih < in[0] && iw >= 0 && iw < in[1])
                f((n * out_h + oh) * out_w + ow, r * size[1] + s, (n * in[0] + ih) * in[1] + iw);
            }
  }
  AttrMap attrs(bool pool) const {
    AttrMap a{{"strides", std::vector<std::int64_t>{stride[0], stride[1]}}, {"padding", padding}};
    if (pool)
      a["ksize"] = std::vector<std::int64_t>{size[0], size[1]};
    else
      a["dilations"] = std::vector<std::int64_t>{1, dilation[0], dilation[1], 1};
    if (groups != 1) a["groups"] = groups;
    if (!pads.empty()) a["explicit_paddings"] = pads;
    return a;
  }
};

Tensor sizes_of(const Shape& s) { return Tensor::of<std::int64_t>(Shape{s.rank()}, s.dims()); }

void check_conv(const Window& w, std::int64_t batch, std::int64_t c, std::int64_t k,
                std::mt19937_64& rng) {
  INFO("batch " << batch << " in " << w.in[0] << "x" << w.in[1] << "x" << c << " filter "
                << w.size[0] << "x" << w.size[1] << " to " << k << " stride " << w.stride[0] << ","
                << w.stride[1] << " dilation " << w.dilation[0] << " " << w.padding << " groups "
                << w.groups);
  const std::int64_t part = c / w.groups;
  Shape x_shape{batch, w.in[0], w.in[1], c}, f_shape{w.size[0], w.size[1], part, k};
  Shape y_shape{batch, w.axis(0).first, w.axis(1).first, k};
  Tensor x = random_f64(rng, x_shape), f = random_f64(rng, f_shape), dy = random_f64(rng, y_shape);
  Tensor y = Tensor::zeros(DType::f64, y_shape).value();
  Tensor dx = Tensor::zeros(DType::f64, x_shape).value();
  Tensor df = Tensor::zeros(DType::f64, f_shape).value();
  w.taps(batch, [&](std::int64_t out, std::int64_t tap, std::int64_t in) {
    for (std::int64_t i = 0; i < part; ++i)
      for (std::int64_t o = 0; o < k; ++o) {
        const std::int64_t from = in * c + o / std::max<std::int64_t>(k / w.groups, 1) * part + i;
        double weight = f.data<double>()[(tap * part + i) * k + o];
        double pixel = x.data<double>()[from], slope = dy.data<double>()[out * k + o];
        y.mutable_data<double>()[out * k + o] += pixel * weight;
        dx.mutable_data<double>()[from] += slope * weight;
        df.mutable_data<double>()[(tap * part + i) * k + o] += slope * pixel;
      }
  });
  check_op("Conv2D", {x, f}, {y}, w.attrs(false), 5e-6);
  check_op("Conv2DBackpropInput", {sizes_of(x_shape), f, dy}, {dx}, w.attrs(false), 5e-6);
  check_op("Conv2DBackpropFilter", {x, sizes_of(f_shape), dy}, {df}, w.attrs(false), 5e-6);
}

void check_pools(const Window& w, std::int64_t batch, std::int64_t c, std::mt19937_64& rng,
                 bool ties = false) {
  INFO("batch " << batch << " in " << w.in[0] << "x" << w.in[1] << "x" << c << " window "
                << w.size[0] << "x" << w.size[1] << " stride " << w.stride[0] << "," << w.stride[1]
                << " " << w.padding);
  Shape x_shape{batch, w.in[0], w.in[1], c}, y_shape{batch, w.axis(0).first, w.axis(1).first, c};
  Tensor x = random_f64(rng, x_shape), dy = random_f64(rng, y_shape);
  if (ties)
    for (std::int64_t i = 0; i < x.elements(); ++i) x.mutable_data<double>()[i] = double(rng() % 3);
  // As f32 sees it, or equal maxima would differ between the two.
  for (std::int64_t i = 0; i < x.elements(); ++i)
    x.mutable_data<double>()[i] = float(x.data<double>()[i]);
  Tensor max = Tensor::zeros(DType::f64, y_shape).value();
  Tensor mean = max.clone().value(), count = max.clone().value();
  std::vector<std::int64_t> first(std::size_t(max.elements()), -1);
  w.taps(batch, [&](std::int64_t out, std::int64_t, std::int64_t in) {
    for (std::int64_t i = 0; i < c; ++i) {
      double pixel = x.data<double>()[in * c + i];
      auto at = std::size_t(out * c + i);
      mean.mutable_data<double>()[at] += pixel;
      count.mutable_data<double>()[at] += 1;
      if (first[at] < 0 || pixel > max.data<double>()[at]) {
        max.mutable_data<double>()[at] = pixel;
        first[at] = in * c + i;
      }
    }
  });
  Tensor dx_max = Tensor::zeros(DType::f64, x_shape).value(), dx_mean = dx_max.clone().value();
  for (std::int64_t i = 0; i < max.elements(); ++i) {
    mean.mutable_data<double>()[i] /= count.data<double>()[i];
    dx_max.mutable_data<double>()[first[std::size_t(i)]] += dy.data<double>()[i];
  }
  w.taps(batch, [&](std::int64_t out, std::int64_t, std::int64_t in) {
    for (std::int64_t i = 0; i < c; ++i)
      dx_mean.mutable_data<double>()[in * c + i] +=
          dy.data<double>()[out * c + i] / count.data<double>()[out * c + i];
  });
  check_op("MaxPool", {x}, {max}, w.attrs(true));
  check_op("MaxPoolGrad", {x, max, dy}, {dx_max}, w.attrs(true));
  check_op("AvgPool", {x}, {mean}, w.attrs(true));
  check_op("AvgPoolGrad", {sizes_of(x_shape), dy}, {dx_mean}, w.attrs(true));
}

}  // namespace

TEST_CASE("convolutions and both gradients equal a loop over every tap") {
  std::mt19937_64 rng(test_seed());
  INFO("seed " << test_seed());
  check_conv({{5, 5}, {3, 3}, {1, 1}}, 1, 1, 1, rng);
  check_conv({{28, 28}, {5, 5}, {1, 1}}, 3, 1, 32, rng);
  check_conv({{14, 14}, {5, 5}, {1, 1}}, 2, 32, 64, rng);
  check_conv({{9, 7}, {3, 2}, {2, 3}}, 4, 5, 6, rng);
  check_conv({{9, 7}, {3, 3}, {2, 2}, {1, 1}, "VALID"}, 4, 16, 16, rng);
  check_conv({{12, 11}, {3, 3}, {1, 1}, {2, 3}}, 2, 16, 8, rng);
  check_conv({{12, 11}, {3, 3}, {2, 1}, {2, 2}, "VALID"}, 2, 8, 16, rng);
  check_conv({{8, 8}, {3, 3}, {1, 1}, {1, 1}, "EXPLICIT", {2, 0, 1, 1}}, 2, 16, 16, rng);
  check_conv({{4, 4}, {2, 2}, {1, 1}, {1, 1}, "EXPLICIT", {5, 3, 0, 4}}, 2, 8, 8, rng);
  check_conv({{6, 5}, {1, 1}, {1, 1}}, 3, 16, 24, rng);
  check_conv({{6, 5}, {1, 1}, {2, 2}}, 3, 16, 24, rng);
  check_conv({{3, 3}, {5, 5}, {4, 4}}, 2, 4, 4, rng);
}

TEST_CASE("groups of channels and both gradients equal a loop over every tap") {
  std::mt19937_64 rng(test_seed());
  INFO("seed " << test_seed());
  check_conv({{9, 7}, {3, 2}, {2, 3}, {1, 1}, "SAME", {}, 2}, 3, 6, 4, rng);
  check_conv({{7, 9}, {3, 3}, {1, 1}, {1, 1}, "SAME", {}, 4}, 9, 64, 32, rng);
  check_conv({{7, 9}, {3, 3}, {2, 1}, {1, 2}, "VALID", {}, 2}, 2, 32, 64, rng);
  check_conv({{6, 5}, {1, 1}, {1, 1}, {1, 1}, "SAME", {}, 3}, 9, 12, 6, rng);
  check_conv({{2, 2}, {3, 3}, {1, 1}, {1, 1}, "SAME", {}, 2}, 2, 512, 520, rng);
  check_conv({{4, 4}, {2, 2}, {1, 1}, {1, 1}, "EXPLICIT", {5, 3, 0, 4}, 8}, 2, 16, 8, rng);
  check_conv({{4, 4}, {3, 3}, {1, 1}, {1, 1}, "SAME", {}, 2}, 0, 4, 2, rng);
  check_conv({{4, 4}, {3, 3}, {1, 1}, {1, 1}, "SAME", {}, 2}, 2, 4, 0, rng);
}

TEST_CASE("depthwise convolutions and both gradients equal a loop over every tap") {
  std::mt19937_64 rng(test_seed());
  INFO("seed " << test_seed());
  for (const std::int64_t channels : {2, 16, 37}) {
    const auto depthwise = [&](Window w, std::int64_t batch, std::int64_t filters = 1) {
      w.groups = channels;
      check_conv(w, batch, channels, channels * filters, rng);
    };
    depthwise({{12, 11}, {3, 3}, {1, 1}}, 3);
    depthwise({{12, 11}, {3, 3}, {2, 2}}, 19);
    depthwise({{12, 11}, {5, 3}, {1, 3}, {2, 1}, "VALID"}, 2);
    depthwise({{12, 11}, {3, 3}, {2, 1}, {1, 2}, "EXPLICIT", {0, 3, 4, 0}}, 2, 3);
    depthwise({{3, 3}, {5, 5}, {4, 4}}, 2, 2);
    depthwise({{6, 5}, {1, 1}, {2, 2}}, 2);
    depthwise({{4, 4}, {3, 3}, {1, 1}}, 0);
    depthwise({{4, 4}, {3, 3}, {1, 1}}, 2, 0);
  }
  check_conv({{40, 70}, {3, 3}, {1, 1}, {1, 1}, "SAME", {}, 33}, 2, 33, 33, rng);
}

TEST_CASE("batches beyond one chunk, with a shorter last one") {
  std::mt19937_64 rng(test_seed());
  INFO("seed " << test_seed());
  for (std::int64_t batch : {8, 9, 19, 70}) {
    check_conv({{6, 6}, {3, 3}, {1, 1}}, batch, 16, 16, rng);
    check_conv({{5, 5}, {1, 1}, {1, 1}}, batch, 4, 8, rng);
    check_conv({{6, 6}, {3, 3}, {1, 1}}, batch, 1, 4, rng);
  }
}

TEST_CASE("a filter above 4 MiB is split by output channel") {
  std::mt19937_64 rng(test_seed());
  INFO("seed " << test_seed());
  check_conv({{2, 2}, {3, 3}, {1, 1}}, 2, 256, 520, rng);
  check_conv({{2, 2}, {3, 3}, {1, 1}}, 2, 256, 512, rng);
  check_conv({{1, 2}, {1, 1}, {1, 1}}, 2, 1100, 1024, rng);
}

TEST_CASE("pools and their gradients equal a loop over every tap") {
  std::mt19937_64 rng(test_seed());
  INFO("seed " << test_seed());
  check_pools({{28, 28}, {2, 2}, {2, 2}, {1, 1}, "VALID"}, 3, 32, rng);
  check_pools({{7, 9}, {3, 3}, {2, 2}}, 2, 43, rng);
  check_pools({{7, 9}, {3, 2}, {1, 2}, {1, 1}, "VALID"}, 2, 5, rng);
  check_pools({{8, 8}, {1, 1}, {3, 3}}, 2, 9, rng);
  check_pools({{1, 1}, {4, 4}, {1, 1}}, 1, 1, rng);
  check_pools({{16, 16}, {2, 2}, {2, 2}, {1, 1}, "VALID"}, 40, 17, rng);
}

TEST_CASE("of equal maxima the first in window order takes the gradient") {
  std::mt19937_64 rng(test_seed());
  INFO("seed " << test_seed());
  check_pools({{9, 9}, {3, 3}, {2, 2}}, 2, 33, rng, true);
  check_pools({{8, 8}, {2, 2}, {2, 2}, {1, 1}, "VALID"}, 2, 8, rng, true);
}

TEST_CASE("empty batches and channels give empty or zero results") {
  std::mt19937_64 rng(test_seed());
  check_conv({{4, 4}, {3, 3}, {1, 1}}, 0, 3, 2, rng);
  check_conv({{4, 4}, {3, 3}, {1, 1}}, 2, 0, 2, rng);
  check_conv({{4, 4}, {3, 3}, {1, 1}}, 2, 3, 0, rng);
  check_conv({{4, 4}, {1, 1}, {1, 1}}, 0, 3, 2, rng);
  check_pools({{4, 4}, {2, 2}, {2, 2}}, 0, 3, rng);
  check_pools({{4, 4}, {2, 2}, {2, 2}}, 2, 0, rng);
}

TEST_CASE("hostile window attributes are refused") {
  Tensor x = Tensor::zeros(DType::f32, Shape{1, 4, 4, 2}).value();
  Tensor f = Tensor::zeros(DType::f32, Shape{3, 3, 2, 2}).value();
  using Ints = std::vector<std::int64_t>;
  const std::int64_t huge = std::int64_t{1} << 62;
  for (const AttrMap& attrs :
       {AttrMap{{"strides", Ints{0, 1}}}, AttrMap{{"strides", Ints{1, -1}}},
        AttrMap{{"strides", Ints{1}}}, AttrMap{{"strides", Ints{2, 1, 1, 1}}},
        AttrMap{{"strides", Ints{}}}, AttrMap{{"dilations", Ints{huge, 1}}},
        AttrMap{{"dilations", Ints{0, 0}}}, AttrMap{{"dilations", Ints{2147483647, 1}}},
        AttrMap{{"padding", "EXPLICIT"}}, AttrMap{{"groups", 0}}, AttrMap{{"groups", huge}},
        AttrMap{{"groups", -2}}, AttrMap{{"groups", 2}}, AttrMap{{"groups", 3}},
        AttrMap{{"padding", "EXPLICIT"}, {"explicit_paddings", Ints{-1, 0, 0, 0}}},
        AttrMap{{"padding", "EXPLICIT"}, {"explicit_paddings", Ints{0, huge, 0, 0}}},
        AttrMap{{"padding", "VALID"}, {"explicit_paddings", Ints{1, 1, 1, 1}}},
        AttrMap{{"explicit_paddings", Ints{1, 1, 1, 1}}}}) {
    auto s = try_run("Conv2D", {x, f}, attrs).status();
    CHECK_MESSAGE(s.code() == Code::invalid_argument, s.text());
  }
  Tensor big = Tensor::zeros(DType::f32, Shape{5, 5, 2, 2}).value();
  CHECK(try_run("Conv2D", {x, big}, {{"padding", "VALID"}}).status().code() ==
        Code::invalid_argument);
  CHECK(try_run("Conv2D", {x, Tensor::zeros(DType::f32, Shape{3, 3, 1, 2}).value()})
            .status()
            .code() == Code::invalid_argument);
  CHECK(try_run("MaxPool", {x}, {{"ksize", Ints{0, 2}}, {"strides", Ints{1, 1}}}).status().code() ==
        Code::invalid_argument);
  CHECK(try_run("MaxPool", {x}, {{"ksize", Ints{5, 5}}, {"strides", Ints{1, 1}}}).status().code() ==
        Code::invalid_argument);
  Tensor dy = Tensor::zeros(DType::f32, Shape{1, 3, 4, 2}).value();
  CHECK(try_run("Conv2DBackpropInput", {sizes_of(x.shape()), f, dy}).status().code() ==
        Code::invalid_argument);
  CHECK(try_run("Conv2DBackpropInput", {Tensor::of<std::int64_t>(Shape{4}, {1, -4, 4, 2}), f, dy})
            .status()
            .code() == Code::invalid_argument);
}

TEST_CASE("MaxPool keeps NaN") {
  Tensor x = Tensor::of<float>(Shape{1, 2, 2, 1}, {1, NAN, 3, 2});
  auto y = run(
      "MaxPool", {x},
      {{"ksize", std::vector<std::int64_t>{2, 2}}, {"strides", std::vector<std::int64_t>{2, 2}}});
  CHECK(std::isnan(y[0].data<float>()[0]));
}
