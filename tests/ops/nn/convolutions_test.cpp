// Convolutions over one, two and three dimensions, and their layers, against one loop over every
// tap, for values and for slopes.
#include "tests/ops/kernels/reference.hpp"

using namespace troupe;
using namespace troupe::test;

namespace {

using Ints3 = std::array<std::int64_t, 3>;

// A convolution over depth, height and width. `pads` are those before.
struct Volume {
  std::int64_t batch, in_c, out_c;
  Ints3 in, size, stride{1, 1, 1}, dilation{1, 1, 1}, pads{}, out;
  std::int64_t groups = 1;

  std::int64_t pixels(const Ints3& s) const { return s[0] * s[1] * s[2]; }
  // f(place in x, place in the filter, place in y), as numbers of elements.
  template <class F>
  void taps(F f) const {
    const std::int64_t part = in_c / groups, made = out_c / groups;
    for (std::int64_t n = 0; n < batch; ++n)
      for (std::int64_t o = 0; o < pixels(out); ++o)
        for (std::int64_t t = 0; t < pixels(size); ++t) {
          const Ints3 to{o / (out[1] * out[2]), o / out[2] % out[1], o % out[2]};
          const Ints3 tap{t / (size[1] * size[2]), t / size[2] % size[1], t % size[2]};
          std::int64_t from = n;
          bool inside = true;
          for (std::size_t i = 0; i < 3; ++i) {
            const std::int64_t at = to[i] * stride[i] + tap[i] * dilation[i] - pads[i];
            inside = inside && at >= 0 && at < in[i];
            from = from * in[i] + at;
          }
          if (!inside) continue;
          for (std::int64_t k = 0; k < out_c; ++k)
            for (std::int64_t c = 0; c < part; ++c)
              f(std::size_t(from * in_c + k / made * part + c),
                std::size_t((t * part + c) * out_c + k),
                std::size_t((n * pixels(out) + o) * out_c + k));
        }
  }
  Numbers forward(const Numbers& x, const Numbers& filter, const Numbers& bias = {}) const {
    Numbers y(std::size_t(batch * pixels(out) * out_c));
    for (std::size_t i = 0; i < y.size(); ++i) y[i] = bias.empty() ? 0 : bias[i % bias.size()];
    taps([&](std::size_t i, std::size_t f, std::size_t o) { y[o] += x[i] * filter[f]; });
    return y;
  }
  // The transposed one, from what y is to what x is.
  Numbers backward(const Numbers& y, const Numbers& filter, const Numbers& bias = {}) const {
    Numbers x(std::size_t(batch * pixels(in) * in_c));
    for (std::size_t i = 0; i < x.size(); ++i) x[i] = bias.empty() ? 0 : bias[i % bias.size()];
    taps([&](std::size_t i, std::size_t f, std::size_t o) { x[i] += y[o] * filter[f]; });
    return x;
  }
};

// y of x and a filter, of known shapes and of unknown batches and sizes.
template <class F>
void check(const Shape& x_shape, const Shape& f_shape, const Shape& y_shape, F&& layer,
           std::function<Numbers(const std::vector<Numbers>&)> model,
           const std::vector<PartialShape>& others = {}) {
  std::vector<PartialShape> shapes{PartialShape(x_shape)};
  shapes.insert(shapes.end(), others.begin(), others.end());
  for (const PartialShape& known : shapes) {
    Graph g;
    Output x = placeholder<double>(g, known), f = placeholder<double>(g, f_shape);
    Output y = layer(x, f);
    INFO("x " << known.text() << ", y " << y.shape().text());
    CHECK(y.shape().accepts(y_shape));
    if (known.fully_known()) CHECK(y.shape() == PartialShape(y_shape));
    const Numbers xs = draw(1, x_shape.elements()), fs = draw(2, f_shape.elements());
    Interpreter run(g);
    Compared{g, y, {x, f}, {xs, fs}, model}.check(
        run, {{x.node(), tensor(x_shape, xs)}, {f.node(), tensor(f_shape, fs)}});
  }
}

struct ConvolutionRoot : nn::Module {
  using Module::Module;
};

// A layer's y of x against a model of x, the filter and the bias.
template <class Layer, class... Args>
void check_layer(const Shape& x_shape, const Shape& f_shape, std::int64_t bias,
                 std::function<Numbers(const std::vector<Numbers>&)> model, Args&&... args) {
  Graph g;
  ConvolutionRoot root{g.scope("net")};
  Layer layer{root, "layer", std::forward<Args>(args)...};
  Output x = placeholder<double>(g, PartialShape(x_shape));
  CHECK(layer.filter().shape() == PartialShape(f_shape));
  Interpreter run(g);
  run.init();
  const Numbers xs = draw(1, x_shape.elements()), fs = draw(2, f_shape.elements()),
                bs = draw(3, bias);
  set(run, layer.parameters(), {fs, bs});
  std::vector<Output> inputs{x};
  for (const Variable& v : layer.parameters()) inputs.push_back(v.handle());
  Compared{g, layer(x), inputs, {xs, fs, bs}, std::move(model)}.check(
      run, {{x.node(), tensor(x_shape, xs)}});
}

std::string refusal(const std::function<void()>& what) {
  try {
    what();
  } catch (const Error& e) {
    return e.status().text();
  }
  return "accepted";
}

}  // namespace

