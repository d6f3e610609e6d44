// Random tensors. Element block b of an output is a function of the node's key, the run and b
// alone (devices/kernel.hpp), so any lane may draw any part of it.
#include <fmt/core.h>

#include <bit>
#include <limits>
#include <numbers>

#include "core/rounding.hpp"
#include "ops/cuda/device_kernel.hpp"
#include "ops/cuda/element_types.hpp"
#include "ops/cuda/launch.hpp"
#include "ops/device/arguments.hpp"
#include "ops/formulas/random.hpp"
#include "ops/kernels/support/elementwise.hpp"

using namespace troupe;

namespace {

using formula::log_of;
using formula::turn;
using formula::unit;

// What one Philox block becomes: 4 floats or 2 doubles, uniform.
template <class C>
inline constexpr std::int64_t kPerBlock = std::is_same_v<C, double> ? 2 : 4;
template <class C>
std::array<C, kPerBlock<C>> uniforms(const PhiloxBlock& b) {
  if constexpr (std::is_same_v<C, double>)
    return {unit(b[0], b[1]), unit(b[2], b[3])};
  else
    return {unit(b[0]), unit(b[1]), unit(b[2]), unit(b[3])};
}
// Box and Muller: pairs of uniforms to pairs of normals. 1 - u keeps the logarithm finite.
template <class C>
std::array<C, kPerBlock<C>> normals(const PhiloxBlock& b) {
  auto u = uniforms<C>(b);
  for (std::size_t i = 0; i < u.size(); i += 2) {
    const C radius = std::sqrt(C(-2) * std::log(1 - u[i]));
    const C angle = C(2) * std::numbers::pi_v<C> * u[i + 1];
    u[i] = radius * std::cos(angle);
    u[i + 1] = radius * std::sin(angle);
  }
  return u;
}

// The first of the element's own normals within two standard deviations. 64 blocks of 2 or more
// fail with probability 0.046^128: the 0 after them is for the compiler.
template <class C>
C truncated_normal(const RandomState& random, std::int64_t element) {
  for (std::uint64_t attempt = 0; attempt < 64; ++attempt)
    for (C z : normals<C>(random.block(std::uint64_t(element) * 64 + attempt)))
      if (z > -2 && z < 2) return z;
  return 0;
}

// The same for 16 blocks at a time in float, in loops that vectorise: arithmetic of its own, and so
// the same bits at every ISA level.
constexpr int kGroup = 16;
using GroupWords = std::uint32_t[4][kGroup];

void draw_words(const RandomState& random, std::uint64_t first, GroupWords& words) {
  const std::uint64_t key = random.key, run = random.run;
#pragma omp simd
  for (int k = 0; k < kGroup; ++k) {
    const std::uint64_t b = first + std::uint64_t(k);
    const PhiloxBlock block = philox(key, {std::uint32_t(b), std::uint32_t(b >> 32),
                                           std::uint32_t(run), std::uint32_t(run >> 32)});
    for (std::size_t i = 0; i < 4; ++i) words[i][k] = block[i];
  }
}

// 4 numbers of each block, in their order.
void draw_group(const RandomState& random, std::uint64_t first, bool normal, float* out) {
  GroupWords words;
  draw_words(random, first, words);
  float z[4][kGroup];
  for (int i = 0; i < 4; ++i)
    for (int k = 0; k < kGroup; ++k) z[i][k] = unit(words[i][k]);
  for (int i = 0; normal && i < 4; i += 2)
#pragma omp simd
    for (int k = 0; k < kGroup; ++k) {
      const float radius = std::sqrt(-2.0f * log_of(1 - z[i][k]));
      float cosine, sine;
      turn(z[i + 1][k], cosine, sine);
      z[i][k] = radius * cosine;
      z[i + 1][k] = radius * sine;
    }
  for (int k = 0; k < kGroup; ++k)
    for (int i = 0; i < 4; ++i) *out++ = z[i][k];
}

Status shape_of_attr(InferenceContext& c) {
  const PartialShape& shape = c.shape_attr("shape");
  if (!shape.fully_known())
    return invalid_argument("shape must be known, not " + shape.text() +
                            (shape.known_rank() ? ": draw like a tensor of that shape"
                                                : ": PartialShape::scalar() for one number"));
  TROUPE_TRY(Shape::make(shape.dims()));  // its size must not overflow
  c.set(0, shape);
  return ok_status();
}
Status int_range(InferenceContext& c) {
  const std::int64_t low = c.int_attr("low"), high = c.int_attr("high");
  if (low >= high) return invalid_argument(fmt::format("no integer in [{}, {})", low, high));
  if (c.type_attr("T") == DType::i32 && (low < INT32_MIN || high > std::int64_t{INT32_MAX} + 1))
    return invalid_argument(fmt::format("[{}, {}) does not fit i32", low, high));
  return shape_of_attr(c);
}

enum class Law { uniform, normal, truncated };

// The next number of type T above x, which is finite or -inf.
template <class T>
T next_above(T x) {
  using Bits = std::conditional_t<sizeof(T) == 2, std::uint16_t,
                                  std::conditional_t<sizeof(T) == 4, std::uint32_t, std::uint64_t>>;
  constexpr Bits sign = Bits(Bits{1} << (8 * sizeof(T) - 1));
  Bits bits = std::bit_cast<Bits>(x);
  if (Compute<T>(x) == 0)
    bits = 1;
  else
    bits = Bits(bits & sign ? bits - 1 : bits + 1);
  return std::bit_cast<T>(bits);
}
template <class T>
T next_below(T x) {
  const T mirrored = next_above(T(-Compute<T>(x)));
  return T(-Compute<T>(mirrored));
}

// The numbers of type T that a law may draw: from `least` to `most`. `least` is above `most` where
// there are none.
template <class T>
struct Ends {
  Compute<T> least, most;

