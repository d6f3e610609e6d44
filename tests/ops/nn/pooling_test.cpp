// Pools over one and three dimensions beside a loop over every window.
#include "ops/api/pooling.hpp"

#include <algorithm>
#include <array>

#include "tests/ops/kernels/reference.hpp"

using namespace troupe;
using namespace troupe::test;

namespace {

using Ints3 = std::array<std::int64_t, 3>;

struct PooledVolume {
  std::int64_t batch, channels;
  Ints3 in, size, stride, pads, out;

  // The largest element of each window, or the mean.
  Numbers pooled(const Numbers& x, bool largest) const {
    Numbers y;
    for (std::int64_t n = 0; n < batch; ++n)
      for (std::int64_t o = 0; o < out[0] * out[1] * out[2]; ++o)
        for (std::int64_t c = 0; c < channels; ++c) {
          const Ints3 to{o / (out[1] * out[2]), o / out[2] % out[1], o % out[2]};
          Numbers window;
          for (std::int64_t t = 0; t < size[0] * size[1] * size[2]; ++t) {
            const Ints3 tap{t / (size[1] * size[2]), t / size[2] % size[1], t % size[2]};
            std::int64_t from = n;
            bool inside = true;
            for (std::size_t i = 0; i < 3; ++i) {
              const std::int64_t at = to[i] * stride[i] + tap[i] - pads[i];
              inside = inside && at >= 0 && at < in[i];
              from = from * in[i] + at;
            }
            if (inside) window.push_back(x[std::size_t(from * channels + c)]);
          }
          double sum = 0;
          for (const double v : window) sum += v;
          y.push_back(largest ? *std::max_element(window.begin(), window.end())
                              : sum / double(window.size()));
        }
    return y;
  }
};

template <class Pool>
void check_pool(const PooledVolume& v, const Shape& shape, bool largest, Pool&& pool) {
  for (const bool known : {true, false}) {
    Graph g;
    PartialShape declared(shape);
    if (!known) declared = PartialShape::unknown_of_rank(shape.rank());
    const Output x = placeholder<double>(g, declared);
    Interpreter run(g);
    const Numbers values = draw(5, shape.elements());
    Compared{g,
             pool(x),
             {x},
             {values},
             [&](const std::vector<Numbers>& in) { return v.pooled(in[0], largest); }}
        .check(run, {{x.node(), tensor(shape, values)}});
  }
}

}  // namespace

TEST_CASE("pools over sequences and volumes equal a loop over every window") {
  const PooledVolume line{2, 3, {1, 1, 7}, {1, 1, 3}, {1, 1, 2}, {0, 0, 1}, {1, 1, 4}};
  const Pool1dOptions same{.stride = 2, .padding = "SAME"};
  check_pool(line, {2, 7, 3}, true, [&](Output x) { return max_pool1d(x, 3, same); });
  check_pool(line, {2, 7, 3}, false, [&](Output x) { return avg_pool1d(x, 3, same); });
  const PooledVolume apart{1, 2, {1, 1, 7}, {1, 1, 2}, {1, 1, 2}, {}, {1, 1, 3}};
  check_pool(apart, {1, 7, 2}, true, [](Output x) { return max_pool1d(x, 2); });
  check_pool(apart, {1, 7, 2}, false, [](Output x) { return avg_pool1d(x, 2); });

  const PooledVolume cube{2, 2, {3, 4, 5}, {2, 3, 2}, {2, 1, 3}, {0, 1, 0}, {2, 4, 2}};
  const Pool3dOptions strided{.strides = {2, 1, 3}, .padding = "SAME"};
  check_pool(cube, {2, 3, 4, 5, 2}, true, [&](Output x) {
    return max_pool3d(x, {2, 3, 2}, strided);
  });
  check_pool(cube, {2, 3, 4, 5, 2}, false, [&](Output x) {
    return avg_pool3d(x, {2, 3, 2}, strided);
  });
  const PooledVolume inside{1, 1, {5, 4, 3}, {2, 2, 1}, {2, 2, 1}, {}, {2, 2, 3}};
  check_pool(inside, {1, 5, 4, 3, 1}, true, [](Output x) { return max_pool3d(x, {2, 2, 1}); });
  check_pool(inside, {1, 5, 4, 3, 1}, false, [](Output x) { return avg_pool3d(x, {2, 2, 1}); });
}

TEST_CASE("of equal maxima of a volume the first takes the gradient; NaN wins") {
  Graph g;
  const Output x = constant(g, Tensor::of<float>(Shape{1, 2, 1, 2, 1}, {1, 3, 3, 2}));
  const Output y = max_pool3d(x, {2, 1, 2});
  Interpreter run(g);
  const auto got = run.run({y, gradients(y, {x})[0]});
  CHECK(got[0].data<float>()[0] == 3);
  CHECK(Tensor::same(got[1], Tensor::of<float>(Shape{1, 2, 1, 2, 1}, {0, 1, 0, 0})));
  const Output odd = constant(g, Tensor::of<float>(Shape{1, 2, 1, 1, 1}, {NAN, 3}));
  CHECK(std::isnan(run.run({max_pool3d(odd, {2, 1, 1})})[0].data<float>()[0]));
}

TEST_CASE("means over volumes of f16 are rounded once") {
  Graph g;
  const double next = 1 + 0x1p-10;  // f16 has nothing between 1 and it
  const Output x = cast(
      constant(g, Tensor::of<double>(Shape{1, 2, 1, 2, 1}, {1, next, next, next})), DType::f16);
  const Output y = avg_pool3d(x, {2, 1, 2});
  CHECK(y.dtype() == DType::f16);
  CHECK(Interpreter(g).run({cast(y, DType::f64)})[0].data<double>()[0] == next);
}

TEST_CASE("pools that cannot be are refused where they are written") {
  Graph g;
  const Output sequence = placeholder<float>(g, {2, 8, 4}),
               volume = placeholder<float>(g, {2, 8, 8, 8, 4});
  const auto said = [](const std::string& part, const std::function<void()>& what) {
    try {
      what();
      FAIL_CHECK("accepted: " << part);
    } catch (const Error& e) {
      CHECK_MESSAGE(e.status().text().find(part) != std::string::npos, e.status().text());
    }
  };
  said("max_pool1d: x", [&] { max_pool1d(volume, 2); });
  said("positive", [&] { avg_pool1d(sequence, 0); });
  said("does not fit", [&] { max_pool1d(sequence, 9); });
  said("avg_pool3d: x", [&] { avg_pool3d(sequence, {1, 1, 1}); });
  said("depth, height and width", [&] { max_pool3d(volume, {2, 2}); });
  said("depth, height and width", [&] { max_pool3d(volume, {2, 2, 2}, {.strides = {1}}); });
  said("does not fit", [&] { max_pool3d(volume, {9, 2, 2}); });
}
