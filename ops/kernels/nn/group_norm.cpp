// GroupNorm: of every image, groups of channels, over all positions, shifted and scaled to mean 0
// and variance 1, then scaled and shifted again by parameters of each channel. Channels are last:
// sums run down the columns of an image, one for each channel, and are joined by group. As of
// LayerNorm, the gradient measures x once more.
#include <cmath>
#include <vector>

#include "graph/gradient_through.hpp"
#include "graph/slicing.hpp"
#include "ops/cuda/norm.hpp"
#include "ops/kernels/support/columns.hpp"
#include "ops/kernels/support/grad.hpp"
#include "ops/kernels/support/moments.hpp"
#include "ops/kernels/support/types.hpp"
#include "ops/kernels/support/wide_row.hpp"
#include "ops/op.hpp"

using namespace troupe;

namespace {

Status check_groups_of(std::int64_t channels, std::int64_t groups) {
  if (groups < 1)
    return invalid_argument(std::to_string(groups) + " groups; at least 1 is expected");
  if (channels == PartialShape::kUnknown || channels % groups == 0) return ok_status();
  return invalid_argument(std::to_string(groups) + " groups do not divide " +
                          std::to_string(channels) + " channels, the last dimension of x");
}

// [channels] of input x, where the inputs from `first` to `last` are [channels], too.
Expected<PartialShape> channels_of_groups(const InferenceContext& c, int x, int first, int last) {
  if (!(c.float_attr("epsilon") >= 0)) return invalid_argument("epsilon must not be negative");
  TROUPE_TRY(c.want_rank_at_least(x, 2));
  PartialShape channels = PartialShape::unknown_of_rank(1);
  if (c.shape(x).known_rank()) channels.set_dim(0, c.shape(x)[c.shape(x).rank() - 1]);
  for (int i = first; i <= last; ++i) {
    auto both = PartialShape::merge(channels, c.shape(i));
    if (!both.ok())
      return invalid_argument(std::string(i == first ? "scale" : "offset") + " has shape " +
                              c.shape(i).text() + ", not " + channels.text());
    channels = *std::move(both);
  }
  TROUPE_TRY(check_groups_of(channels[0], c.int_attr("groups")));
  return channels;
}
Status group_norm_shape(InferenceContext& c) {
  TROUPE_TRY(channels_of_groups(c, 0, 1, 2));
  return same_shape(c);
}
Status group_norm_grad_shape(InferenceContext& c) {
  TROUPE_TRY(const PartialShape channels, channels_of_groups(c, 1, 2, 2));
  TROUPE_TRY(PartialShape dx, PartialShape::merge(c.shape(0), c.shape(1)));
  c.set(0, std::move(dx));
  c.set(1, channels);
  c.set(2, channels);
  return ok_status();
}

std::vector<Output> group_norm_grad(GradContext& c) {
  const Output dx =
      c.g.add("GroupNormGrad", {c.dy[0], c.x[0], c.x[1]},
              {{"groups", c.int_attr("groups")}, {"epsilon", c.float_attr("epsilon")}});
  return {dx, dx.sibling(1), dx.sibling(2)};
}

// GroupNormGrad as several nodes, for its own gradient.
std::vector<Output> group_norm_grad_grad(GradContext& c) {
  GraphBuilder& g = c.g;
  const double epsilon = c.float_attr("epsilon");
  const Output groups = i64_const(g, {c.int_attr("groups")});
  const auto over = [&](const char* op, Output x, std::vector<std::int64_t> axes, bool keep) {
    return g.add(op, {x}, {{"axes", std::move(axes)}, {"keep_dims", keep}});
  };
  const auto mean = [&](Output x) { return over("Mean", x, {1, 3}, true); };
  const auto joined = [&](std::vector<Output> parts) {
    return g.add(NodeSpec{.op = "Concat", .inputs = std::move(parts)}).output();
  };
  return gradient_through(c, [&](const std::vector<Output>& in) -> std::vector<Output> {
    const Output shape = g.add("Shape", {in[1]}), channels = g.add("Shape", {in[2]});
    const Output positions = over("Prod", shape[range(1, -1)], {0}, true);
    const Output of_group = joined({groups, divide(channels, groups)});
    const Output parts = joined({shape[range(std::nullopt, 1)], positions, of_group});
    const auto grouped = [&](Output x) { return g.add("Reshape", {wide(x), parts}); };
    const Output dy = grouped(in[0]), x = grouped(in[1]);
    const Output scale = g.add("Reshape", {wide(in[2]), of_group});
    const Output apart = minus(x, mean(x)), variance = mean(multiply(apart, apart));
    const Output inverse = g.add("Rsqrt", {plus(variance, scalar_like(x, epsilon))});
    const Output y = multiply(apart, inverse), slope = multiply(dy, scale);
    const Output along = multiply(y, mean(multiply(slope, y)));
    const Output dx = multiply(minus(minus(slope, mean(slope)), along), inverse);
    const auto of_channels = [&](Output x) {
      return of_dtype(g.add("Reshape", {over("Sum", x, {0, 1}, false), channels}), in[2].dtype());
    };
    return {of_dtype(g.add("Reshape", {dx, shape}), in[1].dtype()), of_channels(multiply(dy, y)),
            of_channels(dy)};
  });
}

// x as [images, positions, channels].
struct GroupSizes {
  std::int64_t images = 0, positions = 0, channels = 0, groups = 1;

