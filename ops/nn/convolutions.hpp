// Convolution layers beside Conv2d (layers.hpp): over sequences and volumes, transposed, depthwise.
#pragma once

#include <string>
#include <vector>

#include "ops/nn/initial.hpp"
#include "ops/nn/module.hpp"

namespace troupe::nn {

// What all of them hold: a filter and a bias.
class Filtering : public Module {
 public:
  const Variable& filter() const { return w_; }
  const Variable& bias() const { return b_; }  // empty without a bias

 protected:
  Filtering(Module& parent, std::string_view name) : Module(parent, name) {}
  ~Filtering() = default;
  void make(Output filter, std::int64_t out, bool bias, DType dtype, const Site& site);
  Output with_bias(Output y, const Site& site) const;

  Variable w_, b_;

 private:
  bool has_bias_ = false;
};

// Convolution of sequences [n,w,in] with filters of `kernel` steps, plus a bias: [n,w',out].
class Conv1d : public Filtering {
 public:
  struct Options {
    std::int64_t stride = 1;
    std::string padding = "SAME";  // SAME, VALID, EXPLICIT; CAUSAL: no output sees what comes later
    std::vector<std::int64_t> explicit_paddings = {};  // left, right
    std::int64_t dilation = 1, groups = 1;
    bool bias = true;
    Init init = Init::he;
    DType dtype = DType::f32;
  };
  Conv1d(Module& parent, std::string_view name, std::int64_t in, std::int64_t out,
         std::int64_t kernel, const Options& options, Site site = Site::here());
  Conv1d(Module& parent, std::string_view name, std::int64_t in, std::int64_t out,
         std::int64_t kernel, Site site = Site::here())
      : Conv1d(parent, name, in, out, kernel, Options{}, std::move(site)) {}

  Output operator()(Output x, Site site = Site::here()) const;

 private:
  Options options_;
};

// Convolution of volumes [n,d,h,w,in] with `kernel` x `kernel` x `kernel` filters, plus a bias:
// [n,d',h',w',out].
class Conv3d : public Filtering {
 public:
  struct Options {
    std::int64_t stride = 1;
    std::string padding = "SAME";                      // SAME, VALID, EXPLICIT
    std::vector<std::int64_t> explicit_paddings = {};  // front, back, top, bottom, left, right
    std::int64_t dilation = 1, groups = 1;
    bool bias = true;
    Init init = Init::he;
    DType dtype = DType::f32;
  };
  Conv3d(Module& parent, std::string_view name, std::int64_t in, std::int64_t out,
         std::int64_t kernel, const Options& options, Site site = Site::here());
  Conv3d(Module& parent, std::string_view name, std::int64_t in, std::int64_t out,
         std::int64_t kernel, Site site = Site::here())
      : Conv3d(parent, name, in, out, kernel, Options{}, std::move(site)) {}

  Output operator()(Output x, Site site = Site::here()) const;

 private:
  Options options_;
};

// What the transposed ones hold: a filter [kernel,...,out/groups,in] of 1 to 3 dimensions.
class TransposedFiltering : public Filtering {
 public:
  struct Options {
    std::int64_t stride = 1;
    std::string padding = "SAME";  // SAME, VALID, EXPLICIT
    // Before and after each dimension: left, right; top, bottom, left, right; front, back, ...
    std::vector<std::int64_t> explicit_paddings = {};
    std::int64_t dilation = 1, groups = 1;
    std::int64_t output_padding = 0;  // below the stride; not with SAME
    bool bias = true;
    Init init = Init::he;
    DType dtype = DType::f32;
  };

 protected:
  // `layer`: its name in errors.
  TransposedFiltering(const char* layer, int dimensions, Module& parent, std::string_view name,
                      std::int64_t in, std::int64_t out, std::int64_t kernel,
                      const Options& options, const Site& site);
  ~TransposedFiltering() = default;

  Options options_;
};

// Transposed convolution of sequences [n,w,in] to [n,w',out], plus a bias, as conv1d_transpose()
// sizes it: with SAME, by the stride.
class ConvTranspose1d : public TransposedFiltering {
 public:
  ConvTranspose1d(Module& parent, std::string_view name, std::int64_t in, std::int64_t out,
                  std::int64_t kernel, const Options& options, Site site = Site::here())
      : TransposedFiltering("ConvTranspose1d", 1, parent, name, in, out, kernel, options, site) {}
  ConvTranspose1d(Module& parent, std::string_view name, std::int64_t in, std::int64_t out,
                  std::int64_t kernel, Site site = Site::here())
      : ConvTranspose1d(parent, name, in, out, kernel, Options{}, std::move(site)) {}

  Output operator()(Output x, Site site = Site::here()) const;
};

// Transposed convolution of images [n,h,w,in], plus a bias: [n,h',w',out], as conv2d_transpose()
// sizes it: with SAME, h' = h * stride.
class ConvTranspose2d : public TransposedFiltering {
 public:
  ConvTranspose2d(Module& parent, std::string_view name, std::int64_t in, std::int64_t out,
                  std::int64_t kernel, const Options& options, Site site = Site::here())
      : TransposedFiltering("ConvTranspose2d", 2, parent, name, in, out, kernel, options, site) {}
  ConvTranspose2d(Module& parent, std::string_view name, std::int64_t in, std::int64_t out,
                  std::int64_t kernel, Site site = Site::here())
      : ConvTranspose2d(parent, name, in, out, kernel, Options{}, std::move(site)) {}

  Output operator()(Output x, Site site = Site::here()) const;
};

// Transposed convolution of volumes [n,d,h,w,in] to [n,d',h',w',out], plus a bias, as
// conv3d_transpose() sizes it: with SAME, by the stride.
class ConvTranspose3d : public TransposedFiltering {
 public:
  ConvTranspose3d(Module& parent, std::string_view name, std::int64_t in, std::int64_t out,
                  std::int64_t kernel, const Options& options, Site site = Site::here())
      : TransposedFiltering("ConvTranspose3d", 3, parent, name, in, out, kernel, options, site) {}
  ConvTranspose3d(Module& parent, std::string_view name, std::int64_t in, std::int64_t out,
                  std::int64_t kernel, Site site = Site::here())
      : ConvTranspose3d(parent, name, in, out, kernel, Options{}, std::move(site)) {}

  Output operator()(Output x, Site site = Site::here()) const;
};

// `filters` filters of its own for each channel of images [n,h,w,channels], plus a bias:
// [n,h',w',channels*filters]. The filter is [kernel,kernel,channels,filters].
class DepthwiseConv2d : public Filtering {
 public:
  struct Options {
    std::int64_t filters = 1;
    std::int64_t stride = 1;
    std::string padding = "SAME";                      // SAME, VALID, EXPLICIT
    std::vector<std::int64_t> explicit_paddings = {};  // top, bottom, left, right
    std::int64_t dilation = 1;
    bool bias = true;
    Init init = Init::he;
    DType dtype = DType::f32;
  };
  DepthwiseConv2d(Module& parent, std::string_view name, std::int64_t channels, std::int64_t kernel,
                  const Options& options, Site site = Site::here());
  DepthwiseConv2d(Module& parent, std::string_view name, std::int64_t channels, std::int64_t kernel,
                  Site site = Site::here())
      : DepthwiseConv2d(parent, name, channels, kernel, Options{}, std::move(site)) {}

  Output operator()(Output x, Site site = Site::here()) const;

 private:
  Options options_;
};

}  // namespace troupe::nn
