// Normalisation without statistics of a batch: training and inference are the same. LayerNorm and
// BatchNorm have files of their own.
#pragma once

#include "ops/nn/module.hpp"

namespace troupe::nn {

// group_norm() of x [n, ..., channels] with a learnt scale and offset.
class GroupNorm : public Module {
 public:
  struct Options {
    double epsilon = 1e-5;  // added to the variance
    DType dtype = DType::f32;
  };
  // `groups` divide `channels`.
  GroupNorm(Module& parent, std::string_view name, std::int64_t groups, std::int64_t channels,
            const Options& options, Site site = Site::here());
  GroupNorm(Module& parent, std::string_view name, std::int64_t groups, std::int64_t channels,
            Site site = Site::here())
      : GroupNorm(parent, name, groups, channels, Options{}, std::move(site)) {}

  Output operator()(Output x, Site site = Site::here()) const;

  const Variable& scale() const { return scale_; }
  const Variable& offset() const { return offset_; }

 private:
  std::int64_t groups_;
  double epsilon_;
  Variable scale_, offset_;
};

// Every channel of every example by itself: a GroupNorm of as many groups as channels.
class InstanceNorm : public GroupNorm {
 public:
  InstanceNorm(Module& parent, std::string_view name, std::int64_t channels, const Options& options,
               Site site = Site::here())
      : GroupNorm(parent, name, channels, channels, options, std::move(site)) {}
  InstanceNorm(Module& parent, std::string_view name, std::int64_t channels,
               Site site = Site::here())
      : InstanceNorm(parent, name, channels, Options{}, std::move(site)) {}
};

// rms_norm() of the rows of x [..., size] with a learnt scale.
class RmsNorm : public Module {
 public:
  struct Options {
    double epsilon = 1e-6;  // added to the mean square
    DType dtype = DType::f32;
  };
  RmsNorm(Module& parent, std::string_view name, std::int64_t size, const Options& options,
          Site site = Site::here());
  RmsNorm(Module& parent, std::string_view name, std::int64_t size, Site site = Site::here())
      : RmsNorm(parent, name, size, Options{}, std::move(site)) {}

  Output operator()(Output x, Site site = Site::here()) const;

  const Variable& scale() const { return scale_; }

 private:
  double epsilon_;
  Variable scale_;
};

}  // namespace troupe::nn
