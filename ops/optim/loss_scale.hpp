// Loss scaling for training in f16.
#pragma once

#include "ops/optim/gradients.hpp"

namespace troupe::optim {

// Gradients of f16 that are below 6e-8 are 0. So the gradients are taken of the loss times a scale,
// and divided by it: with a scale that is halved when a gradient is not finite, in a run that then
// changes no parameter, and doubled after `every` runs of finite ones (Micikevicius et al., 2018).
//
//   Output logits = cast(net(cast(x, DType::f16)), DType::f32);  // parameters stay f32
//   Op train = optim::Adam{}.apply(optim::LossScale{}.gradients(loss));
//
// The scale is a power of two between 1 and 2^24, so that dividing by it rounds nothing, and is
// state of the training step like the moments of Adam. Clipping and accumulate() come behind.
struct LossScale {
  double first = 65536;  // a power of two
  std::int64_t every = 2000;

  // Throws Error as gradients() does, for another first scale, and if `every` is below 1.
  Gradients gradients(Output loss, const std::vector<Variable>& parameters,
                      Site site = Site::here()) const;
  Gradients gradients(Output loss, Site site = Site::here()) const;
};

}  // namespace troupe::optim
