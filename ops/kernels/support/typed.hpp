// Kernel classes by dtype, and chunks that can fail.
#pragma once

#include <memory>
#include <mutex>
#include <string>

#include "ops/op.hpp"

namespace troupe {

// A factory for the attribute T: K<float> or K<double>. K has a constructor that cannot fail.
//   .cpu(float_kernel<SoftmaxKernel>)
template <template <class> class K>
Expected<std::unique_ptr<Kernel>> float_kernel(const KernelSpec& spec) {
  switch (spec.type()) {
    case DType::f32:
      return std::unique_ptr<Kernel>(new K<float>(spec));
    case DType::f64:
      return std::unique_ptr<Kernel>(new K<double>(spec));
    default:
      return unimplemented(spec.node.op + " has no kernel for " +
                           std::string(dtype_name(spec.type())));
  }
}

// The same for a plain template of functions, wrapped: .cpu(float_function<Relu>), where
// Relu::run<T>(KernelContext&) is the kernel.
template <class F>
Expected<std::unique_ptr<Kernel>> float_function(const KernelSpec& spec) {
  switch (spec.type()) {
    case DType::f32:
      return kernel<F::template run<float>>(spec);
    case DType::f64:
      return kernel<F::template run<double>>(spec);
    default:
      return unimplemented(spec.node.op + " has no kernel for " +
                           std::string(dtype_name(spec.type())));
  }
}

// Runs chunks that return a Status; the failure of the smallest chunk wins, so that the message
// does not depend on timing. Chunks of a cancelled step are skipped: its result is thrown away.
template <class F>
Status parallel_chunks(const KernelContext& c, std::int64_t chunks, F&& chunk) {
  std::mutex mutex;
  std::int64_t failed = chunks;
  Status status;
  c.parallel(chunks, [&](std::int64_t i) {
    if (c.cancelled()) return;
    Status s = chunk(i);
    if (s.ok()) return;
    std::lock_guard lock(mutex);
    if (i < failed) failed = i, status = std::move(s);
  });
  return status;
}

}  // namespace troupe