  // Of [low, high), or of [low, high] where that is `closed`.
  static Ends of(double low, double high, bool closed = false) {
    T least = rounded<T>(low), most = rounded<T>(high);
    if (double(Compute<T>(least)) < low) least = next_above(least);
    const double top = double(Compute<T>(most));
    if (top > high || (top == high && !closed)) most = next_below(most);
    return {Compute<T>(least), Compute<T>(most)};
  }
  // x, which rounding may have put outside.
  Compute<T> inside(Compute<T> x) const { return std::min(std::max(x, least), most); }
};

Status finite(DType dtype, const char* name, double value) {
  const double most = dtype == DType::f16    ? 65504.0
                      : dtype == DType::f64  ? std::numeric_limits<double>::max()
                      : dtype == DType::bf16 ? 0x1.FEp127
                                             : double(std::numeric_limits<float>::max());
  if (std::abs(value) <= most) return ok_status();
  return invalid_argument(
      fmt::format("{} is {}, which is no finite {}", name, value, dtype_name(dtype)));
}
template <class T>
Status some_between(double low, double high, bool closed) {
  const auto ends = Ends<T>::of(low, high, closed);
  if (ends.least <= ends.most) return ok_status();
  return invalid_argument(fmt::format("there is no {} in [{}, {}{}", dtype_name(dtype_of<T>), low,
                                      high, closed ? ']' : ')'));
}
Status some_between(DType dtype, double low, double high, bool closed) {
  return dispatch<Status>(Floats{}, dtype, [&](auto tag) {
    return some_between<typename decltype(tag)::type>(low, high, closed);
  });
}

Status uniform_bounds(InferenceContext& c) {
  const DType dtype = c.type_attr("T");
  for (const char* name : {"low", "high"}) TROUPE_TRY(finite(dtype, name, c.float_attr(name)));
  const double low = c.float_attr("low"), high = c.float_attr("high");
  if (!(low < high)) return invalid_argument(fmt::format("no number in [{}, {})", low, high));
  return some_between(dtype, low, high, false);
}
Status uniform_shape(InferenceContext& c) {
  TROUPE_TRY(uniform_bounds(c));
  return shape_of_attr(c);
}
Status uniform_like_shape(InferenceContext& c) {
  TROUPE_TRY(uniform_bounds(c));
  return same_shape(c);
}
Status normal_moments(InferenceContext& c) {
  for (const char* name : {"mean", "stddev"})
    TROUPE_TRY(finite(c.type_attr("T"), name, c.float_attr(name)));
  const double deviation = c.float_attr("stddev");
  if (deviation < 0)
    return invalid_argument(fmt::format("stddev must not be negative, as {} is", deviation));
  return ok_status();
}
Status normal_shape(InferenceContext& c) {
  TROUPE_TRY(normal_moments(c));
  return shape_of_attr(c);
}
Status normal_like_shape(InferenceContext& c) {
  TROUPE_TRY(normal_moments(c));
  return same_shape(c);
}
Status truncated_shape(InferenceContext& c) {
  TROUPE_TRY(normal_shape(c));
  const double mean = c.float_attr("mean"), reach = 2 * c.float_attr("stddev");
  for (double end : {mean - reach, mean + reach})
    TROUPE_TRY(finite(c.type_attr("T"), "mean and two stddev", end));
  return some_between(c.type_attr("T"), mean - reach, mean + reach, true);
}

// `kLike`: of the shape of input 0, else of the attribute's.
template <Law kLaw, bool kLike = false>
struct Drawn {
  template <class T>
  struct K final : Kernel {
    using C = Compute<T>;
    explicit K(const KernelSpec& s)
        : shape(kLike ? Shape{} : s.shape_attr("shape").shape()),
          shift(C(s.float_attr(kLaw == Law::uniform ? "low" : "mean"))),
          scale(kLaw == Law::uniform ? C(s.float_attr("high")) - shift : C(s.float_attr("stddev"))),
          ends(ends_of(s)) {
      if (kLaw != Law::uniform || std::isfinite(scale)) return;
      shift /= 2;  // wider than the largest number: twice what is drawn from half of it
      scale = C(s.float_attr("high")) / 2 - shift;
      times = 2;
    }
    // For device code, but for what is drawn.
    device::DrawArgs numbers() const {
      device::DrawArgs args{};
      args.shift = shift, args.scale = scale, args.times = times;
      args.least = ends.least, args.most = ends.most;
      return args;
    }
    static Ends<T> ends_of(const KernelSpec& s) {
      if (kLaw == Law::uniform) return Ends<T>::of(s.float_attr("low"), s.float_attr("high"));
      const double mean = s.float_attr("mean"), reach = 2 * s.float_attr("stddev");
      return Ends<T>::of(mean - reach, mean + reach, true);
    }
    Status compute(KernelContext& ctx) override {
      TROUPE_TRY(Tensor y, ctx.allocate(dtype_of<T>, kLike ? ctx.input(0).shape() : shape));
      T* out = y.mutable_data<T>();
      const RandomState random = ctx.random();
      for_chunks(ctx, y.elements(), [&](Range r) {  // chunks begin at block boundaries
        constexpr std::int64_t kStep = kLaw == Law::truncated      ? 1
                                       : std::is_same_v<C, double> ? kPerBlock<C>
                                                                   : 4 * kGroup;
        for (std::int64_t i = r.begin; i < r.end; i += kStep) draw(random, i, r.end, out);
      });
      ctx.set_output(0, std::move(y));
      return ok_status();
    }
    void draw(const RandomState& random, std::int64_t i, std::int64_t end, T* out) const {
      if constexpr (kLaw == Law::truncated) {
        out[i] = T(ends.inside(shift + scale * truncated_normal<C>(random, i)));
      } else if constexpr (std::is_same_v<C, double>) {
        const PhiloxBlock block = random.block(std::uint64_t(i / kPerBlock<C>));
        const auto z = kLaw == Law::uniform ? uniforms<C>(block) : normals<C>(block);
        finish(z.data(), i, std::min(end, i + kPerBlock<C>), out);
      } else {
        float z[4 * kGroup];
        draw_group(random, std::uint64_t(i / 4), kLaw == Law::normal, z);
        finish(z, i, std::min(end, i + 4 * kGroup), out);
      }
    }
    void finish(const C* z, std::int64_t begin, std::int64_t end, T* out) const {
      for (std::int64_t i = begin; i < end; ++i) {
        const C x = shift + scale * z[i - begin];
        out[i] = T(kLaw == Law::uniform ? ends.inside(x * times) : x);
      }
    }
    Shape shape;
    C shift, scale, times = 1;
    Ends<T> ends;
  };
};

template <Law kLaw, bool kLike = false>
class DrawnOnGpu final : public cuda::DeviceKernel {
 public:
  explicit DrawnOnGpu(const KernelSpec& s)
      : dtype_(s.type()),
        shape_(kLike ? Shape{} : s.shape_attr("shape").shape()),
        function_{function(dtype_)} {
    const Status known = dispatch<Status>(Floats{}, dtype_, [&](auto tag) -> Status {
      using T = typename decltype(tag)::type;
      numbers_ = typename Drawn<kLaw, kLike>::template K<T>(s).numbers();
      return ok_status();
    });
    TROUPE_CHECK(known.ok(), "a type of the definition");
  }
  std::span<cuda::GpuFunction> functions() override { return {&function_, 1}; }
  Status compute(KernelContext& ctx) override {
    TROUPE_TRY(Tensor y, ctx.allocate(dtype_, kLike ? ctx.input(0).shape() : shape_));
    device::DrawArgs args = numbers_;
    args.y = y.mutable_raw(), args.n = y.elements();
    args.key = ctx.random().key, args.run = ctx.random().run;
    if (args.n != 0) TROUPE_TRY(launch(ctx, function_, cuda::grid_for(args.n), &args));
    ctx.set_output(0, std::move(y));
    return ok_status();
  }

