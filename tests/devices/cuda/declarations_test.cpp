// Our declarations of the CUDA driver, NVRTC, cuBLASLt and cuDNN against NVIDIA's, where those are
// installed.
#include <doctest/doctest.h>

#include <set>
#include <string>

#include "devices/cuda/cublaslt.hpp"
#include "devices/cuda/cudnn.hpp"
#include "devices/cuda/driver.hpp"
#include "devices/cuda/nvrtc.hpp"

#ifdef TROUPE_CUDA_HEADERS
#include <cuda.h>
#include <nvrtc.h>
#endif
#if defined(TROUPE_CUDA_HEADERS) && __has_include(<cublasLt.h>)
#define TROUPE_CUBLASLT_HEADER
#include <cublasLt.h>
#endif
#if defined(TROUPE_CUDA_HEADERS) && __has_include(<cudnn_graph.h>)
#define TROUPE_CUDNN_HEADER
#include <cudnn_graph.h>
#endif

using namespace troupe;

#ifdef TROUPE_CUDA_HEADERS
// Headers since CUDA 12.8 mean a later version of it, with the same arguments, which older drivers
// lack.
using ElapsedTime = decltype(&::cuEventElapsedTime);
#undef cuEventElapsedTime
#endif

#ifndef TROUPE_CUDA_HEADERS

TEST_CASE("CUDA: the declarations are those of the headers") {
  MESSAGE(
      "skipped: no cuda.h in TROUPE_CUDA_PATH, build/cuda or /usr/local/cuda when this was "
      "configured (wheel nvidia-cuda-runtime)");
}

#else

namespace {

template <class T>
constexpr bool is_number = std::is_integral_v<T> || std::is_enum_v<T>;

// Whether a call through type A does what one through type B would: the same values, in the same
// places.
template <class A, class B>
struct Alike {
  static constexpr bool value = [] {
    if constexpr (is_number<A> && is_number<B>)
      return sizeof(A) == sizeof(B);
    else
      return std::is_same_v<A, B>;
  }();
};
template <class A, class B>
struct Alike<A*, B*> {
  static constexpr bool value = std::is_const_v<A> == std::is_const_v<B> &&
                                Alike<std::remove_const_t<A>, std::remove_const_t<B> >::value;
};
template <class R, class... A, class S, class... B>
struct Alike<R(A...), S(B...)> {
  static constexpr bool same_count = sizeof...(A) == sizeof...(B);
  static constexpr bool value = [] {
    if constexpr (same_count)
      return Alike<R, S>::value && (Alike<A, B>::value && ...);
    else
      return false;
  }();
};
// What a handle points to has no type of its own elsewhere.
template <>
struct Alike<cuda::OpaqueContext, CUctx_st> : std::true_type {};
template <>
struct Alike<cuda::OpaqueStream, CUstream_st> : std::true_type {};
template <>
struct Alike<cuda::OpaqueEvent, CUevent_st> : std::true_type {};
template <>
struct Alike<cuda::OpaqueModule, CUmod_st> : std::true_type {};
template <>
struct Alike<cuda::OpaqueFunction, CUfunc_st> : std::true_type {};
template <>
struct Alike<cuda::OpaqueProgram, _nvrtcProgram> : std::true_type {};

// A wrong declaration does not compile.
template <class Ours, class Theirs>
void compare(const char* name, std::set<std::string>& compared) {
  static_assert(Alike<Ours, Theirs>::value, "a function is declared otherwise by NVIDIA");
  compared.insert(name);
}

template <class Table>
void all_of(const std::set<std::string>& compared) {
  const Table table;
  std::size_t count = 0;
  Table::each(table, [&](const char* name, const auto&) {
    CHECK_MESSAGE(compared.count(name) == 1, name);
    ++count;
  });
  CHECK(count == compared.size());
}

// Planted mistakes that the comparison has to find.
static_assert(!Alike<cuda::Result (*)(int), CUresult (*)(int, int)>::value);
static_assert(!Alike<cuda::Result (*)(std::size_t), CUresult (*)(unsigned)>::value);
static_assert(!Alike<cuda::Result (*)(void*), CUresult (*)(const void*)>::value);
static_assert(!Alike<cuda::Result (*)(cuda::EventHandle), CUresult (*)(CUstream)>::value);

}  // namespace