  static Expected<GroupSizes> of(const Shape& x, std::int64_t groups) {
    if (x.rank() < 2)
      return invalid_argument("a group norm wants 2 dimensions or more; x has shape " + x.text());
    GroupSizes s{x.dim(0), 1, x.dim(x.rank() - 1), groups};
    TROUPE_TRY(check_groups_of(s.channels, groups));
    for (int i = 1; i + 1 < x.rank(); ++i) s.positions *= x.dim(i);
    return s;
  }
  std::int64_t in_group() const { return channels / groups; }  // channels
  std::int64_t of_group() const { return positions * in_group(); }
  std::int64_t of_image() const { return positions * channels; }
  bool empty() const { return images == 0 || of_image() == 0; }

  // Few channels are as many rows of lanes as make vectors of any size.
  std::int64_t side_by_side() const {
    return channels < 32 ? std::min<std::int64_t>(16, positions) : 1;
  }
  std::int64_t lanes() const { return channels * side_by_side(); }

  // Positions of an image that are measured at a time. Of many images, each that fits into a
  // core's cache is one block.
  Chunks blocks() const {
    const std::int64_t most = (images >= 8 ? 2 : 1) * kElementwiseChunk;
    return Chunks::of_step(positions, std::max<std::int64_t>(1, most / channels));
  }
};

Status want_channels_of_groups(const KernelContext& c, int first, int last, std::int64_t n) {
  for (int i = first; i <= last; ++i)
    if (c.input(i).shape() != Shape{n})
      return invalid_argument(std::string(i == first ? "scale" : "offset") + " has shape " +
                              c.input(i).shape().text() + ", not [" + std::to_string(n) + "]");
  return ok_status();
}

// Of a group in some positions: its mean, and the sum of the squares of what is apart from it.
template <class C>
struct GroupPart {
  C mean, squares;
};

// What one thread has for positions of one image after the other: values of each lane.
template <class T>
class GroupLanes {
 public:
  using C = Compute<T>;
  GroupLanes(const GroupSizes& s, C epsilon) : s_(s), n_(s.lanes()), epsilon_(epsilon) {
    for (auto* lanes : {&by_, &mean_, &inverse_, &first_, &second_}) lanes->resize(std::size_t(n_));
  }

  // What the other functions work on: so many positions of x, and of the slopes of y.
  void read(const T* x, std::int64_t positions) {
    positions_ = positions;
    x_ = row_(x, positions * s_.channels);
  }
  void read_slopes(const T* dy) { dy_ = slope_row_(dy, positions_ * s_.channels); }