 private:
  static std::string function(DType dtype) {
    const std::string type = cuda::element_type(dtype);
    if (kLaw == Law::truncated) return cuda::device_type("DrawTruncated", {type});
    return cuda::device_type(
        "Draw",
        {kLaw == Law::uniform ? "troupe::device::Uniform" : "troupe::device::Normal", type});
  }

  DType dtype_;
  Shape shape_;
  cuda::GpuFunction function_;
  device::DrawArgs numbers_{};
};

class UniformIntOnGpu final : public cuda::DeviceKernel {
 public:
  explicit UniformIntOnGpu(const KernelSpec& s)
      : dtype_(s.type()),
        shape_(s.shape_attr("shape").shape()),
        low_(std::uint64_t(s.int_attr("low"))),
        span_(std::uint64_t(s.int_attr("high")) - low_),
        function_{cuda::device_type("DrawInt", {cuda::element_type(cuda::without_sign(dtype_))})} {}
  std::span<cuda::GpuFunction> functions() override { return {&function_, 1}; }
  Status compute(KernelContext& ctx) override {
    TROUPE_TRY(Tensor y, ctx.allocate(dtype_, shape_));
    device::DrawIntArgs args{y.mutable_raw(),  y.elements(), ctx.random().key,
                             ctx.random().run, low_,         span_};
    if (args.n != 0) TROUPE_TRY(launch(ctx, function_, cuda::grid_for(args.n), &args));
    ctx.set_output(0, std::move(y));
    return ok_status();
  }

