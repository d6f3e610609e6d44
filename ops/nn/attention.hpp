// Attention (Vaswani et al., 2017).
#pragma once

#include "ops/nn/module.hpp"

namespace troupe::nn {

struct AttentionOptions {
  Output mask = {};     // bool, broadcast to [..., queries, keys]: true where a query may look
  bool causal = false;  // query i looks at keys 0 to i alone
  double dropout = 0;   // rate at which a query misses a key
};

// softmax(q k^T / sqrt(size)) v of q [..., queries, size], k [..., keys, size] and v [..., keys,
// out], whose leading dimensions are equal: [..., queries, out]. f32 or f64. `size` must be known.
// A query that may look nowhere gets zeros, and no gradient flows back from it.
Output scaled_dot_product_attention(Output q, Output k, Output v,
                                    const AttentionOptions& options = {}, Site site = Site::here());

// `heads` attentions beside each other, on parts of what is projected: each of queries, keys and
// values [batch, time, size] by a matrix of its own and a bias, and so is what comes out.
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

  // [batch, queries, size]. A mask is [queries, keys], or [batch, 1 or heads, queries, keys].
  // Nothing is dropped but for training.
  Output operator()(Output queries, Output keys, Output values,
                    const AttentionOptions& options = {}, Site site = Site::here()) const;
  // Of x to itself.
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