  // parts[0 .. groups) of these positions.
  void measure(GroupPart<C>* parts) {
    const C* from = x_;
    const std::int64_t n = n_;
    const C count = C(positions_ * s_.in_group());
    std::fill(first_.begin(), first_.end(), C(0));
    fold([&](Range rows, std::int64_t lanes) {
      add_terms(rows, lanes, first_.data(),
                [=](std::int64_t i, std::int64_t j) { return from[i * n + j]; });
    });
    for (std::int64_t g = 0; g < s_.groups; ++g) {
      parts[g].mean = sum_of(g, first_.data()) / count;
      spread(g, parts[g].mean, mean_.data());
    }
    // What the first mean misses, since its sum was rounded, is the mean of what is apart from it.
    std::fill(first_.begin(), first_.end(), C(0));
    std::fill(second_.begin(), second_.end(), C(0));
    const C* mean = mean_.data();
    fold([&](Range rows, std::int64_t lanes) {
      add_terms_and_squares(
          rows, lanes, first_.data(), second_.data(),
          [=](std::int64_t i, std::int64_t j) { return from[i * n + j] - mean[j]; });
    });
    for (std::int64_t g = 0; g < s_.groups; ++g) {
      const C missed = sum_of(g, first_.data()), rest = missed / count;
      parts[g].mean += rest;
      parts[g].squares = std::max(sum_of(g, second_.data()) - missed * rest, C(0));
    }
  }

  // How each group of an image is normalised. Of squares that overflow, as of LayerNorm.
  void finish(const GroupPart<C>* parts, const T* image, Moments<C>* moments) const {
    const C count = C(s_.of_group());
    for (std::int64_t g = 0; g < s_.groups; ++g) {
      const C variance = parts[g].squares / count;
      moments[g] = {C(1), parts[g].mean, variance, C(1) / std::sqrt(variance + epsilon_)};
      if (std::isfinite(parts[g].squares)) continue;
      std::vector<C> group;
      for (std::int64_t p = 0; p < s_.positions; ++p)
        for (std::int64_t j = g * s_.in_group(); j < (g + 1) * s_.in_group(); ++j)
          group.push_back(C(image[p * s_.channels + j]));
      moments[g] = troupe::measure(group.data(), s_.of_group(), epsilon_);
    }
  }

  void take(const Moments<C>* moments) {
    for (std::int64_t g = 0; g < s_.groups; ++g) {
      spread(g, moments[g].by, by_.data());
      spread(g, moments[g].mean, mean_.data());
      spread(g, moments[g].inverse, inverse_.data());
    }
  }

  // Measures all of an image, and takes that.
  void take_image(const T* x) {
    parts_.resize(std::size_t(s_.groups)), moments_.resize(std::size_t(s_.groups));
    read(x, s_.positions);
    measure(parts_.data());
    finish(parts_.data(), x, moments_.data());
    take(moments_.data());
  }

  // The parameter of each lane's channel.
  std::vector<C> of_channels(const T* parameter) const {
    std::vector<C> lanes;
    for (std::int64_t j = 0; j < n_; ++j) lanes.push_back(C(parameter[j % s_.channels]));
    return lanes;
  }

  // y = (x - mean) / deviation * scale + offset, by what was taken; y may be x.
  void normalise(const C* scale, const C* offset, T* y) {
    const C *from = x_, *by = by_.data(), *mean = mean_.data(), *inverse = inverse_.data();
    each_row([=](std::int64_t j, auto at) {
      const C b = by[j], m = mean[j], v = inverse[j], gain = scale[j], shift = offset[j];
      at([=](std::int64_t i) { y[i] = T((from[i] * b - m) * v * gain + shift); });
    });
  }

