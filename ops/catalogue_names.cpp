// What TensorFlow's registry and the paper's Table 1 call ops that have another name here. An op
// that is not listed has the same name there, or there is none like it. "A / B": one op here does
// what two do there.
#include <array>

#include "ops/detail/catalogue_names.hpp"

namespace troupe::ops::detail {
namespace {

constexpr std::array kNames = std::to_array<OtherNames>({
    {"ApplyAdadelta", "ResourceApplyAdadelta", ""},
    {"ApplyAdagrad", "ResourceApplyAdagradV2", ""},
    {"ApplyAdam", "ResourceApplyAdam", ""},
    {"ApplyCenteredRMSProp", "ResourceApplyCenteredRMSProp", ""},
    {"ApplyFtrl", "ResourceApplyFtrl", ""},
    {"ApplyGradientDescent", "ResourceApplyGradientDescent", ""},
    {"ApplyMomentum", "ResourceApplyMomentum", ""},
    {"ApplyProximalAdagrad", "ResourceApplyProximalAdagrad", ""},
    {"ApplyProximalGradientDescent", "ResourceApplyProximalGradientDescent", ""},
    {"ApplyRMSProp", "ResourceApplyRMSProp", ""},
    {"ApplySparseAdadelta", "ResourceSparseApplyAdadelta", ""},
    {"ApplySparseAdagrad", "ResourceSparseApplyAdagradV2", ""},
    {"ApplySparseCenteredRMSProp", "ResourceSparseApplyCenteredRMSProp", ""},
    {"ApplySparseFtrl", "ResourceSparseApplyFtrl", ""},
    {"ApplySparseMomentum", "ResourceSparseApplyMomentum", ""},
    {"ApplySparseProximalAdagrad", "ResourceSparseApplyProximalAdagrad", ""},
    {"ApplySparseProximalGradientDescent", "ResourceSparseApplyProximalGradientDescent", ""},
    {"ApplySparseRMSProp", "ResourceSparseApplyRMSProp", ""},
    {"Assign", "AssignVariableOp", ""},
    {"AssignAdd", "AssignAddVariableOp", ""},
    {"AssignSub", "AssignSubVariableOp", ""},
    {"AudioSummary", "AudioSummaryV2", ""},
    {"BatchMatMul", "BatchMatMulV2", ""},
    {"Call", "StatefulPartitionedCall", ""},
    {"Concat", "ConcatV2", ""},
    {"Const", "", "Constant"},
    {"Conv2D", "", "Convolution2D"},
    {"Dequeue", "QueueDequeueV2", ""},
    {"DequeueMany", "QueueDequeueManyV2", ""},
    {"DequeueUpTo", "QueueDequeueUpToV2", ""},
    {"Enqueue", "QueueEnqueueV2", ""},
    {"EnqueueMany", "QueueEnqueueManyV2", ""},
    {"FIFOQueue", "FIFOQueueV2", ""},
    {"Gather", "GatherV2", ""},
    {"IsVariableInitialized", "VarIsInitializedOp", ""},
    {"Leave", "Exit", ""},
    {"ListEmpty", "EmptyTensorList", ""},
    {"ListGet", "TensorListGetItem", ""},
    {"ListLength", "TensorListLength", ""},
    {"ListPop", "TensorListPopBack", ""},
    {"ListPush", "TensorListPushBack", ""},
    {"ListSet", "TensorListSetItem", ""},
    {"ListStack", "TensorListStack", ""},
    {"ListUnstack", "TensorListFromTensor", ""},
    {"MaxPoolPick", "MaxPoolGradGrad", ""},
    {"Mod", "FloorMod", ""},
    {"NextElement", "IteratorGetNext", ""},
    {"Mutex", "MutexV2", ""},
    {"MutexAcquire", "MutexLock", ""},
    {"MutexRelease", "ConsumeMutexLock", ""},
    {"Pad", "PadV2", ""},
    {"PaddingFIFOQueue", "PaddingFIFOQueueV2", ""},
    {"PriorityQueue", "PriorityQueueV2", ""},
    {"QueueClose", "QueueCloseV2", ""},
    {"QueueSize", "QueueSizeV2", ""},
    {"RandomShuffleQueue", "RandomShuffleQueueV2", ""},
    {"ReadVariable", "ReadVariableOp", ""},
    {"Relu", "", "ReLU"},
    {"Restore", "RestoreV2", ""},
    {"Reverse", "ReverseV2", ""},
    {"Save", "SaveV2", ""},
    {"ScatterAdd", "ResourceScatterAdd", ""},
    {"ScatterSub", "ResourceScatterSub", ""},
    {"ScatterUpdate", "ResourceScatterUpdate", ""},
    {"SearchSorted", "LowerBound / UpperBound", ""},
    {"Select", "SelectV2", ""},
    {"Softmax", "", "SoftMax"},
    {"TextSummary", "TensorSummaryV2", ""},
    {"Split", "Split / SplitV", ""},
    {"StringHash", "StringToHashBucketFast", ""},
    {"SwitchN", "_SwitchN", ""},
    {"TopK", "TopKV2", ""},
    {"Variable", "VarHandleOp", ""},
    {"VocabularyIndex", "LookupTableFind", ""},
});

}  // namespace

std::span<const OtherNames> other_names() { return kNames; }

}  // namespace troupe::ops::detail
