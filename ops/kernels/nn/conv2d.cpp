// Conv2D, its two gradients, and Conv2D with what follows on it: NHWC activations, HWIO filters.
// f16 and bf16 are computed as f32.
#include "ops/cuda/conv.hpp"
#include "ops/kernels/nn/conv.hpp"
#include "ops/kernels/nn/depthwise.hpp"
#include "ops/kernels/support/bias.hpp"
#include "ops/kernels/support/through_float.hpp"
#include "ops/op.hpp"

using namespace troupe;

namespace {

// Memory for one call, from the device: uninitialised, 64-byte aligned.
[[maybe_unused]] Expected<Tensor> scratch_bytes(const KernelContext& c, std::size_t bytes) {
  return c.allocate(DType::u8, Shape{std::int64_t(bytes)});
}

template <class T>
Expected<Tensor> scratch_patches(const KernelContext& c, const ConvShape& s) {
  // The product of three sizes that come from outside is checked before it is computed.
  TROUPE_TRY(Shape::make(std::array{tile_rows<T>(s), s.out_w, patch_size(s)}));
  return c.allocate(dtype_of<T>, Shape{scratch_elements<T>(s)});
}

Status check_dy(const ConvShape& s, const Tensor& dy) {
  if (dy.shape() == y_shape(s)) return ok_status();
  return invalid_argument("dy is " + dy.shape().text() + ", but the convolution gives " +
                          y_shape(s).text());
}

// One image's worth of elements.
std::int64_t x_step(const ConvShape& s) { return s.in_h * s.in_w * s.in_c; }
std::int64_t y_step(const ConvShape& s) { return s.out_h * s.out_w * s.out_c; }

// Per chunk of images: with `run(primitive, range, scratch)` where there is one, else the image
// function on each image.
template <class T, class Primitive, class Image>
Status for_images(KernelContext& c, const ConvPlan& plan, Primitive&& run, Image&& image) {
  return parallel_chunks(c, plan.chunks.count, [&](std::int64_t i) -> Status {
    const Range r = plan.chunks[i];
#if TROUPE_ONEDNN
    if constexpr (std::is_same_v<T, float>) {
      if (plan.has_primitive()) {
        TROUPE_TRY(Tensor scratch, scratch_bytes(c, plan.primitive(i).scratch_bytes()));
        return run(plan.primitive(i), r, scratch.mutable_raw());
      }
    }
#else
    (void)run;
#endif
    TROUPE_TRY(Tensor patches, scratch_patches<T>(c, plan.shape));
    for (std::int64_t n = r.begin; n < r.end; ++n)
      TROUPE_TRY(image(n, patches.template mutable_data<T>()));
    return ok_status();
  });
}

// The filter in the primitive's layout; an empty tensor where patches do the work.
Expected<Tensor> pack_filter(KernelContext& c, const ConvPlan& plan, const Tensor& filter) {
#if TROUPE_ONEDNN
  if (plan.whole) {
    TROUPE_TRY(Tensor packed, scratch_bytes(c, plan.whole->packed_bytes()));
    TROUPE_TRY(plan.whole->pack(filter.data<float>(), packed.mutable_raw()));
    return packed;
  }
#endif
  (void)c, (void)plan, (void)filter;
  return Tensor();
}

template <class T>
class Conv2D final : public Kernel {
 public:
  Conv2D(const WindowAttrs& window) : window_(window), plans_(ConvKind::forward, sizeof(T) == 4) {}

  Status compute(KernelContext& c) override {
    TROUPE_TRY(Tensor y, convolve(c));
    c.set_output(0, std::move(y));
    return ok_status();
  }

  // Of inputs 0 and 1.
  Expected<Tensor> convolve(KernelContext& c) {
    const Tensor &x = c.input(0), &filter = c.input(1);
    TROUPE_TRY(ConvShape s, conv_shape(window_, x.shape(), filter.shape()));
    TROUPE_TRY(Tensor y, c.allocate(dtype_of<T>, y_shape(s)));
    if (y.elements() > 0)
      TROUPE_TRY(is_depthwise(s) ? depthwise_forward(c, s, x, filter, y.mutable_data<T>())
                                 : run(c, s, x.data<T>(), filter, y.mutable_data<T>()));
    return y;
  }

