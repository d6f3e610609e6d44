// Where what is computed here is not what tests/golden/make.py says, and why that is right.
#pragma once

#include <string_view>

namespace troupe::test {

struct GoldenException {
  const char* name;
  const char* dtype;    // "": all
  const char* part;     // values, gradients, refusal: refused by one side alone
  const char* holding;  // what the inputs hold (hostile_in() in golden_test.cpp); "": anything
  const char* reason;
};

// Reasons that several ops share.
inline constexpr const char* kNotFinite =
    "a matrix that is not finite gives NaN; LAPACK refuses it or makes numbers of a part of it";
inline constexpr const char* kOverflow =
    "what is computed on the way overflows, elsewhere than there";
inline constexpr const char* kDependent =
    "columns that nearly depend on each other: the gradient is as inexact";
inline constexpr const char* kPadding =
    "padding is nothing; PyTorch multiplies zeros by what is not finite";
inline constexpr const char* kWeight = "a pixel of weight 0 is nothing; PyTorch multiplies it by 0";
inline constexpr const char* kBand =
    "sums are products with a band of ones: an infinity or NaN reaches all channels of its place";
inline constexpr const char* kOutside =
    "what is outside has the gradient 0 times the slope between pixels that are not finite";
inline constexpr const char* kMasked =
    "a key that is masked has no gradient; PyTorch multiplies it by 0";
inline constexpr const char* kNobody = "a NaN is on no side, and has no gradient, as in TensorFlow";
inline constexpr const char* kPaths =
    "a frame that no path goes through has no gradient; PyTorch's is NaN for all frames";
inline constexpr const char* kDecay =
    "an infinite variable minus its decay is NaN; PyTorch multiplies";
inline constexpr const char* kNorm =
    "the norm of the largest and of the least number overflows or is 0";

inline constexpr const char* kInfinity =
    "as in C an infinity times what is not zero is an infinity, and a number divided by it is "
    "zero; "
    "PyTorch has NaN for both";
inline constexpr const char* kBelow =
    "the quotient is below the normal numbers; PyTorch makes it zero or NaN, or has more digits";
inline constexpr const char* kTransform =
    "what is not finite spreads to all elements that it is added to; how, the order of sums "
    "decides";

inline constexpr GoldenException kGoldenExceptions[] = {
    {"MatrixInverse", "", "values", "inf", kNotFinite},
    {"MatrixDeterminant", "", "values", "inf", kNotFinite},
    {"LogMatrixDeterminant", "", "values", "nan", kNotFinite},
    {"LogMatrixDeterminant", "", "values", "inf", kNotFinite},
    {"Cholesky", "", "values", "inf", kNotFinite},
    {"MatrixSolve", "", "values", "inf", kNotFinite},
    {"MatrixSolveLs", "", "values", "inf", kNotFinite},
    {"Qr", "", "values", "nan", kNotFinite},
    {"Qr", "", "values", "inf", kNotFinite},
    {"Cholesky", "", "refusal", "nan", kNotFinite},
    {"Cholesky", "", "refusal", "inf", kNotFinite},
    {"MatrixSolveLs", "", "refusal", "nan", kNotFinite},
    {"Svd", "", "refusal", "nan", kNotFinite},
    {"SelfAdjointEig", "", "refusal", "nan", kNotFinite},
    {"SelfAdjointEig", "", "refusal", "inf", kNotFinite},
    {"MatrixDeterminant", "", "gradients", "largest", kOverflow},
    {"MatrixSolve", "", "gradients", "largest", kOverflow},
    {"MatrixSolveLs", "", "gradients", "inf", kOverflow},
    {"MatrixSolveLs", "", "gradients", "largest", kOverflow},
    {"Svd", "", "gradients", "largest", kOverflow},
    {"SelfAdjointEig", "", "gradients", "largest", kOverflow},
    {"group_norm", "", "values", "largest", kOverflow},
    {"group_norm", "", "gradients", "largest", kOverflow},
    {"instance_norm", "", "values", "largest", kOverflow},
    {"Resize", "", "values", "inf", kWeight},
    {"local_response_norm", "", "values", "inf", kBand},
    {"local_response_norm", "", "values", "nan", kBand},
    {"crop_and_resize", "", "gradients", "largest", kOutside},
    {"scaled_dot_product_attention", "", "gradients", "inf", kMasked},
    {"clip_by_value", "", "gradients", "nan", kNobody},
    {"selu", "", "gradients", "nan", kNobody},
    {"hinge", "", "gradients", "nan", kNobody},
    {"CTCLoss", "", "gradients", "nan", kPaths},
    {"CTCLoss", "", "gradients", "inf", kPaths},
    {"Atan2", "", "gradients", "nan", kNobody},
    {"SegmentProd", "bf16", "gradients", "largest", kOverflow},
    {"BatchMatMul", "f16", "gradients", "largest", kOverflow},
    {"silu", "bf16", "gradients", "largest", kOverflow},
    {"ApplyCenteredRMSProp", "", "values", "inf", kOverflow},
    {"ApplyCenteredRMSProp", "", "values", "largest", kOverflow},
    {"ApplySparseCenteredRMSProp", "", "values", "inf", kOverflow},
    {"ApplySparseCenteredRMSProp", "", "values", "largest", kOverflow},
    {"ApplyAdamW", "", "values", "inf", kDecay},
    {"ApplyLamb", "f64", "values", "largest", kNorm},
    {"ApplyLamb", "f64", "values", "least", kNorm},
    {"LogMatrixDeterminant", "f32", "gradients", "largest", kOverflow},
    {"local_response_norm", "f32", "values", "largest", kOverflow},
    {"local_response_norm", "f64", "values", "largest", kOverflow},
    {"local_response_norm", "bf16", "values", "largest", kOverflow},
    {"local_response_norm", "bf16", "gradients", "largest", kOverflow},
    {"Qr", "f64", "values", "largest", kOverflow},
    {"Cholesky", "f64", "gradients", "largest", kOverflow},
    {"Qr", "f32", "gradients", "epsilon", kDependent},
    {"Mul", "c64", "values", "inf", kInfinity},
    {"Mul", "c128", "values", "inf", kInfinity},
    {"Square", "c128", "values", "inf", kInfinity},
    {"Div", "c64", "values", "inf", kInfinity},
    {"Div", "c128", "values", "inf", kInfinity},
    {"Reciprocal", "c64", "values", "inf", kInfinity},
    {"Reciprocal", "c128", "values", "inf", kInfinity},
    {"Prod", "c64", "values", "inf", kInfinity},
    {"Prod", "c128", "values", "inf", kInfinity},
    {"MatMul", "c64", "values", "inf", kInfinity},
    {"MatMul", "c128", "values", "inf", kInfinity},
    {"BatchMatMul", "c64", "values", "inf", kInfinity},
    {"BatchMatMul", "c128", "values", "inf", kInfinity},
    {"Div", "c64", "gradients", "inf", kInfinity},
    {"Div", "c128", "gradients", "inf", kInfinity},
    {"Pow", "c64", "gradients", "inf", kInfinity},
    {"Pow", "c128", "gradients", "inf", kInfinity},
    {"Square", "c64", "gradients", "inf", kInfinity},
    {"Square", "c128", "gradients", "inf", kInfinity},
    {"Sqrt", "c64", "gradients", "inf", kInfinity},
    {"Sqrt", "c128", "gradients", "inf", kInfinity},
    {"Cos", "c128", "gradients", "inf", kInfinity},
    {"Sinh", "c64", "gradients", "inf", kInfinity},
    {"Sinh", "c128", "gradients", "inf", kInfinity},
    {"Cosh", "c64", "gradients", "inf", kInfinity},
    {"Reciprocal", "c64", "gradients", "-0", kInfinity},
    {"Reciprocal", "c128", "gradients", "-0", kInfinity},
    {"Div", "c64", "gradients", "least", kOverflow},
    {"Div", "c128", "gradients", "least", kOverflow},
    {"Pow", "c64", "gradients", "largest", kOverflow},
    {"Pow", "c128", "gradients", "largest", kOverflow},
    {"MatMul", "c64", "values", "largest", kOverflow},
    {"MatMul", "c128", "values", "largest", kOverflow},
    {"Log", "c128", "gradients", "largest", kBelow},
    {"Reciprocal", "c128", "values", "largest", kBelow},
    {"Div", "c128", "values", "largest", kOverflow},
    {"Angle", "c128", "gradients", "largest", kBelow},
    {"Angle", "c128", "gradients", "least", kOverflow},
    {"ComplexAbs", "c64", "gradients", "least", kBelow},
    {"FFT", "", "values", "inf", kTransform},
    {"FFT2D", "", "values", "inf", kTransform},
    {"FFT3D", "", "values", "inf", kTransform},
    {"IFFT", "", "values", "inf", kTransform},
    {"IFFT2D", "", "values", "inf", kTransform},
    {"IFFT3D", "", "values", "inf", kTransform},
    {"RFFT", "", "values", "inf", kTransform},
    {"RFFT2D", "", "values", "inf", kTransform},
    {"RFFT3D", "", "values", "inf", kTransform},
    {"IRFFT", "", "values", "inf", kTransform},
    {"IRFFT2D", "", "values", "inf", kTransform},
    {"IRFFT3D", "", "values", "inf", kTransform},
    {"IRFFT", "", "values", "nan", kTransform},
    {"RFFT", "", "values", "largest", kOverflow},
    {"RFFT2D", "", "values", "largest", kOverflow},
    // Which of these come up depends on the machine: it decides what is added to what.
    {"conv1d", "", "values", "nan", kPadding},
    {"conv1d", "", "values", "inf", kPadding},
    {"conv1d", "", "values", "largest", kOverflow},
    {"conv1d", "", "gradients", "nan", kPadding},
    {"conv1d", "", "gradients", "inf", kPadding},
    {"conv1d", "", "gradients", "largest", kOverflow},
    {"conv1d_transpose", "", "values", "nan", kPadding},
    {"conv1d_transpose", "", "values", "inf", kPadding},
    {"conv1d_transpose", "", "values", "largest", kOverflow},
    {"conv1d_transpose", "", "gradients", "nan", kPadding},
    {"conv1d_transpose", "", "gradients", "inf", kPadding},
    {"conv1d_transpose", "", "gradients", "largest", kOverflow},
    {"Conv2D", "", "values", "nan", kPadding},
    {"Conv2D", "", "values", "inf", kPadding},
    {"Conv2D", "", "values", "largest", kOverflow},
    {"Conv2D", "", "gradients", "nan", kPadding},
    {"Conv2D", "", "gradients", "inf", kPadding},
    {"Conv2D", "", "gradients", "largest", kOverflow},
    {"conv2d_transpose", "", "values", "nan", kPadding},
    {"conv2d_transpose", "", "values", "inf", kPadding},
    {"conv2d_transpose", "", "values", "largest", kOverflow},
    {"conv2d_transpose", "", "gradients", "nan", kPadding},
    {"conv2d_transpose", "", "gradients", "inf", kPadding},
    {"conv2d_transpose", "", "gradients", "largest", kOverflow},
    {"conv3d", "", "values", "nan", kPadding},
    {"conv3d", "", "values", "inf", kPadding},
    {"conv3d", "", "values", "largest", kOverflow},
    {"conv3d", "", "gradients", "nan", kPadding},
    {"conv3d", "", "gradients", "inf", kPadding},
    {"conv3d", "", "gradients", "largest", kOverflow},
    {"conv3d_transpose", "", "values", "nan", kPadding},
    {"conv3d_transpose", "", "values", "inf", kPadding},
    {"conv3d_transpose", "", "values", "largest", kOverflow},
    {"conv3d_transpose", "", "gradients", "nan", kPadding},
    {"conv3d_transpose", "", "gradients", "inf", kPadding},
    {"conv3d_transpose", "", "gradients", "largest", kOverflow},
    {"depthwise_conv2d", "", "values", "nan", kPadding},
    {"depthwise_conv2d", "", "values", "inf", kPadding},
    {"depthwise_conv2d", "", "values", "largest", kOverflow},
    {"depthwise_conv2d", "", "gradients", "nan", kPadding},
    {"depthwise_conv2d", "", "gradients", "inf", kPadding},
    {"depthwise_conv2d", "", "gradients", "largest", kOverflow},
};

// Ops that take complex numbers, and compute nothing with them that a peer could say otherwise.
struct WithoutComplexGolden {
  std::string_view name;
  const char* reason;
};
inline constexpr const char* kPasses = "passes a tensor on, whatever is in it";
inline constexpr const char* kShapeAlone = "sees the shape alone";
inline constexpr const char* kIsGradient = "the gradient of another op, whose goldens compare it";
inline constexpr const char* kAddsGradient =
    "adds the gradient of another op to a sum; rows of the conformance test compare it";
inline constexpr const char* kIsSecondGradient =
    "part of a second derivative; rows of the conformance test compare it";
inline constexpr const char* kLists = "holds tensors in a list, whatever is in them";

inline constexpr WithoutComplexGolden kWithoutComplexGolden[] = {
    {"Argument", kPasses},
    {"Const", kPasses},
    {"Enter", kPasses},
    {"EnsureSameShape", kPasses},
    {"EnsureShape", kPasses},
    {"Exit", kPasses},
    {"Identity", kPasses},
    {"Leave", kPasses},
    {"Merge", kPasses},
    {"NextIteration", kPasses},
    {"Placeholder", kPasses},
    {"Print", kPasses},
    {"ReadVariable", kPasses},
    {"Saved", kPasses},
    {"SavedList", kPasses},
    {"StopGradient", kPasses},
    {"Switch", kPasses},
    {"SwitchN", kPasses},
    {"Variable", kPasses},
    {"Fill", "one number, again and again"},
    {"OnesLike", kShapeAlone},
    {"RandomOrder", kShapeAlone},
    {"Rank", kShapeAlone},
    {"Shape", kShapeAlone},
    {"Size", kShapeAlone},
    {"ZerosLike", kShapeAlone},
    {"GatherAdd", kAddsGradient},
    {"PowGradBase", kIsGradient},
    {"PowGradExponent", kIsGradient},
    {"ProdGradAlong", kIsSecondGradient},
    {"ScatterAlong", kIsGradient},
    {"SliceAdd", kAddsGradient},
    {"Spread", kIsGradient},
    {"StridedSliceAdd", kAddsGradient},
    {"SumToShape", kIsGradient},
    {"ListEmpty", kLists},
    {"ListGet", kLists},
    {"ListGetAdd", "adds the gradient of an element to a list, as tests of lists compare in f64"},
    {"ListPop", kLists},
    {"ListPush", kLists},
    {"ListSet", kLists},
    {"ListStack", kLists},
    {"ListUnstack", kLists},
};

}  // namespace troupe::test
