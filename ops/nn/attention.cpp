#include "ops/nn/attention.hpp"

#include <cmath>
#include <limits>

#include "ops/api/constant.hpp"
#include "ops/api/generated.hpp"
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

// True where the key is in the cache before the next positions, or not behind the query among them:
// [queries, limit].
Output not_later(Output q, const KeyValueCache& before, const Site& site) {
  const Output query = add(expand_dims(positions(q, site), 1, site), before.length, site);
  return greater_equal(query, positions(before.keys, site), site);
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

namespace {

void check_three(Output q, Output k, Output v, const Site& site) {
  const std::string what = "scaled_dot_product_attention: ";
  check_given(what + "q", q, site);
  check_given(what + "k", k, site);
  check_given(what + "v", v, site);
}

// As far as shapes are known: a run says the rest.
void check_mask(Output q, const PartialShape& keys, const Output& mask, const Site& site) {
  const PartialShape& queries = q.shape();
  if (mask.empty() || !queries.known_rank() || !keys.known_rank() || queries.rank() < 2 ||
      keys.rank() < 2)
    return;
  PartialShape scores = queries;
  scores.set_dim(scores.rank() - 1, keys[keys.rank() - 2]);
  const PartialShape& open = mask.shape();
  if (!open.known_rank()) return;
  if (broadcast(open, scores).ok()) return;
  throw Error(invalid_argument("attention: the mask " + open.text() +
                               " does not broadcast to [..., queries, keys], which is " +
                               scores.text())
                  .at(site));
}

double factor_of(Output q, const AttentionOptions& options, const Site& site) {
  if (!std::isfinite(options.scale))
    throw Error(invalid_argument("scaled_dot_product_attention: the scale is no number").at(site));
  const std::int64_t size = known_dimension(q, -1, "the size of the queries", site);
  return options.scale != 0 ? options.scale : 1 / std::sqrt(double(size));
}

// Whether one node computes it: of the two 16-bit floats, which steps of its own would round.
bool in_one_node(Output q, const AttentionOptions& options) {
  return (q.dtype() == DType::f16 || q.dtype() == DType::bf16) && options.dropout == 0;
}

Output attend_in_one_node(Output q, Output k, Output v, Output open, bool causal, double factor,
                          const Site& site) {
  if (open.empty())
    return dot_product_attention(q, k, v, {.scale = factor, .causal = causal}, site).y;
  return masked_dot_product_attention(q, k, v, open, {.scale = factor, .causal = causal}, site).y;
}

// `behind`, where it is given, is a mask of its own.
Output attend(Output q, Output k, Output v, Output behind, const AttentionOptions& options,
              const Site& site) {
  const double factor = factor_of(q, options, site);
  const Output scale = Operand(factor, site).beside(q);
  Output scores = mul(batch_mat_mul(q, k, {.transpose_b = true}, site), scale, site);
  Output open = options.mask;
  if (!behind.empty()) open = open.empty() ? behind : logical_and(behind, open, site);
  constexpr double kNever = -std::numeric_limits<double>::infinity();
  if (!open.empty()) scores = masked(scores, open, kNever, site);
  Output weights = softmax(scores, site);
  // The softmax of a row that looks nowhere is NaN. One that is causal alone looks at key 0.
  if (!options.mask.empty()) weights = masked(weights, open, 0, site);
  if (options.dropout != 0) weights = dropout(weights, options.dropout, site);
  return batch_mat_mul(weights, v, {}, site);
}

// x with `part` added from position `at` of the last but one dimension on.
Output added_at(Output x, Output part, Output at, const Site& site) {
  if (!x.shape().known_rank() || x.shape().rank() < 2)
    throw Error(
        invalid_argument("a cache is [..., limit, size], not " + x.shape().text()).at(site));
  std::vector<Output> begin(std::size_t(x.shape().rank()),
                            constant<std::int64_t>(x.graph(), 0, site));
  begin[begin.size() - 2] = at;
  return slice_add(x, part, pack(begin, {}, site), shape(x, {}, site), site);
}

}  // namespace

Output scaled_dot_product_attention(Output q, Output k, Output v, const AttentionOptions& options,
                                    Site site) {
  check_three(q, k, v, site);
  check_mask(q, k.shape(), options.mask, site);
  if (in_one_node(q, options))
    return attend_in_one_node(q, k, v, options.mask, options.causal, factor_of(q, options, site),
                              site);
  const Output behind = options.causal ? not_later(q, k, site) : Output();
  return attend(q, k, v, behind, options, site);
}

KeyValueCache KeyValueCache::empty(GraphBuilder& g, const std::vector<Output>& leading,
                                   std::int64_t limit, std::int64_t size, std::int64_t out,
                                   DType dtype, Site site) {
  check_sizes("KeyValueCache", {limit, size, out}, site);
  const Output zero = constant(g, value_or_throw(scalar_of(dtype, std::int64_t{0})), site);
  const auto of = [&](std::int64_t last) {
    std::vector<Output> dims = leading;
    for (const Output& dim : dims) check_given("KeyValueCache: a leading dimension", dim, site);
    dims.push_back(constant<std::int64_t>(g, limit, site));
    dims.push_back(constant<std::int64_t>(g, last, site));
    return fill(pack(dims, {}, site), zero, site);
  };
  return {of(size), of(out), constant<std::int64_t>(g, 0, site)};
}

KeyValueCache KeyValueCache::append(Output k, Output v, Site site) const {
  check_given("KeyValueCache: the keys", keys, site);
  check_given("KeyValueCache: the values", values, site);
  check_given("KeyValueCache: the length", length, site);
  check_given("KeyValueCache: k", k, site);
  check_given("KeyValueCache: v", v, site);
  const PartialShape &memory = keys.shape(), &more = k.shape();
  if (memory.known_rank() && memory.rank() >= 2 && more.known_rank() &&
      more.rank() == memory.rank() && memory.known(memory.rank() - 2) &&
      more.known(more.rank() - 2) && more[more.rank() - 2] - memory[memory.rank() - 2] > 0)
    throw Error(invalid_argument("KeyValueCache: keys " + more.text() + " for a cache of keys " +
                                 memory.text() + ", beyond its limit")
                    .at(site));
  return {added_at(keys, k, length, site), added_at(values, v, length, site),
          add(length, dimension(k, -2, site), site)};
}

CachedAttention scaled_dot_product_attention(Output q, Output k, Output v,
                                             const KeyValueCache& cache,
                                             const AttentionOptions& options, Site site) {
  check_three(q, k, v, site);
  const KeyValueCache next = cache.append(k, v, site);
  check_mask(q, next.keys.shape(), options.mask, site);
  const Output behind = not_later(q, cache, site);
  if (!in_one_node(q, options))
    return {attend(q, next.keys, next.values, behind, options, site), next};
  const Output open = options.mask.empty() ? behind : logical_and(behind, options.mask, site);
  return {
      attend_in_one_node(q, next.keys, next.values, open, false, factor_of(q, options, site), site),
      next};
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
  return affine(x, in_dtype_of(by.w, x, site), bias_ ? in_dtype_of(by.b, x, site) : Output(), site);
}

Output MultiHeadAttention::head(const Projection& by, Output x, const Site& site) const {
  return split_heads(project(by, x, site), heads_, size_, site);
}

Output MultiHeadAttention::operator()(Output queries, Output keys, Output values,
                                      const AttentionOptions& options, Site site) const {
  check_given("MultiHeadAttention: `queries`", queries, site);
  check_given("MultiHeadAttention: `keys`", keys, site);
  check_given("MultiHeadAttention: `values`", values, site);
  auto inside = scope().enter();
  AttentionOptions now = options;
  if (!training()) now.dropout = 0;
  const Output seen = scaled_dot_product_attention(
      head(query_, queries, site), head(key_, keys, site), head(value_, values, site), now, site);
  return project(out_, merge_heads(seen, size_, site), site);
}

CachedAttention MultiHeadAttention::operator()(Output x, const KeyValueCache& cache,
                                               const AttentionOptions& options, Site site) const {
  check_given("MultiHeadAttention: x", x, site);
  auto inside = scope().enter();
  AttentionOptions now = options;
  if (!training()) now.dropout = 0;
  const CachedAttention seen = scaled_dot_product_attention(
      head(query_, x, site), head(key_, x, site), head(value_, x, site), cache, now, site);
  return {project(out_, merge_heads(seen.y, size_, site), site), seen.cache};
}

KeyValueCache MultiHeadAttention::empty_cache(Output x, std::int64_t limit, Site site) const {
  check_given("MultiHeadAttention: x", x, site);
  auto inside = scope().enter();
  const std::vector<Output> leading{dimension(x, 0, site),
                                    constant<std::int64_t>(graph(), heads_, site)};
  return KeyValueCache::empty(graph(), leading, limit, size_ / heads_, size_ / heads_,
                              dtype_beside(query_.w, x), site);
}

}  // namespace troupe::nn
