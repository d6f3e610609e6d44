// Steps of LSTMs, and their gradients: a thread for each unit of each example.
#pragma once

#include "ops/device/arguments.hpp"
#include "ops/device/types.cuh"
#include "ops/formulas/exponential.hpp"
#include "ops/formulas/lstm.hpp"

namespace troupe::device {

// gates = sigmoid or (the third) tanh of x + r; next = f c + i g; h = o tanh(next). The gates may
// be in the memory of x or r.
template <class T>
struct LstmStep {
  using Args = LstmArgs;
  __device__ static void run(const Args& a) {
    for (std::int64_t e = first_element(); e < a.rows * a.n; e += element_step()) {
      const std::int64_t at = e / a.n * 4 * a.n + e % a.n;
      const T *x = static_cast<const T*>(a.x) + at, *r = static_cast<const T*>(a.r) + at;
      const T i = formula::Sigmoid{}(x[0] + r[0]), f = formula::Sigmoid{}(x[a.n] + r[a.n]);
      const T g = formula::Tanh{}(x[2 * a.n] + r[2 * a.n]);
      const T o = formula::Sigmoid{}(x[3 * a.n] + r[3 * a.n]);
      const T next = f * static_cast<const T*>(a.c)[e] + i * g;
      T* gates = static_cast<T*>(a.gates) + at;
      gates[0] = i, gates[a.n] = f, gates[2 * a.n] = g, gates[3 * a.n] = o;
      static_cast<T*>(a.next)[e] = next;
      static_cast<T*>(a.h)[e] = o * formula::Tanh{}(next);
    }
  }
};

// Slopes may be in the memory of the gates, dc in that of dnext or of what is added to it.
template <class T>
struct LstmStepGrad {
  using Args = LstmGradArgs;
  __device__ static void run(const Args& a) {
    for (std::int64_t e = first_element(); e < a.rows * a.n; e += element_step()) {
      const std::int64_t at = e / a.n * 4 * a.n + e % a.n;
      T dh = static_cast<const T*>(a.dh)[e], dnext = static_cast<const T*>(a.dnext)[e];
      if (a.more_dh) dh = static_cast<const T*>(a.more_dh)[e] + dh;
      if (a.more_dnext) dnext = static_cast<const T*>(a.more_dnext)[e] + dnext;
      const T* gates = static_cast<const T*>(a.gates) + at;
      const auto d = formula::LstmSlopes<T>::of(dh, dnext, gates[0], gates[a.n], gates[2 * a.n],
                                                gates[3 * a.n], static_cast<const T*>(a.c)[e],
                                                formula::Tanh{}(static_cast<const T*>(a.next)[e]));
      T* slopes = static_cast<T*>(a.slopes) + at;
      slopes[0] = d.i, slopes[a.n] = d.f, slopes[2 * a.n] = d.g, slopes[3 * a.n] = d.o;
      static_cast<T*>(a.dc)[e] = d.c;
    }
  }
};

}  // namespace troupe::device