 private:
  Status run(KernelContext& c, const ConvShape& s, const T* x, const Tensor& filter, T* y) {
    const T* w = filter.data<T>();
    TROUPE_TRY(auto plan, plans_.get(s));
    if (is_pointwise(s))
      return parallel_chunks(c, plan->chunks.count, [&](std::int64_t i) {
        const Range r = plan->chunks[i];
        return gemm<T>(r.size() * s.in_h * s.in_w, s.out_c, s.in_c,
                       {x + r.begin * x_step(s), s.in_c}, {w, s.out_c}, false,
                       {y + r.begin * y_step(s), s.out_c});
      });
    TROUPE_TRY(Tensor packed, pack_filter(c, *plan, filter));
    return for_images<T>(
        c, *plan,
        [&](const auto& conv, Range r, void* scratch) {
          return conv.run_forward(x + r.begin * x_step(s), packed.raw(), y + r.begin * y_step(s),
                                  scratch);
        },
        [&](std::int64_t n, T* patches) {
          return image_forward(s, x + n * x_step(s), w, y + n * y_step(s), patches);
        });
  }

  const WindowAttrs window_;
  ConvPlans plans_;
};

// The bits of Conv2D, BiasAdd and Relu.
template <class T>
class Conv2DBias final : public Kernel {
 public:
  Conv2DBias(const WindowAttrs& window, bool relu) : conv_(window), relu_(relu) {}

  Status compute(KernelContext& c) override {
    TROUPE_TRY(Tensor y, conv_.convolve(c));
    TROUPE_TRY(add_bias<T>(c, c.input(2), relu_, y));
    c.set_output(0, std::move(y));
    return ok_status();
  }

 private:
  Conv2D<T> conv_;
  const bool relu_;
};

template <class T>
class Conv2DBackpropInput final : public Kernel {
 public:
  Conv2DBackpropInput(const WindowAttrs& window)
      : window_(window), plans_(ConvKind::backward_data, sizeof(T) == 4) {}

  Status compute(KernelContext& c) override {
    const Tensor &filter = c.input(1), &dy = c.input(2);
    TROUPE_TRY(Shape sizes, shape_operand(c.input(0)));
    TROUPE_TRY(ConvShape s, conv_shape(window_, sizes, filter.shape()));
    TROUPE_TRY(check_dy(s, dy));
    TROUPE_TRY(Tensor dx, c.allocate(dtype_of<T>, sizes));
    if (dx.elements() > 0)
      TROUPE_TRY(is_depthwise(s) ? depthwise_backward_data(c, s, dy, filter, dx.mutable_data<T>())
                                 : run(c, s, dy.data<T>(), filter, dx.mutable_data<T>()));
    c.set_output(0, std::move(dx));
    return ok_status();
  }

 private:
  Status run(KernelContext& c, const ConvShape& s, const T* dy, const Tensor& filter, T* dx) {
    const T* w = filter.data<T>();
    TROUPE_TRY(auto plan, plans_.get(s));
    if (is_pointwise(s))
      return parallel_chunks(c, plan->chunks.count, [&](std::int64_t i) {
        const Range r = plan->chunks[i];
        return gemm<T>(r.size() * s.in_h * s.in_w, s.in_c, s.out_c,
                       {dy + r.begin * y_step(s), s.out_c}, {w, s.out_c, true}, false,
                       {dx + r.begin * x_step(s), s.in_c});
      });
    TROUPE_TRY(Tensor packed, pack_filter(c, *plan, filter));
    return for_images<T>(
        c, *plan,
        [&](const auto& conv, Range r, void* scratch) {
          return conv.run_backward_data(dy + r.begin * y_step(s), packed.raw(),
                                        dx + r.begin * x_step(s), scratch);
        },
        [&](std::int64_t n, T* patches) {
          return image_backward_data(s, dy + n * y_step(s), w, dx + n * x_step(s), patches);
        });
  }

