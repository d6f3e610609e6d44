// Attention: softmax(q k^T) v, and its gradient, without the weights of all queries in memory: a
// chunk has those of some queries of one problem.
#include "ops/cuda/attention.hpp"
#include "devices/chunks.hpp"
#include "graph/gradient_through.hpp"
#include "graph/slicing.hpp"
#include "ops/kernels/nn/attention_sizes.hpp"
#include "ops/kernels/nn/softmax_rows.hpp"
#include "ops/kernels/support/gemm.hpp"
#include "ops/kernels/support/grad.hpp"
#include "ops/kernels/support/through_float.hpp"
#include "ops/kernels/support/types.hpp"
#include "ops/op.hpp"

using namespace troupe;

namespace {

DType attention_stats_type(DType dtype) { return dtype == DType::f64 ? DType::f64 : DType::f32; }

// q, k and v are inputs `first` and the two behind it.
Status want_attention(InferenceContext& c, int first) {
  for (int i = first; i < first + 3; ++i) TROUPE_TRY(c.want_rank_at_least(i, 2));
  if (c.type_attr("Tstats") != attention_stats_type(c.dtype(0)))
    return invalid_argument("the stats of attention are f64 for f64, and f32 for other types");
  const PartialShape &q = c.shape(first), &k = c.shape(first + 1), &v = c.shape(first + 2);
  for (const PartialShape* other : {&k, &v})
    if (q.known_rank() && other->known_rank() && q.rank() != other->rank())
      return invalid_argument("attention of queries " + q.text() + " to keys " + k.text() +
                              " with values " + v.text());
  if (!q.known_rank() || !k.known_rank() || !v.known_rank()) return ok_status();
  const int rank = q.rank();
  for (int d = 0; d < rank; ++d) {
    if (d != rank - 2) TROUPE_TRY(PartialShape::merge(PartialShape{q[d]}, PartialShape{k[d]}));
    if (d != rank - 1) TROUPE_TRY(PartialShape::merge(PartialShape{k[d]}, PartialShape{v[d]}));
  }
  return ok_status();
}

Status attention_shape(InferenceContext& c) {
  TROUPE_TRY(want_attention(c, 0));
  const PartialShape &q = c.shape(0), &v = c.shape(2);
  if (!q.known_rank()) return ok_status();
  std::vector<std::int64_t> dims = q.dims();
  dims.back() = PartialShape::kUnknown;
  if (v.known_rank()) dims.back() = v[v.rank() - 1];
  TROUPE_TRY(PartialShape y, PartialShape::make(dims));
  dims.pop_back();
  TROUPE_TRY(PartialShape stats, PartialShape::make(dims));
  c.set(0, std::move(y));
  c.set(1, std::move(stats));
  return ok_status();
}

Status attention_grad_shape(InferenceContext& c) {
  TROUPE_TRY(want_attention(c, 1));
  for (int i = 0; i < 3; ++i) c.set(i, c.shape(1 + i));
  return ok_status();
}

// The ops here as graphs of single steps, for derivatives that they do not compute themselves. All
// in the type of the stats.
struct AttentionParts {
  GraphBuilder& g;
  double scale;
  bool causal;
  Output mask;

  Output product(Output a, Output b, bool transpose_a, bool transpose_b) const {
    return g.add("BatchMatMul", {a, b},
                 {{"transpose_a", transpose_a}, {"transpose_b", transpose_b}});
  }
  Output positions(Output x) const {
    const Output size = g.add("Shape", {x})[-2];
    const Output zero = scalar_like(size, 0), one = scalar_like(size, 1);
    return g.add("Range", {zero, size, one});
  }
  // -inf where a query must not look.
  Output scores(Output q, Output k) const {
    Output all = product(q, k, false, true);
    all = multiply(all, scalar_like(all, scale));
    const Output never = scalar_like(all, -std::numeric_limits<double>::infinity());
    if (causal) {
      const Output query = g.add("ExpandDims", {positions(q)}, {{"axis", std::int64_t{1}}});
      all = where(g.add("GreaterEqual", {query, positions(k)}), all, never);
    }
    return mask.empty() ? all : where(mask, all, never);
  }
  Output row_sums(Output x) const {
    return g.add("Sum", {x}, {{"axes", std::vector<std::int64_t>{-1}}, {"keep_dims", true}});
  }

