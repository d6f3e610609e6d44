// Batch normalisation (Ioffe and Szegedy, 2015).
#pragma once

#include "ops/nn/module.hpp"

namespace troupe::nn {

// Each channel, the last dimension of x [..., channels], shifted and scaled to mean 0 and variance
// 1, then by a scale and an offset that are learnt. For training the statistics are the batch's,
// and every training step of a loss that depends on y moves averages of them, in variables that no
// optimizer touches. For use they are these averages.
class BatchNorm : public Module {
 public:
  struct Options {
    double epsilon = 1e-3;
    double momentum = 0.99;  // of the averages: what is kept of them in each step
    DType dtype = DType::f32;
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