TEST_CASE("conv1d equals a loop over every tap") {
  const auto one = [](const Volume& v, const Conv1dOptions& options) {
    check(
        {v.batch, v.in[2], v.in_c}, {v.size[2], v.in_c / v.groups, v.out_c},
        {v.batch, v.out[2], v.out_c}, [&](Output x, Output f) { return conv1d(x, f, options); },
        [&](const std::vector<Numbers>& in) { return v.forward(in[0], in[1]); },
        {PartialShape{-1, -1, v.in_c}});
  };
  one({.batch = 2,
       .in_c = 3,
       .out_c = 2,
       .in{1, 1, 7},
       .size{1, 1, 3},
       .pads{0, 0, 1},
       .out{1, 1, 7}},
      {});
  one({.batch = 2,
       .in_c = 4,
       .out_c = 2,
       .in{1, 1, 9},
       .size{1, 1, 2},
       .stride{1, 1, 2},
       .dilation{1, 1, 3},
       .out{1, 1, 3},
       .groups = 2},
      {.stride = 2, .padding = "VALID", .dilation = 3, .groups = 2});
  one({.batch = 1,
       .in_c = 1,
       .out_c = 2,
       .in{1, 1, 5},
       .size{1, 1, 3},
       .pads{0, 0, 2},
       .out{1, 1, 5}},
      {.padding = "EXPLICIT", .explicit_paddings = {2, 0}});
}

TEST_CASE("conv3d equals a loop over every tap") {
  const auto one = [](const Volume& v, const Conv3dOptions& options,
                      const std::vector<PartialShape>& others) {
    check(
        {v.batch, v.in[0], v.in[1], v.in[2], v.in_c},
        {v.size[0], v.size[1], v.size[2], v.in_c / v.groups, v.out_c},
        {v.batch, v.out[0], v.out[1], v.out[2], v.out_c},
        [&](Output x, Output f) { return conv3d(x, f, options); },
        [&](const std::vector<Numbers>& in) { return v.forward(in[0], in[1]); }, others);
  };
  one({.batch = 2,
       .in_c = 2,
       .out_c = 3,
       .in{3, 4, 3},
       .size{3, 2, 3},
       .pads{1, 0, 1},
       .out{3, 4, 3}},
      {}, {PartialShape{-1, -1, -1, -1, 2}});
  one({.batch = 1,
       .in_c = 4,
       .out_c = 2,
       .in{5, 4, 3},
       .size{2, 2, 1},
       .stride{2, 1, 2},
       .dilation{2, 1, 1},
       .out{2, 3, 2},
       .groups = 2},
      {.strides = {2, 1, 2}, .padding = "VALID", .dilations = {2, 1, 1}, .groups = 2},
      {PartialShape{-1, -1, 4, 3, 4}, PartialShape{1, 5, -1, -1, 4}});
  one({.batch = 1,
       .in_c = 1,
       .out_c = 1,
       .in{4, 3, 2},
       .size{3, 2, 2},
       .stride{3, 1, 1},
       .pads{2, 1, 0},
       .out{2, 3, 2}},
      {.strides = {3, 1, 1}, .padding = "EXPLICIT", .explicit_paddings = {2, 1, 1, 0, 0, 1}},
      {PartialShape{-1, -1, -1, -1, 1}});
  one({.batch = 1,
       .in_c = 2,
       .out_c = 1,
       .in{4, 2, 2},
       .size{3, 1, 1},
       .stride{2, 1, 1},
       .pads{0, 0, 0},
       .out{2, 2, 2}},
      {.strides = {2, 1, 1}}, {});
  one({.batch = 1, .in_c = 2, .out_c = 3, .in{3, 2, 2}, .size{1, 1, 1}, .out{3, 2, 2}}, {}, {});
}

