// Sessions with the emulated GPU beside the CPU.
#pragma once

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "apps/troupe.hpp"
#include "tests/devices/cuda/fake_driver.hpp"

namespace troupe::test {

// The driver and the compiler of the tests are all that is found, and their cuBLASLt and cuDNN if
// they are asked for.
struct Emulated {
  explicit Emulated(const std::string& options = "", bool compiler = true, bool libraries = false)
      : path("TROUPE_CUDA_PATH",
             build_dir() + "/fake-cuda" + (compiler ? ":" + build_dir() + "/fake-nvrtc" : "") +
                 (libraries ? ":" + build_dir() + "/fake-cublaslt:" + build_dir() + "/fake-cudnn"
                            : "") +
                 ":-"),
        fake(options) {}
  const EnvironmentVariable path;
  const FakeCuda fake;
};

inline Cluster with_gpu(bool gpu = true) {
  Cluster cluster;
  cluster.threads = 1;
  cluster.devices = {"CPU"};
  if (gpu) cluster.devices.push_back("CUDA");
  return cluster;
}

// Copies of the heap. Tensors that a device has made hold its context, and with it what the driver
// is like: the next test would find it as it was.
inline std::vector<Tensor> on_heap(const std::vector<Tensor>& tensors) {
  std::vector<Tensor> copies;
  for (const Tensor& t : tensors) copies.push_back(value_or_throw(t.clone()));
  return copies;
}

// How far apart the numbers of two runs are at most. Integers are the same.
inline double most_apart(const std::vector<Tensor>& a, const std::vector<Tensor>& b) {
  REQUIRE(a.size() == b.size());
  double most = 0;
  for (std::size_t k = 0; k < a.size(); ++k) {
    REQUIRE(a[k].shape() == b[k].shape());
    if (a[k].dtype() != DType::f32) {
      CHECK(Tensor::same(a[k], b[k]));
      continue;
    }
    for (std::int64_t i = 0; i < a[k].elements(); ++i)
      most = std::max(most, double(std::abs(a[k].data<float>()[i] - b[k].data<float>()[i])));
  }
  return most;
}

}  // namespace troupe::test
