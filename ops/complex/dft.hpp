// The discrete Fourier transform of any length: y[k] = sum over j of x[j] e^(-2 pi i j k / n).
//
// Lengths whose prime factors are small are transformed by mixed radix, by Eigen's kissfft. For the
// others, of which that is quadratic, the transform is a convolution (Bluestein), done by
// transforms of a length with small factors, in f64.
#pragma once

#include <complex>
#include <cstdint>
#include <memory>
#include <vector>

#include "core/status.hpp"

namespace troupe {

// The longest transform, and the longest of a length with a prime factor above 13, whose tables
// take 48 bytes for each element, and whose transforms 64.
inline constexpr std::int64_t kLongestDft = std::int64_t{1} << 28;
inline constexpr std::int64_t kLongestConvolution = std::int64_t{1} << 22;

// out_of_range for a transform that would be longer.
Status check_dft_length(std::int64_t n);

// What all transforms of one length share. Immutable; any thread may use it.
template <class R>
class DftPlan {
 public:
  // out_of_range for n below 1 or above the longest; resource_exhausted.
  static Expected<std::shared_ptr<const DftPlan>> make(std::int64_t n);

  struct Tables;
  const Tables& tables() const { return *tables_; }
  std::int64_t n() const { return n_; }

 private:
  std::int64_t n_ = 0;
  std::shared_ptr<const Tables> tables_;
};

// Transforms one after another, on one thread: it holds what a transform writes on its way.
template <class R>
class Dft {
 public:
  // resource_exhausted. The plan outlives it.
  static Expected<Dft> make(const DftPlan<R>& plan);
  Dft(Dft&&) noexcept;
  ~Dft();

  // y = the transform of x, both of n elements and apart. `inverse`: the one with e^(+2 pi i j k /
  // n), not divided by n.
  void operator()(const std::complex<R>* x, std::complex<R>* y, bool inverse = false);

 private:
  struct State;
  explicit Dft(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace troupe
