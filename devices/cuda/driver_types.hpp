// What the CUDA driver API is made of, as far as the device uses it. Declared here so that every
// build has it: none needs a toolkit. tests/devices/cuda/declarations_test.cpp compares this with
// <cuda.h> and <nvrtc.h> where those are installed.
#pragma once

#include <cstddef>
#include <cstdint>

namespace troupe::cuda {

using Result = int;                   // CUresult
using DeviceId = int;                 // CUdevice
using DeviceAddress = std::uint64_t;  // CUdeviceptr

using ContextHandle = struct OpaqueContext*;    // CUcontext
using StreamHandle = struct OpaqueStream*;      // CUstream
using EventHandle = struct OpaqueEvent*;        // CUevent
using ModuleHandle = struct OpaqueModule*;      // CUmodule
using FunctionHandle = struct OpaqueFunction*;  // CUfunction

// Values of CUresult.
inline constexpr Result kSuccess = 0, kInvalidValue = 1, kOutOfMemory = 2, kNotInitialized = 3,
                        kDeinitialized = 4, kStubLibrary = 34, kNoDevice = 100,
                        kInvalidDevice = 101, kInvalidImage = 200, kInvalidContext = 201,
                        kInvalidHandle = 400, kNotFound = 500, kNotReady = 600,
                        kIllegalAddress = 700, kLaunchOutOfResources = 701, kLaunchFailed = 719,
                        kSystemDriverMismatch = 803;

// Flags of streams, events and pinned memory.
inline constexpr unsigned kStreamNonBlocking = 1;
inline constexpr unsigned kEventBlockingSync = 1, kEventDisableTiming = 2;
inline constexpr unsigned kHostAllocPortable = 1;

// Values of CUdevice_attribute.
inline constexpr int kMultiprocessors = 16, kComputeMajor = 75, kComputeMinor = 76;

}  // namespace troupe::cuda
