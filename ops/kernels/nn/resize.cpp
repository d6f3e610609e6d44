// Resize: images of another height and width. It is linear: a table tells for each row and each
// column of the result which ones it is made of, and the gradient goes by the same tables, turned
// around. Either gathers, so that its sums have one order.
#include <algorithm>
#include <cmath>
#include <vector>

#include "devices/chunks.hpp"
#include "ops/kernels/nn/window.hpp"
#include "ops/kernels/support/args.hpp"
#include "ops/kernels/support/grad.hpp"
#include "ops/kernels/support/types.hpp"

using namespace troupe;

namespace {

// Place i of what is made is the sum of parts [begin[i], begin[i + 1]).
struct ResizeAxis {
  struct Part {
    std::int64_t place;
    double weight;
  };
  std::vector<std::size_t> begin;
  std::vector<Part> parts;
};

// The centre of place i of `out` lies at (i + 1/2) in / out of `in`.
ResizeAxis resize_axis(std::int64_t in, std::int64_t out, bool nearest) {
  ResizeAxis axis;
  for (std::int64_t i = 0; i < out; ++i) {
    axis.begin.push_back(axis.parts.size());
    if (nearest) {  // exact: both sizes are below 2^31
      axis.parts.push_back({((2 * i + 1) * in) / (2 * out), 1});
      continue;
    }
    const double at = double((2 * i + 1) * in) / double(2 * out) - 0.5;
    const double floor = std::floor(at), part = at - floor;
    const std::int64_t low = std::clamp<std::int64_t>(std::int64_t(floor), 0, in - 1);
    const std::int64_t high = std::clamp<std::int64_t>(std::int64_t(floor) + 1, 0, in - 1);
    if (low == high || part == 0) {
      axis.parts.push_back({low, 1});
      continue;
    }
    axis.parts.push_back({low, 1 - part});
    axis.parts.push_back({high, part});
  }
  axis.begin.push_back(axis.parts.size());
  return axis;
}

// For each of `in` places the parts that it has in others.
ResizeAxis turned(const ResizeAxis& axis, std::int64_t in) {
  ResizeAxis back;
  back.begin.assign(std::size_t(in) + 1, 0);
  for (const auto& part : axis.parts) ++back.begin[std::size_t(part.place) + 1];
  for (std::size_t i = 1; i < back.begin.size(); ++i) back.begin[i] += back.begin[i - 1];
  back.parts.resize(axis.parts.size());
  std::vector<std::size_t> next = back.begin;
  for (std::size_t i = 0; i + 1 < axis.begin.size(); ++i)
    for (std::size_t k = axis.begin[i]; k < axis.begin[i + 1]; ++k)
      back.parts[next[std::size_t(axis.parts[k].place)]++] = {std::int64_t(i),
                                                              axis.parts[k].weight};
  return back;
}

Expected<Shape> resized_shape(const Shape& x, const std::vector<std::int64_t>& size) {
  if (x.rank() != 4) return invalid_argument("Resize wants images [n,h,w,c], not " + x.text());
  if (size.size() != 2) return invalid_argument("size must be [height, width]");
  for (int i = 0; i < 2; ++i) {
    const std::int64_t to = size[std::size_t(i)], from = x[i + 1];
    if (to < 0 || to >= kWindowLimit || from >= kWindowLimit)
      return invalid_argument("heights and widths must be in [0, 2^31), not " +
                              std::to_string(to < 0 || to >= kWindowLimit ? to : from));
    if (to > 0 && from == 0)
      return invalid_argument("images " + x.text() + " have no pixels to be resized to " +
                              std::to_string(size[0]) + " x " + std::to_string(size[1]));
  }
  return Shape::make(std::array{x[0], size[0], size[1], x[3]});
}

// Column j of a line; one or two parts, as most have, need no sums in memory.
template <class T, class C>
void resize_pixel(const ResizeAxis& columns, std::size_t j, const C* line, std::int64_t channels,
                  C* sum, T* to) {
  const ResizeAxis::Part* part = columns.parts.data() + columns.begin[j];
  const std::size_t count = columns.begin[j + 1] - columns.begin[j];
  const auto from = [&](std::size_t k) { return line + part[k].place * channels; };
  if (count == 1) {
    const C* only = from(0);
    const C weight = C(part[0].weight);
    for (std::int64_t c = 0; c < channels; ++c) to[c] = T(only[c] * weight);
    return;
  }
  if (count == 2) {
    const C *low = from(0), *high = from(1);
    const C of_low = C(part[0].weight), of_high = C(part[1].weight);
    for (std::int64_t c = 0; c < channels; ++c) to[c] = T(low[c] * of_low + high[c] * of_high);
    return;
  }
  std::fill_n(sum, channels, C(0));
  for (std::size_t k = 0; k < count; ++k) {
    const C* one = from(k);
    const C weight = C(part[k].weight);
    for (std::int64_t c = 0; c < channels; ++c) sum[c] += one[c] * weight;
  }
  for (std::int64_t c = 0; c < channels; ++c) to[c] = T(sum[c]);
}

// made[n, i, j, c] = sum of the parts of i and of j, of read[n, .., .., c]. First the rows of one i
// are added up to one line, then the columns of that.
template <class T>
void resize_images(const KernelContext& c, const ResizeAxis& rows, const ResizeAxis& columns,
                   const Tensor& read, Tensor& made) {
  using C = Compute<T>;
  const std::int64_t height = made.dim(1), width = made.dim(2), channels = made.dim(3);
  const std::int64_t from_height = read.dim(1), line_size = read.dim(2) * channels;
  const T* in = read.data<T>();
  T* out = made.mutable_data<T>();
  const Chunks chunks = row_chunks(made.dim(0) * height, std::max(width * channels, line_size));
  c.parallel(chunks.count, [&](std::int64_t chunk) {
    std::vector<C> line(static_cast<std::size_t>(line_size)),
        sum(static_cast<std::size_t>(channels));
    for (std::int64_t row = chunks[chunk].begin; row < chunks[chunk].end; ++row) {
      const std::int64_t n = row / height, i = row % height;
      const std::size_t first = rows.begin[std::size_t(i)], end = rows.begin[std::size_t(i) + 1];
      if (first == end) std::fill(line.begin(), line.end(), C(0));
      for (std::size_t k = first; k < end; ++k) {
        const T* from = in + (n * from_height + rows.parts[k].place) * line_size;
        const C weight = C(rows.parts[k].weight);
        C* to = line.data();
        if (k == first) {
#pragma omp simd
          for (std::int64_t j = 0; j < line_size; ++j) to[j] = C(from[j]) * weight;
        } else {
#pragma omp simd
          for (std::int64_t j = 0; j < line_size; ++j) to[j] += C(from[j]) * weight;
        }
      }
      T* to = out + row * width * channels;
      for (std::int64_t j = 0; j < width; ++j, to += channels)
        resize_pixel(columns, std::size_t(j), line.data(), channels, sum.data(), to);
    }
  });
}

template <class T>
struct Resize final : Kernel {
  explicit Resize(const KernelSpec& s) : nearest(s.string_attr("method") == "nearest") {}
  Status compute(KernelContext& c) override {
    const Tensor& x = c.input(0);
    TROUPE_TRY(auto size, host_ints(c.input(1), "size"));
    TROUPE_TRY(Shape shape, resized_shape(x.shape(), size));
    TROUPE_TRY(Tensor y, c.allocate(dtype_of<T>, shape));
    if (y.elements() > 0)
      resize_images<T>(c, resize_axis(x.dim(1), shape[1], nearest),
                       resize_axis(x.dim(2), shape[2], nearest), x, y);
    c.set_output(0, std::move(y));
    return ok_status();
  }
  bool nearest;
};

template <class T>
struct ResizeGrad final : Kernel {
  explicit ResizeGrad(const KernelSpec& s) : nearest(s.string_attr("method") == "nearest") {}
  Status compute(KernelContext& c) override {
    const Tensor& dy = c.input(0);
    TROUPE_TRY(auto dims, host_ints(c.input(1), "shape"));
    TROUPE_TRY(Shape shape, checked_shape(dims));
    if (dy.rank() != 4)
      return invalid_argument("ResizeGrad wants images [n,h,w,c], not " + dy.shape().text());
    TROUPE_TRY(Shape resized, resized_shape(shape, {dy.dim(1), dy.dim(2)}));
    if (resized != dy.shape())
      return invalid_argument("dy is " + dy.shape().text() + ", but Resize gives " +
                              resized.text());
    if (dy.elements() == 0) {
      TROUPE_TRY(Tensor zeros, Tensor::zeros(dtype_of<T>, shape, c.allocator()));
      c.set_output(0, std::move(zeros));
      return ok_status();
    }
    TROUPE_TRY(Tensor dx, c.allocate(dtype_of<T>, shape));
    resize_images<T>(c, turned(resize_axis(shape[1], dy.dim(1), nearest), shape[1]),
                     turned(resize_axis(shape[2], dy.dim(2), nearest), shape[2]), dy, dx);
    c.set_output(0, std::move(dx));
    return ok_status();
  }
  bool nearest;
};

Status resize_shape(InferenceContext& c) {
  TROUPE_TRY(c.want_rank(0, 4));
  TROUPE_TRY(c.want_rank(1, 1));
  PartialShape y = PartialShape::unknown_of_rank(4);
  const PartialShape& x = c.shape(0);
  if (x.known_rank()) y = PartialShape{x[0], -1, -1, x[3]};
  if (const auto size = c.ints(1)) {
    std::vector<std::int64_t> dims(4, 1);
    for (int i = 0; i < 4 && x.known_rank(); ++i)
      if (x.known(i)) dims[std::size_t(i)] = x[i];
    TROUPE_TRY(Shape some, Shape::make(dims));
    TROUPE_TRY(resized_shape(some, {size->begin(), size->end()}));
    for (int i = 0; i < 2; ++i) y.set_dim(i + 1, (*size)[std::size_t(i)]);
  }
  c.set(0, std::move(y));
  return ok_status();
}
Status resize_grad_shape(InferenceContext& c) {
  TROUPE_TRY(c.want_rank(0, 4));
  TROUPE_TRY(c.want_rank(1, 1));
  TROUPE_TRY(PartialShape shape, c.listed_shape(1));
  if (shape.known_rank() && shape.rank() != 4)
    return invalid_argument("shape must have 4 elements, not " + shape.text());
  c.set(0, shape.known_rank() ? std::move(shape) : PartialShape::unknown_of_rank(4));
  return ok_status();
}

std::vector<Output> resize_grad(GradContext& c) {
  return {c.g.add("ResizeGrad", {c.dy[0], c.g.add("Shape", {c.x[0]})},
                  {{"method", c.string_attr("method")}}),
          Output()};
}
std::vector<Output> resize_grad_grad(GradContext& c) {
  const Output one = i64_const(c.g, {1}), two = i64_const(c.g, {2});
  const Output size = c.g.add("Slice", {c.g.add("Shape", {c.x[0]}), one, two});
  return {c.g.add("Resize", {c.dy[0], size}, {{"method", c.string_attr("method")}}), Output()};
}

}  // namespace

