#include "ops/api/math.hpp"

#include <fmt/format.h>

#include <cmath>
#include <span>

#include "graph/gradients.hpp"
#include "ops/api/constant.hpp"
#include "ops/api/node.hpp"
#include "ops/api/operators.hpp"
#include "ops/detail/extent.hpp"
#include "ops/detail/wide.hpp"

namespace troupe {

namespace {

Output list_of(Output x, const std::vector<std::int64_t>& values, const char* op,
               const Site& site) {
  if (x.empty()) throw Error(invalid_argument(std::string(op) + ": x is empty").at(site));
  return constant(x.graph(), values, site);
}

template <class Ys>
std::vector<Output> gradients_or_throw(const Ys& ys, const std::vector<Output>& xs,
                                       const Site& site) {
  auto made = gradients(std::span<const Output>(ys.begin(), ys.end()), xs);
  if (!made.ok()) throw Error(made.status().at(site));
  return std::move(made).value();
}

bool is_matrix(const Output& x) {
  return x.empty() || !x.shape().known_rank() || x.shape().rank() == 2;
}
bool is_vector(const Output& x) {
  return !x.empty() && x.shape().known_rank() && x.shape().rank() == 1;
}

}  // namespace

Output abs(Output x, Site site) {
  const bool complex = !x.empty() && is_complex(x.dtype());
  return add_node({.op = complex ? "ComplexAbs" : "Abs", .inputs = {x}, .site = std::move(site)})
      .output();
}

Output matmul(Output a, Output b, const MatMulOptions& options, Site site) {
  const bool row = is_vector(a), column = is_vector(b);
  if ((row && options.transpose_a) || (column && options.transpose_b))
    throw Error(invalid_argument("matmul: a vector is not transposed").at(site));
  if (row || column) {
    const Output product = matmul(row ? expand_dims(a, 0, site) : a,
                                  column ? expand_dims(b, -1, site) : b, options, site);
    std::vector<std::int64_t> made;
    if (row) made.push_back(-2);
    if (column) made.push_back(-1);
    return squeeze(product, made, site);
  }
  if (is_matrix(a) && is_matrix(b)) return mat_mul(a, b, options, std::move(site));
  return batch_mat_mul(a, b,
                       {.transpose_a = options.transpose_a, .transpose_b = options.transpose_b},
                       std::move(site));
}

std::vector<Output> gradients(Output y, const std::vector<Output>& xs, Site site) {
  return gradients_or_throw(std::initializer_list<Output>{y}, xs, site);
}
std::vector<Output> gradients(std::initializer_list<Output> ys, const std::vector<Output>& xs,
                              Site site) {
  return gradients_or_throw(ys, xs, site);
}

Output argmax(Output x, std::int64_t axis, Site site) {
  return arg_max(x, {.axis = axis}, std::move(site));
}
Output argmin(Output x, std::int64_t axis, Site site) {
  return arg_min(x, {.axis = axis}, std::move(site));
}

Output where(Output condition, const Operand& a, const Operand& b, Site site) {
  return select(condition, a, b, std::move(site));
}

namespace {

Output log_to_base(const char* what, Output x, double base, const Site& site) {
  check_given(what, x, site);
  const Output natural = log(detail::wide(x, site), site);
  return detail::narrow(div(natural, number_beside(natural, std::log(base), what, site), site),
                        x.dtype(), site);
}

}  // namespace

Output log2(Output x, Site site) { return log_to_base("log2: x", x, 2, site); }
Output log10(Output x, Site site) { return log_to_base("log10: x", x, 10, site); }

Output logaddexp(const Operand& a, const Operand& b, Site site) {
  const Output x = value_beside(a, {&a, &b}, site), y = value_beside(b, {&a, &b}, site);
  check_given("logaddexp: `a`", x, site);
  check_given("logaddexp: `b`", y, site);
  // The larger one is chosen, not computed by maximum() and abs(), which have no second derivative
  // where both are equal.
  const auto f = [&](const Output& x, const Output& y) {
    const Output first = greater_equal(x, y, site);
    const Output top = select(first, x, y, site), other = select(first, y, x, site);
    // An infinity that both are has no difference.
    const Output endless = logical_and(equal(x, y, site), is_inf(x, site), site);
    const Output apart =
        select(endless, number_beside(x, 0, "", site), sub(other, top, site), site);
    return add(top, softplus(apart, site), site);
  };
  return detail::in_wide(site, f, x, y);
}

Output range(GraphBuilder& g, std::int64_t limit, Site site) {
  return range(g, 0, limit, 1, std::move(site));
}
Output range(GraphBuilder& g, std::int64_t start, std::int64_t limit, std::int64_t delta,
             Site site) {
  return range(constant(g, start, site), constant(g, limit, site), constant(g, delta, site), site);
}

Output reshape(Output x, const std::vector<std::int64_t>& shape, Site site) {
  const Output dims = list_of(x, shape, "reshape", site);
  return reshape(x, dims, std::move(site));
}

Output flatten(Output x, Site site) {
  check_given("flatten: x", x, site);
  const PartialShape shape = x.shape();
  std::int64_t size = 1;
  bool known = shape.known_rank() && shape.rank() >= 1;
  for (int i = 1; known && i < shape.rank(); ++i) {
    known = shape.known(i);
    size *= shape[i];
  }
  if (!known)
    throw Error(invalid_argument("flatten: every dimension of '" + x.name() +
                                 "' but the first must be known, not " + shape.text())
                    .at(site));
  // Named, because -1 cannot be told when a dimension is 0.
  return reshape(x, {shape[0], size}, std::move(site));
}

Output broadcast_to(Output x, const std::vector<std::int64_t>& shape, Site site) {
  const Output dims = list_of(x, shape, "broadcast_to", site);
  return broadcast_to(x, dims, std::move(site));
}

Output slice(Output x, const std::vector<std::int64_t>& begin,
             const std::vector<std::int64_t>& size, Site site) {
  const Output from = list_of(x, begin, "slice", site), sizes = list_of(x, size, "slice", site);
  return slice(x, from, sizes, std::move(site));
}

std::vector<Output> split(Output x, std::initializer_list<std::int64_t> sizes, std::int64_t axis,
                          Site site) {
  return split(x, std::int64_t(sizes.size()), {.axis = axis, .sizes = sizes}, std::move(site));
}

Output roll(Output x, std::int64_t shift, std::int64_t axis, Site site) {
  return roll(x, std::vector{shift}, std::vector{axis}, std::move(site));
}

Output stack(const std::vector<Output>& values, std::int64_t axis, Site site) {
  return pack(values, {.axis = axis}, std::move(site));
}

std::vector<Output> unstack(Output x, std::int64_t axis, Site site) {
  const int place = detail::place_of(x, axis, "unstack", site);
  if (!x.shape().known(place))
    throw Error(invalid_argument("unstack: dimension " + std::to_string(axis) + " of '" + x.name() +
                                 "' must be known, not " + x.shape().text())
                    .at(site));
  return unpack(x, x.shape()[place], {.axis = axis}, std::move(site));
}

Output detail::along(Output (*f)(Output, Site), Output x, std::int64_t axis, Site site) {
  if (axis == -1) return f(x, std::move(site));
  const int place = detail::place_of(x, axis, "softmax", site), last = x.shape().rank() - 1;
  if (place == last) return f(x, std::move(site));
  std::vector<std::int64_t> swapped;
  for (int i = 0; i <= last; ++i) swapped.push_back(i == place ? last : i == last ? place : i);
  const Output rows = f(transpose(x, {.perm = swapped}, site), site);
  return transpose(rows, {.perm = swapped}, std::move(site));
}

Output softmax_cross_entropy(Output logits, Output labels, Site site) {
  check_given("softmax_cross_entropy: `logits`", logits, site);
  check_given("softmax_cross_entropy: `labels`", labels, site);
  const PartialShape &of_logits = logits.shape(), &of_labels = labels.shape();
  if (!is_integer(labels.dtype()) && of_logits.known_rank() && of_labels.known_rank() &&
      of_labels.rank() + 1 == of_logits.rank())
    throw Error(
        invalid_argument(
            fmt::format(
                "softmax_cross_entropy: labels {}{} for logits {}: class numbers are integers, "
                "and probabilities have the shape of the logits",
                dtype_name(labels.dtype()), of_labels.text(), of_logits.text()))
            .at(site));
  const char* op = is_integer(labels.dtype()) ? "SparseSoftmaxCrossEntropyWithLogits"
                                              : "SoftmaxCrossEntropyWithLogits";
  return add_node({.op = op, .inputs = {logits, labels}, .site = std::move(site)}).output();
}

Output softmax_cross_entropy(Output logits, Output labels,
                             const SoftmaxCrossEntropyOptions& options, Site site) {
  const double spread = options.label_smoothing;
  if (!(spread >= 0 && spread < 1))
    throw Error(
        invalid_argument("softmax_cross_entropy: label_smoothing must be in [0, 1)").at(site));
  const Output loss = softmax_cross_entropy(logits, labels, site);
  if (spread == 0) return loss;
  if (detail::is_narrow(logits)) {
    const Output wide = is_integer(labels.dtype()) ? labels : detail::wide(labels, site);
    return cast(softmax_cross_entropy(detail::wide(logits, site), wide, options, site),
                logits.dtype(), site);
  }
  const Output even = neg(mean(log_softmax(logits, site), {.axes = {-1}}, site), site);
  return Operand(loss, site) * Operand(1 - spread, site) +
         Operand(even, site) * Operand(spread, site);
}

Output max_pool(Output x, std::int64_t size, Site site) {
  return max_pool(x, {size, size}, {size, size}, {}, std::move(site));
}

Output avg_pool(Output x, std::int64_t size, Site site) {
  return avg_pool(x, {size, size}, {size, size}, {}, std::move(site));
}

Output max_pool(Output x, std::int64_t size, std::int64_t stride, const MaxPoolOptions& options,
                Site site) {
  return max_pool(x, {size, size}, {stride, stride}, options, std::move(site));
}

Output avg_pool(Output x, std::int64_t size, std::int64_t stride, const AvgPoolOptions& options,
                Site site) {
  return avg_pool(x, {size, size}, {stride, stride}, options, std::move(site));
}

Output dropout(Output x, double rate, Site site) {
  if (!(rate >= 0 && rate < 1))
    throw Error(invalid_argument("dropout: the rate must be in [0, 1)").at(site));
  check_given("dropout: x", x, site);
  // Of f16 and bf16 it draws f32, and scales in f32: these are too few numbers for a rate, and for
  // the scale. A shape that is not known is looked at when the step runs.
  const DType dtype = x.dtype();
  x = detail::wide(x, site);
  const Output draw = x.shape().fully_known()
                          ? random_uniform(x.graph(), x.shape(), {.dtype = x.dtype()}, site)
                          : random_uniform_like(x, {}, site);
  // Chosen, not multiplied by 0: what is dropped may be an infinity.
  const Output kept =
      select(Operand(draw, site) >= Operand(rate, site), x, Operand(0.0, site).beside(x), site);
  return detail::narrow(Operand(kept, site) * Operand(1 / (1 - rate), site), dtype, site);
}

}  // namespace troupe
