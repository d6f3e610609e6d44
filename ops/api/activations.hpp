// Activations that are made of other ops; f16 and bf16 are computed in f32 and rounded once. Relu,
// Relu6, Elu, Gelu, Softplus, Softsign, Sigmoid and Tanh are ops of their own (generated.hpp).
#pragma once

#include "ops/api/generated.hpp"

namespace troupe {

struct GeluOptions {
  bool approximate = false;  // by tanh
};
// x times the normal distribution's function of x (generated.hpp), or x / 2 (1 + tanh(sqrt(2 / pi)
// (x + 0.044715 x^3))) (Hendrycks and Gimpel, 2016). f16, bf16, f32 or f64.
Output gelu(Output x, const GeluOptions& options, Site site = Site::here());
// x sigmoid(x), also called swish (Hendrycks and Gimpel, 2016; Ramachandran et al., 2017).
Output silu(Output x, Site site = Site::here());
// x where it is positive, else slope * x (Maas et al., 2013).
Output leaky_relu(Output x, double slope = 0.01, Site site = Site::here());
// x tanh(log(1 + e^x)) (Misra, 2019).
Output mish(Output x, Site site = Site::here());
// x relu6(x + 3) / 6 (Howard et al., 2019), and its second factor relu6(x + 3) / 6.
Output hard_swish(Output x, Site site = Site::here());
Output hard_sigmoid(Output x, Site site = Site::here());
// log(sigmoid(x)) without overflow.
Output log_sigmoid(Output x, Site site = Site::here());
// a sigmoid(b), where a and b are the halves of x along `axis` (Dauphin et al., 2017). The
// dimension must be known and even.
Output glu(Output x, std::int64_t axis = -1, Site site = Site::here());

}  // namespace troupe