TEST_CASE("conv2d_transpose equals the loop turned around") {
  const auto one = [](const Volume& v, const ConvTranspose2dOptions& options) {
    check(
        {v.batch, v.out[1], v.out[2], v.out_c}, {v.size[1], v.size[2], v.in_c / v.groups, v.out_c},
        {v.batch, v.in[1], v.in[2], v.in_c},
        [&](Output x, Output f) { return conv2d_transpose(x, f, options); },
        [&](const std::vector<Numbers>& in) { return v.backward(in[0], in[1]); },
        {PartialShape{-1, -1, -1, v.out_c}});
  };
  one({.batch = 2,
       .in_c = 2,
       .out_c = 3,
       .in{1, 6, 4},
       .size{1, 3, 2},
       .stride{1, 2, 2},
       .out{1, 3, 2}},
      {.strides = {2, 2}});
  one({.batch = 1,
       .in_c = 2,
       .out_c = 3,
       .in{1, 7, 5},
       .size{1, 3, 3},
       .stride{1, 2, 2},
       .out{1, 3, 2}},
      {.strides = {2, 2}, .padding = "VALID"});
  one({.batch = 1,
       .in_c = 2,
       .out_c = 2,
       .in{1, 6, 6},
       .size{1, 3, 3},
       .stride{1, 2, 2},
       .pads{0, 1, 1},
       .out{1, 3, 3}},
      {.strides = {2, 2},
       .padding = "EXPLICIT",
       .explicit_paddings = {1, 1, 1, 1},
       .output_padding = {1, 1}});
  one({.batch = 1,
       .in_c = 4,
       .out_c = 2,
       .in{1, 5, 4},
       .size{1, 2, 2},
       .stride{1, 1, 1},
       .dilation{1, 2, 1},
       .out{1, 3, 3},
       .groups = 2},
      {.padding = "VALID", .dilations = {2, 1}, .groups = 2});
  one({.batch = 1,
       .in_c = 1,
       .out_c = 1,
       .in{1, 5, 5},
       .size{1, 2, 2},
       .stride{1, 2, 2},
       .out{1, 3, 3}},
      {.strides = {2, 2}, .output_size = {5, 5}});
}

TEST_CASE("conv3d_transpose equals the loop turned around") {
  const auto one = [](const Volume& v, const ConvTranspose3dOptions& options,
                      const std::vector<PartialShape>& others) {
    check(
        {v.batch, v.out[0], v.out[1], v.out[2], v.out_c},
        {v.size[0], v.size[1], v.size[2], v.in_c / v.groups, v.out_c},
        {v.batch, v.in[0], v.in[1], v.in[2], v.in_c},
        [&](Output x, Output f) { return conv3d_transpose(x, f, options); },
        [&](const std::vector<Numbers>& in) { return v.backward(in[0], in[1]); }, others);
  };
  one({.batch = 2,
       .in_c = 2,
       .out_c = 3,
       .in{4, 3, 4},
       .size{3, 2, 3},
       .stride{2, 1, 2},
       .pads{0, 0, 0},
       .out{2, 3, 2}},
      {.strides = {2, 1, 2}}, {PartialShape{-1, 2, -1, -1, 3}});
  one({.batch = 1,
       .in_c = 4,
       .out_c = 2,
       .in{7, 4, 3},
       .size{2, 2, 1},
       .stride{2, 1, 1},
       .dilation{2, 1, 1},
       .out{3, 3, 3},
       .groups = 2},
      {.strides = {2, 1, 1}, .padding = "VALID", .dilations = {2, 1, 1}, .groups = 2},
      {PartialShape{-1, -1, -1, -1, 2}});
  one({.batch = 1,
       .in_c = 1,
       .out_c = 1,
       .in{4, 4, 3},
       .size{3, 2, 2},
       .stride{2, 2, 1},
       .pads{1, 0, 0},
       .out{2, 2, 2}},
      {.strides = {2, 2, 1},
       .padding = "EXPLICIT",
       .explicit_paddings = {1, 1, 0, 0, 0, 0},
       .output_padding = {1, 0, 0}},
      {});
  one({.batch = 1,
       .in_c = 1,
       .out_c = 2,
       .in{3, 3, 3},
       .size{2, 2, 2},
       .stride{2, 2, 2},
       .out{2, 2, 2}},
      {.strides = {2, 2, 2}, .output_size = {3, 3, 3}}, {});
}

