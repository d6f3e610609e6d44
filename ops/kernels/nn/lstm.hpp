// What a step of an LSTM computes of the units in a row, and its gradient: for the kernels of one
// step and of many.
#pragma once

#include <cstdint>

#include "ops/formulas/lstm.hpp"
#include "ops/kernels/support/vector_math.hpp"

namespace troupe {

// The gates i, f, g and o of some units: each a row, `step` elements after the one before.
template <class T>
struct Gates {
  T* first;
  std::int64_t step;
  T* operator[](int gate) const { return first + gate * step; }
};

// gates = sigmoid or (g) tanh of x + r; next = f c + i g; h = o tanh(next). The gates may be
// written over r.
template <class T>
void lstm_row(std::int64_t n, Gates<const T> x, Gates<const T> r, const T* c, Gates<T> gates, T* h,
              T* next) {
  map_packets<T>(n, {x[0], x[1], x[2], x[3], r[0], r[1], r[2], r[3], c},
                 {1, 1, 1, 1, 1, 1, 1, 1, 1}, {gates[0], gates[1], gates[2], gates[3], next, h},
                 [](auto at, auto to) {
                   const auto i = sigmoid_value(at(0) + at(4)), f = sigmoid_value(at(1) + at(5));
                   const auto g = tanh_value(at(2) + at(6)), o = sigmoid_value(at(3) + at(7));
                   const auto cell = f * at(8) + i * g;
                   to(0, i), to(1, f), to(2, g), to(3, o);
                   to(4, cell);
                   to(5, o * tanh_value(cell));
                 });
}

// From the gradients of h and next those of x + r, `slopes`, and of c. dc may be written over
// dnext, and the slopes over the gates.
template <class T>
void lstm_grad_row(std::int64_t n, const T* dh, const T* dnext, Gates<const T> gates, const T* c,
                   const T* next, Gates<T> slopes, T* dc) {
  const T *gi = gates[0], *gf = gates[1], *gg = gates[2], *go = gates[3];
  T *di = slopes[0], *df = slopes[1], *dg = slopes[2], *d_o = slopes[3];
#pragma omp simd
  for (std::int64_t j = 0; j < n; ++j) {
    const auto d = formula::LstmSlopes<T>::of(dh[j], dnext[j], gi[j], gf[j], gg[j], go[j], c[j],
                                              tanh_value(next[j]));
    di[j] = d.i, df[j] = d.f, dg[j] = d.g, d_o[j] = d.o;
    dc[j] = d.c;
  }
}

}  // namespace troupe