TEST_CASE("CUDA: the declarations are those of the headers") {
  using D = cuda::DriverTable;
  std::set<std::string> done;
  compare<decltype(D::cuInit), decltype(&::cuInit)>("cuInit", done);
  compare<decltype(D::cuDriverGetVersion), decltype(&::cuDriverGetVersion)>("cuDriverGetVersion",
                                                                            done);
  compare<decltype(D::cuGetErrorName), decltype(&::cuGetErrorName)>("cuGetErrorName", done);
  compare<decltype(D::cuGetErrorString), decltype(&::cuGetErrorString)>("cuGetErrorString", done);
  compare<decltype(D::cuDeviceGetCount), decltype(&::cuDeviceGetCount)>("cuDeviceGetCount", done);
  compare<decltype(D::cuDeviceGet), decltype(&::cuDeviceGet)>("cuDeviceGet", done);
  compare<decltype(D::cuDeviceGetName), decltype(&::cuDeviceGetName)>("cuDeviceGetName", done);
  compare<decltype(D::cuDeviceTotalMem_v2), decltype(&::cuDeviceTotalMem_v2)>("cuDeviceTotalMem_v2",
                                                                              done);
  compare<decltype(D::cuDeviceGetAttribute), decltype(&::cuDeviceGetAttribute)>(
      "cuDeviceGetAttribute", done);
  compare<decltype(D::cuDevicePrimaryCtxRetain), decltype(&::cuDevicePrimaryCtxRetain)>(
      "cuDevicePrimaryCtxRetain", done);
  compare<decltype(D::cuDevicePrimaryCtxRelease_v2), decltype(&::cuDevicePrimaryCtxRelease_v2)>(
      "cuDevicePrimaryCtxRelease_v2", done);
  compare<decltype(D::cuCtxSetCurrent), decltype(&::cuCtxSetCurrent)>("cuCtxSetCurrent", done);
  compare<decltype(D::cuMemGetInfo_v2), decltype(&::cuMemGetInfo_v2)>("cuMemGetInfo_v2", done);
  compare<decltype(D::cuMemAlloc_v2), decltype(&::cuMemAlloc_v2)>("cuMemAlloc_v2", done);
  compare<decltype(D::cuMemFree_v2), decltype(&::cuMemFree_v2)>("cuMemFree_v2", done);
  compare<decltype(D::cuMemHostAlloc), decltype(&::cuMemHostAlloc)>("cuMemHostAlloc", done);
  compare<decltype(D::cuMemFreeHost), decltype(&::cuMemFreeHost)>("cuMemFreeHost", done);
  compare<decltype(D::cuMemcpyHtoDAsync_v2), decltype(&::cuMemcpyHtoDAsync_v2)>(
      "cuMemcpyHtoDAsync_v2", done);
  compare<decltype(D::cuMemcpyDtoHAsync_v2), decltype(&::cuMemcpyDtoHAsync_v2)>(
      "cuMemcpyDtoHAsync_v2", done);
  compare<decltype(D::cuMemcpyDtoDAsync_v2), decltype(&::cuMemcpyDtoDAsync_v2)>(
      "cuMemcpyDtoDAsync_v2", done);
  compare<decltype(D::cuMemsetD8Async), decltype(&::cuMemsetD8Async)>("cuMemsetD8Async", done);
  compare<decltype(D::cuStreamCreateWithPriority), decltype(&::cuStreamCreateWithPriority)>(
      "cuStreamCreateWithPriority", done);
  compare<decltype(D::cuStreamDestroy_v2), decltype(&::cuStreamDestroy_v2)>("cuStreamDestroy_v2",
                                                                            done);
  compare<decltype(D::cuStreamSynchronize), decltype(&::cuStreamSynchronize)>("cuStreamSynchronize",
                                                                              done);
  compare<decltype(D::cuStreamWaitEvent), decltype(&::cuStreamWaitEvent)>("cuStreamWaitEvent",
                                                                          done);
  compare<decltype(D::cuEventCreate), decltype(&::cuEventCreate)>("cuEventCreate", done);
  compare<decltype(D::cuEventDestroy_v2), decltype(&::cuEventDestroy_v2)>("cuEventDestroy_v2",
                                                                          done);
  compare<decltype(D::cuEventRecord), decltype(&::cuEventRecord)>("cuEventRecord", done);
  compare<decltype(D::cuEventQuery), decltype(&::cuEventQuery)>("cuEventQuery", done);
  compare<decltype(D::cuEventSynchronize), decltype(&::cuEventSynchronize)>("cuEventSynchronize",
                                                                            done);
  compare<decltype(D::cuEventElapsedTime), ElapsedTime>("cuEventElapsedTime", done);
  compare<decltype(D::cuModuleLoadData), decltype(&::cuModuleLoadData)>("cuModuleLoadData", done);
  compare<decltype(D::cuModuleUnload), decltype(&::cuModuleUnload)>("cuModuleUnload", done);
  compare<decltype(D::cuModuleGetFunction), decltype(&::cuModuleGetFunction)>("cuModuleGetFunction",
                                                                              done);
  compare<decltype(D::cuLaunchKernel), decltype(&::cuLaunchKernel)>("cuLaunchKernel", done);
  all_of<D>(done);
}