  const WindowAttrs window_;
  ConvPlans plans_;
};

template <class T>
class Conv2DBackpropFilter final : public Kernel {
 public:
  Conv2DBackpropFilter(const WindowAttrs& window)
      : window_(window), plans_(ConvKind::backward_filter, sizeof(T) == 4) {}

  Status compute(KernelContext& c) override {
    const Tensor &x = c.input(0), &dy = c.input(2);
    TROUPE_TRY(Shape sizes, shape_operand(c.input(1)));
    TROUPE_TRY(ConvShape s, conv_shape(window_, x.shape(), sizes));
    TROUPE_TRY(check_dy(s, dy));
    if (is_depthwise(s)) {
      TROUPE_TRY(Tensor df, depthwise_backward_filter<T>(c, s, x, dy));
      c.set_output(0, std::move(df));
      return ok_status();
    }
    TROUPE_TRY(auto plan, plans_.get(s));
    TROUPE_TRY(Tensor df, plan->chunks.count == 0 ? Tensor::zeros(dtype_of<T>, sizes, c.allocator())
                                                  : c.allocate(dtype_of<T>, sizes));
    if (df.elements() > 0 && plan->chunks.count > 0)
      TROUPE_TRY(plan->by_channels ? by_channels(c, *plan, x.data<T>(), dy.data<T>(), df)
                                   : by_images(c, *plan, x.data<T>(), dy.data<T>(), df));
    c.set_output(0, std::move(df));
    return ok_status();
  }

 private:
  // One partial sum per chunk of images, each `size` elements in the layout of whoever computes
  // it, added by the fixed tree: lanes take pieces of it.
  Status by_images(KernelContext& c, const ConvPlan& plan, const T* x, const T* dy, Tensor& df) {
    const ConvShape& s = plan.shape;
    const std::int64_t size = partial_elements(plan), chunks = plan.chunks.count;
    TROUPE_TRY(Shape shape, Shape::make(std::array{chunks, size}));
    TROUPE_TRY(Tensor partials, c.allocate(dtype_of<T>, shape));
    T* part = partials.mutable_data<T>();
    TROUPE_TRY(parallel_chunks(c, chunks, [&](std::int64_t i) -> Status {
      return partial(c, plan, i, x + plan.chunks[i].begin * x_step(s),
                     dy + plan.chunks[i].begin * y_step(s), part + i * size);
    }));
    const Chunks pieces = elementwise_chunks(size);
    c.parallel(pieces.count, [&](std::int64_t i) {
      const Range r = pieces[i];
      tree_sum(chunks, [&](std::int64_t to, std::int64_t from) {
        T* __restrict sum = part + to * size;
        const T* __restrict more = part + from * size;
        for (std::int64_t j = r.begin; j < r.end; ++j) sum[j] += more[j];
      });
    });
    return finish(plan, part, df.mutable_data<T>());
  }

  // Output channels apart: nothing to add, but oneDNN wants its dy and its result contiguous.
  Status by_channels(KernelContext& c, const ConvPlan& plan, const T* x, const T* dy, Tensor& df) {
    const ConvShape& s = plan.shape;
    return parallel_chunks(c, plan.chunks.count, [&](std::int64_t i) -> Status {
      const Range r = plan.chunks[i];
      T* out = df.mutable_data<T>() + r.begin;
      if (plan.has_primitive()) return channel_slice(c, plan, r, x, dy, out);
      if (is_pointwise(s))
        return gemm<T>(s.in_c, r.size(), s.batch * s.in_h * s.in_w, {x, s.in_c, true},
                       {dy + r.begin, s.out_c}, false, {out, s.out_c});
      clear_columns(out, patch_size(s), r.size(), s.out_c);
      TROUPE_TRY(Tensor patches, scratch_patches<T>(c, s));
      for (std::int64_t n = 0; n < s.batch; ++n)
        TROUPE_TRY(image_backward_filter<T>(s, x + n * x_step(s), dy + n * y_step(s), r.begin,
                                            r.size(), {out, s.out_c},
                                            patches.template mutable_data<T>()));
      return ok_status();
    });
  }

  static void clear_columns(T* out, std::int64_t rows, std::int64_t columns, std::int64_t stride) {
    for (std::int64_t i = 0; i < rows; ++i) std::fill_n(out + i * stride, columns, T(0));
  }

