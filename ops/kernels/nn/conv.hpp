// One convolution of fixed shapes, in one direction: which of the three ways computes it (a matrix
// product, oneDNN, patches), and the primitives that go with it.
#pragma once

#include <array>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "devices/chunks.hpp"
#include "ops/kernels/nn/im2col.hpp"
#include "ops/kernels/nn/window.hpp"
#include "ops/kernels/support/typed.hpp"

namespace troupe {

using onednn::ConvKind;

// Of x [n,h,w,c] and filter [h,w,c/groups,k], as far as they are known.
inline Status check_channels(std::int64_t groups, const PartialShape& x,
                             const PartialShape& filter) {
  const std::int64_t in = x.known(3) ? std::int64_t(x[3]) : -1;
  const std::int64_t of_filter = filter.known(2) ? std::int64_t(filter[2]) : -1;
  if (in >= 0 && of_filter >= 0 && (in % groups != 0 || in / groups != of_filter))
    return invalid_argument("x " + x.text() + " has other channels than the filter " +
                            filter.text() +
                            (groups == 1 ? "" : " of " + std::to_string(groups) + " groups"));
  if (filter.known(3) && filter[3] % groups != 0)
    return invalid_argument(std::to_string(groups) + " groups do not divide the " +
                            std::to_string(filter[3]) + " output channels of filter " +
                            filter.text());
  return ok_status();
}

// Sizes of a convolution of `x` [n,h,w,c] with `filter` [h,w,c,k], or the reason why not.
inline Expected<ConvShape> conv_shape(const WindowAttrs& w, const Shape& x, const Shape& filter) {
  if (x.rank() != 4 || filter.rank() != 4)
    return invalid_argument("a convolution wants x [n,h,w,c] and a filter [h,w,c,k], not " +
                            x.text() + " and " + filter.text());
  TROUPE_TRY(check_channels(w.groups, x, filter));
  TROUPE_TRY(WindowAxis h, window_axis(w, 0, x[1], filter[0]));
  TROUPE_TRY(WindowAxis v, window_axis(w, 1, x[2], filter[1]));
  TROUPE_TRY(Shape::make(std::array{x[0], h.out, v.out, filter[3]}));
  return ConvShape{.batch = x[0],
                   .in_h = x[1],
                   .in_w = x[2],
                   .in_c = x[3],
                   .out_h = h.out,
                   .out_w = v.out,
                   .out_c = filter[3],
                   .filter_h = filter[0],
                   .filter_w = filter[1],
                   .groups = w.groups,
                   .stride_h = h.stride,
                   .stride_w = v.stride,
                   .dilation_h = h.dilation,
                   .dilation_w = v.dilation,
                   .pad_top = h.pad_before,
                   .pad_bottom = h.pad_after,
                   .pad_left = v.pad_before,
                   .pad_right = v.pad_after};
}

inline Shape x_shape(const ConvShape& s) { return {s.batch, s.in_h, s.in_w, s.in_c}; }
inline Shape y_shape(const ConvShape& s) { return {s.batch, s.out_h, s.out_w, s.out_c}; }
inline Shape filter_shape(const ConvShape& s) {
  return {s.filter_h, s.filter_w, s.in_c / s.groups, s.out_c};
}

// How one shape is computed. Immutable once made: overlapping steps share it.
struct ConvPlan {
  ConvShape shape;
  Chunks chunks;  // of images, or of output channels
  bool by_channels = false;
#if TROUPE_ONEDNN
  // Of a full chunk and of the last, shorter one. Null: a matrix product or patches.
  std::unique_ptr<onednn::Conv> whole, rest;

