#include "ops/complex/dft.hpp"

#include <algorithm>
#include <cmath>
#include <new>
#include <string>
#include <unsupported/Eigen/FFT>

namespace troupe {
namespace {

template <class R>
using KissFft = Eigen::internal::kiss_cpx_fft<R>;

// Above it a butterfly, whose cost is quadratic in its radix, costs more than a convolution.
constexpr std::int64_t kLargestRadix = 13;

template <class R>
KissFft<R> mixed_radix(std::int64_t n) {
  KissFft<R> fft;
  fft.make_twiddles(int(n), false);
  fft.factorize(int(n));
  return fft;
}

std::int64_t without_factors(std::int64_t n, std::int64_t largest) {
  for (std::int64_t p = 2; p <= largest; ++p)
    while (n % p == 0) n /= p;
  return n;
}
bool has_small_factors(std::int64_t n) { return without_factors(n, kLargestRadix) == 1; }

// The least length, of radices 2 to 5, that is not below n.
std::int64_t fast_length(std::int64_t n) {
  while (without_factors(n, 5) != 1) ++n;
  return n;
}

template <class F>
auto or_exhausted(std::int64_t n, F&& make) -> Expected<decltype(make())> {
  try {
    return make();
  } catch (const std::bad_alloc&) {
    return resource_exhausted("no memory for the tables of a transform of " + std::to_string(n) +
                              " elements");
  }
}

template <class To, class From>
std::complex<To> as(std::complex<From> z) {
  return {To(z.real()), To(z.imag())};
}

}  // namespace

Status check_dft_length(std::int64_t n) {
  const std::string transform = "a transform of " + std::to_string(n) + " elements";
  if (n > kLongestDft)
    return out_of_range(transform + "; it may have " + std::to_string(kLongestDft) + " at most");
  if (n > kLongestConvolution && !has_small_factors(n))
    return out_of_range(transform + ", which has a prime factor above " +
                        std::to_string(kLargestRadix) + "; it may have " +
                        std::to_string(kLongestConvolution) + " at most");
  return ok_status();
}

template <class R>
struct DftPlan<R>::Tables {
  using Wide = std::complex<double>;

  explicit Tables(std::int64_t n) {
    if (n == 1) return;  // whose transform is itself
    if (has_small_factors(n)) {
      radices = mixed_radix<R>(n);
      return;
    }
    const std::int64_t m = fast_length(2 * n - 1);
    convolution = mixed_radix<double>(m);
    chirp.resize(std::size_t(n));
    std::vector<Wide> b(std::size_t(m), Wide(0));
    filter.resize(std::size_t(m));
    for (std::int64_t j = 0; j < n; ++j) {
      const double angle = M_PI * double(j * j % (2 * n)) / double(n);
      const Wide w(std::cos(angle), -std::sin(angle));
      chirp[std::size_t(j)] = w;
      b[std::size_t(j)] = b[std::size_t(j == 0 ? 0 : m - j)] = std::conj(w) / double(m);
    }
    convolution.work(0, filter.data(), b.data(), 1, 1);
  }

  // Either the one or the other three; for n = 1 none.
  KissFft<R> radices{};
  KissFft<double> convolution{};
  std::vector<Wide> chirp;   // e^(-pi i j^2 / n)
  std::vector<Wide> filter;  // the transform of its conjugate, over the length of the convolution
};

template <class R>
Expected<std::shared_ptr<const DftPlan<R>>> DftPlan<R>::make(std::int64_t n) {
  if (n < 1) return out_of_range("a transform of " + std::to_string(n) + " elements");
  TROUPE_TRY(check_dft_length(n));
  return or_exhausted(n, [n] {
    auto plan = std::make_shared<DftPlan>();
    plan->n_ = n;
    plan->tables_ = std::make_shared<const Tables>(n);
    return std::shared_ptr<const DftPlan>(std::move(plan));
  });
}

template <class R>
struct Dft<R>::State {
  using Wide = std::complex<double>;

  // Eigen's transforms are not const: larger butterflies write into their object.
  explicit State(const DftPlan<R>& plan)
      : tables(plan.tables()),
        n(plan.n()),
        radices(tables.radices),
        convolution(tables.convolution),
        a(tables.filter.size()),
        spectrum(tables.filter.size()),
        turned(tables.chirp.empty() ? std::size_t(n) : 0) {}

  const typename DftPlan<R>::Tables& tables;
  const std::int64_t n;
  KissFft<R> radices;
  KissFft<double> convolution;
  std::vector<Wide> a, spectrum;
  std::vector<std::complex<R>> turned;  // the conjugate of x, of an inverse transform
};

template <class R>
Expected<Dft<R>> Dft<R>::make(const DftPlan<R>& plan) {
  return or_exhausted(plan.n(), [&] { return Dft(std::make_unique<State>(plan)); });
}
template <class R>
Dft<R>::Dft(std::unique_ptr<State> state) : state_(std::move(state)) {}
template <class R>
Dft<R>::Dft(Dft&&) noexcept = default;
template <class R>
Dft<R>::~Dft() = default;

// The inverse transform of x is the conjugate of the transform of its conjugate.
template <class R>
void Dft<R>::operator()(const std::complex<R>* x, std::complex<R>* y, bool inverse) {
  State& s = *state_;
  const auto n = std::size_t(s.n);
  if (n == 1) {
    y[0] = x[0];
    return;
  }
  if (s.tables.chirp.empty()) {
    if (inverse) {
      std::transform(x, x + n, s.turned.begin(), [](auto z) { return std::conj(z); });
      x = s.turned.data();
    }
    s.radices.work(0, y, x, 1, 1);
    if (inverse) std::transform(y, y + n, y, [](auto z) { return std::conj(z); });
    return;
  }
  const auto& chirp = s.tables.chirp;
  for (std::size_t j = 0; j < n; ++j) {
    const auto z = as<double>(x[j]);
    s.a[j] = (inverse ? std::conj(z) : z) * chirp[j];
  }
  std::fill(s.a.begin() + std::ptrdiff_t(n), s.a.end(), std::complex<double>());
  s.convolution.work(0, s.spectrum.data(), s.a.data(), 1, 1);
  for (std::size_t k = 0; k < s.spectrum.size(); ++k)
    s.spectrum[k] = std::conj(s.spectrum[k] * s.tables.filter[k]);
  s.convolution.work(0, s.a.data(), s.spectrum.data(), 1, 1);
  for (std::size_t k = 0; k < n; ++k) {
    const auto z = std::conj(s.a[k]) * chirp[k];
    y[k] = as<R>(inverse ? std::conj(z) : z);
  }
}

template class DftPlan<float>;
template class DftPlan<double>;
template class Dft<float>;
template class Dft<double>;

}  // namespace troupe