  // y and stats, of q, k and v.
  std::vector<Output> forward(const std::vector<Output>& x) const {
    const DType type = x[0].dtype();
    const Output all = scores(wide(x[0]), wide(x[1]));
    const Output zero = scalar_like(all, 0), one = scalar_like(all, 1);
    const Output most = g.add(
        "StopGradient",
        {g.add("Max", {all}, {{"axes", std::vector<std::int64_t>{-1}}, {"keep_dims", true}})});
    const Output closed =
        g.add("Equal", {most, scalar_like(all, -std::numeric_limits<double>::infinity())});
    const Output shift = where(closed, zero, most);
    const Output weights = g.add("Exp", {minus(all, shift)});
    const Output sum = row_sums(weights), some = where(closed, one, sum);
    const Output y = product(divide(weights, some), wide(x[2]), false, false);
    const Output stats = g.add("Squeeze", {plus(g.add("Log", {some}), shift)},
                               {{"axes", std::vector<std::int64_t>{-1}}});
    return {of_dtype(y, type), stats};
  }

  // dq, dk and dv, of dy, q, k, v, y and stats.
  std::vector<Output> backward(const std::vector<Output>& x) const {
    const DType type = x[0].dtype();
    const Output dy = wide(x[0]), q = wide(x[1]), k = wide(x[2]), v = wide(x[3]);
    const Output stats = g.add("ExpandDims", {x[5]}, {{"axis", std::int64_t{-1}}});
    const Output weights = g.add("Exp", {minus(scores(q, k), stats)});
    const Output mean = row_sums(multiply(dy, wide(x[4])));
    Output slopes = multiply(weights, minus(product(dy, v, false, true), mean));
    slopes = multiply(slopes, scalar_like(slopes, scale));
    return {of_dtype(product(slopes, k, false, false), type),
            of_dtype(product(slopes, q, true, false), type),
            of_dtype(product(weights, dy, true, false), type)};
  }
};

AttentionParts parts_of(const GradContext& c, std::size_t tensors) {
  return {c.g, c.float_attr("scale"), c.bool_attr("causal"),
          c.x.size() > tensors ? c.x[tensors] : Output()};
}

// Nothing but the gradient asks for the stats: only a second derivative has a gradient for them.
std::vector<Output> attention_grad(GradContext& c) {
  if (c.g.node(c.dy[1].node()).op != "ZerosLike")
    return gradient_through(
        c, [&](const std::vector<Output>& x) { return parts_of(c, 3).forward(x); });
  std::vector<Output> inputs{c.dy[0], c.x[0], c.x[1], c.x[2], c.y[0], c.y[1]};
  if (c.x.size() > 3) inputs.push_back(c.x[3]);
  std::vector<Output> made = c.g.add(NodeSpec{.op = c.x.size() > 3 ? "MaskedDotProductAttentionGrad"
                                                                   : "DotProductAttentionGrad",
                                              .inputs = std::move(inputs),
                                              .attrs = {{"scale", c.float_attr("scale")},
                                                        {"causal", c.bool_attr("causal")},
                                                        {"Tstats", c.y[1].dtype()}}})
                                 .outputs();
  made.resize(c.x.size());
  return made;
}

std::vector<Output> attention_grad_grad(GradContext& c) {
  return gradient_through(c,
                          [&](const std::vector<Output>& x) { return parts_of(c, 6).backward(x); });
}

// Which keys a query may look at.
class AttentionOpen {
 public:
  static Expected<AttentionOpen> of(const KernelContext& c, int mask, bool causal,
                                    const AttentionSizes& s) {
    AttentionOpen open;
    open.causal_ = causal;
    if (mask >= c.inputs()) return open;
    TROUPE_TRY(open.strides_, AttentionMask::of(c.input(mask).shape(), s));
    open.mask_ = c.input(mask).data<bool>();
    return open;
  }
  // The keys before this one are all that query i may look at.
  std::int64_t end(std::int64_t i, std::int64_t keys) const {
    return causal_ ? std::min(keys, i + 1) : keys;
  }
  // Whether the mask leaves it any.
  bool any(const AttentionSizes& s, std::int64_t problem, std::int64_t i) const {
    const std::int64_t n = end(i, s.keys);
    if (!mask_) return n > 0;
    const bool* row = mask_ + strides_.at(problem, s) + i * strides_.row;
    for (std::int64_t j = 0; j < n; ++j)
      if (row[j * strides_.column]) return true;
    return false;
  }
  // x[j] is `value` where query i must not look at key j, below `columns`.
  template <class C>
  void close(const AttentionSizes& s, std::int64_t problem, std::int64_t i, std::int64_t columns,
             C* x, C value) const {
    const std::int64_t n = std::min(columns, end(i, s.keys));
    if (mask_) {
      const bool* row = mask_ + strides_.at(problem, s) + i * strides_.row;
      for (std::int64_t j = 0; j < n; ++j)
        if (!row[j * strides_.column]) x[j] = value;
    }
    std::fill(x + n, x + columns, value);
  }

