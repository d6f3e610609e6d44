#include "devices/cuda/attention_plan.hpp"

#include <fmt/format.h>

#include <limits>
#include <utility>

namespace troupe::cuda {
namespace {

// What tensors are called among the pointers of a run. Those between operations are numbered from
// `between` on.
struct Id {
  enum Value : std::int64_t {
    q = 1,
    k,
    v,
    y,
    stats,
    bias,
    dy,
    dq,
    dk,
    dv,
    sums,
    scale,
    never,
    one,
    between
  };
};

// The operations that cuDNN knows as attention: it looks for just these.
class AttentionGraph {
 public:
  using Number = DnnGraph::Number;
  using Dims = std::array<std::int64_t, 4>;

  AttentionGraph(const Cudnn& library, const DnnAttention& a)
      : graph_(library), a_(a), type_(dnn_type(a.dtype)) {}

  // s = scale q k^T + bias; p = softmax(s); y = p v.
  Status forward() {
    TROUPE_TRY(const Number q, matrix(Id::q, a_.queries, a_.size));
    TROUPE_TRY(const Number k, turned(Id::k, a_.keys, a_.size));
    TROUPE_TRY(const Number v, matrix(Id::v, a_.keys, a_.out));
    TROUPE_TRY(const Number y, matrix(Id::y, a_.queries, a_.out));
    TROUPE_TRY(const Number stats, column(Id::stats));
    TROUPE_TRY(const Number scale, number(Id::scale));
    TROUPE_TRY(Number s, products(q, k, scale));
    TROUPE_TRY(s, causal(s));
    TROUPE_TRY(const Number most, column_between());
    TROUPE_TRY(graph_.add_reduction(kDnnMax, s, most));
    TROUPE_TRY(const Number less, pointwise(kDnnSub, s, most));
    TROUPE_TRY(const Number powers, pointwise(kDnnExp, less));
    TROUPE_TRY(const Number sum, column_between());
    TROUPE_TRY(graph_.add_reduction(kDnnSum, powers, sum));
    TROUPE_TRY(const Number log, column_between());
    TROUPE_TRY(graph_.add({.mode = kDnnLog, .x = sum, .y = log}));
    TROUPE_TRY(graph_.add({.mode = kDnnAdd, .x = most, .y = stats, .b = log}));
    TROUPE_TRY(const Number weights, scores_of(type_));
    TROUPE_TRY(graph_.add({.mode = kDnnDiv, .x = powers, .y = weights, .b = sum}));
    return graph_.add_product(weights, v, y);
  }

  // p = e^(s - stats); dv = p^T dy; ds = p (dy v^T - sum(dy y)) scale; dk = ds^T q; dq = ds k. That
  // dq is made by a product alone, with no sum in memory of f32, asks for an order of its own.
  Status backward() {
    TROUPE_TRY(const Number q, matrix(Id::q, a_.queries, a_.size));
    TROUPE_TRY(const Number k, turned(Id::k, a_.keys, a_.size));
    TROUPE_TRY(const Number v, turned(Id::v, a_.keys, a_.out));
    TROUPE_TRY(const Number y, matrix(Id::y, a_.queries, a_.out));
    TROUPE_TRY(const Number dy, matrix(Id::dy, a_.queries, a_.out));
    TROUPE_TRY(const Number stats, column(Id::stats));
    TROUPE_TRY(const Number sums, column(Id::sums));
    TROUPE_TRY(const Number dq, matrix(Id::dq, a_.queries, a_.size));
    TROUPE_TRY(const Number dk, matrix(Id::dk, a_.keys, a_.size));
    TROUPE_TRY(const Number dv, matrix(Id::dv, a_.keys, a_.out));
    TROUPE_TRY(const Number scale, number(Id::scale));
    TROUPE_TRY(const Number one, number(Id::one));

    const Dims of_y{a_.batch, a_.heads, a_.queries, a_.out};
    TROUPE_TRY(const Number both, between(kDnnF32, of_y, in_order(of_y)));
    TROUPE_TRY(graph_.add({.mode = kDnnMul, .x = dy, .y = both, .b = y}));
    TROUPE_TRY(const Number added, column_between());
    TROUPE_TRY(graph_.add_reduction(kDnnSum, both, added));
    TROUPE_TRY(graph_.add({.mode = kDnnMul, .x = added, .y = sums, .b = one}));

    TROUPE_TRY(Number s, products(q, k, scale));
    TROUPE_TRY(s, pointwise(kDnnSub, s, stats));
    TROUPE_TRY(s, causal(s));
    TROUPE_TRY(const Number weights, pointwise(kDnnExp, s));
    TROUPE_TRY(const Number weights_turned, view_turned(weights));
    TROUPE_TRY(graph_.add_product(weights_turned, dy, dv));

    TROUPE_TRY(const Number dp, scores_of(kDnnF32));
    TROUPE_TRY(graph_.add_product(dy, v, dp));
    TROUPE_TRY(const Number less, pointwise(kDnnSub, dp, sums));
    TROUPE_TRY(const Number slopes, pointwise(kDnnMul, less, weights));
    TROUPE_TRY(const Number ds, scores_of(type_));
    TROUPE_TRY(graph_.add({.mode = kDnnMul, .x = slopes, .y = ds, .b = scale}));
    TROUPE_TRY(const Number ds_turned, view_turned(ds));
    TROUPE_TRY(graph_.add_product(ds_turned, q, dk));
    const Dims of_k{a_.batch, a_.heads, a_.keys, a_.size};
    TROUPE_TRY(const Number k_again, between(type_, of_k, in_order(of_k)));
    TROUPE_TRY(graph_.add_view(k, k_again));
    return graph_.add_product(ds, k_again, dq);
  }

