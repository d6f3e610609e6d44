// Bernoulli: truth values with given probabilities.
#include "ops/kernels/random/substream.hpp"

using namespace troupe;

namespace {

template <class T>
struct Bernoulli final : Kernel {
  Status compute(KernelContext& ctx) override {
    const RandomState random = ctx.random();
    return draw_elements<T, bool>(
        ctx, "p", "in [0, 1]", [](double p) { return !(p >= 0 && p <= 1); },
        [&](double p, std::int64_t i) { return unit_of_element(random, i) < p; });
  }
};

}  // namespace

TROUPE_OPS(bernoulli) {
  r.add(drawn_by_input("Bernoulli", "p", "y: bool",
                       "Booleans, each true with probability p. A p outside [0, 1] is an error."))
      .cpu(typed_kernel<Bernoulli, Floats>);
}
