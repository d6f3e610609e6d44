// CublasLt: NVIDIA's library of matrix products as a table of functions, opened at run time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "core/status.hpp"
#include "devices/cuda/driver_types.hpp"
#include "devices/cuda/library.hpp"

namespace troupe::cuda {

using LtHandle = struct OpaqueLt*;                // cublasLtHandle_t
using LtOperation = struct OpaqueLtOperation*;    // cublasLtMatmulDesc_t
using LtLayout = struct OpaqueLtLayout*;          // cublasLtMatrixLayout_t
using LtPreference = struct OpaqueLtPreference*;  // cublasLtMatmulPreference_t
using LtResult = int;                             // cublasStatus_t

struct LtAlgorithm {  // cublasLtMatmulAlgo_t
  std::uint64_t data[8];
};
struct LtHeuristic {  // cublasLtMatmulHeuristicResult_t
  LtAlgorithm algorithm;
  std::size_t workspace;
  LtResult state;
  float waves;
  int reserved[4];
};

// Values of NVIDIA's enumerations.
enum LtType : int { kLtF32 = 0, kLtF64 = 1, kLtF16 = 2, kLtBf16 = 14 };  // cudaDataType
enum LtCompute : int {
  kLtComputeF32 = 68,
  kLtComputeF64 = 70,
  kLtComputeTf32 = 77
};  // cublasComputeType_t
enum LtTransposition : std::int32_t { kLtPlain = 0, kLtTransposed = 1 };
enum LtOperationAttribute : int {
  kLtTransposeA = 3,
  kLtTransposeB = 4,
  kLtEpilogueIs = 7,
  kLtBiasPointer = 8,
};
// What is computed of sums before they are rounded: a number for each row of the result (by
// columns) is added. The epilogues with a Relu are not here: theirs makes 0 of NaN.
enum LtEpilogue : std::uint32_t { kLtNothing = 1, kLtBias = 4 };
enum LtLayoutAttribute : int { kLtBatchCount = 5, kLtBatchStride = 6 };
enum LtPreferenceAttribute : int {
  kLtMostWorkspace = 1,
  kLtReductionSchemes = 3,
  kLtAlignmentA = 5,
  kLtAlignmentB = 6,
  kLtAlignmentC = 7,
  kLtAlignmentD = 8,
};
// How parts of a sum that is split are added up: in the workspace, by a step of its own.
inline constexpr std::uint32_t kLtReduceInWorkspace = 2;

struct CublasLtTable {
  std::size_t (*cublasLtGetVersion)() = nullptr;
  const char* (*cublasLtGetStatusName)(LtResult) = nullptr;
  LtResult (*cublasLtCreate)(LtHandle*) = nullptr;
  LtResult (*cublasLtDestroy)(LtHandle) = nullptr;
  LtResult (*cublasLtMatmulDescCreate)(LtOperation*, int compute, int scale) = nullptr;
  LtResult (*cublasLtMatmulDescDestroy)(LtOperation) = nullptr;
  LtResult (*cublasLtMatmulDescSetAttribute)(LtOperation, int attribute, const void* value,
                                             std::size_t bytes) = nullptr;
  LtResult (*cublasLtMatrixLayoutCreate)(LtLayout*, int type, std::uint64_t rows,
                                         std::uint64_t columns, std::int64_t leading) = nullptr;
  LtResult (*cublasLtMatrixLayoutDestroy)(LtLayout) = nullptr;
  LtResult (*cublasLtMatrixLayoutSetAttribute)(LtLayout, int attribute, const void* value,
                                               std::size_t bytes) = nullptr;
  LtResult (*cublasLtMatmulPreferenceCreate)(LtPreference*) = nullptr;
  LtResult (*cublasLtMatmulPreferenceDestroy)(LtPreference) = nullptr;
  LtResult (*cublasLtMatmulPreferenceSetAttribute)(LtPreference, int attribute, const void* value,
                                                   std::size_t bytes) = nullptr;
  LtResult (*cublasLtMatmulAlgoGetHeuristic)(LtHandle, LtOperation, LtLayout a, LtLayout b,
                                             LtLayout c, LtLayout d, LtPreference, int most,
                                             LtHeuristic* found, int* count) = nullptr;
  LtResult (*cublasLtMatmul)(LtHandle, LtOperation, const void* alpha, const void* a, LtLayout,
                             const void* b, LtLayout, const void* beta, const void* c, LtLayout,
                             void* d, LtLayout, const LtAlgorithm*, void* workspace,
                             std::size_t workspace_bytes, StreamHandle) = nullptr;

  template <class Self, class Visit>
  static void each(Self& self, Visit&& visit) {
    visit("cublasLtGetVersion", self.cublasLtGetVersion);
    visit("cublasLtGetStatusName", self.cublasLtGetStatusName);
    visit("cublasLtCreate", self.cublasLtCreate);
    visit("cublasLtDestroy", self.cublasLtDestroy);
    visit("cublasLtMatmulDescCreate", self.cublasLtMatmulDescCreate);
    visit("cublasLtMatmulDescDestroy", self.cublasLtMatmulDescDestroy);
    visit("cublasLtMatmulDescSetAttribute", self.cublasLtMatmulDescSetAttribute);
    visit("cublasLtMatrixLayoutCreate", self.cublasLtMatrixLayoutCreate);
    visit("cublasLtMatrixLayoutDestroy", self.cublasLtMatrixLayoutDestroy);
    visit("cublasLtMatrixLayoutSetAttribute", self.cublasLtMatrixLayoutSetAttribute);
    visit("cublasLtMatmulPreferenceCreate", self.cublasLtMatmulPreferenceCreate);
    visit("cublasLtMatmulPreferenceDestroy", self.cublasLtMatmulPreferenceDestroy);
    visit("cublasLtMatmulPreferenceSetAttribute", self.cublasLtMatmulPreferenceSetAttribute);
    visit("cublasLtMatmulAlgoGetHeuristic", self.cublasLtMatmulAlgoGetHeuristic);
    visit("cublasLtMatmul", self.cublasLtMatmul);
  }
};

// Any thread may use it.
struct CublasLt : CublasLtTable {
  std::string path;
  int version = 0;    // 130100 is 13.1.0
  bool fake = false;  // the tests' library, which computes through the fake driver

  // Of the CUDA that it was made with.
  int cuda_major() const { return version / 10000; }
  // Ok for 0; else an error: "cublasLtMatmul: CUBLAS_STATUS_NOT_SUPPORTED".
  Status check(LtResult result, const char* call) const;
};

// not_found, or failed_precondition for a library that cannot be used.
Expected<CublasLt> open_cublaslt(const Search& search, int driver_version);

}  // namespace troupe::cuda
