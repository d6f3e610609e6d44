// Attention (Vaswani et al., 2017).
#pragma once

#include "ops/nn/module.hpp"

namespace troupe::nn {

struct AttentionOptions {
  Output mask = {};     // bool, broadcast to [..., queries, keys]: true where attention is allowed
  bool causal = false;  // query i attends to keys 0 to i only
  double dropout = 0;   // dropout rate of the attention weights
};

// softmax(q k^T / sqrt(size)) v for q [..., queries, size], k [..., keys, size] and v [..., keys,
// out] with equal leading dimensions; returns [..., queries, out]. f32 or f64. `size` must be
// known. A fully masked query yields zeros and has no gradient.
Output scaled_dot_product_attention(Output q, Output k, Output v,
                                    const AttentionOptions& options = {}, Site site = Site::here());

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
  // Self-attention.
  Output operator()(Output x, Site site = Site::here()) const { return (*this)(x, x, x, {}, site); }

 private:
  struct Projection {
    Variable w, b;  // [size, size] and [size]
  };
  Projection projection(const char* name, const Options& options, const Site& site);
  Output project(const Projection& by, Output x, const Site& site) const;

  std::int64_t size_, heads_;
  bool bias_;
  Projection query_, key_, value_, out_;
};

}  // namespace troupe::nn
