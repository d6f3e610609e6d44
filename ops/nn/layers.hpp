// Layers of feed-forward networks.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "ops/nn/initial.hpp"
#include "ops/nn/module.hpp"

namespace troupe::nn {

// y = x W + b over the last dimension of x: [..., in] to [..., out]. If the last dimension is not
// `in`, but the product of all dimensions except the first is, x is flattened first (pictures
// [n,h,w,c]). Any other shape is refused.
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
  const Variable& bias() const { return b_; }  // empty without a bias

 private:
  Variable w_, b_;
  bool has_bias_;
};

// 2-D convolution of images [n,h,w,in] with `kernel` x `kernel` filters, plus a bias:
// [n,h',w',out].
class Conv2d : public Module {
 public:
  struct Options {
    std::int64_t stride = 1;
    std::string padding = "SAME";                      // SAME, VALID, EXPLICIT
    std::vector<std::int64_t> explicit_paddings = {};  // top, bottom, left, right
    std::int64_t dilation = 1, groups = 1;             // groups divide `in` and `out`
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

// Max pooling over windows of size x size with stride `size`. Has no variables, and so no name.
struct MaxPool {
  std::int64_t size = 2;
  Output operator()(Output x, Site site = Site::here()) const;
};

}  // namespace troupe::nn
