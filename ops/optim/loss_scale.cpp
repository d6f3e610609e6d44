#include "ops/optim/loss_scale.hpp"

#include <fmt/format.h>

#include <cmath>

#include "ops/api/generated.hpp"
#include "ops/api/math.hpp"
#include "ops/api/node.hpp"
#include "ops/optim/state.hpp"

namespace troupe::optim {
namespace {

constexpr double kMostScale = 1 << 24;

Variable scalar_state(GraphBuilder& g, const char* name, Tensor value, const Site& site) {
  return variable(g, name, std::move(value), {.trainable = false}, site);
}

}  // namespace

Gradients LossScale::gradients(Output loss, const std::vector<Variable>& parameters,
                               Site site) const {
  int exponent = 0;
  if (!(first >= 1 && first <= kMostScale) || std::frexp(first, &exponent) != 0.5)
    throw Error(
        invalid_argument("LossScale: the first scale is a power of two from 1 to 2^24").at(site));
  if (every < 1) throw Error(invalid_argument("LossScale: every run at least").at(site));
  check_given("LossScale: the loss", loss, site);
  if (loss.dtype() != DType::f32 && loss.dtype() != DType::f64)
    throw Error(invalid_argument(fmt::format("LossScale: a loss of {} times the scale overflows: "
                                             "compute it in f32",
                                             dtype_name(loss.dtype())))
                    .at(site));
  GraphBuilder& g = loss.graph();
  auto inside = g.with_scope("loss_scale");
  const Variable scale = scalar_state(g, "scale", Tensor::scalar(float(first)), site);
  const Variable runs = scalar_state(g, "runs", Tensor::scalar(std::int64_t{0}), site);

  Gradients out = over_replicas(
      optim::gradients(mul(loss, cast(scale, loss.dtype(), site), site), parameters, site), site);
  const Output share = reciprocal(scale, site);
  std::vector<Output> finite;
  for (Gradient& gradient : out.each) {
    gradient.value = mul(gradient.value, cast(share, gradient.value.dtype(), site), site);
    finite.push_back(all(is_finite(gradient.value, site), {}, site));
  }
  out.when = all(pack(finite, {}, site), {}, site);

  const Output next = Operand(runs, site) + Operand(1, site);
  const Output grows = Operand(next, site) >= Operand(every, site);
  const Output larger = minimum(Operand(scale, site) * Operand(2, site),
                                Operand(kMostScale, site).beside(scale), site);
  const Output smaller =
      maximum(Operand(scale, site) / Operand(2, site), Operand(1, site).beside(scale), site);
  const Output none = zeros_like(next, site);
  out.writes.push_back(
      assign(scale, select(out.when, select(grows, larger, scale, site), smaller, site), site));
  out.writes.push_back(
      assign(runs, select(out.when, select(grows, none, next, site), none, site), site));
  return out;
}

Gradients LossScale::gradients(Output loss, Site site) const {
  check_given("LossScale: the loss", loss, site);
  return gradients(loss, trainable_variables(loss.graph()), std::move(site));
}

}  // namespace troupe::optim
