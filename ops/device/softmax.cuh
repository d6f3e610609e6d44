// Softmax over rows, and the losses of it. A block for each row. An output may be the memory of x:
// each element is read before it is written, by one thread.
#pragma once

#include "ops/device/arguments.hpp"
#include "ops/device/block.cuh"
#include "ops/formulas/reduction.hpp"

namespace troupe::device {

template <class T>
struct Row {
  const T* x;
  T* y;
  std::int64_t n;

  __device__ static Row of(const RowsArgs& a, std::int64_t row) {
    return {static_cast<const T*>(a.x) + row * a.n, static_cast<T*>(a.y) + row * a.n, a.n};
  }
  // f(element number) joined by Op.
  template <class Op, class F>
  __device__ T all(F f) const {
    T value = Op::template start<T>();
    for (std::int64_t i = threadIdx.x; i < n; i += blockDim.x) value = Op{}(value, f(i));
    return block_all<Op>(value);
  }
  template <class F>
  __device__ void each(F f) const {
    for (std::int64_t i = threadIdx.x; i < n; i += blockDim.x) y[i] = f(i);
  }
  __device__ T most() const {
    return all<formula::MaxOf>([*this](std::int64_t i) { return x[i]; });
  }
  __device__ T exp_sum(T max) const {
    return all<formula::SumOf>([*this, max](std::int64_t i) { return std::exp(x[i] - max); });
  }
};

// F::row(args, row number, Row<T>) for each row.
template <class F, class T>
struct Rows {
  using Args = RowsArgs;
  __device__ static void run(const Args& a) {
    for (std::int64_t row = blockIdx.x; row < a.rows; row += gridDim.x)
      F::run(a, row, Row<T>::of(a, row));
  }
};

struct Softmax {
  template <class T>
  __device__ static void run(const RowsArgs&, std::int64_t, Row<T> r) {
    const T max = r.most(), scale = T(1) / r.exp_sum(max);
    r.each([=](std::int64_t i) { return std::exp(r.x[i] - max) * scale; });
  }
};
struct LogSoftmax {
  template <class T>
  __device__ static void run(const RowsArgs&, std::int64_t, Row<T> r) {
    const T max = r.most(), log_sum = std::log(r.exp_sum(max));
    r.each([=](std::int64_t i) { return (r.x[i] - max) - log_sum; });
  }
};
// x is dy, `other` is y: dx = (dy - sum(dy y)) y
struct SoftmaxGrad {
  template <class T>
  __device__ static void run(const RowsArgs& a, std::int64_t row, Row<T> r) {
    const T* y = static_cast<const T*>(a.other) + row * a.n;
    const T mean = r.template all<formula::SumOf>([=](std::int64_t i) { return r.x[i] * y[i]; });
    r.each([=](std::int64_t i) { return (r.x[i] - mean) * y[i]; });
  }
};
// dx = dy - e^y sum(dy)
struct LogSoftmaxGrad {
  template <class T>
  __device__ static void run(const RowsArgs& a, std::int64_t row, Row<T> r) {
    const T* y = static_cast<const T*>(a.other) + row * a.n;
    const T sum = r.template all<formula::SumOf>([=](std::int64_t i) { return r.x[i]; });
    r.each([=](std::int64_t i) { return r.x[i] - std::exp(y[i]) * sum; });
  }
};
// `other` are probabilities: loss = sum p (log sum e^x - x), y = softmax(x) sum p - p.
struct CrossEntropy {
  template <class T>
  __device__ static void run(const RowsArgs& a, std::int64_t row, Row<T> r) {
    const T* p = static_cast<const T*>(a.other) + row * a.n;
    const T max = r.most(), sum = r.exp_sum(max), scale = T(1) / sum, log_sum = std::log(sum);
    const T mass = r.template all<formula::SumOf>([=](std::int64_t i) { return p[i]; });
    // A class of probability 0 contributes nothing, whatever its logit.
    const T loss = r.template all<formula::SumOf>(
        [=](std::int64_t i) { return p[i] == T(0) ? T(0) : p[i] * (log_sum - (r.x[i] - max)); });
    r.each([=](std::int64_t i) { return std::exp(r.x[i] - max) * scale * mass - p[i]; });
    if (threadIdx.x == 0) static_cast<T*>(a.loss)[row] = loss;
  }
};
// `other` are class numbers of type Label, which the host has checked.
template <class Label>
struct SparseCrossEntropy {
  template <class T>
  __device__ static void run(const RowsArgs& a, std::int64_t row, Row<T> r) {
    const std::int64_t label = static_cast<const Label*>(a.other)[row];
    const T max = r.most(), sum = r.exp_sum(max), scale = T(1) / sum, right = r.x[label];
    __syncthreads();  // y may be x
    r.each([=](std::int64_t i) {
      return std::exp(r.x[i] - max) * scale - (i == label ? T(1) : T(0));
    });
    if (threadIdx.x == 0) static_cast<T*>(a.loss)[row] = std::log(sum) - (right - max);
  }
};

}  // namespace troupe::device