 private:
  DType dtype_;
  Shape shape_;
  std::uint64_t low_, span_;
  cuda::GpuFunction function_;
};

template <class T>
struct UniformInt final : Kernel {
  explicit UniformInt(const KernelSpec& s)
      : shape(s.shape_attr("shape").shape()),
        low(s.int_attr("low")),
        span(std::uint64_t(s.int_attr("high")) - std::uint64_t(low)) {}
  Status compute(KernelContext& ctx) override {
    TROUPE_TRY(Tensor y, ctx.allocate(dtype_of<T>, shape));
    T* out = y.mutable_data<T>();
    const RandomState random = ctx.random();
    for_chunks(ctx, y.elements(), [&](Range r) {
      for (std::int64_t i = r.begin; i < r.end; ++i) {
        // A 64-bit word per element: the bias of the multiplication is below span / 2^64.
        const PhiloxBlock b = random.block(std::uint64_t(i / 2));
        const std::uint64_t word =
            i % 2 == 0 ? std::uint64_t{b[1]} << 32 | b[0] : std::uint64_t{b[3]} << 32 | b[2];
        const auto at = std::uint64_t(static_cast<unsigned __int128>(word) * span >> 64);
        out[i] = T(std::uint64_t(low) + at);
      }
    });
    ctx.set_output(0, std::move(y));
    return ok_status();
  }
  Shape shape;
  std::int64_t low;
  std::uint64_t span;
};

OpDef random_op(std::string name, std::vector<std::string> attrs, ShapeFn shape, std::string doc) {
  OpDef def{.name = std::move(name),
            .out = {"y"},
            .types = kFloats,
            .attrs = {"T: type = f32", "shape: shape"},
            .shape = shape,
            .no_gradient = "drawn, not computed of inputs",
            .random = true,
            .doc = std::move(doc) +
                   " New values in each run, but the same for the same seed, node name and run."};
  def.attrs.insert(def.attrs.end(), attrs.begin(), attrs.end());
  return def;
}

}  // namespace