TEST_CASE("conv1d_transpose and depthwise_conv2d equal the loop") {
  const Volume line{.batch = 2,
                    .in_c = 2,
                    .out_c = 3,
                    .in{1, 1, 8},
                    .size{1, 1, 4},
                    .stride{1, 1, 2},
                    .pads{0, 0, 1},
                    .out{1, 1, 4}};
  check(
      {2, 4, 3}, {4, 2, 3}, {2, 8, 2},
      [](Output x, Output f) {
        return conv1d_transpose(x, f,
                                {.stride = 2, .padding = "EXPLICIT", .explicit_paddings = {1, 1}});
      },
      [&](const std::vector<Numbers>& in) { return line.backward(in[0], in[1]); },
      {PartialShape{-1, -1, 3}});
  const Volume own{.batch = 1,
                   .in_c = 3,
                   .out_c = 6,
                   .in{1, 4, 5},
                   .size{1, 2, 3},
                   .stride{1, 2, 2},
                   .pads{0, 0, 1},
                   .out{1, 2, 3},
                   .groups = 3};
  check(
      {1, 4, 5, 3}, {2, 3, 3, 2}, {1, 2, 3, 6},
      [](Output x, Output f) {
        return depthwise_conv2d(x, f, {.strides = {2, 2}});
      },
      [&](const std::vector<Numbers>& in) { return own.forward(in[0], in[1]); },
      {PartialShape{-1, -1, -1, 3}});
}

TEST_CASE("layers of convolutions equal the loop and their bias") {
  const Volume causal{.batch = 2,
                      .in_c = 2,
                      .out_c = 4,
                      .in{1, 1, 6},
                      .size{1, 1, 3},
                      .dilation{1, 1, 2},
                      .pads{0, 0, 4},
                      .out{1, 1, 6},
                      .groups = 2};
  check_layer<nn::Conv1d>(
      {2, 6, 2}, {3, 1, 4}, 4,
      [&](const std::vector<Numbers>& in) { return causal.forward(in[0], in[1], in[2]); }, 2, 4, 3,
      nn::Conv1d::Options{.padding = "CAUSAL", .dilation = 2, .groups = 2, .dtype = DType::f64});
  const Volume cube{.batch = 1,
                    .in_c = 2,
                    .out_c = 2,
                    .in{3, 3, 3},
                    .size{2, 2, 2},
                    .stride{2, 2, 2},
                    .pads{0, 0, 0},
                    .out{2, 2, 2}};
  check_layer<nn::Conv3d>(
      {1, 3, 3, 3, 2}, {2, 2, 2, 2, 2}, 2,
      [&](const std::vector<Numbers>& in) { return cube.forward(in[0], in[1], in[2]); }, 2, 2, 2,
      nn::Conv3d::Options{.stride = 2, .dtype = DType::f64});
  const Volume larger{.batch = 1,
                      .in_c = 2,
                      .out_c = 3,
                      .in{1, 6, 6},
                      .size{1, 4, 4},
                      .stride{1, 2, 2},
                      .pads{0, 1, 1},
                      .out{1, 3, 3}};
  check_layer<nn::ConvTranspose2d>(
      {1, 3, 3, 3}, {4, 4, 2, 3}, 2,
      [&](const std::vector<Numbers>& in) { return larger.backward(in[0], in[1], in[2]); }, 3, 2, 4,
      nn::ConvTranspose2d::Options{.stride = 2, .dtype = DType::f64});
  const Volume longer{.batch = 2,
                      .in_c = 2,
                      .out_c = 3,
                      .in{1, 1, 8},
                      .size{1, 1, 3},
                      .stride{1, 1, 2},
                      .out{1, 1, 4}};
  check_layer<nn::ConvTranspose1d>(
      {2, 4, 3}, {3, 2, 3}, 2,
      [&](const std::vector<Numbers>& in) { return longer.backward(in[0], in[1], in[2]); }, 3, 2, 3,
      nn::ConvTranspose1d::Options{.stride = 2, .dtype = DType::f64});
  const Volume deeper{.batch = 1,
                      .in_c = 2,
                      .out_c = 2,
                      .in{4, 4, 4},
                      .size{2, 2, 2},
                      .stride{2, 2, 2},
                      .out{2, 2, 2}};
  check_layer<nn::ConvTranspose3d>(
      {1, 2, 2, 2, 2}, {2, 2, 2, 2, 2}, 2,
      [&](const std::vector<Numbers>& in) { return deeper.backward(in[0], in[1], in[2]); }, 2, 2, 2,
      nn::ConvTranspose3d::Options{.stride = 2, .dtype = DType::f64});
  const Volume own{.batch = 2,
                   .in_c = 2,
                   .out_c = 4,
                   .in{1, 3, 3},
                   .size{1, 3, 3},
                   .pads{0, 1, 1},
                   .out{1, 3, 3},
                   .groups = 2};
  check_layer<nn::DepthwiseConv2d>(
      {2, 3, 3, 2}, {3, 3, 2, 2}, 4,
      [&](const std::vector<Numbers>& in) { return own.forward(in[0], in[1], in[2]); }, 2, 3,
      nn::DepthwiseConv2d::Options{.filters = 2, .dtype = DType::f64});
  const Volume half{.batch = 1,
                    .in_c = 4,
                    .out_c = 2,
                    .in{1, 4, 4},
                    .size{1, 2, 2},
                    .dilation{1, 2, 2},
                    .pads{0, 1, 2},
                    .out{1, 4, 4},
                    .groups = 2};
  check_layer<nn::Conv2d>(
      {1, 4, 4, 4}, {2, 2, 2, 2}, 2,
      [&](const std::vector<Numbers>& in) { return half.forward(in[0], in[1], in[2]); }, 4, 2, 2,
      nn::Conv2d::Options{.padding = "EXPLICIT",
                          .explicit_paddings = {1, 1, 2, 0},
                          .dilation = 2,
                          .groups = 2,
                          .dtype = DType::f64});
}

