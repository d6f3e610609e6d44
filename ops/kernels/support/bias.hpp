// A bias and Relu behind a result, for the ops that end with both: _Conv2DBias and _MatMulBias.
#pragma once

#include <cstdint>

#include "devices/chunks.hpp"
#include "ops/detail/bias.hpp"
#include "ops/formulas/relu.hpp"
#include "ops/op.hpp"

namespace troupe {

// y += bias, and Relu of it if so, in place.
template <class T>
Status add_bias(const KernelContext& c, const Tensor& bias, bool relu, Tensor& y) {
  TROUPE_TRY(detail::check_bias(bias.shape(), y.shape()));
  const std::int64_t channels = bias.dim(0);
  const T* b = bias.data<T>();
  T* all = y.mutable_data<T>();
  const Chunks chunks = row_chunks(channels == 0 ? 0 : y.elements() / channels, channels);
  c.parallel(chunks.count, [&](std::int64_t i) {
    for (std::int64_t row = chunks[i].begin; row < chunks[i].end; ++row) {
      T* to = all + row * channels;
#pragma omp simd
      for (std::int64_t j = 0; j < channels; ++j) {
        const T sum = to[j] + b[j];
        to[j] = relu ? formula::Relu{}(sum) : sum;
      }
    }
  });
  return ok_status();
}

}  // namespace troupe
