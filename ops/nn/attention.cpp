#include "ops/nn/attention.hpp"

#include <cmath>
#include <limits>

#include "ops/api/constant.hpp"
#include "ops/api/math.hpp"
#include "ops/api/node.hpp"
#include "ops/api/operators.hpp"
#include "ops/nn/initial.hpp"
#include "ops/nn/shapes.hpp"

namespace troupe::nn {

namespace {

Output positions(Output x, const Site& site) {
  GraphBuilder& g = x.graph();
  return range(constant(g, std::int64_t{0}, site), dimension(x, -2, site),
               constant(g, std::int64_t{1}, site), site);
}

// True where the key is not behind the query: [queries, keys].
Output not_later(Output q, Output k, const Site& site) {
  const Output query = expand_dims(positions(q, site), 1, site);
  return greater_equal(query, positions(k, site), site);
}

Output masked(Output x, Output mask, double elsewhere, const Site& site) {
  return select(mask, x, Operand(elsewhere, site).beside(x), site);
}

// [batch, time, size] to [batch, heads, time, size / heads], and back.
Output split_heads(Output x, std::int64_t heads, std::int64_t size, const Site& site) {
  return transpose(reshape_beside(x, x, 2, {heads, size / heads}, site), {.perm = {0, 2, 1, 3}},
                   site);
}
Output merge_heads(Output x, std::int64_t size, const Site& site) {
  const Output beside = transpose(x, {.perm = {0, 2, 1, 3}}, site);
  return reshape_beside(beside, beside, 2, {size}, site);
}

}  // namespace

Output scaled_dot_product_attention(Output q, Output k, Output v, const AttentionOptions& options,
                                    Site site) {
  const std::string what = "scaled_dot_product_attention: ";
  check_given(what + "q", q, site);
  check_given(what + "k", k, site);
  check_given(what + "v", v, site);
  const std::int64_t size = known_dimension(q, -1, "the size of the queries", site);
  const Output scale = Operand(1 / std::sqrt(double(size)), site).beside(q);
  Output scores = mul(batch_mat_mul(q, k, {.transpose_b = true}, site), scale, site);
  Output open = options.mask;
  if (options.causal) {
    const Output behind = not_later(q, k, site);
    open = open.empty() ? behind : logical_and(behind, open, site);
  }
  constexpr double kNever = -std::numeric_limits<double>::infinity();
  if (!open.empty()) scores = masked(scores, open, kNever, site);
  Output weights = softmax(scores, site);
  // The softmax of a row that looks nowhere is NaN. One that is causal alone looks at key 0.
  if (!options.mask.empty()) weights = masked(weights, open, 0, site);
  if (options.dropout != 0) weights = dropout(weights, options.dropout, site);
  return batch_mat_mul(weights, v, {}, site);
}

MultiHeadAttention::MultiHeadAttention(Module& parent, std::string_view name, std::int64_t size,
                                       std::int64_t heads, const Options& options, Site site)
    : Module(parent, name), size_(size), heads_(heads), bias_(options.bias) {
  check_sizes("MultiHeadAttention", {size, heads}, site);
  if (size % heads != 0)
    throw Error(invalid_argument("MultiHeadAttention: " + std::to_string(heads) +
                                 " heads do not divide a size of " + std::to_string(size))
                    .at(site));
  query_ = projection("query", options, site);
  key_ = projection("key", options, site);
  value_ = projection("value", options, site);
  out_ = projection("out", options, site);
}

MultiHeadAttention::Projection MultiHeadAttention::projection(const char* name,
                                                              const Options& options,
                                                              const Site& site) {
  auto inside = scope().enter();
  Projection p;
  p.w = parameter(
      name,
      initial_weights(graph(), Init::glorot, {size_, size_}, size_, size_, options.dtype, site),
      site);
  if (bias_)
    p.b = parameter(std::string(name) + "_bias", zeros(options.dtype, {size_}, site), site);
  return p;
}

Output MultiHeadAttention::project(const Projection& by, Output x, const Site& site) const {
  return affine(x, by.w, bias_ ? by.b.value() : Output(), site);
}

Output MultiHeadAttention::operator()(Output queries, Output keys, Output values,
                                      const AttentionOptions& options, Site site) const {
  check_given("MultiHeadAttention: `queries`", queries, site);
  check_given("MultiHeadAttention: `keys`", keys, site);
  check_given("MultiHeadAttention: `values`", values, site);
  auto inside = scope().enter();
  const auto head = [&](const Projection& by, Output x) {
    return split_heads(project(by, x, site), heads_, size_, site);
  };
  AttentionOptions now = options;
  if (!training()) now.dropout = 0;
  const Output seen = scaled_dot_product_attention(head(query_, queries), head(key_, keys),
                                                   head(value_, values), now, site);
  return project(out_, merge_heads(seen, size_, site), site);
}

}  // namespace troupe::nn
