// Attention (Vaswani et al., 2017).
#pragma once

#include <vector>

#include "ops/nn/module.hpp"

namespace troupe::nn {

struct AttentionOptions {
  Output mask = {};     // bool, broadcast to [..., queries, keys]: true where attention is allowed
  bool causal = false;  // query i attends to keys 0 to i only
  double dropout = 0;   // dropout rate of the attention weights
  double scale = 0;     // factor of q k^T; 0: 1 / sqrt(size)
};

// softmax(q k^T / sqrt(size)) v for q [..., queries, size], k [..., keys, size] and v [..., keys,
// out] with equal leading dimensions; returns [..., queries, out]. Of f16 and bf16, without
// dropout, it is one node, which adds up in f32 and rounds once. `size` must be known. A fully
// masked query yields zeros and has no gradient.
Output scaled_dot_product_attention(Output q, Output k, Output v,
                                    const AttentionOptions& options = {}, Site site = Site::here());

// The keys [..., limit, size] and values [..., limit, out] of what a decoding loop has seen, in
// memory for `limit` of them, of which the first `length` (an i64 scalar) are in use; the others
// are zeros. Values like any other: they go through a loop as its state, or are kept in variables
// from run to run.
struct KeyValueCache {
  Output keys, values, length;

  // Nothing seen yet: zeros of [leading..., limit, size]. Dimensions of `leading` are i64 scalars.
  static KeyValueCache empty(GraphBuilder& g, const std::vector<Output>& leading,
                             std::int64_t limit, std::int64_t size, std::int64_t out,
                             DType dtype = DType::f32, Site site = Site::here());
  // With the keys and values of the next positions behind those in use, in place where nothing else
  // reads the memory. A run fails that goes beyond the limit. Ranks must be known.
  KeyValueCache append(Output k, Output v, Site site = Site::here()) const;
};

struct CachedAttention {
  Output y;
  KeyValueCache cache;  // with k and v
};
// scaled_dot_product_attention() of the next queries [..., queries, size] and their own k and v,
// which are appended first: query i attends to everything in `cache`, and to k[0] to k[i]. Step by
// step it computes what causal attention computes of the whole, up to rounding. A mask is as long
// as the limit.
CachedAttention scaled_dot_product_attention(Output q, Output k, Output v,
                                             const KeyValueCache& cache,
                                             const AttentionOptions& options = {},
                                             Site site = Site::here());

// Multi-head attention: queries, keys and values [batch, time, size] are projected by one matrix
// and bias each, split into `heads` parts that attend separately, joined, and projected again.
class MultiHeadAttention : public Module {
 public:
  struct Options {
    bool bias = true;
    DType dtype = DType::f32;
  };
  // `heads` divides `size`.
  MultiHeadAttention(Module& parent, std::string_view name, std::int64_t size, std::int64_t heads,
                     const Options& options, Site site = Site::here());
  MultiHeadAttention(Module& parent, std::string_view name, std::int64_t size, std::int64_t heads,
                     Site site = Site::here())
      : MultiHeadAttention(parent, name, size, heads, Options{}, std::move(site)) {}

  // Returns [batch, queries, size]. A mask is [queries, keys], or [batch, 1 or heads, queries,
  // keys]. Dropout applies in training mode only.
  Output operator()(Output queries, Output keys, Output values,
                    const AttentionOptions& options = {}, Site site = Site::here()) const;
  // Self-attention: attention(x), attention(x, {.causal = true}).
  Output operator()(Output x, Site site = Site::here()) const { return (*this)(x, x, x, {}, site); }
  Output operator()(Output x, const AttentionOptions& options, Site site = Site::here()) const {
    return (*this)(x, x, x, options, site);
  }

  // Causal self-attention of the next positions x [batch, time, size] of sequences whose earlier
  // ones are in the cache. A mask is [batch, 1 or heads, time, limit], or a part of that.
  CachedAttention operator()(Output x, const KeyValueCache& cache,
                             const AttentionOptions& options = {}, Site site = Site::here()) const;
  // For as many sequences as x [batch, ...] has, of at most `limit` positions.
  KeyValueCache empty_cache(Output x, std::int64_t limit, Site site = Site::here()) const;

 private:
  struct Projection {
    Variable w, b;  // [size, size] and [size]
  };
  Projection projection(const char* name, const Options& options, const Site& site);
  Output project(const Projection& by, Output x, const Site& site) const;
  Output head(const Projection& by, Output x, const Site& site) const;

  std::int64_t size_, heads_;
  bool bias_;
  Projection query_, key_, value_, out_;
};

}  // namespace troupe::nn