 private:
  bool causal_ = false;
  const bool* mask_ = nullptr;
  AttentionMask strides_;
};

// A tensor in the type C that it is computed in.
template <class C>
Expected<Tensor> attention_wide(const KernelContext& c, const Tensor& x) {
  if (x.dtype() == dtype_of<C>) return x;
  TROUPE_TRY(Tensor made, c.allocate(dtype_of<C>, x.shape()));
  if constexpr (std::is_same_v<C, float>) {
    const auto* from = static_cast<const std::byte*>(x.raw());
    float* to = made.mutable_data<float>();
    for_chunks(c, x.elements(),
               [&](Range r) { widen_row(x.dtype(), from + r.begin * 2, r.size(), to + r.begin); });
  }
  return made;
}
// And back, rounded once.
Expected<Tensor> attention_narrow(const KernelContext& c, DType dtype, const Tensor& x) {
  if (x.dtype() == dtype) return x;
  TROUPE_TRY(Tensor made, c.allocate(dtype, x.shape()));
  auto* to = static_cast<std::byte*>(made.mutable_raw());
  for_chunks(c, x.elements(), [&](Range r) {
    narrow_row(x.data<float>() + r.begin, r.size(), dtype, to + r.begin * 2);
  });
  return made;
}

constexpr std::int64_t kQueryRows = 128;

template <class C>
class AttentionForward final : public Kernel {
 public:
  explicit AttentionForward(const KernelSpec& spec)
      : dtype_(spec.type()),
        scale_(C(spec.float_attr("scale"))),
        causal_(spec.bool_attr("causal")) {}

  Status compute(KernelContext& c) override {
    TROUPE_TRY(const AttentionSizes s, AttentionSizes::of(c.input(0), c.input(1), c.input(2)));
    TROUPE_TRY(const AttentionOpen open, AttentionOpen::of(c, 3, causal_, s));
    TROUPE_TRY(const Tensor q, attention_wide<C>(c, c.input(0)));
    TROUPE_TRY(const Tensor k, attention_wide<C>(c, c.input(1)));
    TROUPE_TRY(const Tensor v, attention_wide<C>(c, c.input(2)));
    TROUPE_TRY(const Shape of_y, s.matrices(s.queries, s.out));
    TROUPE_TRY(const Shape of_stats, s.stats());
    TROUPE_TRY(Tensor y, c.allocate(dtype_of<C>, of_y));
    TROUPE_TRY(Tensor stats, c.allocate(dtype_of<C>, of_stats));
    C *to = y.mutable_data<C>(), *logs = stats.mutable_data<C>();
    const Chunks blocks = Chunks::of_step(s.queries, kQueryRows);
    TROUPE_TRY(parallel_chunks(c, s.count * blocks.count, [&](std::int64_t i) -> Status {
      const std::int64_t problem = i / blocks.count;
      const Range rows = blocks[i % blocks.count];
      const std::int64_t first = problem * s.queries + rows.begin;
      const std::int64_t columns = open.end(rows.end - 1, s.keys);
      TROUPE_TRY(Tensor scores, c.allocate(dtype_of<C>, Shape{rows.size(), columns}));
      C* x = scores.mutable_data<C>();
      TROUPE_TRY(gemm<C>(rows.size(), columns, s.size, {q.data<C>() + first * s.size, s.size},
                         {k.data<C>() + problem * s.keys * s.size, s.size, true}, false,
                         {x, columns}));
      for (std::int64_t r = 0; r < rows.size(); ++r)
        logs[first + r] = weigh(open, s, problem, rows.begin + r, columns, x + r * columns);
      return gemm<C>(rows.size(), s.out, columns, {x, columns},
                     {v.data<C>() + problem * s.keys * s.out, s.out}, false,
                     {to + first * s.out, s.out});
    }));
    TROUPE_TRY(y, attention_narrow(c, dtype_, y));
    c.set_output(0, std::move(y));
    c.set_output(1, std::move(stats));
    return ok_status();
  }