TEST_CASE("CUDA: the declarations of NVRTC are those of the header") {
  using N = cuda::NvrtcTable;
  std::set<std::string> done;
  compare<decltype(N::nvrtcVersion), decltype(&::nvrtcVersion)>("nvrtcVersion", done);
  compare<decltype(N::nvrtcGetErrorString), decltype(&::nvrtcGetErrorString)>("nvrtcGetErrorString",
                                                                              done);
  compare<decltype(N::nvrtcCreateProgram), decltype(&::nvrtcCreateProgram)>("nvrtcCreateProgram",
                                                                            done);
  compare<decltype(N::nvrtcDestroyProgram), decltype(&::nvrtcDestroyProgram)>("nvrtcDestroyProgram",
                                                                              done);
  compare<decltype(N::nvrtcAddNameExpression), decltype(&::nvrtcAddNameExpression)>(
      "nvrtcAddNameExpression", done);
  compare<decltype(N::nvrtcCompileProgram), decltype(&::nvrtcCompileProgram)>("nvrtcCompileProgram",
                                                                              done);
  compare<decltype(N::nvrtcGetLoweredName), decltype(&::nvrtcGetLoweredName)>("nvrtcGetLoweredName",
                                                                              done);
  compare<decltype(N::nvrtcGetNumSupportedArchs), decltype(&::nvrtcGetNumSupportedArchs)>(
      "nvrtcGetNumSupportedArchs", done);
  compare<decltype(N::nvrtcGetSupportedArchs), decltype(&::nvrtcGetSupportedArchs)>(
      "nvrtcGetSupportedArchs", done);
  compare<decltype(N::nvrtcGetPTXSize), decltype(&::nvrtcGetPTXSize)>("nvrtcGetPTXSize", done);
  compare<decltype(N::nvrtcGetPTX), decltype(&::nvrtcGetPTX)>("nvrtcGetPTX", done);
  compare<decltype(N::nvrtcGetCUBINSize), decltype(&::nvrtcGetCUBINSize)>("nvrtcGetCUBINSize",
                                                                          done);
  compare<decltype(N::nvrtcGetCUBIN), decltype(&::nvrtcGetCUBIN)>("nvrtcGetCUBIN", done);
  compare<decltype(N::nvrtcGetProgramLogSize), decltype(&::nvrtcGetProgramLogSize)>(
      "nvrtcGetProgramLogSize", done);
  compare<decltype(N::nvrtcGetProgramLog), decltype(&::nvrtcGetProgramLog)>("nvrtcGetProgramLog",
                                                                            done);
  all_of<N>(done);
}

#ifdef TROUPE_CUBLASLT_HEADER

namespace {

template <>
struct Alike<cuda::OpaqueLt, cublasLtContext> : std::true_type {};
template <>
struct Alike<cuda::OpaqueLtOperation, cublasLtMatmulDescOpaque_t> : std::true_type {};
template <>
struct Alike<cuda::OpaqueLtLayout, cublasLtMatrixLayoutOpaque_t> : std::true_type {};
template <>
struct Alike<cuda::OpaqueLtPreference, cublasLtMatmulPreferenceOpaque_t> : std::true_type {};
template <>
struct Alike<cuda::LtAlgorithm, cublasLtMatmulAlgo_t> : std::true_type {};
template <>
struct Alike<cuda::LtHeuristic, cublasLtMatmulHeuristicResult_t> : std::true_type {};

}  // namespace