  static std::int64_t partial_elements(const ConvPlan& plan) {
#if TROUPE_ONEDNN
    // Padded to whole cache lines: every partial sum begins aligned.
    if (plan.whole) return std::int64_t((plan.whole->packed_bytes() + 63) / 64 * 64 / sizeof(T));
#endif
    return filter_shape(plan.shape).elements();
  }

  Status partial(KernelContext& c, const ConvPlan& plan, std::int64_t chunk, const T* x,
                 const T* dy, T* out) {
    const ConvShape& s = plan.shape;
    const std::int64_t images = plan.chunks[chunk].size();
    if (is_pointwise(s))
      return gemm<T>(s.in_c, s.out_c, images * s.in_h * s.in_w, {x, s.in_c, true}, {dy, s.out_c},
                     false, {out, s.out_c});
#if TROUPE_ONEDNN
    if constexpr (std::is_same_v<T, float>) {
      if (plan.whole) {
        const onednn::Conv& conv = plan.primitive(chunk);
        TROUPE_TRY(Tensor scratch, scratch_bytes(c, conv.scratch_bytes()));
        return conv.run_backward_filter(x, dy, out, scratch.mutable_raw());
      }
    }
#endif
    std::fill_n(out, partial_elements(plan), T(0));
    TROUPE_TRY(Tensor patches, scratch_patches<T>(c, s));
    for (std::int64_t n = 0; n < images; ++n)
      TROUPE_TRY(image_backward_filter<T>(s, x + n * x_step(s), dy + n * y_step(s), 0, s.out_c,
                                          {out, s.out_c}, patches.template mutable_data<T>()));
    return ok_status();
  }

  Status finish(const ConvPlan& plan, const T* sum, T* df) {
#if TROUPE_ONEDNN
    if constexpr (std::is_same_v<T, float>)
      if (plan.whole) return plan.whole->unpack(sum, df);
#endif
    std::copy_n(sum, filter_shape(plan.shape).elements(), df);
    return ok_status();
  }

  Status channel_slice([[maybe_unused]] KernelContext& c, [[maybe_unused]] const ConvPlan& plan,
                       [[maybe_unused]] Range r, [[maybe_unused]] const T* x,
                       [[maybe_unused]] const T* dy, [[maybe_unused]] T* out) {
#if TROUPE_ONEDNN
    if constexpr (std::is_same_v<T, float>) {
      const ConvShape& s = plan.shape;
      const std::int64_t n = r.size(), pixels = s.batch * s.out_h * s.out_w, depth = patch_size(s);
      TROUPE_TRY(Tensor slice, c.allocate(DType::f32, Shape{pixels, n}));
      TROUPE_TRY(Tensor packed, scratch_bytes(c, plan.whole->packed_bytes()));
      TROUPE_TRY(Tensor dense, c.allocate(DType::f32, Shape{depth, n}));
      TROUPE_TRY(Tensor scratch, scratch_bytes(c, plan.whole->scratch_bytes()));
      copy_columns(dy + r.begin, s.out_c, slice.mutable_data<float>(), n, pixels, n);
      TROUPE_TRY(plan.whole->run_backward_filter(x, slice.data<float>(), packed.mutable_raw(),
                                                 scratch.mutable_raw()));
      TROUPE_TRY(plan.whole->unpack(packed.raw(), dense.mutable_data<float>()));
      copy_columns(dense.data<float>(), n, out, s.out_c, depth, n);
    }
#endif
    return ok_status();
  }

