#include "ops/complex/dft.hpp"

#include <doctest/doctest.h>

#include <cmath>

#include "core/hash.hpp"

using namespace troupe;

namespace {

template <class R>
std::vector<std::complex<R>> dft_of_values(const std::vector<std::complex<R>>& x, bool inverse) {
  auto plan = DftPlan<R>::make(std::int64_t(x.size()));
  REQUIRE_MESSAGE(plan.ok(), plan.status().text());
  auto transform = Dft<R>::make(**plan);
  REQUIRE(transform.ok());
  std::vector<std::complex<R>> y(x.size()), again(x.size());
  (*transform)(x.data(), y.data(), inverse);
  (*transform)(x.data(), again.data(), inverse);  // nothing is left over from one to the next
  CHECK(y == again);
  return y;
}

// The largest difference to the sums of the definition, for a largest element of about sqrt(n).
template <class R>
double dft_error(std::int64_t n, bool inverse, Random& random) {
  std::vector<std::complex<R>> x;
  for (std::int64_t i = 0; i < n; ++i)
    x.emplace_back(R(random.uniform(-1, 1)), R(random.uniform(-1, 1)));
  const auto y = dft_of_values(x, inverse);
  std::vector<std::complex<double>> roots;
  for (std::int64_t i = 0; i < n; ++i)
    roots.push_back(std::polar(1.0, (inverse ? 2 : -2) * M_PI * double(i) / double(n)));
  double worst = 0;
  for (std::int64_t k = 0; k < n; ++k) {
    std::complex<double> sum = 0;
    for (std::int64_t j = 0; j < n; ++j)
      sum += std::complex<double>(x[std::size_t(j)]) * roots[std::size_t(j * k % n)];
    worst = std::max(worst, std::abs(sum - std::complex<double>(y[std::size_t(k)])));
  }
  return worst / std::sqrt(double(n));
}

TEST_CASE("a transform of any length is the sum of its definition") {
  const std::uint64_t seed = 41;
  INFO("seed " << seed);
  Random random(seed);
  std::vector<std::int64_t> lengths{169, 210, 256, 257, 343, 509, 512, 1001, 1024, 1031};
  for (std::int64_t n = 1; n <= 64; ++n) lengths.push_back(n);
  for (std::int64_t n : lengths)
    for (bool inverse : {false, true}) {
      INFO("length " << n << (inverse ? ", inverse" : ""));
      CHECK(dft_error<double>(n, inverse, random) < 2e-14);
      CHECK(dft_error<float>(n, inverse, random) < 2e-6);
    }
}

TEST_CASE(
    "a transform of a large prime length takes no quadratic time, and its inverse brings back x") {
  Random random(7);
  std::vector<std::complex<double>> x;
  for (int i = 0; i < 100'003; ++i) x.emplace_back(random.uniform(), random.uniform());
  const auto back = dft_of_values(dft_of_values(x, false), true);
  double worst = 0;
  for (std::size_t i = 0; i < x.size(); ++i)
    worst = std::max(worst, std::abs(back[i] / double(x.size()) - x[i]));
  CHECK(worst < 1e-13);
}

TEST_CASE("transforms of no elements, or of too many, are refused") {
  for (std::int64_t n : {std::int64_t{0}, std::int64_t{-1}, kLongestDft + 1})
    CHECK(DftPlan<float>::make(n).status().code() == Code::out_of_range);
  const Status large = DftPlan<double>::make(10'000'019).status();  // a prime number
  CHECK(large.code() == Code::out_of_range);
  CHECK(large.text().find("which has a prime factor above 13") != std::string::npos);
}

}  // namespace