 private:
  // A row of products becomes one of weights. The logarithm of what they are divided by.
  C weigh(const AttentionOpen& open, const AttentionSizes& s, std::int64_t problem, std::int64_t i,
          std::int64_t columns, C* x) const {
    if (!open.any(s, problem, i)) {
      std::fill_n(x, columns, C(0));
      return 0;
    }
    for (std::int64_t j = 0; j < columns; ++j) x[j] *= scale_;
    open.close(s, problem, i, columns, x, -std::numeric_limits<C>::infinity());
    const RowOfSoftmax<C> row = softmax_row(x, columns, x);
    return row.max + row.log_sum;
  }

  const DType dtype_;
  const C scale_;
  const bool causal_;
};

template <class C>
class AttentionBackward final : public Kernel {
 public:
  explicit AttentionBackward(const KernelSpec& spec)
      : dtype_(spec.type()),
        scale_(C(spec.float_attr("scale"))),
        causal_(spec.bool_attr("causal")) {}

  Status compute(KernelContext& c) override {
    TROUPE_TRY(const AttentionSizes s, AttentionSizes::of(c.input(1), c.input(2), c.input(3)));
    TROUPE_TRY(const AttentionOpen open, AttentionOpen::of(c, 6, causal_, s));
    TROUPE_TRY(
        check_attention_outputs(s, c.input(0).shape(), c.input(4).shape(), c.input(5).shape()));
    Tensor in[5], out[3];
    for (int i = 0; i < 5; ++i) {
      TROUPE_TRY(in[i], attention_wide<C>(c, c.input(i)));
    }
    for (int i = 0; i < 3; ++i) {
      TROUPE_TRY(out[i], c.allocate(dtype_of<C>, c.input(1 + i).shape()));
    }
    C *dq = out[0].mutable_data<C>(), *dk = out[1].mutable_data<C>(),
      *dv = out[2].mutable_data<C>();
    TROUPE_TRY(parallel_chunks(c, s.count, [&](std::int64_t i) {
      const std::int64_t of_q = i * s.queries * s.size, of_k = i * s.keys * s.size;
      const std::int64_t of_y = i * s.queries * s.out, of_v = i * s.keys * s.out;
      const One one{in[0].data<C>() + of_y,
                    in[1].data<C>() + of_q,
                    in[2].data<C>() + of_k,
                    in[3].data<C>() + of_v,
                    in[4].data<C>() + of_y,
                    c.input(5).data<C>() + i * s.queries,
                    dq + of_q,
                    dk + of_k,
                    dv + of_v};
      return solve(c, open, s, i, one);
    }));
    for (int i = 0; i < 3; ++i) {
      TROUPE_TRY(Tensor made, attention_narrow(c, dtype_, out[i]));
      c.set_output(i, std::move(made));
    }
    return ok_status();
  }

 private:
  // One problem.
  struct One {
    const C *dy, *q, *k, *v, *y, *stats;
    C *dq, *dk, *dv;
  };

