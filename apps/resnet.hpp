// A residual network for pictures of 32 x 32 pixels (He et al., 2016, section 4.2).
#pragma once

#include <deque>

#include "apps/models.hpp"

namespace troupe {

// Two 3x3 convolutions, each normalised, beside a shortcut: x itself, or where the number of
// channels or the size changes a 1x1 convolution of it, normalised as well.
class ResidualBlock : public nn::Module {
 public:
  ResidualBlock(nn::Module& parent, std::string_view name, std::int64_t in, std::int64_t out,
                std::int64_t stride);
  Output operator()(Output x) const;

 private:
  nn::Conv2d c1_, c2_;
  nn::BatchNorm n1_, n2_;
  std::optional<nn::Conv2d> shortcut_;
  std::optional<nn::BatchNorm> shortcut_norm_;
};

// cifar-resnet20: a convolution of 16 channels, three blocks each of 16, 32 and 64 channels of
// which the first of the latter two halves the size, the mean over all pixels, a linear layer: 20
// layers in depth, 272,474 parameters.
class ResNet20 final : public ImageModel {
 public:
  explicit ResNet20(Graph& g);
  Output operator()(Output images) override;

 private:
  nn::Conv2d first_;
  nn::BatchNorm norm_;
  std::deque<ResidualBlock> blocks_;
  nn::Linear out_;
};

}  // namespace troupe