  const WindowAttrs window_;
  ConvPlans plans_;
};

Expected<PartialShape> conv_output(InferenceContext& c, const PartialShape& x,
                                   const PartialShape& filter) {
  TROUPE_TRY(WindowAttrs w, read_window(c, false));
  PartialShape y = PartialShape::unknown_of_rank(4);
  if (x.known_rank()) y.set_dim(0, x[0]);
  if (filter.known_rank()) y.set_dim(3, filter[3]);
  if (!x.known_rank() || !filter.known_rank()) return y;
  TROUPE_TRY(check_channels(w.groups, x, filter));
  for (int axis = 0; axis < 2; ++axis) {
    TROUPE_TRY(std::int64_t out, window_out(w, axis, x[axis + 1], filter[axis]));
    y.set_dim(axis + 1, out);
  }
  return y;
}

Status conv_bias_shape(InferenceContext& c) {
  TROUPE_TRY(c.want_rank(0, 4));
  TROUPE_TRY(c.want_rank(1, 4));
  TROUPE_TRY(c.want_rank(2, 1));
  TROUPE_TRY(PartialShape y, conv_output(c, c.shape(0), c.shape(1)));
  TROUPE_TRY(y, detail::with_bias(std::move(y), c.shape(2)));
  c.set(0, std::move(y));
  return ok_status();
}

Status conv2d_shape(InferenceContext& c) {
  TROUPE_TRY(c.want_rank(0, 4));
  TROUPE_TRY(c.want_rank(1, 4));
  TROUPE_TRY(PartialShape y, conv_output(c, c.shape(0), c.shape(1)));
  c.set(0, std::move(y));
  return ok_status();
}

// The shape that operand `i` spells out, when it is known before the run.
Expected<PartialShape> spelled_shape(InferenceContext& c, int i) {
  TROUPE_TRY(c.want_rank(i, 1));
  TROUPE_TRY(PartialShape shape, c.listed_shape(i));
  if (!shape.known_rank()) return PartialShape::unknown_of_rank(4);
  if (shape.rank() != 4) return invalid_argument("sizes must have 4 elements");
  return shape;
}

Status input_grad_shape(InferenceContext& c) {
  TROUPE_TRY(c.want_rank(1, 4));
  TROUPE_TRY(c.want_rank(2, 4));
  TROUPE_TRY(PartialShape x, spelled_shape(c, 0));
  TROUPE_TRY(PartialShape y, conv_output(c, x, c.shape(1)));
  TROUPE_TRY(y, PartialShape::merge(y, c.shape(2)));
  if (!x.known(0)) x.set_dim(0, y[0]);
  const std::int64_t groups = c.int_attr("groups");
  std::int64_t channels = 0;
  if (!x.known(3) && c.shape(1).known_rank() && c.shape(1).known(2) &&
      !__builtin_mul_overflow(std::int64_t(c.shape(1)[2]), groups, &channels))
    x.set_dim(3, channels);
  c.set(0, std::move(x));
  return ok_status();
}

Status filter_grad_shape(InferenceContext& c) {
  TROUPE_TRY(c.want_rank(0, 4));
  TROUPE_TRY(c.want_rank(2, 4));
  TROUPE_TRY(PartialShape filter, spelled_shape(c, 1));
  TROUPE_TRY(PartialShape y, conv_output(c, c.shape(0), filter));
  TROUPE_TRY(y, PartialShape::merge(y, c.shape(2)));
  if (!filter.known(2) && c.shape(0).known_rank() && c.shape(0).known(3))
    filter.set_dim(2, c.shape(0)[3] / c.int_attr("groups"));
  if (!filter.known(3)) filter.set_dim(3, y[3]);
  c.set(0, std::move(filter));
  return ok_status();
}

// The three ops are one bilinear form: each is the gradient of the other two.
struct ConvGraph {
  GraphBuilder& g;
  AttrMap attrs;