TROUPE_OPS(resize) {
  r.add({.name = "Resize",
         .in = {"x", "size: Tsize"},
         .out = {"y"},
         .types = kFloats,
         .attrs = {"method: string {nearest bilinear} = bilinear", "Tsize: type {i32 i64} = i64"},
         .shape = resize_shape,
         .grad = resize_grad,
         .host = {"size"},
         .doc = "Images x [n,h,w,c] resized to `size`, [height, width]. The centre of pixel i of n "
                "is at (i + 1/2) / n of the image, as in TensorFlow 2 and in PyTorch with "
                "align_corners = False (nearest: its nearest-exact). bilinear interpolates between "
                "the two nearest pixels in each direction, without smoothing when an image "
                "shrinks; nearest takes the pixel that contains the point."})
      .cpu(typed_kernel<Resize, Floats>);
  r.add({.name = "ResizeGrad",
         .in = {"dy", "shape: i64"},
         .out = {"dx"},
         .types = kFloats,
         .attrs = {"method: string {nearest bilinear} = bilinear"},
         .shape = resize_grad_shape,
         .grad = resize_grad_grad,
         .host = {"shape"},
         .doc = "The gradient of Resize for images of `shape`."})
      .cpu(typed_kernel<ResizeGrad, Floats>);
}