  Expected<std::vector<DnnDescriptor>> finish(const DnnTarget& target) && {
    return std::move(graph_).finish(target);
  }

 private:
  static Dims in_order(const Dims& d) { return {d[1] * d[2] * d[3], d[2] * d[3], d[3], 1}; }
  Dims of_scores() const { return {a_.batch, a_.heads, a_.queries, a_.keys}; }
  Dims of_column() const { return {a_.batch, a_.heads, a_.queries, 1}; }

  Expected<Number> matrix(Id::Value id, std::int64_t rows, std::int64_t columns) {
    const Dims dims{a_.batch, a_.heads, rows, columns};
    return graph_.add({type_, id, dims, in_order(dims)});
  }
  // The transposed matrices of memory as above.
  Expected<Number> turned(Id::Value id, std::int64_t rows, std::int64_t columns) {
    const std::int64_t all = rows * columns;
    return graph_.add(
        {type_, id, {a_.batch, a_.heads, columns, rows}, {a_.heads * all, all, 1, columns}});
  }
  Expected<Number> column(Id::Value id) {
    return graph_.add({kDnnF32, id, of_column(), in_order(of_column())});
  }
  Expected<Number> number(Id::Value id) {
    return graph_.add({kDnnF32, id, {1, 1, 1, 1}, {1, 1, 1, 1}, 16, DnnGraph::Tensor::by_value});
  }
  Expected<Number> between(DnnType type, const Dims& dims, const Dims& strides) {
    return graph_.add({type, next_++, dims, strides, 16, DnnGraph::Tensor::between});
  }
  Expected<Number> scores_of(DnnType type) {
    return between(type, of_scores(), in_order(of_scores()));
  }
  Expected<Number> column_between() { return between(kDnnF32, of_column(), in_order(of_column())); }
  Expected<Number> view_turned(Number scores) {
    const Dims strides = in_order(of_scores());
    TROUPE_TRY(const Number y, between(type_, {a_.batch, a_.heads, a_.keys, a_.queries},
                                       {strides[0], strides[1], 1, strides[2]}));
    TROUPE_TRY(graph_.add_view(scores, y));
    return y;
  }

  // Scores of f32, made of others.
  Expected<Number> pointwise(DnnPointwiseMode mode, Number x, std::optional<Number> b = {}) {
    TROUPE_TRY(const Number y, scores_of(kDnnF32));
    TROUPE_TRY(graph_.add({.mode = mode, .x = x, .y = y, .b = b}));
    return y;
  }
  Expected<Number> products(Number q, Number k, Number scale) {
    TROUPE_TRY(const Number all, scores_of(kDnnF32));
    TROUPE_TRY(graph_.add_product(q, k, all));
    TROUPE_TRY(const Number scaled, pointwise(kDnnMul, all, scale));
    if (a_.bias_batch == 0) return scaled;
    const Dims dims{a_.bias_batch, a_.bias_heads, a_.queries, a_.keys};
    TROUPE_TRY(const Number bias, graph_.add({type_, Id::bias, dims, in_order(dims)}));
    return pointwise(kDnnAdd, scaled, bias);
  }
  Expected<Number> causal(Number s) {
    if (!a_.causal) return s;
    const Dims dims = of_scores(), strides = in_order(dims);
    TROUPE_TRY(const Number row, between(kDnnI32, dims, strides));
    TROUPE_TRY(graph_.add(
        {.mode = kDnnIndex, .x = s, .y = row, .compute = kDnnI32, .axis = std::int64_t{2}}));
    TROUPE_TRY(const Number column, between(kDnnI32, dims, strides));
    TROUPE_TRY(graph_.add(
        {.mode = kDnnIndex, .x = s, .y = column, .compute = kDnnI32, .axis = std::int64_t{3}}));
    TROUPE_TRY(const Number open, between(kDnnBool, dims, strides));
    TROUPE_TRY(graph_.add(
        {.mode = kDnnGreaterEqual, .x = row, .y = open, .compute = kDnnBool, .b = column}));
    TROUPE_TRY(const Number never, number(Id::never));
    TROUPE_TRY(const Number y, scores_of(kDnnF32));
    TROUPE_TRY(graph_.add({.mode = kDnnSelect, .x = s, .y = y, .b = never, .t = open}));
    return y;
  }

