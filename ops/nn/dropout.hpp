// Dropout (Srivastava et al., 2014).
#pragma once

#include "ops/nn/module.hpp"

namespace troupe::nn {

// For training, each element becomes 0 with probability `rate` and the others grow by 1 / (1 -
// rate); other draws in each run and for each call. For use, y = x. Has no variables.
class Dropout : public Module {
 public:
  Dropout(Module& parent, std::string_view name, double rate, Site site = Site::here());
  Output operator()(Output x, Site site = Site::here()) const;

 private:
  double rate_;
};

}  // namespace troupe::nn