  // sums[0 .. channels) += the sums of dy h, and those of dy behind them, with h the normalised x.
  void add_slopes(C* sums) {
    const C *from = x_, *slope = dy_;
    const C *by = by_.data(), *mean = mean_.data(), *inverse = inverse_.data();
    const std::int64_t n = n_;
    std::fill(first_.begin(), first_.end(), C(0));
    std::fill(second_.begin(), second_.end(), C(0));
    fold([&](Range rows, std::int64_t lanes) {
      add_two_terms(rows, lanes, first_.data(), second_.data(),
                    [=](std::int64_t i, std::int64_t j) -> TwoTerms<C> {
                      const C d = slope[i * n + j];
                      return {d * ((from[i * n + j] * by[j] - mean[j]) * inverse[j]), d};
                    });
    });
    for (std::int64_t q = 0; q < n_; q += s_.channels)
      for (std::int64_t j = 0; j < s_.channels; ++j) {
        sums[j] += first_[std::size_t(q + j)];
        sums[s_.channels + j] += second_[std::size_t(q + j)];
      }
  }

  // Of an image's sums and g = dy scale, the means of g and g h over each group, for input_slopes.
  void take_slopes(const C* sums, const C* scale) {
    const C count = C(s_.of_group());
    for (std::int64_t g = 0; g < s_.groups; ++g) {
      const std::int64_t begin = g * s_.in_group();
      const auto both = two_row_sums<C>(s_.in_group(), [&](std::int64_t j, C& along, C& slope) {
        along = sums[begin + j] * scale[begin + j];
        slope = sums[s_.channels + begin + j] * scale[begin + j];
      });
      spread(g, both.first / count, first_.data());
      spread(g, both.second / count, second_.data());
    }
  }

  // dx = (g - mean(g) - h mean(g h)) / deviation; dx may be dy.
  void input_slopes(const C* scale, T* dx) {
    const C *from = x_, *slope = dy_;
    const C *by = by_.data(), *mean = mean_.data(), *inverse = inverse_.data();
    const C *along = first_.data(), *mean_slope = second_.data();
    each_row([=](std::int64_t j, auto at) {
      const C b = by[j], m = mean[j], v = inverse[j], gain = scale[j], a = along[j];
      const C s = mean_slope[j];
      at([=](std::int64_t i) {
        const C h = (from[i] * b - m) * v;
        dx[i] = T((slope[i] * gain - s - h * a) * v * b);
      });
    });
  }

 private:
  // f(rows, lanes): whole rows of lanes, then what is left of one.
  template <class F>
  void fold(F f) const {
    const std::int64_t elements = positions_ * s_.channels, rows = elements / n_;
    f(Range{0, rows}, n_);
    if (rows * n_ < elements) f(Range{rows, rows + 1}, elements - rows * n_);
  }
  // f(j, at) for each lane j, where at(g) calls g(i) for elements i of this lane. Four rows at a
  // time: values of lanes are read once for them.
  template <class F>
  void each_row(F f) const {
    fold([&](Range rows, std::int64_t lanes) {
      std::int64_t i = rows.begin * n_;
      const std::int64_t end = rows.end * n_, n = n_;
      for (; i + 4 * n <= end; i += 4 * n) {
#pragma omp simd
        for (std::int64_t j = 0; j < lanes; ++j)
          f(j, [=](auto g) { g(i + j), g(i + n + j), g(i + 2 * n + j), g(i + 3 * n + j); });
      }
      for (; i < end; i += n) {
#pragma omp simd
        for (std::int64_t j = 0; j < lanes; ++j) f(j, [=](auto g) { g(i + j); });
      }
    });
  }
  C sum_of(std::int64_t group, const C* lanes) const {
    C sum = 0;
    for (const C* from = lanes + group * s_.in_group(); from < lanes + n_; from += s_.channels) {
      if (s_.in_group() >= 16)
        sum += row_sum<C>(s_.in_group(), [=](std::int64_t j) { return from[j]; });
      else
        for (std::int64_t j = 0; j < s_.in_group(); ++j) sum += from[j];
    }
    return sum;
  }
  void spread(std::int64_t group, C value, C* lanes) const {
    for (C* to = lanes + group * s_.in_group(); to < lanes + n_; to += s_.channels)
      std::fill_n(to, s_.in_group(), value);
  }