TEST_CASE("CUDA: the declarations of cuBLASLt are those of the header") {
  using L = cuda::CublasLtTable;
  std::set<std::string> done;
  compare<decltype(L::cublasLtGetVersion), decltype(&::cublasLtGetVersion)>("cublasLtGetVersion",
                                                                            done);
  compare<decltype(L::cublasLtGetStatusName), decltype(&::cublasLtGetStatusName)>(
      "cublasLtGetStatusName", done);
  compare<decltype(L::cublasLtCreate), decltype(&::cublasLtCreate)>("cublasLtCreate", done);
  compare<decltype(L::cublasLtDestroy), decltype(&::cublasLtDestroy)>("cublasLtDestroy", done);
  compare<decltype(L::cublasLtMatmulDescCreate), decltype(&::cublasLtMatmulDescCreate)>(
      "cublasLtMatmulDescCreate", done);
  compare<decltype(L::cublasLtMatmulDescDestroy), decltype(&::cublasLtMatmulDescDestroy)>(
      "cublasLtMatmulDescDestroy", done);
  compare<decltype(L::cublasLtMatmulDescSetAttribute), decltype(&::cublasLtMatmulDescSetAttribute)>(
      "cublasLtMatmulDescSetAttribute", done);
  compare<decltype(L::cublasLtMatrixLayoutCreate), decltype(&::cublasLtMatrixLayoutCreate)>(
      "cublasLtMatrixLayoutCreate", done);
  compare<decltype(L::cublasLtMatrixLayoutDestroy), decltype(&::cublasLtMatrixLayoutDestroy)>(
      "cublasLtMatrixLayoutDestroy", done);
  compare<decltype(L::cublasLtMatrixLayoutSetAttribute),
          decltype(&::cublasLtMatrixLayoutSetAttribute)>("cublasLtMatrixLayoutSetAttribute", done);
  compare<decltype(L::cublasLtMatmulPreferenceCreate), decltype(&::cublasLtMatmulPreferenceCreate)>(
      "cublasLtMatmulPreferenceCreate", done);
  compare<decltype(L::cublasLtMatmulPreferenceDestroy),
          decltype(&::cublasLtMatmulPreferenceDestroy)>("cublasLtMatmulPreferenceDestroy", done);
  compare<decltype(L::cublasLtMatmulPreferenceSetAttribute),
          decltype(&::cublasLtMatmulPreferenceSetAttribute)>("cublasLtMatmulPreferenceSetAttribute",
                                                             done);
  compare<decltype(L::cublasLtMatmulAlgoGetHeuristic), decltype(&::cublasLtMatmulAlgoGetHeuristic)>(
      "cublasLtMatmulAlgoGetHeuristic", done);
  compare<decltype(L::cublasLtMatmul), decltype(&::cublasLtMatmul)>("cublasLtMatmul", done);
  all_of<L>(done);
  using Heuristic = cublasLtMatmulHeuristicResult_t;
  CHECK(sizeof(cuda::LtAlgorithm) == sizeof(cublasLtMatmulAlgo_t));
  CHECK(sizeof(cuda::LtHeuristic) == sizeof(Heuristic));
  CHECK(offsetof(cuda::LtHeuristic, workspace) == offsetof(Heuristic, workspaceSize));
  CHECK(offsetof(cuda::LtHeuristic, state) == offsetof(Heuristic, state));
  CHECK(offsetof(cuda::LtHeuristic, waves) == offsetof(Heuristic, wavesCount));
  CHECK(cuda::kLtF32 == CUDA_R_32F);
  CHECK(cuda::kLtF64 == CUDA_R_64F);
  CHECK(cuda::kLtF16 == CUDA_R_16F);
  CHECK(cuda::kLtBf16 == CUDA_R_16BF);
  CHECK(cuda::kLtComputeF32 == CUBLAS_COMPUTE_32F);
  CHECK(cuda::kLtComputeF64 == CUBLAS_COMPUTE_64F);
  CHECK(cuda::kLtComputeTf32 == CUBLAS_COMPUTE_32F_FAST_TF32);
  CHECK(cuda::kLtPlain == CUBLAS_OP_N);
  CHECK(cuda::kLtTransposed == CUBLAS_OP_T);
  CHECK(cuda::kLtTransposeA == CUBLASLT_MATMUL_DESC_TRANSA);
  CHECK(cuda::kLtTransposeB == CUBLASLT_MATMUL_DESC_TRANSB);
  CHECK(cuda::kLtEpilogueIs == CUBLASLT_MATMUL_DESC_EPILOGUE);
  CHECK(cuda::kLtBiasPointer == CUBLASLT_MATMUL_DESC_BIAS_POINTER);
  CHECK(int(cuda::kLtNothing) == CUBLASLT_EPILOGUE_DEFAULT);
  CHECK(int(cuda::kLtBias) == CUBLASLT_EPILOGUE_BIAS);
  CHECK(cuda::kLtBatchCount == CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT);
  CHECK(cuda::kLtBatchStride == CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET);
  CHECK(cuda::kLtMostWorkspace == CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES);
  CHECK(cuda::kLtReductionSchemes == CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK);
  CHECK(cuda::kLtAlignmentA == CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES);
  CHECK(cuda::kLtAlignmentB == CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES);
  CHECK(cuda::kLtAlignmentC == CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES);
  CHECK(cuda::kLtAlignmentD == CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES);
  CHECK(cuda::kLtReduceInWorkspace == CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE);
}

#else

TEST_CASE("CUDA: the declarations of cuBLASLt are those of the header") {
  MESSAGE("skipped: no cublasLt.h beside cuda.h when this was configured (wheel nvidia-cublas)");
}

#endif

#ifdef TROUPE_CUDNN_HEADER

namespace {

template <>
struct Alike<cuda::OpaqueDnn, cudnnContext> : std::true_type {};

}  // namespace

