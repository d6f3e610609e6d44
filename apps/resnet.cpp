#include "apps/resnet.hpp"

#include <fmt/format.h>

namespace troupe {
namespace {

// A batch norm follows, whose offset does what a bias would.
nn::Conv2d::Options plain(std::int64_t stride = 1) { return {.stride = stride, .bias = false}; }

// Averages that have forgotten the first steps after some tens of others: training is short.
constexpr nn::BatchNorm::Options kNorm = {.epsilon = 1e-5, .momentum = 0.9};

}  // namespace

ResidualBlock::ResidualBlock(nn::Module& parent, std::string_view name, std::int64_t in,
                             std::int64_t out, std::int64_t stride)
    : Module(parent, name),
      c1_(*this, "c1", in, out, 3, plain(stride)),
      c2_(*this, "c2", out, out, 3, plain()),
      n1_(*this, "n1", out, kNorm),
      n2_(*this, "n2", out, kNorm) {
  if (stride == 1 && in == out) return;
  shortcut_.emplace(*this, "shortcut", in, out, 1, plain(stride));
  shortcut_norm_.emplace(*this, "shortcut_norm", out, kNorm);
}

Output ResidualBlock::operator()(Output x) const {
  Output y = n2_(c2_(relu(n1_(c1_(x)))));
  return relu(y + (shortcut_ ? (*shortcut_norm_)((*shortcut_)(x)) : x));
}

ResNet20::ResNet20(Graph& g)
    : ImageModel(g.scope("resnet20")),
      first_(*this, "first", 3, 16, 3, plain()),
      norm_(*this, "norm", 16, kNorm),
      out_(*this, "out", 64, 10) {
  std::int64_t in = 16;
  for (std::int64_t channels : {16, 32, 64}) {
    for (int block = 0; block < 3; ++block) {
      const std::int64_t stride = block == 0 && channels > 16 ? 2 : 1;
      blocks_.emplace_back(*this, fmt::format("block{}_{}", channels, block), in, channels, stride);
      in = channels;
    }
  }
}

Output ResNet20::operator()(Output images) {
  Output x = relu(norm_(first_(images)));
  for (const ResidualBlock& block : blocks_) x = block(x);
  return out_(mean(x, {.axes = {1, 2}}));
}

}  // namespace troupe