  const GroupSizes s_;
  const std::int64_t n_;
  const C epsilon_;
  std::int64_t positions_ = 0;
  WideRow<T> row_, slope_row_;
  const C *x_ = nullptr, *dy_ = nullptr;
  std::vector<C> by_, mean_, inverse_, first_, second_;
  std::vector<GroupPart<C>> parts_;  // of an image, by group
  std::vector<Moments<C>> moments_;
};

// The moments of all groups of all images, of which each is several blocks (Chan, Golub and
// LeVeque, 1979).
template <class T>
std::vector<Moments<Compute<T>>> moments_of_blocks(const KernelContext& c, const GroupSizes& s,
                                                   const T* x, Compute<T> epsilon) {
  using C = Compute<T>;
  const Chunks blocks = s.blocks();
  std::vector<GroupPart<C>> parts(std::size_t(s.images * blocks.count * s.groups));
  std::vector<Moments<C>> moments(std::size_t(s.images * s.groups));
  c.parallel(s.images * blocks.count, [&](std::int64_t at) {
    const Range r = blocks[at % blocks.count];
    const T* from = x + at / blocks.count * s.of_image() + r.begin * s.channels;
    GroupLanes<T> lanes(s, epsilon);
    lanes.read(from, r.size());
    lanes.measure(&parts[std::size_t(at * s.groups)]);
  });
  c.parallel(s.images, [&](std::int64_t image) {
    GroupPart<C>* of_image = &parts[std::size_t(image * blocks.count * s.groups)];
    std::vector<C> counts;
    for (std::int64_t i = 0; i < blocks.count; ++i)
      counts.push_back(C(blocks[i].size() * s.in_group()));
    tree_sum(blocks.count, [&](std::int64_t to, std::int64_t from) {
      C &to_count = counts[std::size_t(to)], from_count = counts[std::size_t(from)];
      const C both = to_count + from_count, share = from_count / both, weight = to_count * share;
      for (std::int64_t g = 0; g < s.groups; ++g) {
        GroupPart<C>& a = of_image[to * s.groups + g];
        const GroupPart<C>& b = of_image[from * s.groups + g];
        const C apart = b.mean - a.mean;
        a.mean += apart * share;
        a.squares += b.squares + apart * apart * weight;
      }
      to_count = both;
    });
    GroupLanes<T>(s, epsilon)
        .finish(of_image, x + image * s.of_image(), &moments[std::size_t(image * s.groups)]);
  });
  return moments;
}

template <class T>
class GroupNorm final : public Kernel {
 public:
  using C = Compute<T>;
  explicit GroupNorm(const KernelSpec& spec)
      : epsilon_(C(spec.float_attr("epsilon"))), groups_(spec.int_attr("groups")) {}

  Status compute(KernelContext& c) override {
    const Tensor& x = c.input(0);
    TROUPE_TRY(const GroupSizes s, GroupSizes::of(x.shape(), groups_));
    TROUPE_TRY(want_channels_of_groups(c, 1, 2, s.channels));
    TROUPE_TRY(Tensor y, c.reuse_or_allocate(0, dtype_of<T>, x.shape()));
    if (!s.empty()) {
      if (s.blocks().count == 1)
        whole_images(c, s, x.data<T>(), y.mutable_data<T>());
      else
        blocks_of_images(c, s, x.data<T>(), y.mutable_data<T>());
    }
    c.set_output(0, std::move(y));
    return ok_status();
  }

