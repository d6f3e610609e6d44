// The kernels of Fourier transforms of tensors, compiled once (element_loops.hpp says why).
#pragma once

#include "ops/op.hpp"

namespace troupe {

// Of all ops of ops/kernels/math/fft.cpp, which says what they are.
struct FftOp {
  enum class Kind : std::uint8_t {
    complex,         // complex to complex
    real,            // RFFT
    hermitian,       // IRFFT, to real
    real_grad,       // complex to real: what brings a gradient back through RFFT
    hermitian_grad,  // real to complex: the same of IRFFT
  };
  Kind kind = Kind::complex;
  int rank = 1;  // how many of the last dimensions are transformed
  bool inverse = false;
};

// The shape of the output of RFFT or IRFFT.
Expected<PartialShape> fft_shape(const FftOp& op, const PartialShape& x,
                                 const std::vector<std::int64_t>& fft_length);

Expected<std::unique_ptr<Kernel>> fft_kernel(const KernelSpec& spec, const FftOp& op);

}  // namespace troupe
