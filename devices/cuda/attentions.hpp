// Attentions: attention on one GPU, by cuDNN.
#pragma once

#include "devices/cuda/attention_plan.hpp"
#include "devices/cuda/dnn_plans.hpp"
#include "devices/cuda/library_choice.hpp"

namespace troupe::cuda {

extern template class DnnPlans<AttentionPlan>;
using Attentions = DnnPlans<AttentionPlan>;

// What computes attention, and why. TROUPE_CUDA_ATTENTION is "cudnn", "kernels" (Troupe's own), or
// not set: cuDNN where it is installed and made for the driver.
using AttentionsChoice = TableChoice<Cudnn>;
// invalid_argument for another value; failed_precondition for a library that is broken, or asked
// for and missing.
Expected<AttentionsChoice> choose_attentions(const Search& search, const Driver& driver);

}  // namespace troupe::cuda