  explicit ConvGraph(GradContext& c) : g(c.g) {
    for (const char* name : {"strides", "padding", "explicit_paddings", "dilations", "groups"})
      attrs.emplace(name, c.node().attrs.find(name)->second);
  }
  Output shape_of(Output x) { return g.add("Shape", {x}); }
  Output y(Output x, Output filter) { return g.add("Conv2D", {x, filter}, attrs); }
  Output dx(Output x_like, Output filter, Output dy) {
    return g.add("Conv2DBackpropInput", {shape_of(x_like), filter, dy}, attrs);
  }
  Output dfilter(Output x, Output filter_like, Output dy) {
    return g.add("Conv2DBackpropFilter", {x, shape_of(filter_like), dy}, attrs);
  }
};

std::vector<Output> conv2d_grad(GradContext& c) {
  ConvGraph conv(c);
  return {conv.dx(c.x[0], c.x[1], c.dy[0]), conv.dfilter(c.x[0], c.x[1], c.dy[0])};
}
std::vector<Output> input_grad_grad(GradContext& c) {
  ConvGraph conv(c);
  return {Output(), conv.dfilter(c.dy[0], c.x[1], c.x[2]), conv.y(c.dy[0], c.x[1])};
}
std::vector<Output> filter_grad_grad(GradContext& c) {
  ConvGraph conv(c);
  return {conv.dx(c.x[0], c.dy[0], c.x[2]), Output(), conv.y(c.x[0], c.dy[0])};
}

Expected<std::unique_ptr<Kernel>> conv_bias_kernel(const KernelSpec& spec) {
  TROUPE_TRY(const WindowAttrs window, read_window(spec, false));
  return through_float_kernel<Conv2DBias>(spec.type(), window, spec.bool_attr("relu"));
}

const std::vector<std::string> kConvAttrs = {
    "strides: list(int) = [1,1]", "padding: string {SAME VALID EXPLICIT} = SAME",
    "explicit_paddings: list(int) = []", "dilations: list(int) = [1,1]", "groups: int = 1"};

std::vector<std::string> with_sizes_type(std::vector<std::string> attrs) {
  attrs.push_back("Tsizes: type {i32 i64} = i64");
  return attrs;
}

}  // namespace

TROUPE_OPS(conv2d) {
  r.add(
       {.name = "Conv2D",
        .in = {"x", "filter"},
        .out = {"y"},
        .types = kFloats,
        .attrs = kConvAttrs,
        .shape = conv2d_shape,
        .grad = conv2d_grad,
        .contraction = true,
        .doc =
            "Convolution of images x [n,h,w,c] with filter [h,w,c,k], giving [n,h',w',k]. "
            "strides and dilations are [h,w] or [1,h,w,1]; explicit_paddings, used with "
            "padding EXPLICIT, are [top,bottom,left,right]. SAME adds the least padding that "
            "puts every pixel into a window, with an odd one at the end. With `groups` the "
            "filter is [h,w,c/groups,k], and each group of output channels sees one group of "
            "input channels; groups = c is a depthwise convolution. f16 and bf16 are summed in f32 "
            "and rounded once."})
      .cpu(window_kernel<false, Conv2D>)
      .cuda(cuda::conv2d);
  auto attrs = kConvAttrs;
  attrs.push_back("relu: bool = false");
  r.add({.name = "_Conv2DBias",
         .in = {"x", "filter", "bias"},
         .out = {"y"},
         .types = kFloats,
         .attrs = attrs,
         .shape = conv_bias_shape,
         .no_gradient = "made of ops whose gradients were taken before",
         .contraction = true,
         .doc = "Conv2D, BiasAdd and, with `relu`, Relu: what a step that is compiled for a GPU "
                "has in their place."})
      .cpu(conv_bias_kernel)
      .cuda(cuda::conv2d);
  r.add({.name = "Conv2DBackpropInput",
         .in = {"x_sizes: Tsizes", "filter", "dy"},
         .out = {"dx"},
         .types = kFloats,
         .attrs = with_sizes_type(kConvAttrs),
         .shape = input_grad_shape,
         .grad = input_grad_grad,
         .host = {"x_sizes"},
         .contraction = true,
         .doc = "The gradient of Conv2D for its images, whose shape is x_sizes; also known as the "
                "transposed convolution of dy."})
      .cpu(window_kernel<false, Conv2DBackpropInput>)
      .cuda(cuda::conv2d);
  r.add({.name = "Conv2DBackpropFilter",
         .in = {"x", "filter_sizes: Tsizes", "dy"},
         .out = {"dfilter"},
         .types = kFloats,
         .attrs = with_sizes_type(kConvAttrs),
         .shape = filter_grad_shape,
         .grad = filter_grad_grad,
         .host = {"filter_sizes"},
         .contraction = true,
         .doc = "The gradient of Conv2D for its filter, whose shape is filter_sizes. Partial sums "
                "over images are added in a fixed order."})
      .cpu(window_kernel<false, Conv2DBackpropFilter>)
      .cuda(cuda::conv2d);
}