TEST_CASE("convolutions that cannot be are refused where they are written") {
  Graph g;
  ConvolutionRoot root{g.scope("net")};
  Output sequence = placeholder<float>(g, {2, 8, 4}), picture = placeholder<float>(g, {2, 8, 8, 4});
  Output volume = placeholder<float>(g, {2, 8, 8, 8, 4});
  Output narrow = zeros(g, {3, 4, 2}), flat = zeros(g, {3, 3, 2, 4}),
         cube = zeros(g, {3, 3, 3, 4, 2});
  const auto said = [](const std::string& part, const std::function<void()>& what) {
    const std::string text = refusal(what);
    CHECK_MESSAGE(text.find(part) != std::string::npos, text);
  };
  said("[n,w,c]", [&] { conv1d(picture, narrow); });
  said("conv1d: explicit_paddings", [&] { conv1d(sequence, narrow, {.padding = "EXPLICIT"}); });
  said("padding is \"FULL\"", [&] { conv1d(sequence, narrow, {.padding = "FULL"}); });
  // Paddings that SAME would leave out: of strides above 1 it puts the odd pixel at the end.
  const std::string unused = "explicit_paddings are for padding EXPLICIT, and it is ";
  said(unused + "SAME", [&] { conv1d(sequence, narrow, {.explicit_paddings = {1}}); });
  said(unused + "VALID", [&] {
    conv1d_transpose(sequence, narrow, {.padding = "VALID", .explicit_paddings = {1, 1}});
  });
  said(unused + "SAME", [&] {
    conv2d(picture, zeros(g, {3, 3, 4, 2}), {.strides = {2, 2}, .explicit_paddings = {1, 1, 1, 1}});
  });
  said(unused + "SAME", [&] { conv2d_transpose(picture, flat, {.explicit_paddings = {1, 1}}); });
  said(unused + "SAME", [&] { conv3d(volume, cube, {.explicit_paddings = {1}}); });
  said(unused + "CAUSAL", [&] {
    nn::Conv1d{root, "h", 3,
               4,    3,   nn::Conv1d::Options{.padding = "CAUSAL", .explicit_paddings = {2, 0}}};
  });
  said("conv3d: filter", [&] { conv3d(volume, flat); });
  said("strides: 3 numbers", [&] { conv3d(volume, cube, {.strides = {1, 1}}); });
  said("does not fit", [&] { conv3d(volume, cube, {.padding = "VALID", .dilations = {9, 1, 1}}); });
  said("other channels", [&] { conv3d(volume, cube, {.groups = 2}); });
  said("the depth must be known", [&] {
    conv3d(placeholder<float>(g, {1, -1, 8, 8, 4}), cube, {.strides = {2, 1, 1}});
  });
  said("below the stride", [&] {
    conv2d_transpose(picture, flat, {.padding = "VALID", .output_padding = {1, 0}});
  });
  said("SAME has no output_padding", [&] {
    conv2d_transpose(picture, flat, {.strides = {2, 2}, .output_padding = {1, 0}});
  });
  said("convolution", [&] { conv2d_transpose(picture, flat, {.output_size = {80, 80}}); });
  said("3", [&] { conv2d_transpose(placeholder<float>(g, {2, 8, 8, 3}), flat); });
  said("conv3d_transpose: x", [&] { conv3d_transpose(picture, cube); });
  said("conv3d_transpose: strides: 3 numbers", [&] {
    conv3d_transpose(volume, cube, {.strides = {2, 2}});
  });
  said("gives [2,20,20,20,2], not x", [&] {
    conv3d_transpose(placeholder<float>(g, {2, 8, 8, 8, 2}), zeros(g, {3, 3, 3, 4, 2}),
                     {.output_size = {20, 20, 20}});
  });
  said("not x", [&] { conv3d_transpose(volume, zeros(g, {3, 3, 3, 4, 3})); });
  said("2 groups do not divide",
       [&] { nn::Conv1d{root, "a", 3, 4, 3, nn::Conv1d::Options{.groups = 2}}; });
  said("not negative",
       [&] { nn::Conv3d{root, "b", 3, 4, 3, nn::Conv3d::Options{.init = nn::Init::normal(-1)}}; });
  const std::int64_t huge = std::int64_t{1} << 32;
  said("elements", [&] { nn::Conv2d{root, "d", 3, 4, huge}; });
  said("elements", [&] { nn::Conv3d{root, "e", 3, 4, huge}; });
  said("elements", [&] { nn::ConvTranspose2d{root, "f", 3, 4, huge}; });
  said("too long", [&] {
    nn::Conv1d{root, "g",
               3,    4,
               3,    nn::Conv1d::Options{.padding = "CAUSAL", .dilation = std::int64_t{1} << 62}};
  });
  said("sizes are positive", [&] { nn::DepthwiseConv2d{root, "c", 3, 0}; });
}

