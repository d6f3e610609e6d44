// Cudnn: the backend of NVIDIA's library of neural networks as a table of functions, opened at run
// time. Its descriptors have no types of their own: DnnDescriptor is one that knows its functions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "core/status.hpp"
#include "devices/cuda/driver_types.hpp"
#include "devices/cuda/library.hpp"

namespace troupe::cuda {

using DnnHandle = struct OpaqueDnn*;  // cudnnHandle_t
using DnnResult = int;                // cudnnStatus_t

// Values of NVIDIA's enumerations.
enum DnnType : int {  // cudnnDataType_t
  kDnnF32 = 0,
  kDnnF64 = 1,
  kDnnF16 = 2,
  kDnnI32 = 4,
  kDnnBf16 = 9,
  kDnnBool = 11,
};
enum DnnConvolutionMode : int { kDnnCrossCorrelation = 1 };
enum DnnPointwiseMode : int {  // cudnnPointwiseMode_t
  kDnnAdd = 0,
  kDnnMul = 1,
  kDnnDiv = 6,
  kDnnSub = 9,
  kDnnExp = 13,
  kDnnLog = 15,
  kDnnRelu = 100,
  kDnnGreaterEqual = 303,
  kDnnIndex = 501,
  kDnnSelect = 601,
};
enum DnnReduction : int { kDnnSum = 0, kDnnMax = 3 };  // cudnnReduceTensorOp_t
enum DnnNan : int { kDnnKeepNan = 1 };                 // cudnnNanPropagation_t
enum DnnHeuristics : int { kDnnHeuristicsFallback = 2, kDnnHeuristicsA = 3 };
enum DnnNumericalNote : int {
  kDnnTensorCore = 0,
  kDnnDownConvertInputs = 1,
  kDnnReducedPrecisionReduction = 2,
  kDnnFft = 3,
  kDnnNondeterministic = 4,
  kDnnWinograd = 5,
  kDnnWinograd4x4 = 6,
  kDnnWinograd6x6 = 7,
  kDnnWinograd13x13 = 8,
  kDnnStrictNanPropagation = 9,
};
enum DnnKind : int {  // cudnnBackendDescriptorType_t
  kDnnPointwise = 0,
  kDnnConvolution = 1,
  kDnnEngine = 2,
  kDnnEngineConfig = 3,
  kDnnEngineHeuristics = 4,
  kDnnExecutionPlan = 5,
  kDnnForward = 10,
  kDnnBackwardFilter = 11,
  kDnnBackwardData = 12,
  kDnnPointwiseOperation = 13,
  kDnnOperationGraph = 15,
  kDnnVariantPack = 16,
  kDnnTensor = 17,
  kDnnMatmul = 18,
  kDnnMatmulOperation = 19,
  kDnnReduction = 21,
  kDnnReductionOperation = 22,
  kDnnReshapeOperation = 31,
  kDnnDeviceProperties = 38,
};
enum DnnValue : int {  // cudnnBackendAttributeType_t
  kDnnOfHandle = 0,
  kDnnOfType = 1,
  kDnnOfBool = 2,
  kDnnOfInt64 = 3,
  kDnnOfDouble = 5,
  kDnnOfPointer = 6,
  kDnnOfConvolutionMode = 7,
  kDnnOfHeuristics = 8,
  kDnnOfNan = 10,
  kDnnOfNumericalNote = 11,
  kDnnOfPointwiseMode = 14,
  kDnnOfDescriptor = 15,
  kDnnOfReduction = 18,
  kDnnOfChar = 24,
};
enum DnnAttribute : int {  // cudnnBackendAttributeName_t
  kDnnPointwiseModeIs = 0,
  kDnnPointwiseCompute = 1,
  kDnnPointwiseNan = 2,
  kDnnPointwiseAxis = 9,
  kDnnConvolutionCompute = 100,
  kDnnConvolutionModeIs = 101,
  kDnnConvolutionDilations = 102,
  kDnnConvolutionStrides = 103,
  kDnnConvolutionPaddingsAfter = 104,
  kDnnConvolutionPaddingsBefore = 105,
  kDnnConvolutionDims = 106,
  kDnnHeuristicsMode = 200,
  kDnnHeuristicsGraph = 201,
  kDnnHeuristicsResults = 202,
  kDnnHeuristicsDevice = 204,
  kDnnConfigEngine = 300,
  kDnnPlanHandle = 400,
  kDnnPlanConfig = 401,
  kDnnPlanWorkspace = 402,
  kDnnPlanDevice = 407,
  kDnnForwardAlpha = 700,
  kDnnForwardBeta = 701,
  kDnnForwardConvolution = 702,
  kDnnForwardFilter = 703,
  kDnnForwardX = 704,
  kDnnForwardY = 705,
  kDnnBackwardDataAlpha = 706,
  kDnnBackwardDataBeta = 707,
  kDnnBackwardDataConvolution = 708,
  kDnnBackwardDataFilter = 709,
  kDnnBackwardDataDx = 710,
  kDnnBackwardDataDy = 711,
  kDnnBackwardFilterAlpha = 712,
  kDnnBackwardFilterBeta = 713,
  kDnnBackwardFilterConvolution = 714,
  kDnnBackwardFilterDfilter = 715,
  kDnnBackwardFilterX = 716,
  kDnnBackwardFilterDy = 717,
  kDnnPointwiseDescriptor = 750,
  kDnnPointwiseX = 751,
  kDnnPointwiseB = 752,
  kDnnPointwiseY = 753,
  kDnnPointwiseT = 758,
  kDnnGraphHandle = 800,
  kDnnGraphOperations = 801,
  kDnnTensorAlignment = 900,
  kDnnTensorType = 901,
  kDnnTensorDims = 902,
  kDnnTensorStrides = 903,
  kDnnTensorId = 906,
  kDnnTensorIsVirtual = 907,
  kDnnTensorIsByValue = 908,
  kDnnPackIds = 1000,
  kDnnPackPointers = 1001,
  kDnnPackWorkspace = 1003,
  kDnnEngineIndex = 1301,
  kDnnEngineNotes = 1303,
  kDnnMatmulCompute = 1500,
  kDnnMatmulA = 1520,
  kDnnMatmulB = 1521,
  kDnnMatmulC = 1522,
  kDnnMatmulDescriptor = 1523,
  kDnnReductionOperator = 1600,
  kDnnReductionCompute = 1601,
  kDnnReductionX = 1610,
  kDnnReductionY = 1611,
  kDnnReductionDescriptor = 1612,
  kDnnReshapeX = 2200,
  kDnnReshapeY = 2201,
  kDnnDeviceJson = 2702,
};

struct CudnnTable {
  std::size_t (*cudnnGetVersion)() = nullptr;
  std::size_t (*cudnnGetCudartVersion)() = nullptr;
  const char* (*cudnnGetErrorString)(DnnResult) = nullptr;
  void (*cudnnGetLastErrorString)(char* text, std::size_t most) = nullptr;
  DnnResult (*cudnnCreate)(DnnHandle*) = nullptr;
  DnnResult (*cudnnDestroy)(DnnHandle) = nullptr;
  DnnResult (*cudnnSetStream)(DnnHandle, StreamHandle) = nullptr;
  DnnResult (*cudnnBackendCreateDescriptor)(int kind, void** descriptor) = nullptr;
  DnnResult (*cudnnBackendDestroyDescriptor)(void* descriptor) = nullptr;
  DnnResult (*cudnnBackendFinalize)(void* descriptor) = nullptr;
  DnnResult (*cudnnBackendSetAttribute)(void* descriptor, int attribute, int type,
                                        std::int64_t count, const void* values) = nullptr;
  DnnResult (*cudnnBackendGetAttribute)(void* descriptor, int attribute, int type,
                                        std::int64_t most, std::int64_t* count,
                                        void* values) = nullptr;
  DnnResult (*cudnnBackendExecute)(DnnHandle, void* plan, void* pack) = nullptr;