  bool has_primitive() const { return whole != nullptr; }
  const onednn::Conv& primitive(std::int64_t chunk) const {
    return chunks[chunk].size() == chunks[0].size() ? *whole : *rest;
  }
#else
  bool has_primitive() const { return false; }
#endif
};

// Whether oneDNN is worth asking. It skips padding beyond the window wrongly or slowly, and its
// input gradient of 1 or 3 channels is slower than patches.
inline bool suits_onednn(ConvKind kind, const ConvShape& s) {
  const std::int64_t reach_h = (s.filter_h - 1) * s.dilation_h + 1;
  const std::int64_t reach_w = (s.filter_w - 1) * s.dilation_w + 1;
  const bool usual = s.pad_top < reach_h && s.pad_bottom < reach_h && s.pad_left < reach_w &&
                     s.pad_right < reach_w && x_shape(s).elements() < kWindowLimit &&
                     y_shape(s).elements() < kWindowLimit;
  return usual && !is_pointwise(s) && (kind != ConvKind::backward_data || s.in_c / s.groups >= 8);
}

#if TROUPE_ONEDNN
// Gives the plan its primitives, unless oneDNN has none for this shape.
inline Status make_primitives(ConvKind kind, ConvPlan& plan) {
  const Chunks& chunks = plan.chunks;
  const std::int64_t first = chunks[0].size(), last = chunks[chunks.count - 1].size();
  // Two sizes at most, the odd one last.
  for (std::int64_t i = 0; i + 1 < chunks.count; ++i)
    if (chunks[i].size() != first) return ok_status();
  if (plan.by_channels && last != first) return ok_status();
  auto part = [&](std::int64_t size) {
    ConvShape s = plan.shape;
    (plan.by_channels ? s.out_c : s.batch) = size;
    return s;
  };
  auto whole = onednn::Conv::make(kind, part(first));
  if (!whole.ok())
    return whole.status().code() == Code::unimplemented ? ok_status() : whole.status();
  if (last != first) {
    auto rest = onednn::Conv::make(kind, part(last), whole.value().get());
    if (!rest.ok())
      return rest.status().code() == Code::unimplemented ? ok_status() : rest.status();
    plan.rest = std::move(rest).value();
  }
  plan.whole = std::move(whole).value();
  return ok_status();
}
#endif

inline Expected<std::shared_ptr<const ConvPlan>> make_conv_plan(ConvKind kind, const ConvShape& s,
                                                                bool is_f32) {
  auto plan = std::make_shared<ConvPlan>();
  plan->shape = s;
  if (kind == ConvKind::backward_filter) {
    auto split = conv_filter_chunks(s.batch, s.out_c,
                                    filter_shape(s).elements() * std::int64_t(is_f32 ? 4 : 8));
    // A group of output channels goes with its own input channels: all of them stay together.
    if (s.groups != 1) split = conv_filter_chunks(s.batch, s.out_c, 0);
    plan->by_channels = split.by_channels;
    plan->chunks = split.chunks;
  } else {
    plan->chunks = conv_chunks(s.batch);
  }
#if TROUPE_ONEDNN
  const bool empty = x_shape(s).elements() == 0 || y_shape(s).elements() == 0;
  if (is_f32 && !empty && suits_onednn(kind, s)) TROUPE_TRY(make_primitives(kind, *plan));
#endif
  return std::shared_ptr<const ConvPlan>(std::move(plan));
}

// The plans of one node: by shape, since batches vary. Bounded, because a feed decides the shapes;
// the oldest goes first, and steps that still use it keep it alive.
class ConvPlans {
 public:
  ConvPlans(ConvKind kind, bool is_f32) : kind_(kind), is_f32_(is_f32) {}

  Expected<std::shared_ptr<const ConvPlan>> get(const ConvShape& s) {
    const Key key{s.batch, s.in_h, s.in_w, s.in_c, s.filter_h, s.filter_w, s.out_c};
    {
      std::lock_guard lock(mutex_);
      for (auto& [known, plan] : plans_)
        if (known == key) return plan;
    }
    TROUPE_TRY(auto plan, make_conv_plan(kind_, s, is_f32_));  // may take a millisecond: unlocked
    std::lock_guard lock(mutex_);
    if (plans_.size() == kMost) plans_.erase(plans_.begin());
    plans_.emplace_back(key, plan);
    return plan;
  }

 private:
  using Key = std::array<std::int64_t, 7>;
  static constexpr std::size_t kMost = 16;
  const ConvKind kind_;
  const bool is_f32_;
  std::mutex mutex_;
  std::vector<std::pair<Key, std::shared_ptr<const ConvPlan>>> plans_;
};

}  // namespace troupe