TEST_CASE("CUDA: the declarations of cuDNN are those of the header") {
  using D = cuda::CudnnTable;
  std::set<std::string> done;
  compare<decltype(D::cudnnGetVersion), decltype(&::cudnnGetVersion)>("cudnnGetVersion", done);
  compare<decltype(D::cudnnGetCudartVersion), decltype(&::cudnnGetCudartVersion)>(
      "cudnnGetCudartVersion", done);
  compare<decltype(D::cudnnGetErrorString), decltype(&::cudnnGetErrorString)>("cudnnGetErrorString",
                                                                              done);
  compare<decltype(D::cudnnGetLastErrorString), decltype(&::cudnnGetLastErrorString)>(
      "cudnnGetLastErrorString", done);
  compare<decltype(D::cudnnCreate), decltype(&::cudnnCreate)>("cudnnCreate", done);
  compare<decltype(D::cudnnDestroy), decltype(&::cudnnDestroy)>("cudnnDestroy", done);
  compare<decltype(D::cudnnSetStream), decltype(&::cudnnSetStream)>("cudnnSetStream", done);
  compare<decltype(D::cudnnBackendCreateDescriptor), decltype(&::cudnnBackendCreateDescriptor)>(
      "cudnnBackendCreateDescriptor", done);
  compare<decltype(D::cudnnBackendDestroyDescriptor), decltype(&::cudnnBackendDestroyDescriptor)>(
      "cudnnBackendDestroyDescriptor", done);
  compare<decltype(D::cudnnBackendFinalize), decltype(&::cudnnBackendFinalize)>(
      "cudnnBackendFinalize", done);
  compare<decltype(D::cudnnBackendSetAttribute), decltype(&::cudnnBackendSetAttribute)>(
      "cudnnBackendSetAttribute", done);
  compare<decltype(D::cudnnBackendGetAttribute), decltype(&::cudnnBackendGetAttribute)>(
      "cudnnBackendGetAttribute", done);
  compare<decltype(D::cudnnBackendExecute), decltype(&::cudnnBackendExecute)>("cudnnBackendExecute",
                                                                              done);
  all_of<D>(done);
  CHECK(int(cuda::kDnnF32) == int(CUDNN_DATA_FLOAT));
  CHECK(int(cuda::kDnnF64) == int(CUDNN_DATA_DOUBLE));
  CHECK(int(cuda::kDnnF16) == int(CUDNN_DATA_HALF));
  CHECK(int(cuda::kDnnBf16) == int(CUDNN_DATA_BFLOAT16));
  CHECK(int(cuda::kDnnCrossCorrelation) == int(CUDNN_CROSS_CORRELATION));
  CHECK(int(cuda::kDnnI32) == int(CUDNN_DATA_INT32));
  CHECK(int(cuda::kDnnBool) == int(CUDNN_DATA_BOOLEAN));
  CHECK(int(cuda::kDnnAdd) == int(CUDNN_POINTWISE_ADD));
  CHECK(int(cuda::kDnnMul) == int(CUDNN_POINTWISE_MUL));
  CHECK(int(cuda::kDnnDiv) == int(CUDNN_POINTWISE_DIV));
  CHECK(int(cuda::kDnnSub) == int(CUDNN_POINTWISE_SUB));
  CHECK(int(cuda::kDnnExp) == int(CUDNN_POINTWISE_EXP));
  CHECK(int(cuda::kDnnLog) == int(CUDNN_POINTWISE_LOG));
  CHECK(int(cuda::kDnnGreaterEqual) == int(CUDNN_POINTWISE_CMP_GE));
  CHECK(int(cuda::kDnnIndex) == int(CUDNN_POINTWISE_GEN_INDEX));
  CHECK(int(cuda::kDnnSelect) == int(CUDNN_POINTWISE_BINARY_SELECT));
  CHECK(int(cuda::kDnnSum) == int(CUDNN_REDUCE_TENSOR_ADD));
  CHECK(int(cuda::kDnnMax) == int(CUDNN_REDUCE_TENSOR_MAX));
  CHECK(int(cuda::kDnnMatmul) == int(CUDNN_BACKEND_MATMUL_DESCRIPTOR));
  CHECK(int(cuda::kDnnMatmulOperation) == int(CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR));
  CHECK(int(cuda::kDnnReduction) == int(CUDNN_BACKEND_REDUCTION_DESCRIPTOR));
  CHECK(int(cuda::kDnnReductionOperation) == int(CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR));
  CHECK(int(cuda::kDnnReshapeOperation) == int(CUDNN_BACKEND_OPERATION_RESHAPE_DESCRIPTOR));
  CHECK(int(cuda::kDnnOfReduction) == int(CUDNN_TYPE_REDUCTION_OPERATOR_TYPE));
  CHECK(int(cuda::kDnnPointwiseAxis) == int(CUDNN_ATTR_POINTWISE_AXIS));
  CHECK(int(cuda::kDnnPointwiseT) == int(CUDNN_ATTR_OPERATION_POINTWISE_TDESC));
  CHECK(int(cuda::kDnnTensorIsByValue) == int(CUDNN_ATTR_TENSOR_IS_BY_VALUE));
  CHECK(int(cuda::kDnnMatmulCompute) == int(CUDNN_ATTR_MATMUL_COMP_TYPE));
  CHECK(int(cuda::kDnnMatmulA) == int(CUDNN_ATTR_OPERATION_MATMUL_ADESC));
  CHECK(int(cuda::kDnnMatmulB) == int(CUDNN_ATTR_OPERATION_MATMUL_BDESC));
  CHECK(int(cuda::kDnnMatmulC) == int(CUDNN_ATTR_OPERATION_MATMUL_CDESC));
  CHECK(int(cuda::kDnnMatmulDescriptor) == int(CUDNN_ATTR_OPERATION_MATMUL_DESC));
  CHECK(int(cuda::kDnnReductionOperator) == int(CUDNN_ATTR_REDUCTION_OPERATOR));
  CHECK(int(cuda::kDnnReductionCompute) == int(CUDNN_ATTR_REDUCTION_COMP_TYPE));
  CHECK(int(cuda::kDnnReductionX) == int(CUDNN_ATTR_OPERATION_REDUCTION_XDESC));
  CHECK(int(cuda::kDnnReductionY) == int(CUDNN_ATTR_OPERATION_REDUCTION_YDESC));
  CHECK(int(cuda::kDnnReductionDescriptor) == int(CUDNN_ATTR_OPERATION_REDUCTION_DESC));
  CHECK(int(cuda::kDnnReshapeX) == int(CUDNN_ATTR_OPERATION_RESHAPE_XDESC));
  CHECK(int(cuda::kDnnReshapeY) == int(CUDNN_ATTR_OPERATION_RESHAPE_YDESC));
  CHECK(int(cuda::kDnnRelu) == int(CUDNN_POINTWISE_RELU_FWD));
  CHECK(int(cuda::kDnnKeepNan) == int(CUDNN_PROPAGATE_NAN));
  CHECK(int(cuda::kDnnHeuristicsFallback) == int(CUDNN_HEUR_MODE_FALLBACK));
  CHECK(int(cuda::kDnnHeuristicsA) == int(CUDNN_HEUR_MODE_A));
  CHECK(int(cuda::kDnnTensorCore) == int(CUDNN_NUMERICAL_NOTE_TENSOR_CORE));
  CHECK(int(cuda::kDnnDownConvertInputs) == int(CUDNN_NUMERICAL_NOTE_DOWN_CONVERT_INPUTS));
  CHECK(int(cuda::kDnnReducedPrecisionReduction) ==
        int(CUDNN_NUMERICAL_NOTE_REDUCED_PRECISION_REDUCTION));
  CHECK(int(cuda::kDnnFft) == int(CUDNN_NUMERICAL_NOTE_FFT));
  CHECK(int(cuda::kDnnNondeterministic) == int(CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC));
  CHECK(int(cuda::kDnnWinograd) == int(CUDNN_NUMERICAL_NOTE_WINOGRAD));
  CHECK(int(cuda::kDnnWinograd4x4) == int(CUDNN_NUMERICAL_NOTE_WINOGRAD_TILE_4x4));
  CHECK(int(cuda::kDnnWinograd6x6) == int(CUDNN_NUMERICAL_NOTE_WINOGRAD_TILE_6x6));
  CHECK(int(cuda::kDnnWinograd13x13) == int(CUDNN_NUMERICAL_NOTE_WINOGRAD_TILE_13x13));
  CHECK(int(cuda::kDnnStrictNanPropagation) == int(CUDNN_NUMERICAL_NOTE_STRICT_NAN_PROP));
  CHECK(int(cuda::kDnnPointwise) == int(CUDNN_BACKEND_POINTWISE_DESCRIPTOR));
  CHECK(int(cuda::kDnnPointwiseOperation) == int(CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR));
  CHECK(int(cuda::kDnnConvolution) == int(CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR));
  CHECK(int(cuda::kDnnEngine) == int(CUDNN_BACKEND_ENGINE_DESCRIPTOR));
  CHECK(int(cuda::kDnnEngineConfig) == int(CUDNN_BACKEND_ENGINECFG_DESCRIPTOR));
  CHECK(int(cuda::kDnnEngineHeuristics) == int(CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR));
  CHECK(int(cuda::kDnnExecutionPlan) == int(CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR));
  CHECK(int(cuda::kDnnForward) == int(CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR));
  CHECK(int(cuda::kDnnBackwardFilter) ==
        int(CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR));
  CHECK(int(cuda::kDnnBackwardData) ==
        int(CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR));
  CHECK(int(cuda::kDnnOperationGraph) == int(CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR));
  CHECK(int(cuda::kDnnVariantPack) == int(CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR));
  CHECK(int(cuda::kDnnTensor) == int(CUDNN_BACKEND_TENSOR_DESCRIPTOR));
  CHECK(int(cuda::kDnnDeviceProperties) == int(CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR));
  CHECK(int(cuda::kDnnOfHandle) == int(CUDNN_TYPE_HANDLE));
  CHECK(int(cuda::kDnnOfType) == int(CUDNN_TYPE_DATA_TYPE));
  CHECK(int(cuda::kDnnOfBool) == int(CUDNN_TYPE_BOOLEAN));
  CHECK(int(cuda::kDnnOfNan) == int(CUDNN_TYPE_NAN_PROPOGATION));
  CHECK(int(cuda::kDnnOfPointwiseMode) == int(CUDNN_TYPE_POINTWISE_MODE));
  CHECK(int(cuda::kDnnOfInt64) == int(CUDNN_TYPE_INT64));
  CHECK(int(cuda::kDnnOfDouble) == int(CUDNN_TYPE_DOUBLE));
  CHECK(int(cuda::kDnnOfPointer) == int(CUDNN_TYPE_VOID_PTR));
  CHECK(int(cuda::kDnnOfConvolutionMode) == int(CUDNN_TYPE_CONVOLUTION_MODE));
  CHECK(int(cuda::kDnnOfHeuristics) == int(CUDNN_TYPE_HEUR_MODE));
  CHECK(int(cuda::kDnnOfNumericalNote) == int(CUDNN_TYPE_NUMERICAL_NOTE));
  CHECK(int(cuda::kDnnOfDescriptor) == int(CUDNN_TYPE_BACKEND_DESCRIPTOR));
  CHECK(int(cuda::kDnnOfChar) == int(CUDNN_TYPE_CHAR));
  CHECK(int(cuda::kDnnPointwiseModeIs) == int(CUDNN_ATTR_POINTWISE_MODE));
  CHECK(int(cuda::kDnnPointwiseCompute) == int(CUDNN_ATTR_POINTWISE_MATH_PREC));
  CHECK(int(cuda::kDnnPointwiseNan) == int(CUDNN_ATTR_POINTWISE_NAN_PROPAGATION));
  CHECK(int(cuda::kDnnPointwiseDescriptor) == int(CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR));
  CHECK(int(cuda::kDnnPointwiseX) == int(CUDNN_ATTR_OPERATION_POINTWISE_XDESC));
  CHECK(int(cuda::kDnnPointwiseB) == int(CUDNN_ATTR_OPERATION_POINTWISE_BDESC));
  CHECK(int(cuda::kDnnPointwiseY) == int(CUDNN_ATTR_OPERATION_POINTWISE_YDESC));
  CHECK(int(cuda::kDnnTensorIsVirtual) == int(CUDNN_ATTR_TENSOR_IS_VIRTUAL));
  CHECK(int(cuda::kDnnConvolutionCompute) == int(CUDNN_ATTR_CONVOLUTION_COMP_TYPE));
  CHECK(int(cuda::kDnnConvolutionModeIs) == int(CUDNN_ATTR_CONVOLUTION_CONV_MODE));
  CHECK(int(cuda::kDnnConvolutionDilations) == int(CUDNN_ATTR_CONVOLUTION_DILATIONS));
  CHECK(int(cuda::kDnnConvolutionStrides) == int(CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES));
  CHECK(int(cuda::kDnnConvolutionPaddingsAfter) == int(CUDNN_ATTR_CONVOLUTION_POST_PADDINGS));
  CHECK(int(cuda::kDnnConvolutionPaddingsBefore) == int(CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS));
  CHECK(int(cuda::kDnnConvolutionDims) == int(CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS));
  CHECK(int(cuda::kDnnHeuristicsMode) == int(CUDNN_ATTR_ENGINEHEUR_MODE));
  CHECK(int(cuda::kDnnHeuristicsGraph) == int(CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH));
  CHECK(int(cuda::kDnnHeuristicsResults) == int(CUDNN_ATTR_ENGINEHEUR_RESULTS));
  CHECK(int(cuda::kDnnHeuristicsDevice) == int(CUDNN_ATTR_ENGINEHEUR_DEVICEPROP));
  CHECK(int(cuda::kDnnConfigEngine) == int(CUDNN_ATTR_ENGINECFG_ENGINE));
  CHECK(int(cuda::kDnnPlanHandle) == int(CUDNN_ATTR_EXECUTION_PLAN_HANDLE));
  CHECK(int(cuda::kDnnPlanConfig) == int(CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG));
  CHECK(int(cuda::kDnnPlanWorkspace) == int(CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE));
  CHECK(int(cuda::kDnnPlanDevice) == int(CUDNN_ATTR_EXECUTION_PLAN_DEVICEPROP));
  CHECK(int(cuda::kDnnForwardAlpha) == int(CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA));
  CHECK(int(cuda::kDnnForwardBeta) == int(CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_BETA));
  CHECK(int(cuda::kDnnForwardConvolution) ==
        int(CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC));
  CHECK(int(cuda::kDnnForwardFilter) == int(CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W));
  CHECK(int(cuda::kDnnForwardX) == int(CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X));
  CHECK(int(cuda::kDnnForwardY) == int(CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y));
  CHECK(int(cuda::kDnnBackwardDataAlpha) == int(CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_ALPHA));
  CHECK(int(cuda::kDnnBackwardDataBeta) == int(CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_BETA));
  CHECK(int(cuda::kDnnBackwardDataConvolution) ==
        int(CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_CONV_DESC));
  CHECK(int(cuda::kDnnBackwardDataFilter) == int(CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W));
  CHECK(int(cuda::kDnnBackwardDataDx) == int(CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX));
  CHECK(int(cuda::kDnnBackwardDataDy) == int(CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY));
  CHECK(int(cuda::kDnnBackwardFilterAlpha) ==
        int(CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_ALPHA));
  CHECK(int(cuda::kDnnBackwardFilterBeta) == int(CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_BETA));
  CHECK(int(cuda::kDnnBackwardFilterConvolution) ==
        int(CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_CONV_DESC));
  CHECK(int(cuda::kDnnBackwardFilterDfilter) ==
        int(CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DW));
  CHECK(int(cuda::kDnnBackwardFilterX) == int(CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_X));
  CHECK(int(cuda::kDnnBackwardFilterDy) == int(CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DY));
  CHECK(int(cuda::kDnnGraphHandle) == int(CUDNN_ATTR_OPERATIONGRAPH_HANDLE));
  CHECK(int(cuda::kDnnGraphOperations) == int(CUDNN_ATTR_OPERATIONGRAPH_OPS));
  CHECK(int(cuda::kDnnTensorAlignment) == int(CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT));
  CHECK(int(cuda::kDnnTensorType) == int(CUDNN_ATTR_TENSOR_DATA_TYPE));
  CHECK(int(cuda::kDnnTensorDims) == int(CUDNN_ATTR_TENSOR_DIMENSIONS));
  CHECK(int(cuda::kDnnTensorStrides) == int(CUDNN_ATTR_TENSOR_STRIDES));
  CHECK(int(cuda::kDnnTensorId) == int(CUDNN_ATTR_TENSOR_UNIQUE_ID));
  CHECK(int(cuda::kDnnPackIds) == int(CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS));
  CHECK(int(cuda::kDnnPackPointers) == int(CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS));
  CHECK(int(cuda::kDnnPackWorkspace) == int(CUDNN_ATTR_VARIANT_PACK_WORKSPACE));
  CHECK(int(cuda::kDnnEngineIndex) == int(CUDNN_ATTR_ENGINE_GLOBAL_INDEX));
  CHECK(int(cuda::kDnnEngineNotes) == int(CUDNN_ATTR_ENGINE_NUMERICAL_NOTE));
  CHECK(int(cuda::kDnnDeviceJson) == int(CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION));
  CHECK(sizeof(cuda::DnnNumericalNote) == sizeof(cudnnBackendNumericalNote_t));
  CHECK(sizeof(cuda::DnnType) == sizeof(cudnnDataType_t));
}

