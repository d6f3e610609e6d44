// Layers with variables of their own.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "troupe/ops/nn/module.hpp"

namespace troupe::nn {

// First values. All draw from the graph's seed and the variable's name.
enum class Init {
  glorot,  // uniform in +- sqrt(6 / (fan in + fan out)): for tanh, sigmoid and linear layers
  he,      // truncated normal, deviation sqrt(2 / fan in): before a Relu
};
Output initial_weights(GraphBuilder& g, Init init, const Shape& shape, std::int64_t fan_in,
                       std::int64_t fan_out, DType dtype = DType::f32, Site site = Site::here());

// y = x W + b. An x of more dimensions than two is flattened, all but dimension 0.
class Linear : public Module {
 public:
  struct Options {
    bool bias = true;
    Init init = Init::glorot;
    DType dtype = DType::f32;
  };
  Linear(Module& parent, std::string_view name, std::int64_t in, std::int64_t out,
         const Options& options, Site site = Site::here());
  Linear(Module& parent, std::string_view name, std::int64_t in, std::int64_t out,
         Site site = Site::here())
      : Linear(parent, name, in, out, Options{}, std::move(site)) {}

  Output operator()(Output x, Site site = Site::here()) const;
  const Variable& weights() const { return w_; }
  const Variable& bias() const { return b_; }  // of no graph when there is none

 private:
  Variable w_, b_;
  bool has_bias_;
};

// Convolution of images [n,h,w,in] with `kernel` x `kernel` windows to [n,h',w',out], plus a bias.
class Conv2d : public Module {
 public:
  struct Options {
    std::int64_t stride = 1;
    std::string padding = "SAME";  // or VALID
    bool bias = true;
    Init init = Init::he;
    DType dtype = DType::f32;
  };
  Conv2d(Module& parent, std::string_view name, std::int64_t in, std::int64_t out,
         std::int64_t kernel, const Options& options, Site site = Site::here());
  Conv2d(Module& parent, std::string_view name, std::int64_t in, std::int64_t out,
         std::int64_t kernel, Site site = Site::here())
      : Conv2d(parent, name, in, out, kernel, Options{}, std::move(site)) {}

  Output operator()(Output x, Site site = Site::here()) const;
  const Variable& filter() const { return w_; }
  const Variable& bias() const { return b_; }

 private:
  Options options_;
  Variable w_, b_;
};

// Each channel, the last dimension of x, shifted and scaled to mean 0 and variance 1 over the
// batch, then by a scale and an offset that are learnt. Training keeps moving averages of both
// statistics in variables that no optimizer touches; inference uses them.
class BatchNorm : public Module {
 public:
  struct Options {
    double epsilon = 1e-3;
    double momentum = 0.99;  // of the averages: what is kept of them in each update
    DType dtype = DType::f32;
  };
  BatchNorm(Module& parent, std::string_view name, std::int64_t channels, const Options& options,
            Site site = Site::here());
  BatchNorm(Module& parent, std::string_view name, std::int64_t channels, Site site = Site::here())
      : BatchNorm(parent, name, channels, Options{}, std::move(site)) {}

  struct Training {
    Output y;
    Op update;  // of the moving averages; a target of the training step
  };
  Training train(Output x, Site site = Site::here()) const;
  // By the moving averages.
  Output operator()(Output x, Site site = Site::here()) const;

  const Variable& scale() const { return scale_; }
  const Variable& offset() const { return offset_; }
  const Variable& mean() const { return mean_; }  // the moving averages
  const Variable& variance() const { return variance_; }

 private:
  Options options_;
  Variable scale_, offset_, mean_, variance_;
};

// The largest of each window of size x size. Has no variables, and so no name.
struct MaxPool {
  std::int64_t size = 2;
  Output operator()(Output x, Site site = Site::here()) const;
};

}  // namespace troupe::nn