 private:
  // Each is read while it is in the cache.
  void whole_images(const KernelContext& c, const GroupSizes& s, const T* x, T* y) const {
    const Chunks chunks = row_chunks(s.images, s.of_image());
    c.parallel(chunks.count, [&](std::int64_t k) {
      GroupLanes<T> lanes(s, epsilon_);
      const std::vector<C> scale = lanes.of_channels(c.input(1).data<T>());
      const std::vector<C> offset = lanes.of_channels(c.input(2).data<T>());
      for (std::int64_t i = chunks[k].begin; i < chunks[k].end; ++i) {
        const std::int64_t at = i * s.of_image();
        lanes.take_image(x + at);
        lanes.normalise(scale.data(), offset.data(), y + at);
      }
    });
  }

  void blocks_of_images(const KernelContext& c, const GroupSizes& s, const T* x, T* y) const {
    const auto moments = moments_of_blocks<T>(c, s, x, epsilon_);
    const Chunks blocks = s.blocks();
    c.parallel(s.images * blocks.count, [&](std::int64_t k) {
      const Range r = blocks[k % blocks.count];
      const std::int64_t image = k / blocks.count;
      const std::int64_t at = image * s.of_image() + r.begin * s.channels;
      GroupLanes<T> lanes(s, epsilon_);
      lanes.take(&moments[std::size_t(image * s.groups)]);
      lanes.read(x + at, r.size());
      lanes.normalise(lanes.of_channels(c.input(1).data<T>()).data(),
                      lanes.of_channels(c.input(2).data<T>()).data(), y + at);
    });
  }

  const C epsilon_;
  const std::int64_t groups_;
};

// With h the normalised x, g = dy scale and means over the group:
//   dx = (g - mean(g) - h mean(g h)) inv_std,  dscale = sum of dy h,  doffset = sum of dy
// Both means are of what the sums of an image are, channel by channel.
template <class T>
class GroupNormGrad final : public Kernel {
 public:
  using C = Compute<T>;
  explicit GroupNormGrad(const KernelSpec& spec)
      : epsilon_(C(spec.float_attr("epsilon"))), groups_(spec.int_attr("groups")) {}

  Status compute(KernelContext& c) override {
    const Tensor &dy = c.input(0), &x = c.input(1);
    TROUPE_TRY(const GroupSizes s, GroupSizes::of(x.shape(), groups_));
    TROUPE_TRY(want_channels_of_groups(c, 2, 2, s.channels));
    if (dy.shape() != x.shape())
      return invalid_argument("dy is " + dy.shape().text() + ", x is " + x.shape().text());
    TROUPE_TRY(Tensor dx, c.reuse_or_allocate(0, dtype_of<T>, x.shape()));
    TROUPE_TRY(Tensor sums, Tensor::zeros(dtype_of<C>, Shape{2, s.channels}, c.allocator()));
    if (!s.empty()) {
      C* to = sums.mutable_data<C>();
      TROUPE_TRY(s.blocks().count == 1 ? whole_images(c, s, dx.mutable_data<T>(), to)
                                       : blocks_of_images(c, s, dx.mutable_data<T>(), to));
    }
    c.set_output(0, std::move(dx));
    for (int i = 0; i < 2; ++i) {
      TROUPE_TRY(Tensor sum, c.allocate(dtype_of<T>, Shape{s.channels}));
      const C* total = sums.data<C>() + i * s.channels;
      std::transform(total, total + s.channels, sum.mutable_data<T>(),
                     [](C value) { return T(value); });
      c.set_output(1 + i, std::move(sum));
    }
    return ok_status();
  }

 private:
  // Each is read while it is in the cache.
  Status whole_images(const KernelContext& c, const GroupSizes& s, T* dx, C* sums) const {
    const T *dy = c.input(0).data<T>(), *x = c.input(1).data<T>();
    const std::int64_t width = 2 * s.channels;
    return column_sums<C>(c, s.images, s.of_image(), width, sums, [&](Range images, C* total) {
      GroupLanes<T> lanes(s, epsilon_);
      const std::vector<C> scale = lanes.of_channels(c.input(2).data<T>());
      std::vector<C> of_image(std::size_t(width), C(0));
      for (std::int64_t i = images.begin; i < images.end; ++i) {
        const std::int64_t at = i * s.of_image();
        lanes.take_image(x + at);
        std::fill(of_image.begin(), of_image.end(), C(0));
        lanes.read_slopes(dy + at);
        lanes.add_slopes(of_image.data());
        lanes.take_slopes(of_image.data(), scale.data());
        lanes.input_slopes(scale.data(), dx + at);
        for (std::int64_t j = 0; j < width; ++j) total[j] += of_image[std::size_t(j)];
      }
    });
  }

