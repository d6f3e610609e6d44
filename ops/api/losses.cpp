#include "ops/api/losses.hpp"

#include <fmt/format.h>

#include <cmath>

#include "ops/api/node.hpp"
#include "ops/api/rearrange.hpp"
#include "ops/api/statistics.hpp"
#include "ops/detail/wide.hpp"

namespace troupe {

namespace {

using detail::in_wide;

// Whether broadcasting with b repeats a. Lengths that are not known are taken for other ones
// than 1.
bool repeats(const PartialShape& a, const PartialShape& b) {
  const auto is_one = [](const PartialShape& shape, int i) {
    return shape.known(i) && shape[i].value() == 1;
  };
  for (int i = 1; i <= b.rank(); ++i)
    if (!is_one(b, b.rank() - i) && (i > a.rank() || is_one(a, a.rank() - i))) return true;
  return false;
}

// Throws Error for shapes such as [n,1] and [n], of which broadcasting would make [n,n]: a loss of
// each prediction with the targets of all others.
void check_pairs(const char* loss, const Output& predictions, const Operand& targets,
                 const Site& site) {
  if (predictions.empty() || targets.is_number() || targets.output().empty()) return;
  const PartialShape &p = predictions.shape(), &t = targets.output().shape();
  if (!p.known_rank() || !t.known_rank() || p.rank() == t.rank()) return;
  if (repeats(p, t) && repeats(t, p))
    throw Error(invalid_argument(fmt::format("{}: {} and targets {} would broadcast to pairs of "
                                             "all with all: squeeze() one, or expand_dims() the "
                                             "other",
                                             loss, p.text(), t.text()))
                    .at(site));
}

}  // namespace

Output sigmoid_cross_entropy(Output logits, const Operand& labels, Site site) {
  check_given("sigmoid_cross_entropy: `logits`", logits, site);
  check_pairs("sigmoid_cross_entropy", logits, labels, site);
  // Each part is exact where its label is 1, as max(x, 0) - x label + log(1 + e^-|x|) is, and has a
  // gradient at 0.
  const auto f = [&](const Output& logits, const Operand& labels) {
    const Operand one = number_beside(logits, 1, "", site);
    const Output is = labels.beside(logits, site);
    return add(mul(is, softplus(neg(logits, site), site), site),
               mul(sub(one, is, site), softplus(logits, site), site), site);
  };
  return in_wide(site, f, logits, labels);
}

Output binary_cross_entropy(Output probabilities, const Operand& labels,
                            const BinaryCrossEntropyOptions& options, Site site) {
  const double epsilon = options.epsilon;
  if (!(epsilon > 0 && epsilon < 0.5))
    throw Error(
        invalid_argument(
            fmt::format("binary_cross_entropy: epsilon must be in (0, 0.5), not {}", epsilon))
            .at(site));
  check_given("binary_cross_entropy: `probabilities`", probabilities, site);
  check_pairs("binary_cross_entropy", probabilities, labels, site);
  const auto f = [&](const Output& probabilities, const Operand& labels) {
    const auto number = [&](double value) { return number_beside(probabilities, value, "", site); };
    const Output is = labels.beside(probabilities, site);
    const Output one = number(1).beside(probabilities, site);
    const Output p = clip_by_value(probabilities, number(epsilon), number(1 - epsilon), site);
    return neg(add(mul(is, log(p, site), site),
                   mul(sub(one, is, site), log(sub(one, p, site), site), site), site),
               site);
  };
  return in_wide(site, f, probabilities, labels);
}

Output kl_divergence(Output p, Output q, std::int64_t axis, Site site) {
  check_given("kl_divergence: `p`", p, site);
  check_given("kl_divergence: `q`", q, site);
  const auto f = [&](const Output& p, const Output& q) {
    const Operand zero = number_beside(p, 0, "", site), one = number_beside(p, 1, "", site);
    // The logarithm of a 0 that does not count would give its gradient no number.
    const Output counts = not_equal(p, zero, site);
    const Output ratio = div(select(counts, p, one, site), select(counts, q, one, site), site);
    return sum(select(counts, mul(p, log(ratio, site), site), zero, site), {.axes = {axis}}, site);
  };
  return in_wide(site, f, p, q);
}

Output mean_squared_error(Output predictions, const Operand& targets, Site site) {
  check_given("mean_squared_error: `predictions`", predictions, site);
  check_pairs("mean_squared_error", predictions, targets, site);
  const auto f = [&](const Output& predictions, const Operand& targets) {
    return mean(squared_difference(predictions, targets, site), MeanOptions{}, site);
  };
  return in_wide(site, f, predictions, targets);
}

Output mean_absolute_error(Output predictions, const Operand& targets, Site site) {
  check_given("mean_absolute_error: `predictions`", predictions, site);
  check_pairs("mean_absolute_error", predictions, targets, site);
  const auto f = [&](const Output& predictions, const Operand& targets) {
    return mean(abs(sub(predictions, targets, site), site), MeanOptions{}, site);
  };
  return in_wide(site, f, predictions, targets);
}

Output huber(Output predictions, const Operand& targets, double delta, Site site) {
  if (!(delta > 0) || std::isinf(delta))
    throw Error(invalid_argument(fmt::format("huber: `delta` is finite and above 0, not {}", delta))
                    .at(site));
  check_given("huber: `predictions`", predictions, site);
  check_pairs("huber", predictions, targets, site);
  const auto f = [&](const Output& predictions, const Operand& targets) {
    return huber(predictions, targets, number_beside(predictions, delta, "", site), site);
  };
  return in_wide(site, f, predictions, targets);
}

Output hinge(Output logits, const Operand& labels, Site site) {
  check_pairs("hinge", logits, labels, site);
  check_given("hinge: `logits`", logits, site);
  const auto f = [&](const Output& logits, const Operand& labels) {
    const auto number = [&](double value) { return number_beside(logits, value, "", site); };
    const Output sign =
        sub(mul(labels.beside(logits, site), number(2), site), number(1), site);  // -1 or 1
    return relu(sub(number(1), mul(sign, logits, site), site), site);
  };
  return in_wide(site, f, logits, labels);
}

namespace {

// Of f32 or f64.
Output wide_similarity(Output a, Output b, std::int64_t axis, const Site& site) {
  const Operand one = number_beside(a, 1, "", site), zero = number_beside(a, 0, "", site);
  const SumOptions along{.axes = {axis}};
  // A row as long has the same angles; of large numbers no square overflows then.
  const auto in_size = [&](const Output& x) {
    const Output most =
        stop_gradient(max(abs(x, site), {.axes = {axis}, .keep_dims = true}, site), site);
    return div(x, select(equal(most, zero, site), one.beside(x), most, site), site);
  };
  a = in_size(a), b = in_size(b);
  const auto squares = [&](const Output& x) { return sum(square(x, site), along, site); };
  // A row of zeros has the length 1.
  const auto inverse_length = [&](const Output& x) {
    const Output all = squares(x);
    return rsqrt(select(equal(all, zero, site), one.beside(x), all, site), site);
  };
  const Output lengths = mul(inverse_length(a), inverse_length(b), site);
  return mul(sum(mul(a, b, site), along, site), lengths, site);
}

}  // namespace

Output cosine_similarity(Output a, Output b, std::int64_t axis, Site site) {
  check_given("cosine_similarity: `a`", a, site);
  check_given("cosine_similarity: `b`", b, site);
  return detail::narrow(wide_similarity(detail::wide(a, site), detail::wide(b, site), axis, site),
                        a.dtype(), site);
}

Output cosine_distance(Output a, Output b, std::int64_t axis, Site site) {
  check_given("cosine_distance: `a`", a, site);
  check_given("cosine_distance: `b`", b, site);
  const Output similarity =
      wide_similarity(detail::wide(a, site), detail::wide(b, site), axis, site);
  return detail::narrow(sub(number_beside(similarity, 1, "", site), similarity, site), a.dtype(),
                        site);
}

Output triplet_margin(Output anchor, Output positive, Output negative, double margin, Site site) {
  if (!(margin >= 0) || std::isinf(margin))
    throw Error(
        invalid_argument(
            fmt::format("triplet_margin: `margin` is finite and not below 0, not {}", margin))
            .at(site));
  check_given("triplet_margin: `anchor`", anchor, site);
  check_given("triplet_margin: `positive`", positive, site);
  check_given("triplet_margin: `negative`", negative, site);
  const auto f = [&](const Output& anchor, const Output& positive, const Output& negative) {
    const auto distance = [&](const Output& other) {
      return norm(sub(anchor, other, site), {.axes = {-1}}, site);
    };
    const Output apart = sub(distance(positive), distance(negative), site);
    return relu(add(apart, number_beside(apart, margin, "", site), site), site);
  };
  return in_wide(site, f, anchor, positive, negative);
}

}  // namespace troupe
