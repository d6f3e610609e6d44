// Graphs of operations as plain data, and what they compute: for the tests' cuDNN, which does just
// what a graph says, step by step, in f32.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "devices/cuda/cudnn.hpp"
#include "tests/fake_cuda/stand_in.hpp"

namespace troupe::fake_cuda {

// A tensor of a graph. What is between operations lies in memory of the program, in its strides.
struct GraphTensor {
  enum Kind : std::uint8_t { in_memory, between, by_value };
  int type = cuda::kDnnF32;
  Kind kind = in_memory;
  std::int64_t id = 0;
  std::array<std::int64_t, 4> dims{}, strides{};
  std::int64_t alignment = 1;
  bool written = false;
  int pointer = -1;  // of one in memory, among those of a run
  float value = 0;   // of one by value

  std::int64_t elements() const { return dims[0] * dims[1] * dims[2] * dims[3]; }
  std::int64_t span() const {
    std::int64_t last = 0;
    for (std::size_t d = 0; d < 4; ++d) last += (dims[d] - 1) * strides[d];
    return last + 1;
  }
  std::size_t bytes() const {
    return std::size_t(span()) * (type == cuda::kDnnF16 || type == cuda::kDnnBf16 ? 2 : 4);
  }
};

struct GraphStep {
  int kind = 0;  // of the operation
  int mode = 0;  // of a pointwise one or a reduction
  std::int64_t axis = 0;
  int x = -1, b = -1, t = -1, y = -1;
};

class GraphProgram {
 public:
  std::vector<GraphTensor> tensors;
  std::vector<GraphStep> steps;
  std::int64_t engine = 0;

  const GraphStep* first_product() const {
    for (const GraphStep& step : steps)
      if (step.kind == cuda::kDnnMatmulOperation) return &step;
    return nullptr;
  }
  // Of the engine that adds up halves: one of them.
  std::int64_t workspace() const {
    std::int64_t most = 0;
    for (const GraphStep& step : steps)
      if (step.kind == cuda::kDnnMatmulOperation)
        most = std::max(most, tensors[std::size_t(step.y)].elements());
    return 4 * most;
  }

  void run(void* const* pointers, float* workspace, unsigned run_number) const {
    Run run{*this, pointers, workspace, run_number, {}};
    run.between.resize(tensors.size());
    for (std::size_t i = 0; i < tensors.size(); ++i)
      if (tensors[i].kind == GraphTensor::between)
        run.between[i].assign(std::size_t(tensors[i].span()), std::nanf(""));
    for (const GraphStep& step : steps) run.step(step);
  }

 private:
  using Place = std::array<std::int64_t, 4>;

  struct Run {
    const GraphProgram& program;
    void* const* pointers;
    float* workspace;
    unsigned number;
    std::vector<std::vector<float>> between;

    const GraphTensor& tensor(int i) const { return program.tensors[std::size_t(i)]; }

    // The element at a place, or the only one along a dimension.
    float load(int i, const Place& at) const {
      const GraphTensor& t = tensor(i);
      std::int64_t offset = 0;
      for (std::size_t d = 0; d < 4; ++d) offset += t.dims[d] == 1 ? 0 : at[d] * t.strides[d];
      return load_at(i, offset);
    }
    float load_at(int i, std::int64_t offset) const {
      const GraphTensor& t = tensor(i);
      if (t.kind == GraphTensor::by_value) return t.value;
      if (t.kind == GraphTensor::between) return between[std::size_t(i)][std::size_t(offset)];
      const void* p = pointers[t.pointer];
      if (t.type == cuda::kDnnF16) return Half::load(p, offset);
      return t.type == cuda::kDnnBf16 ? Bf16::load(p, offset) : Plain<float>::load(p, offset);
    }
    void store(int i, const Place& at, float x) {
      const GraphTensor& t = tensor(i);
      std::int64_t offset = 0;
      for (std::size_t d = 0; d < 4; ++d) offset += at[d] * t.strides[d];
      store_at(i, offset, x);
    }
    void store_at(int i, std::int64_t offset, float x) {
      const GraphTensor& t = tensor(i);
      if (t.kind == GraphTensor::between) {
        between[std::size_t(i)][std::size_t(offset)] = rounded(t.type, x);
        return;
      }
      void* p = pointers[t.pointer];
      if (t.type == cuda::kDnnF16)
        Half::store(p, offset, x);
      else if (t.type == cuda::kDnnBf16)
        Bf16::store(p, offset, x);
      else
        Plain<float>::store(p, offset, x);
    }
    static float rounded(int type, float x) {
      std::uint16_t bits = 0;
      if (type == cuda::kDnnF16) {
        Half::store(&bits, 0, x);
        return Half::load(&bits, 0);
      }
      if (type != cuda::kDnnBf16) return x;
      Bf16::store(&bits, 0, x);
      return Bf16::load(&bits, 0);
    }

