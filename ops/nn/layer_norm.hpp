// Layer normalisation (Ba, Kiros and Hinton, 2016).
#pragma once

#include "ops/nn/module.hpp"

namespace troupe::nn {

// Normalises each row (the last dimension of x [..., size]) to mean 0 and variance 1 (divided by
// `size`), then multiplies by a learnt scale [size] and adds a learnt offset [size]. Training and
// inference are the same.
class LayerNorm : public Module {
 public:
  struct Options {
    double epsilon = 1e-5;  // added to the variance
    DType dtype = DType::f32;
  };
  LayerNorm(Module& parent, std::string_view name, std::int64_t size, const Options& options,
            Site site = Site::here());
  LayerNorm(Module& parent, std::string_view name, std::int64_t size, Site site = Site::here())
      : LayerNorm(parent, name, size, Options{}, std::move(site)) {}

  Output operator()(Output x, Site site = Site::here()) const;

  const Variable& scale() const { return scale_; }
  const Variable& offset() const { return offset_; }

 private:
  double epsilon_;
  Variable scale_, offset_;
};

}  // namespace troupe::nn
