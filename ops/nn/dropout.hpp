// Dropout (Srivastava et al., 2014).
#pragma once

#include "ops/nn/module.hpp"

namespace troupe::nn {

// In training mode, sets each element to 0 with probability `rate` and scales the others by
// 1 / (1 - rate), with new random numbers for each run and each call. In inference mode, y = x. Has
// no variables.
class Dropout : public Module {
 public:
  Dropout(Module& parent, std::string_view name, double rate, Site site = Site::here());
  Output operator()(Output x, Site site = Site::here()) const;

 private:
  double rate_;
};

}  // namespace troupe::nn
