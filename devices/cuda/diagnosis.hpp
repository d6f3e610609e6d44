// What of CUDA this machine has, and what of it is missing.
#pragma once

#include <string>
#include <vector>

#include "devices/cuda/driver.hpp"

namespace troupe::cuda {

// One part: the driver, a GPU, or a library.
struct Finding {
  std::string part;   // "driver", "gpu:0", "nvrtc", "cublasLt", "matmul", "cudnn", "conv"
  std::string state;  // state_name(); of libraries "ready", "missing", "broken" or "too_new"
  std::string text;   // one line
  std::string wheel;  // the package of PyPI that has what is missing
};

struct Diagnosis {
  std::vector<Finding> findings;  // the driver first
  bool fake = false;              // the tests' driver
  bool ready() const;             // all of it
};

// Opens all libraries to see their versions.
Diagnosis diagnose(const Search& search);

// Of NVRTC alone, for a driver of that version (0: unknown).
Finding nvrtc_finding(const Search& search, int driver_version);

// Of cuBLASLt alone.
Finding cublaslt_finding(const Search& search, int driver_version);

// Of cuDNN alone.
Finding cudnn_finding(const Search& search, int driver_version);

// One GPU, as its driver tells of it.
struct GpuInfo {
  std::string name;
  std::size_t memory = 0;    // bytes
  std::string architecture;  // "sm_90"
};
Expected<GpuInfo> gpu_info(const Driver& driver, DeviceId device);

}  // namespace troupe::cuda
