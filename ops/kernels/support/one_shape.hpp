// Ops whose output has the shape of the first input, though their formulas would broadcast: the
// gradients of elementwise functions.
#pragma once

#include <fmt/core.h>

#include <algorithm>
#include <memory>
#include <utility>

#include "ops/op.hpp"

namespace troupe {

// All inputs and outputs have one shape, of which each input may know a part.
inline Status one_shape(InferenceContext& c) {
  PartialShape shape = c.shape(0);
  for (int i = 1; i < c.inputs(); ++i) {
    auto merged = PartialShape::merge(shape, c.shape(i));
    if (!merged.ok())
      return invalid_argument(fmt::format("{} is {}, {} is {}: they must have one shape",
                                          c.op().in[0].name, c.shape(0).text(),
                                          c.op().in[std::size_t(i)].name, c.shape(i).text()));
    shape = std::move(merged).value();
  }
  for (int i = 0; i < c.outputs(); ++i) c.set(i, shape);
  return ok_status();
}

// What is in the way of input i: that it has another shape than input 0, or only that it does not
// broadcast to that.
inline Status check_first_shape(const KernelContext& c, int i, bool equal) {
  const Shape &first = c.input(0).shape(), &shape = c.input(i).shape();
  const int above = first.rank() - shape.rank();
  bool fits = equal ? first == shape : above >= 0;
  for (int k = 0; fits && !equal && k < shape.rank(); ++k)
    fits = shape[k] == 1 || shape[k] == first[above + k];
  if (fits) return ok_status();
  return invalid_argument(fmt::format("input 0 is {}, input {} is {}, which {}", first.text(), i,
                                      shape.text(),
                                      equal ? "must be equal" : "must broadcast to that"));
}

template <bool kEqual>
struct FirstShape final : Kernel {
  explicit FirstShape(std::unique_ptr<Kernel> kernel) : kernel(std::move(kernel)) {}
  Status compute(KernelContext& c) override {
    for (int i = 1; i < c.inputs(); ++i) TROUPE_TRY(check_first_shape(c, i, kEqual));
    return kernel->compute(c);
  }
  std::unique_ptr<Kernel> kernel;
};

// The kernel of F, for inputs of one shape, which the shape function may not have seen:
//   .cpu(of_one_shape<elementwise<formula::SigmoidGrad>>)
template <KernelFactory F>
Expected<std::unique_ptr<Kernel>> of_one_shape(const KernelSpec& spec) {
  TROUPE_TRY(auto kernel, F(spec));
  return std::unique_ptr<Kernel>(new FirstShape<true>(std::move(kernel)));
}
// The same for inputs that broadcast to the shape of the first.
template <KernelFactory F>
Expected<std::unique_ptr<Kernel>> in_first_shape(const KernelSpec& spec) {
  TROUPE_TRY(auto kernel, F(spec));
  return std::unique_ptr<Kernel>(new FirstShape<false>(std::move(kernel)));
}

}  // namespace troupe