  template <class Self, class Visit>
  static void each(Self& self, Visit&& visit) {
    visit("cudnnGetVersion", self.cudnnGetVersion);
    visit("cudnnGetCudartVersion", self.cudnnGetCudartVersion);
    visit("cudnnGetErrorString", self.cudnnGetErrorString);
    visit("cudnnGetLastErrorString", self.cudnnGetLastErrorString);
    visit("cudnnCreate", self.cudnnCreate);
    visit("cudnnDestroy", self.cudnnDestroy);
    visit("cudnnSetStream", self.cudnnSetStream);
    visit("cudnnBackendCreateDescriptor", self.cudnnBackendCreateDescriptor);
    visit("cudnnBackendDestroyDescriptor", self.cudnnBackendDestroyDescriptor);
    visit("cudnnBackendFinalize", self.cudnnBackendFinalize);
    visit("cudnnBackendSetAttribute", self.cudnnBackendSetAttribute);
    visit("cudnnBackendGetAttribute", self.cudnnBackendGetAttribute);
    visit("cudnnBackendExecute", self.cudnnBackendExecute);
  }
};

// Any thread may use it.
struct Cudnn : CudnnTable {
  std::string path;
  int version = 0;       // 91900 is 9.19.0
  int cuda_version = 0;  // 13000: made with CUDA 13.0
  bool fake = false;     // the tests' library, which computes through the fake driver

