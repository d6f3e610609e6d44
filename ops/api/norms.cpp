#include "ops/api/norms.hpp"

#include "ops/api/arrays.hpp"
#include "ops/api/constant.hpp"
#include "ops/api/math.hpp"
#include "ops/api/node.hpp"
#include "ops/api/operators.hpp"
#include "ops/detail/wide.hpp"

namespace troupe {

using detail::narrow, detail::wide;

namespace {

[[noreturn]] void refuse_norm(std::string what, const Site& site) {
  throw Error(invalid_argument(std::move(what)).at(site));
}

void check_epsilon_of(const std::string& what, double epsilon, const Site& site) {
  if (!(epsilon >= 0)) refuse_norm(what + ": epsilon must not be negative", site);
}

// The last dimension, which must be known.
std::int64_t channels_of(const std::string& what, const Output& x, int rank, const Site& site) {
  check_given(what + ": x", x, site);
  const PartialShape& s = x.shape();
  if (s.known_rank() && s.rank() >= rank && s.known(s.rank() - 1) && s[s.rank() - 1] >= 1)
    return s[s.rank() - 1];
  refuse_norm(what + ": x must have " + std::to_string(rank) +
                  " dimensions or more, the last one known and positive, not " + s.text(),
              site);
}

Output inverse_root(Output x, double epsilon, const Site& site) {
  return rsqrt(add(x, Operand(epsilon, site).beside(x), site), site);
}

}  // namespace

Output instance_norm(Output x, Output scale, Output offset, const NormOptions& options, Site site) {
  const std::int64_t channels = channels_of("instance_norm", x, 2, site);
  return group_norm(x, scale, offset, channels, options, std::move(site));
}

Output rms_norm(Output x, Output scale, const NormOptions& options, Site site) {
  const std::string what = "rms_norm";
  check_given(what + ": x", x, site);
  check_given(what + ": scale", scale, site);
  check_epsilon_of(what, options.epsilon, site);
  const PartialShape& s = x.shape();
  if (s.known_rank()) {
    const bool fits = s.rank() >= 1 && scale.shape().known_rank() && scale.shape().rank() == 1 &&
                      PartialShape::merge(PartialShape{s[s.rank() - 1]}, scale.shape()).ok();
    if (!fits)
      refuse_norm(what + ": scale has shape " + scale.shape().text() +
                      ", not that of the last dimension of x " + s.text(),
                  site);
  }
  const DType dtype = x.dtype();
  x = wide(x, site);
  const Output square_mean = mean(square(x, site), {.axes = {-1}, .keep_dims = true}, site);
  const Output y =
      mul(mul(x, inverse_root(square_mean, options.epsilon, site), site), wide(scale, site), site);
  return narrow(y, dtype, site);
}

Output local_response_norm(Output x, const LocalResponseOptions& options, Site site) {
  const std::string what = "local_response_norm";
  const std::int64_t channels = channels_of(what, x, 1, site);
  if (options.radius < 0)
    refuse_norm(
        what + ": the radius is " + std::to_string(options.radius) + "; it must not be negative",
        site);
  const DType dtype = x.dtype();
  x = wide(x, site);
  GraphBuilder& g = x.graph();
  // Sums over neighbouring channels as a product with a matrix of ones around the diagonal.
  const std::int64_t radius = std::min(options.radius, channels);
  const Output near =
      matrix_band_part(ones(g, {channels, channels}, x.dtype(), site), radius, radius, site);
  const Output rows = reshape(square(x, site), {-1, channels}, site);
  const Output sums = reshape(mat_mul(rows, near, {}, site), shape(x, {}, site), site);
  const auto beside = [&](double value) { return Operand(value, site).beside(x); };
  const Output base = add(mul(sums, beside(options.alpha), site), beside(options.bias), site);
  return narrow(mul(x, pow(base, beside(-options.beta), site), site), dtype, site);
}

}  // namespace troupe