  Status solve(const KernelContext& c, const AttentionOpen& open, const AttentionSizes& s,
               std::int64_t problem, const One& one) const {
    std::fill_n(one.dk, s.keys * s.size, C(0));
    std::fill_n(one.dv, s.keys * s.out, C(0));
    const Chunks blocks = Chunks::of_step(s.queries, kQueryRows);
    for (std::int64_t b = 0; b < blocks.count && !c.cancelled(); ++b) {
      const Range rows = blocks[b];
      const std::int64_t m = rows.size(), n = open.end(rows.end - 1, s.keys);
      const C *dy = one.dy + rows.begin * s.out, *q = one.q + rows.begin * s.size;
      TROUPE_TRY(Tensor both, c.allocate(dtype_of<C>, Shape{2, m, n}));
      C *weights = both.mutable_data<C>(), *slopes = weights + m * n;
      TROUPE_TRY(gemm<C>(m, n, s.size, {q, s.size}, {one.k, s.size, true}, false, {weights, n}));
      TROUPE_TRY(gemm<C>(m, n, s.out, {dy, s.out}, {one.v, s.out, true}, false, {slopes, n}));
      for (std::int64_t r = 0; r < m; ++r) {
        const std::int64_t i = rows.begin + r;
        const C* y = one.y + i * s.out;
        const C mean = row_sum<C>(s.out, [&](std::int64_t j) { return dy[r * s.out + j] * y[j]; });
        C *p = weights + r * n, *d = slopes + r * n;
        slope(p, d, n, one.stats[i], mean);
        for (C* row : {p, d}) open.close(s, problem, i, n, row, C(0));
      }
      TROUPE_TRY(gemm<C>(n, s.out, m, {weights, n, true}, {dy, s.out}, true, {one.dv, s.out}));
      TROUPE_TRY(gemm<C>(n, s.size, m, {slopes, n, true}, {q, s.size}, true, {one.dk, s.size}));
      TROUPE_TRY(gemm<C>(m, s.size, n, {slopes, n}, {one.k, s.size}, false,
                         {one.dq + rows.begin * s.size, s.size}));
    }
    return ok_status();
  }

  // Products become weights, and the gradients of weights those of products.
  void slope(C* weights, C* slopes, std::int64_t n, C stats, C mean) const {
    map_packets<C>(n, {weights, slopes}, {1, 1}, {weights, slopes}, [=, this](auto at, auto to) {
      const Packet<C> weight = exp_value(at(0) * scale_ - stats);
      const Packet<C> slope = at(1) - mean;
      to(0, weight);
      to(1, weight * slope * scale_);
    });
  }

  const DType dtype_;
  const C scale_;
  const bool causal_;
};

template <template <class> class K>
Expected<std::unique_ptr<Kernel>> attention_kernel(const KernelSpec& spec) {
  if (spec.type() == DType::f64) return std::unique_ptr<Kernel>(new K<double>(spec));
  return std::unique_ptr<Kernel>(new K<float>(spec));
}

OpDef attention_op(bool masked) {
  OpDef op{.name = masked ? "MaskedDotProductAttention" : "DotProductAttention",
           .in = {"q", "k", "v"},
           .out = {"y", "stats: Tstats"},
           .types = kFloats,
           .attrs = {"scale: float = 1.0", "causal: bool = false", "Tstats: type {f32 f64} = f32"},
           .shape = attention_shape,
           .grad = attention_grad,
           .contraction = true,
           .doc =
               "y = softmax(scale q k^T) v over q [...,queries,size], k [...,keys,size] and v "
               "[...,keys,out]. causal: query i looks at keys 0 to i. stats are the logarithms "
               "of the sums that weights are divided by, of type Tstats: f64 for f64, else f32."};
  if (!masked) return op;
  op.in.push_back("mask: bool");
  op.doc =
      "DotProductAttention where the mask, which broadcasts to [...,queries,keys], is true. A "
      "query that "
      "may not look at any key has zeros, stats of 0, and no gradient.";
  return op;
}

OpDef attention_grad_op(bool masked) {
  OpDef op{.name = masked ? "MaskedDotProductAttentionGrad" : "DotProductAttentionGrad",
           .in = {"dy", "q", "k", "v", "y", "stats: Tstats"},
           .out = {"dq", "dk", "dv"},
           .types = kFloats,
           .attrs = {"scale: float = 1.0", "causal: bool = false", "Tstats: type {f32 f64} = f32"},
           .shape = attention_grad_shape,
           .grad = attention_grad_grad,
           .contraction = true,
           .doc = "The gradient of DotProductAttention, given its outputs."};
  if (!masked) return op;
  op.in.push_back("mask: bool");
  op.doc = "The gradient of MaskedDotProductAttention, given its outputs.";
  return op;
}

}  // namespace

TROUPE_OPS(attention) {
  for (const bool masked : {false, true}) {
    r.add(attention_op(masked)).cpu(attention_kernel<AttentionForward>).cuda(cuda::attention);
    r.add(attention_grad_op(masked))
        .cpu(attention_kernel<AttentionBackward>)
        .cuda(cuda::attention_grad);
  }
}