TROUPE_OPS(random) {
  const std::vector<std::string> bounds{"low: float = 0.0", "high: float = 1.0"};
  r.add(random_op("RandomUniform", bounds, uniform_shape, "Uniform numbers in [low, high)."))
      .cpu(typed_kernel<Drawn<Law::uniform>::K, Floats>)
      .cuda(make_kernel<DrawnOnGpu<Law::uniform>>);
  OpDef like = random_op("RandomUniformLike", bounds, uniform_like_shape,
                         "Uniform numbers in [low, high), in the shape and type of `like`.");
  like.in = {"like"};
  like.attrs.erase(like.attrs.begin(), like.attrs.begin() + 2);  // its type and shape are like's
  r.add(std::move(like))
      .cpu(typed_kernel<Drawn<Law::uniform, true>::K, Floats>)
      .cuda(make_kernel<DrawnOnGpu<Law::uniform, true>>);
  const std::vector<std::string> moments{"mean: float = 0.0", "stddev: float = 1.0"};
  r.add(random_op("RandomStandardNormal", moments, normal_shape, "Normally distributed numbers."))
      .cpu(typed_kernel<Drawn<Law::normal>::K, Floats>)
      .cuda(make_kernel<DrawnOnGpu<Law::normal>>);
  OpDef normal_like = random_op("RandomStandardNormalLike", moments, normal_like_shape,
                                "Normally distributed numbers, in the shape and type of `like`.");
  normal_like.in = {"like"};
  normal_like.attrs.erase(normal_like.attrs.begin(), normal_like.attrs.begin() + 2);
  r.add(std::move(normal_like))
      .cpu(typed_kernel<Drawn<Law::normal, true>::K, Floats>)
      .cuda(make_kernel<DrawnOnGpu<Law::normal, true>>);
  r.add(random_op("TruncatedNormal", moments, truncated_shape,
                  "Normally distributed numbers; those more than two standard deviations from the "
                  "mean are drawn again."))
      .cpu(typed_kernel<Drawn<Law::truncated>::K, Floats>)
      .cuda(make_kernel<DrawnOnGpu<Law::truncated>>);
  OpDef ints = random_op("RandomUniformInt", {"low: int = 0", "high: int"}, int_range,
                         "Uniform integers in [low, high).");
  ints.types = "i32 i64";
  ints.attrs[0] = "T: type = i64";
  r.add(std::move(ints)).cpu(typed_kernel<UniformInt, Indices>).cuda(make_kernel<UniformIntOnGpu>);
}