  Status blocks_of_images(const KernelContext& c, const GroupSizes& s, T* dx, C* sums) const {
    const T *dy = c.input(0).data<T>(), *x = c.input(1).data<T>();
    const auto moments = moments_of_blocks<T>(c, s, x, epsilon_);
    const Chunks blocks = s.blocks();
    const std::int64_t width = 2 * s.channels, all = s.images * blocks.count;
    TROUPE_TRY(Tensor slopes, Tensor::zeros(dtype_of<C>, Shape{all, width}, c.allocator()));
    C* slope = slopes.mutable_data<C>();
    const auto begin_of = [&](std::int64_t block) {
      return block / blocks.count * s.of_image() + blocks[block % blocks.count].begin * s.channels;
    };
    const auto lanes_of = [&](std::int64_t block) {
      GroupLanes<T> lanes(s, epsilon_);
      lanes.take(&moments[std::size_t(block / blocks.count * s.groups)]);
      lanes.read(x + begin_of(block), blocks[block % blocks.count].size());
      lanes.read_slopes(dy + begin_of(block));
      return lanes;
    };
    c.parallel(all, [&](std::int64_t k) { lanes_of(k).add_slopes(slope + k * width); });
    const auto join = [&](std::int64_t first, std::int64_t count, std::int64_t step) {
      tree_sum(count, [&](std::int64_t to, std::int64_t from) {
        C* sum = slope + (first + to * step) * width;
        const C* more = slope + (first + from * step) * width;
        for (std::int64_t j = 0; j < width; ++j) sum[j] += more[j];
      });
    };
    c.parallel(s.images, [&](std::int64_t i) { join(i * blocks.count, blocks.count, 1); });
    c.parallel(all, [&](std::int64_t k) {
      GroupLanes<T> lanes = lanes_of(k);
      const std::vector<C> scale = lanes.of_channels(c.input(2).data<T>());
      lanes.take_slopes(slope + k / blocks.count * blocks.count * width, scale.data());
      lanes.input_slopes(scale.data(), dx + begin_of(k));
    });
    join(0, s.images, blocks.count);
    std::copy_n(slope, width, sums);
    return ok_status();
  }

  const C epsilon_;
  const std::int64_t groups_;
};

}  // namespace

TROUPE_OPS(group_norm) {
  r.add({.name = "GroupNorm",
         .in = {"x", "scale", "offset"},
         .out = {"y"},
         .types = kFloats,
         .attrs = {"groups: int", "epsilon: float = 1e-05"},
         .shape = group_norm_shape,
         .grad = group_norm_grad,
         .doc = "y = (x - m) / sqrt(v + epsilon) * scale + offset of x [n, ..., c], where m and v "
                "are the mean and variance of each of `groups` equal parts of the channels of an "
                "example, over all positions; scale and offset are [c] (Wu and He, 2018)."})
      .cpu(typed_kernel<GroupNorm, Floats>)
      .cuda(cuda::group_norm);
  r.add({.name = "GroupNormGrad",
         .in = {"dy", "x", "scale"},
         .out = {"dx", "dscale", "doffset"},
         .types = kFloats,
         .attrs = {"groups: int", "epsilon: float = 1e-05"},
         .shape = group_norm_grad_shape,
         .grad = group_norm_grad_grad,
         .doc = "The gradients of GroupNorm, given the gradient of its output."})
      .cpu(typed_kernel<GroupNormGrad, Floats>)
      .cuda(cuda::group_norm_grad);
}