  DnnGraph graph_;
  const DnnAttention& a_;
  const DnnType type_;
  std::int64_t next_ = Id::between;
};

// Ok, or why the library is not asked.
Status askable(const Cudnn& library, const DnnAttention& a, const std::string& architecture) {
  const auto version = [](int v) {
    return fmt::format("cuDNN {}.{}.{}", v / 10000, v / 100 % 100, v % 100);
  };
  if (a.dtype != DType::f16 && a.dtype != DType::bf16)
    return unimplemented("cuDNN computes attention of f16 and bf16, not of " +
                         std::string(dtype_name(a.dtype)));
  if (library.version < AttentionPlan::kOldest)
    return unimplemented(version(library.version) + " is not asked for attention: that takes " +
                         version(AttentionPlan::kOldest));
  if (!a.gradient) return ok_status();
  if (!architecture.starts_with("sm_8") && !architecture.starts_with("sm_9"))
    return unimplemented("cuDNN knows no gradient of attention for " + architecture +
                         " that adds up in a fixed order");
  if (a.queries == 1 && a.keys == 1)
    return unimplemented("cuDNN knows no gradient of attention of one query to one key");
  if (a.keys % 128 != 0 && library.version <= 91500)
    return unimplemented(version(library.version) +
                         " is not asked for gradients of attention to a number of keys that is no "
                         "multiple of 128");
  return ok_status();
}

}  // namespace

Expected<std::vector<AttentionPlan>> AttentionPlan::make_several(const Cudnn& library,
                                                                 const DnnAttention& a,
                                                                 const DnnTarget& target,
                                                                 const Limits& limits,
                                                                 std::size_t most, bool* for_good) {
  if (Status status = askable(library, a, limits.architecture); !status.ok()) {
    if (for_good) *for_good = true;
    return status;
  }
  AttentionGraph graph(library, a);
  TROUPE_TRY(a.gradient ? graph.backward() : graph.forward());
  auto described = std::move(graph).finish(target);
  if (!described.ok()) {
    if (for_good) *for_good = described.status().code() == Code::unimplemented;
    return described.status();
  }
  // Tensor cores have these types.
  const auto allowed = [](DnnNumericalNote note) {
    return note == kDnnTensorCore || note == kDnnStrictNanPropagation;
  };
  TROUPE_TRY(auto made, DnnPlan::make_several(library, std::move(*described), target,
                                              limits.workspace, allowed, most, for_good));
  std::vector<AttentionPlan> plans;
  for (DnnPlan& plan : made) plans.push_back(AttentionPlan(std::move(plan), a));
  return plans;
}

Expected<AttentionPlan> AttentionPlan::make(const Cudnn& library, const DnnAttention& a,
                                            const DnnTarget& target, const Limits& limits) {
  TROUPE_TRY(auto plans, make_several(library, a, target, limits, 1));
  return std::move(plans[0]);
}

std::string AttentionPlan::text_of(const DnnAttention& a) {
  return fmt::format("attention {} {} {} {} {} {} {} {}, causal {}, bias {} {}", int(a.gradient),
                     dtype_name(a.dtype), a.batch, a.heads, a.queries, a.keys, a.size, a.out,
                     int(a.causal), a.bias_batch, a.bias_heads);
}

Status AttentionPlan::run(DnnHandle handle, const DnnAttentionOperands& o, void* workspace) const {
  const float never = -std::numeric_limits<float>::infinity(), one = 1;
  std::vector<std::int64_t> ids{Id::q, Id::k, Id::v, Id::y, Id::stats, Id::scale};
  std::vector<const void*> pointers{o.q, o.k, o.v, o.y, o.stats, &o.scale};
  const auto give = [&](Id::Value id, const void* pointer) {
    ids.push_back(id);
    pointers.push_back(pointer);
  };
  if (attention_.bias_batch != 0) give(Id::bias, o.bias);
  if (attention_.causal) give(Id::never, &never);
  if (attention_.gradient) {
    give(Id::one, &one);
    give(Id::sums, o.sums);
    give(Id::dy, o.dy), give(Id::dq, o.dq), give(Id::dk, o.dk), give(Id::dv, o.dv);
  }
  return plan_.run(handle, ids, pointers, workspace);
}

}  // namespace troupe::cuda
