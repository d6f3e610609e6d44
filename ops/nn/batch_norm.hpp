// Batch normalisation (Ioffe and Szegedy, 2015).
#pragma once

#include "ops/nn/module.hpp"

namespace troupe::nn {

// Normalises each channel (the last dimension of x [..., channels]) to mean 0 and variance 1, then
// multiplies by a learnt scale and adds a learnt offset. In training mode the statistics are those
// of the batch, and every training step of a loss that depends on the result updates their moving
// averages, which are not trainable. Each replica of a step has statistics of its own, and the
// averages move by the means of these. In inference mode the moving averages are used. Of x of f16
// and bf16 all of this is computed in f32, and the result is rounded to the type of x.
class BatchNorm : public Module {
 public:
  struct Options {
    double epsilon = 1e-3;
    double momentum = 0.99;    // average = momentum * average + (1 - momentum) * batch
    DType dtype = DType::f32;  // of the parameters and averages; for f16 and bf16 it is f32
  };
  BatchNorm(Module& parent, std::string_view name, std::int64_t channels, const Options& options,
            Site site = Site::here());
  BatchNorm(Module& parent, std::string_view name, std::int64_t channels, Site site = Site::here())
      : BatchNorm(parent, name, channels, Options{}, std::move(site)) {}

  Output operator()(Output x, Site site = Site::here()) const;

  const Variable& scale() const { return scale_; }
  const Variable& offset() const { return offset_; }
  const Variable& mean() const { return mean_; }  // the moving averages
  const Variable& variance() const { return variance_; }

 private:
  Options options_;
  Variable scale_, offset_, mean_, variance_;
};

}  // namespace troupe::nn
