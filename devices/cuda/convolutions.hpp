// Convolutions: convolutions on one GPU, by cuDNN.
#pragma once

#include "devices/cuda/convolution_plan.hpp"
#include "devices/cuda/dnn_plans.hpp"
#include "devices/cuda/library_choice.hpp"

namespace troupe::cuda {

extern template class DnnPlans<ConvolutionPlan>;
using Convolutions = DnnPlans<ConvolutionPlan>;

// What computes convolutions, and why. TROUPE_CUDA_CONV is "cudnn", "kernels" (Troupe's own), or
// not set: cuDNN where it is installed and made for the driver.
using ConvolutionsChoice = TableChoice<Cudnn>;
// invalid_argument for another value; failed_precondition for a library that is broken, or asked
// for and missing.
Expected<ConvolutionsChoice> choose_convolutions(const Search& search, const Driver& driver);

}  // namespace troupe::cuda
