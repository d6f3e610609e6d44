// ReplicaMean: what the replicas of a step computed, made one.
//
// A client's node has one input. With replicas it is not copied: it gets the input of every copy
// (graph/passes/replicate.hpp), and what reads it is computed once.
#include "ops/cuda/host_kernel.hpp"
#include "ops/kernels/state/update.hpp"
#include "ops/kernels/support/elementwise.hpp"

using namespace troupe;

namespace {

Status one_shape(InferenceContext& c) {
  PartialShape shape;
  for (int i = 0; i < c.inputs(); ++i) {
    auto merged = PartialShape::merge(shape, c.shape(i));
    if (!merged.ok())
      return invalid_argument("parts have shapes " + shape.text() + " and " + c.shape(i).text());
    shape = std::move(merged).value();
  }
  c.set(0, std::move(shape));
  return ok_status();
}

template <class T>
Status mean_of(KernelContext& c) {
  const Tensor& first = c.input(0);
  if (c.inputs() == 1) {
    c.set_output(0, first);
    return ok_status();
  }
  for (int p = 1; p < c.inputs(); ++p)
    if (c.input(p).shape() != first.shape())
      return invalid_argument("parts have shapes " + first.shape().text() + " and " +
                              c.input(p).shape().text());
  TROUPE_TRY(Tensor y, c.allocate(first.dtype(), first.shape()));
  T* mean = mutable_parts_of<T>(y);
  // Added in replica order, then divided: as a write joins what it is given.
  for_chunks(c, std::int64_t(y.bytes() / sizeof(T)), [&](Range r) {
    std::copy_n(parts_of<T>(first) + r.begin, r.size(), mean + r.begin);
    for (int p = 1; p < c.inputs(); ++p) {
      const T* part = parts_of<T>(c.input(p));
      for (std::int64_t i = r.begin; i < r.end; ++i) mean[i] += part[i];
    }
    for (std::int64_t i = r.begin; i < r.end; ++i) mean[i] /= T(c.inputs());
  });
  c.set_output(0, std::move(y));
  return ok_status();
}

Status replica_mean(KernelContext& c) {
  return with_parts(c.input(0).dtype(),
                    [&](auto tag) { return mean_of<typename decltype(tag)::type>(c); });
}

// One input is passed on where it is; the mean of several is the host's.
Expected<std::unique_ptr<Kernel>> mean_on_gpu(const KernelSpec& spec) {
  TROUPE_TRY(auto cpu, kernel<replica_mean>(spec));
  if (spec.int_attr("N") == 1) return cpu;
  return cuda::host_kernel(std::move(cpu), spec);
}

}  // namespace

TROUPE_OPS(replica_mean) {
  r.add({.name = "ReplicaMean",
         .in = {"parts: T..."},
         .out = {"mean"},
         .types = kRealsAndComplex,
         .shape = one_shape,
         .no_gradient = "what all replicas made of their gradients",
         .reduce = {"parts"},
         .doc = "The mean of a value over the replicas of a step, equal in all of them: with N "
                "inputs their mean, with one input that input."})
      .cpu(kernel<replica_mean>)
      .cuda(mean_on_gpu);
}
