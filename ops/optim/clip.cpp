#include "ops/optim/clip.hpp"

#include "ops/api/math.hpp"
#include "ops/api/operators.hpp"

namespace troupe::optim {

namespace {

void check_limit(double limit, const Site& site) {
  if (!(limit > 0))
    throw Error(invalid_argument("clip: the limit of a norm must be positive").at(site));
}

// limit / max(limit, norm); NaN where the norm is not finite.
Output shrinkage(Output norm, double limit, const Site& site) {
  const Output most = maximum(norm, Operand(limit, site).beside(norm), site);
  return Operand(limit, site) / Operand(most, site) + Operand(sub(norm, norm, site), site);
}

Output scaled(Output x, Output factor, const Site& site) {
  return mul(x, cast(factor, x.dtype(), site), site);
}

}  // namespace

Gradients clip_by_value(Gradients gradients, double low, double high, Site site) {
  check_gradients("clip_by_value", gradients, site);
  if (!(low <= high)) throw Error(invalid_argument("clip: low is above high").at(site));
  Gradients clipped = over_replicas(std::move(gradients), site);
  for (Gradient& gradient : clipped.each) {
    const Output least = Operand(low, site).beside(gradient.value);
    const Output most = Operand(high, site).beside(gradient.value);
    gradient.value = minimum(maximum(gradient.value, least, site), most, site);
  }
  return clipped;
}

Gradients clip_by_norm(Gradients gradients, double limit, Site site) {
  check_gradients("clip_by_norm", gradients, site);
  check_limit(limit, site);
  Gradients clipped = over_replicas(std::move(gradients), site);
  for (Gradient& gradient : clipped.each) {
    const Output norm = euclidean_norm(gradient.value, site);
    gradient.value = scaled(gradient.value, shrinkage(norm, limit, site), site);
  }
  return clipped;
}

Gradients clip_by_global_norm(Gradients gradients, double limit, Site site) {
  check_gradients("clip_by_global_norm", gradients, site);
  check_limit(limit, site);
  Gradients clipped = over_replicas(std::move(gradients), site);
  const Output factor = shrinkage(global_norm(clipped, site), limit, site);
  for (Gradient& gradient : clipped.each) gradient.value = scaled(gradient.value, factor, site);
  return clipped;
}

Output global_norm(const Gradients& gradients, Site site) {
  check_gradients("global_norm", gradients, site);
  std::vector<Output> norms;
  for (const Gradient& gradient : over_replicas(gradients, site).each)
    norms.push_back(euclidean_norm(gradient.value, site));
  return norms.size() == 1 ? norms[0] : euclidean_norm(pack(norms, {}, site), site);
}

}  // namespace troupe::optim