#else

TEST_CASE("CUDA: the declarations of cuDNN are those of the header") {
  MESSAGE(
      "skipped: no cudnn_graph.h beside cuda.h when this was configured (wheel "
      "nvidia-cudnn-cu13)");
}

#endif

TEST_CASE("CUDA: the constants are those of the header") {
  CHECK(cuda::kSuccess == CUDA_SUCCESS);
  CHECK(cuda::kInvalidValue == CUDA_ERROR_INVALID_VALUE);
  CHECK(cuda::kOutOfMemory == CUDA_ERROR_OUT_OF_MEMORY);
  CHECK(cuda::kNotInitialized == CUDA_ERROR_NOT_INITIALIZED);
  CHECK(cuda::kDeinitialized == CUDA_ERROR_DEINITIALIZED);
  CHECK(cuda::kStubLibrary == CUDA_ERROR_STUB_LIBRARY);
  CHECK(cuda::kNoDevice == CUDA_ERROR_NO_DEVICE);
  CHECK(cuda::kInvalidDevice == CUDA_ERROR_INVALID_DEVICE);
  CHECK(cuda::kInvalidImage == CUDA_ERROR_INVALID_IMAGE);
  CHECK(cuda::kInvalidContext == CUDA_ERROR_INVALID_CONTEXT);
  CHECK(cuda::kInvalidHandle == CUDA_ERROR_INVALID_HANDLE);
  CHECK(cuda::kNotFound == CUDA_ERROR_NOT_FOUND);
  CHECK(cuda::kNotReady == CUDA_ERROR_NOT_READY);
  CHECK(cuda::kIllegalAddress == CUDA_ERROR_ILLEGAL_ADDRESS);
  CHECK(cuda::kLaunchOutOfResources == CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES);
  CHECK(cuda::kLaunchFailed == CUDA_ERROR_LAUNCH_FAILED);
  CHECK(cuda::kSystemDriverMismatch == CUDA_ERROR_SYSTEM_DRIVER_MISMATCH);
  CHECK(cuda::kStreamNonBlocking == CU_STREAM_NON_BLOCKING);
  CHECK(cuda::kEventBlockingSync == CU_EVENT_BLOCKING_SYNC);
  CHECK(cuda::kEventDisableTiming == CU_EVENT_DISABLE_TIMING);
  CHECK(cuda::kHostAllocPortable == CU_MEMHOSTALLOC_PORTABLE);
  CHECK(cuda::kMultiprocessors == CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT);
  CHECK(cuda::kComputeMajor == CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR);
  CHECK(cuda::kComputeMinor == CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR);
}

#endif
