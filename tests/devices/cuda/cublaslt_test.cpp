// NVIDIA's cuBLASLt, where it is installed: descriptions of products need no GPU.
#include "devices/cuda/cublaslt.hpp"

#include <doctest/doctest.h>

namespace troupe {

TEST_CASE("CUDA: NVIDIA's cuBLASLt takes what it is told of a product") {
  using namespace cuda;
  const auto found = open_cublaslt(Search::standard(), 0);
  if (!found.ok()) {
    CHECK(found.status().code() == Code::not_found);
    MESSAGE("skipped: ", found.status().message(), " (wheel nvidia-cublas)");
    return;
  }
  const CublasLt& lt = *found;
  CHECK(lt.version >= 120000);
  CHECK_FALSE(lt.fake);
  constexpr LtResult kFine = 0, kInvalid = 7;

  LtOperation operation = nullptr;
  REQUIRE(lt.cublasLtMatmulDescCreate(&operation, kLtComputeF32, kLtF32) == kFine);
  const std::int32_t transposed = kLtTransposed;
  for (const int which : {kLtTransposeA, kLtTransposeB}) {
    CHECK(lt.cublasLtMatmulDescSetAttribute(operation, which, &transposed, sizeof transposed) ==
          kFine);
    CHECK(lt.cublasLtMatmulDescSetAttribute(operation, which, &transposed, 2) == kInvalid);
  }
  for (const std::uint32_t epilogue : {kLtNothing, kLtBias}) {
    CHECK(lt.cublasLtMatmulDescSetAttribute(operation, kLtEpilogueIs, &epilogue, sizeof epilogue) ==
          kFine);
    CHECK(lt.cublasLtMatmulDescSetAttribute(operation, kLtEpilogueIs, &epilogue, 2) == kInvalid);
  }
  const void* bias = &lt;
  CHECK(lt.cublasLtMatmulDescSetAttribute(operation, kLtBiasPointer, &bias, sizeof bias) == kFine);
  CHECK(lt.cublasLtMatmulDescSetAttribute(operation, kLtBiasPointer, &bias, 4) == kInvalid);
  CHECK(lt.cublasLtMatmulDescDestroy(operation) == kFine);

  for (const int type : {kLtF32, kLtF64, kLtF16, kLtBf16}) {
    LtLayout layout = nullptr;
    REQUIRE(lt.cublasLtMatrixLayoutCreate(&layout, type, 3, 4, 3) == kFine);
    const std::int32_t count = 5;
    const std::int64_t stride = 12;
    CHECK(lt.cublasLtMatrixLayoutSetAttribute(layout, kLtBatchCount, &count, sizeof count) ==
          kFine);
    CHECK(lt.cublasLtMatrixLayoutSetAttribute(layout, kLtBatchStride, &stride, sizeof stride) ==
          kFine);
    CHECK(lt.cublasLtMatrixLayoutDestroy(layout) == kFine);
  }

  LtPreference preference = nullptr;
  REQUIRE(lt.cublasLtMatmulPreferenceCreate(&preference) == kFine);
  const std::uint64_t workspace = 1 << 25;
  CHECK(lt.cublasLtMatmulPreferenceSetAttribute(preference, kLtMostWorkspace, &workspace,
                                                sizeof workspace) == kFine);
  const std::uint32_t value = kLtReduceInWorkspace;
  for (const int which :
       {kLtReductionSchemes, kLtAlignmentA, kLtAlignmentB, kLtAlignmentC, kLtAlignmentD})
    CHECK(lt.cublasLtMatmulPreferenceSetAttribute(preference, which, &value, sizeof value) ==
          kFine);
  CHECK(lt.cublasLtMatmulPreferenceDestroy(preference) == kFine);
}

}  // namespace troupe