TEST_CASE("parameters begin as their initialiser says") {
  Graph g;
  const Shape shape{200, 300};
  std::vector<std::pair<nn::Init, double>> deviations{
      {nn::Init::normal(0.3), 0.3},
      {nn::Init::uniform(0.6), 0.6 / std::sqrt(3.0)},
      {nn::Init::glorot, std::sqrt(2.0 / 500)},
      {nn::Init::he_uniform, std::sqrt(2.0 / 200)},
      {nn::Init::glorot_normal, std::sqrt(2.0 / 500)},
      {nn::Init::truncated_normal(1), 0.8796},
      {nn::Init::he, std::sqrt(2.0 / 200)},
      {nn::Init::lecun, std::sqrt(1.0 / 200)},
      {nn::Init::constant(7), 0}};
  Interpreter run(g);
  for (const auto& [init, deviation] : deviations) {
    const Tensor t = run.run({nn::initial_weights(g, init, shape, 200, 300, DType::f64)})[0];
    REQUIRE(t.shape() == shape);
    double sum = 0, squares = 0;
    for (double v : t.span<double>()) sum += v, squares += v * v;
    const double mean = sum / double(t.elements());
    const double got = std::sqrt(std::max(0.0, squares / double(t.elements()) - mean * mean));
    CHECK(got == doctest::Approx(deviation).epsilon(0.02));
    CHECK(mean == doctest::Approx(deviation == 0 ? 7 : 0).epsilon(0.01).scale(1));
  }
}
