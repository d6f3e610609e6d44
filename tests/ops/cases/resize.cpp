// Rows of Resize.
#include <cmath>

#include "tests/ops/kernels/conformance.hpp"

namespace troupe::test {
namespace {

// Of every pixel the plain way: where its centre lies, and what lies around that.
Tensor resized(const Tensor& x, std::int64_t height, std::int64_t width, bool nearest) {
  const Shape& s = x.shape();
  const std::int64_t n = s[0], h = s[1], w = s[2], c = s[3];
  Tensor y = Tensor::make(DType::f64, Shape{n, height, width, c}).value();
  const auto pixel = [&](std::int64_t b, double i, double j, std::int64_t k) {
    const auto row = std::int64_t(std::min(std::max(i, 0.0), double(h - 1)));
    const auto column = std::int64_t(std::min(std::max(j, 0.0), double(w - 1)));
    return x.data<double>()[((b * h + row) * w + column) * c + k];
  };
  double* to = y.mutable_data<double>();
  for (std::int64_t b = 0; b < n; ++b)
    for (std::int64_t i = 0; i < height; ++i)
      for (std::int64_t j = 0; j < width; ++j)
        for (std::int64_t k = 0; k < c; ++k) {
          double v = (double(i) + 0.5) * double(h) / double(height);
          double u = (double(j) + 0.5) * double(w) / double(width);
          if (nearest) {
            *to++ = pixel(b, std::floor(v + 1e-9), std::floor(u + 1e-9), k);
            continue;
          }
          v -= 0.5, u -= 0.5;
          const double top = std::floor(v), left = std::floor(u), down = v - top, right = u - left;
          *to++ = (1 - down) *
                      ((1 - right) * pixel(b, top, left, k) + right * pixel(b, top, left + 1, k)) +
                  down * ((1 - right) * pixel(b, top + 1, left, k) +
                          right * pixel(b, top + 1, left + 1, k));
        }
  return y;
}

const AddCases resizes([] {
  Cases rows;
  const Tensor x = any({2, 3, 4, 3});
  for (const bool nearest : {false, true}) {
    const AttrMap attrs{{"method", std::string(nearest ? "nearest" : "bilinear")}};
    for (const auto& [height, width] :
         {std::pair<std::int64_t, std::int64_t>{5, 9}, {2, 3}, {3, 4}, {1, 1}, {6, 2}}) {
      rows.push_back({.op = "Resize",
                      .inputs = {x, i64({2}, {height, width})},
                      .attrs = attrs,
                      .differentiate = {0},
                      .want = {resized(x, height, width, nearest)}});
      rows.push_back({.op = "ResizeGrad",
                      .inputs = {any({2, height, width, 3}), i64({4}, {2, 3, 4, 3})},
                      .attrs = attrs,
                      .differentiate = {0}});
    }
    const Tensor large = any({1, 70, 41, 17});
    rows.push_back({.op = "Resize",
                    .inputs = {large, i64({2}, {53, 80})},
                    .attrs = attrs,
                    .want = {resized(large, 53, 80, nearest)}});
    rows.push_back({.op = "ResizeGrad",
                    .inputs = {any({1, 53, 80, 17}), i64({4}, {1, 70, 41, 17})},
                    .attrs = attrs});
    rows.push_back(
        {.op = "Resize", .inputs = {any({0, 3, 4, 3}), i64({2}, {5, 2})}, .attrs = attrs});
    rows.push_back({.op = "Resize", .inputs = {x, i64({2}, {0, 7})}, .attrs = attrs});
    rows.push_back({.op = "ResizeGrad",
                    .inputs = {any({2, 0, 7, 3}), i64({4}, {2, 3, 4, 3})},
                    .attrs = attrs,
                    .want = {Tensor::zeros(DType::f64, {2, 3, 4, 3}).value()}});
  }
  // By hand: centres at 1/12, 3/12, .. of the line.
  const Tensor line = f32({1, 1, 4, 1}, {1, 2, 4, 8});
  rows.push_back({.op = "Resize",
                  .inputs = {line, i32({2}, {1, 6})},
                  .want = {f32({1, 1, 6, 1}, {1, 1.5f, 2.3333333f, 3.6666667f, 6, 8})}});
  rows.push_back({.op = "Resize",
                  .inputs = {line, i32({2}, {1, 6})},
                  .attrs = {{"method", std::string("nearest")}},
                  .want = {f32({1, 1, 6, 1}, {1, 2, 2, 4, 8, 8})}});
  return rows;
});

const AddCases hostile([] {
  const Tensor x = any({2, 3, 4, 3});
  return Cases{
      {.op = "Resize", .inputs = {any({3, 4, 3}), i64({2}, {1, 1})}, .error = "4"},
      {.op = "Resize", .inputs = {x, i64({3}, {1, 1, 1})}, .error = "[height, width]"},
      {.op = "Resize", .inputs = {x, i64({2}, {1, -1})}, .error = "-1"},
      {.op = "Resize", .inputs = {x, i64({2}, {std::int64_t{1} << 40, 1})}, .error = "2^31"},
      {.op = "Resize", .inputs = {any({2, 0, 4, 3}), i64({2}, {1, 1})}, .error = "no pixels"},
      {.op = "Resize",
       .inputs = {x, i64({2}, {1, 1})},
       .attrs = {{"method", std::string("cubic")}},
       .error = "cubic"},
      {.op = "ResizeGrad", .inputs = {x, i64({3}, {1, 1, 1})}, .error = "1"},
      {.op = "ResizeGrad", .inputs = {x, i64({4}, {1, 1, 1, 3})}, .error = "[2,3,4,3]"},
      {.op = "ResizeGrad", .inputs = {x, i64({4}, {2, -1, 1, 3})}, .error = "-1"},
  };
});

}  // namespace
}  // namespace troupe::test
