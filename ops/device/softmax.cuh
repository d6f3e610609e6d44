// Softmax over rows, and the losses of it. A block for each row. An output may be the memory of x:
// each element is read before it is written, by one thread.
#pragma once

#include "ops/device/arguments.hpp"
#include "ops/device/block.cuh"
#include "ops/device/types.cuh"
#include "ops/formulas/reduction.hpp"

namespace troupe::device {

// What is computed of a row whose elements are of type T: as Compute<T>, and rounded once.
template <class T>
struct Row {
  using Value = Compute<T>;
  const T* x;
  T* y;
  std::int64_t n;

  __device__ static Row of(const RowsArgs& a, std::int64_t row) {
    return {static_cast<const T*>(a.x) + row * a.n, static_cast<T*>(a.y) + row * a.n, a.n};
  }
  __device__ Value operator[](std::int64_t i) const { return load(x[i]); }
  // f(element number) joined by Op.
  template <class Op, class F>
  __device__ Value all(F f) const {
    Value value = Op::template start<Value>();
    for (std::int64_t i = threadIdx.x; i < n; i += blockDim.x) value = Op{}(value, f(i));
    return block_all<Op>(value);
  }
  template <class F>
  __device__ void each(F f) const {
    for (std::int64_t i = threadIdx.x; i < n; i += blockDim.x) y[i] = Store<T>::of(f(i));
  }
  __device__ Value most() const {
    return all<formula::MaxOf>([*this](std::int64_t i) { return (*this)[i]; });
  }
  __device__ Value exp_sum(Value max) const {
    return all<formula::SumOf>([*this, max](std::int64_t i) { return std::exp((*this)[i] - max); });
  }
};

// The row of the other input.
template <class T>
struct OtherRow {
  const T* x;
  __device__ static OtherRow of(const RowsArgs& a, std::int64_t row) {
    return {static_cast<const T*>(a.other) + row * a.n};
  }
  __device__ Compute<T> operator[](std::int64_t i) const { return load(x[i]); }
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
    const Compute<T> max = r.most(), scale = Compute<T>(1) / r.exp_sum(max);
    r.each([=](std::int64_t i) { return std::exp(r[i] - max) * scale; });
  }
};
struct LogSoftmax {
  template <class T>
  __device__ static void run(const RowsArgs&, std::int64_t, Row<T> r) {
    const Compute<T> max = r.most(), log_sum = std::log(r.exp_sum(max));
    r.each([=](std::int64_t i) { return (r[i] - max) - log_sum; });
  }
};
// x is dy, `other` is y: dx = (dy - sum(dy y)) y
struct SoftmaxGrad {
  template <class T>
  __device__ static void run(const RowsArgs& a, std::int64_t row, Row<T> r) {
    const auto y = OtherRow<T>::of(a, row);
    const Compute<T> mean =
        r.template all<formula::SumOf>([=](std::int64_t i) { return r[i] * y[i]; });
    r.each([=](std::int64_t i) { return (r[i] - mean) * y[i]; });
  }
};
// dx = dy - e^y sum(dy)
struct LogSoftmaxGrad {
  template <class T>
  __device__ static void run(const RowsArgs& a, std::int64_t row, Row<T> r) {
    const auto y = OtherRow<T>::of(a, row);
    const Compute<T> sum = r.template all<formula::SumOf>([=](std::int64_t i) { return r[i]; });
    r.each([=](std::int64_t i) { return r[i] - std::exp(y[i]) * sum; });
  }
};
// `other` are probabilities: loss = sum p (log sum e^x - x), y = softmax(x) sum p - p.
struct CrossEntropy {
  template <class T>
  __device__ static void run(const RowsArgs& a, std::int64_t row, Row<T> r) {
    const auto p = OtherRow<T>::of(a, row);
    const Compute<T> max = r.most(), sum = r.exp_sum(max), scale = Compute<T>(1) / sum,
                     log_sum = std::log(sum);
    const Compute<T> mass = r.template all<formula::SumOf>([=](std::int64_t i) { return p[i]; });
    // A class of probability 0 contributes nothing, whatever its logit.
    const Compute<T> loss = r.template all<formula::SumOf>([=](std::int64_t i) {
      return p[i] == Compute<T>(0) ? Compute<T>(0) : p[i] * (log_sum - (r[i] - max));
    });
    r.each([=](std::int64_t i) { return std::exp(r[i] - max) * scale * mass - p[i]; });
    if (threadIdx.x == 0) static_cast<T*>(a.loss)[row] = Store<T>::of(loss);
  }
};
// `other` are class numbers of type Label, which the host has checked.
template <class Label>
struct SparseCrossEntropy {
  template <class T>
  __device__ static void run(const RowsArgs& a, std::int64_t row, Row<T> r) {
    const std::int64_t label = static_cast<const Label*>(a.other)[row];
    const Compute<T> max = r.most(), sum = r.exp_sum(max), scale = Compute<T>(1) / sum,
                     right = r[label];
    __syncthreads();  // y may be x
    r.each([=](std::int64_t i) {
      return std::exp(r[i] - max) * scale - (i == label ? Compute<T>(1) : Compute<T>(0));
    });
    if (threadIdx.x == 0)
      static_cast<T*>(a.loss)[row] = Store<T>::of(std::log(sum) - (right - max));
  }
};

}  // namespace troupe::device