  int cuda_major() const { return cuda_version / 1000; }
  // Ok for 0; else an error: "cudnnBackendFinalize: CUDNN_STATUS_BAD_PARAM (_nbDims < 1)", with
  // what the library says of this thread's last error. unimplemented: the library does not do this;
  // resource_exhausted: for want of memory.
  Status check(DnnResult result, const char* call) const;
  // CUDNN_STATUS_EXECUTION_FAILED and its refinements: work on the GPU has failed.
  static bool is_failure_to_execute(DnnResult result) { return result >= 5000 && result < 6000; }
};

// not_found, or failed_precondition for a library that cannot be used.
Expected<Cudnn> open_cudnn(const Search& search);

// A descriptor of the backend. It can be moved; empty, it has none. REQUIRES: the library outlives
// it.
class DnnDescriptor {
 public:
  DnnDescriptor() = default;
  DnnDescriptor(DnnDescriptor&& other) noexcept
      : library_(other.library_), raw_(std::exchange(other.raw_, nullptr)) {}
  DnnDescriptor& operator=(DnnDescriptor&& other) noexcept {
    std::swap(library_, other.library_);
    std::swap(raw_, other.raw_);
    return *this;
  }
  ~DnnDescriptor();

  static Expected<DnnDescriptor> make(const Cudnn& library, DnnKind kind);

  Status set(DnnAttribute attribute, DnnValue type, std::int64_t count, const void* values);
  Status set_int64(DnnAttribute attribute, std::span<const std::int64_t> values) {
    return set(attribute, kDnnOfInt64, std::int64_t(values.size()), values.data());
  }
  Status set_int64(DnnAttribute attribute, std::int64_t value) {
    return set(attribute, kDnnOfInt64, 1, &value);
  }
  // Of an enumeration's.
  Status set_enum(DnnAttribute attribute, DnnValue type, int value) {
    return set(attribute, type, 1, &value);
  }
  Status set_descriptor(DnnAttribute attribute, const DnnDescriptor& value) {
    return set(attribute, kDnnOfDescriptor, 1, &value.raw_);
  }
  Status set_descriptors(DnnAttribute attribute, std::span<const DnnDescriptor> values);
  Status finalize();

  Expected<std::int64_t> get_int64(DnnAttribute attribute) const;
  Expected<std::vector<DnnNumericalNote>> get_notes() const;  // of an engine
  Expected<std::vector<DnnDescriptor>> get_descriptors(DnnAttribute attribute, DnnKind kind) const;
  void* raw() const { return raw_; }

 private:
  DnnDescriptor(const Cudnn& library, void* raw) : library_(&library), raw_(raw) {}
  Status get(DnnAttribute attribute, DnnValue type, std::int64_t most, std::int64_t& count,
             void* values) const;

  const Cudnn* library_ = nullptr;
  void* raw_ = nullptr;
};

}  // namespace troupe::cuda