    template <class F>
    static void for_places(const Place& dims, F&& f) {
      Place at{};
      for (at[0] = 0; at[0] < dims[0]; ++at[0])
        for (at[1] = 0; at[1] < dims[1]; ++at[1])
          for (at[2] = 0; at[2] < dims[2]; ++at[2])
            for (at[3] = 0; at[3] < dims[3]; ++at[3]) f(at);
    }

    void step(const GraphStep& s) {
      switch (s.kind) {
        case cuda::kDnnMatmulOperation:
          return multiply(s);
        case cuda::kDnnReductionOperation:
          return reduce(s);
        case cuda::kDnnReshapeOperation:
          for (std::int64_t i = 0; i < tensor(s.y).span(); ++i) store_at(s.y, i, load_at(s.x, i));
          return;
        default:
          for_places(tensor(s.y).dims, [&](const Place& at) { store(s.y, at, pointwise(s, at)); });
      }
    }

    float pointwise(const GraphStep& s, const Place& at) const {
      if (s.mode == cuda::kDnnIndex) return float(at[std::size_t(s.axis)]);
      const float x = load(s.x, at);
      switch (s.mode) {
        case cuda::kDnnAdd:
          return x + load(s.b, at);
        case cuda::kDnnMul:
          return x * load(s.b, at);
        case cuda::kDnnSub:
          return x - load(s.b, at);
        case cuda::kDnnDiv:
          return x / load(s.b, at);
        case cuda::kDnnExp:
          return std::exp(x);
        case cuda::kDnnLog:
          return std::log(x);
        case cuda::kDnnGreaterEqual:
          return x >= load(s.b, at) ? 1.0f : 0.0f;
        default:  // the first where the third is true
          return load(s.t, at) != 0 ? x : load(s.b, at);
      }
    }

    void reduce(const GraphStep& s) {
      const Place &from = tensor(s.x).dims, &to = tensor(s.y).dims;
      Place along{};
      for (std::size_t d = 0; d < 4; ++d) along[d] = to[d] == 1 ? from[d] : 1;
      for_places(to, [&](const Place& at) {
        const bool adds = s.mode == cuda::kDnnSum;
        float all = adds ? 0 : -std::numeric_limits<float>::infinity();
        for_places(along, [&](const Place& more) {
          Place place = at;
          for (std::size_t d = 0; d < 4; ++d) place[d] += more[d];
          const float x = load(s.x, place);
          all = adds ? all + x : std::max(all, x);
        });
        store(s.y, at, all);
      });
    }

    void multiply(const GraphStep& s) {
      const std::int64_t n = tensor(s.x).dims[3];
      std::vector<float> terms(static_cast<std::size_t>(n));
      std::int64_t element = 0;
      for_places(tensor(s.y).dims, [&](const Place& at) {
        for (std::int64_t k = 0; k < n; ++k)
          terms[std::size_t(k)] =
              load(s.x, {at[0], at[1], at[2], k}) * load(s.b, {at[0], at[1], k, at[3]});
        if (program.engine == 1)
          std::rotate(terms.begin(), terms.begin() + number % n, terms.end());
        if (program.engine == 8) std::reverse(terms.begin(), terms.end());
        const auto sum = [&](std::size_t from, std::size_t end) {
          float all = 0;
          for (std::size_t k = from; k < end; ++k) all += terms[k];
          return all;
        };
        const std::size_t half = program.engine == 7 ? terms.size() / 2 : 0;
        float all = sum(half, terms.size());
        if (program.engine == 7) {
          workspace[element] = sum(0, half);
          all = workspace[element] + all;
        }
        ++element;
        store(s.y, at, all);
      });
    }
  };
};

}  // namespace troupe::fake_cuda
