// cuDNN without a GPU, for tests: build/fake-cudnn/libcudnn.so.9 has the functions of
// devices/cuda/cudnn.hpp. Convolutions and their gradients are computed by a kernel of the fake
// driver beside it, in the order of its stream.
//
// What NVIDIA's library refuses is refused: attributes that a descriptor does not have, of another
// type or count, or set when it is finalised; descriptors that are used before that, or after their
// end; sizes that do not follow from each other; pointers that are missing, or aligned less than
// was promised. A pointer to memory of the host is an illegal address.
//
// Its heuristics name seven engines, and the fallback an eighth:
//   1  adds up in another order in each run    5  needs more memory than there is
//   2  rounds inputs to bf16                   6  has no plan for any convolution
//   3  is inexact by a transform               7  adds up halves, one of them in the workspace
//   4  rounds inputs of f32 to TF32              8  adds up from the last to the first
// What an engine's notes warn of is what it does.
//
// A convolution may be followed by what is added to each of its channels, and that by Relu, where
// the tensors between them are virtual and of the type of the sums: these are rounded in the end
// alone. A Relu that is not asked to keep NaN makes 0 of it.
//
// A graph with products of matrices is attention or its gradient: it is computed as it stands,
// operation by operation (graph_program.hpp), where that is what NVIDIA's library knows. Inputs are
// of f16 or bf16, as are the factors of all products, and of up to 128 multiples of 8 columns;
// attention gives its stats. Of the engines these are named: 1, 5, 6, 7, and 8 by the fallback.
//
// TROUPE_FAKE_CUDNN: "version=N": that is its version; "create=N", "heuristics=N", "plan=N",
// "execute=N": that call fails with N; "engine=N": only this one is named; "none=1": none is;
// "alone=1": none is where something follows on a convolution; "note=N": engine 7 has this note;
// "good=N": the first N runs of a handle do not fail with "execute=N".
#include <algorithm>
#include <array>
#include <atomic>
#include <cmath>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "devices/cuda/cudnn.hpp"
#include "tests/fake_cuda/graph_program.hpp"
#include "tests/fake_cuda/stand_in.hpp"

using namespace troupe::cuda;
using namespace troupe::fake_cuda;

namespace troupe::cuda {

struct OpaqueDnn {
  OwnKernel kernel, graph_kernel;
  StreamHandle stream = nullptr;
  int executed = 0;
};

}  // namespace troupe::cuda

namespace {

constexpr DnnResult kFine = 0, kNoLibrary = 1001, kBad = 2000, kNull = 2002, kMisaligned = 2003,
                    kNotFinalized = 2004, kMismatch = 2008, kBadType = 2010, kUnsupported = 3000,
                    kFailed = 5000;

int setting(const char* name) { return setting_in("TROUPE_FAKE_CUDNN", name); }

constexpr std::int64_t kMostPointers = 16;

// An attribute of a descriptor, how many values it has, and whether the descriptor needs it.
struct Rule {
  int kind, attribute, type;
  std::int64_t count;
  std::int64_t most = count;
  bool needed = true;
};
constexpr Rule kRules[] = {
    {kDnnTensor, kDnnTensorType, kDnnOfType, 1},
    {kDnnTensor, kDnnTensorDims, kDnnOfInt64, 4},
    {kDnnTensor, kDnnTensorStrides, kDnnOfInt64, 4},
    {kDnnTensor, kDnnTensorId, kDnnOfInt64, 1},
    {kDnnTensor, kDnnTensorAlignment, kDnnOfInt64, 1},
    {kDnnTensor, kDnnTensorIsVirtual, kDnnOfBool, 1, 1, false},
    {kDnnTensor, kDnnTensorIsByValue, kDnnOfBool, 1, 1, false},
    {kDnnMatmul, kDnnMatmulCompute, kDnnOfType, 1},
    {kDnnMatmulOperation, kDnnMatmulA, kDnnOfDescriptor, 1},
    {kDnnMatmulOperation, kDnnMatmulB, kDnnOfDescriptor, 1},
    {kDnnMatmulOperation, kDnnMatmulC, kDnnOfDescriptor, 1},
    {kDnnMatmulOperation, kDnnMatmulDescriptor, kDnnOfDescriptor, 1},
    {kDnnReduction, kDnnReductionOperator, kDnnOfReduction, 1},
    {kDnnReduction, kDnnReductionCompute, kDnnOfType, 1},
    {kDnnReductionOperation, kDnnReductionX, kDnnOfDescriptor, 1},
    {kDnnReductionOperation, kDnnReductionY, kDnnOfDescriptor, 1},
    {kDnnReductionOperation, kDnnReductionDescriptor, kDnnOfDescriptor, 1},
    {kDnnReshapeOperation, kDnnReshapeX, kDnnOfDescriptor, 1},
    {kDnnReshapeOperation, kDnnReshapeY, kDnnOfDescriptor, 1},
    {kDnnPointwise, kDnnPointwiseModeIs, kDnnOfPointwiseMode, 1},
    {kDnnPointwise, kDnnPointwiseCompute, kDnnOfType, 1},
    {kDnnPointwise, kDnnPointwiseNan, kDnnOfNan, 1, 1, false},
    {kDnnPointwise, kDnnPointwiseAxis, kDnnOfInt64, 1, 1, false},
    {kDnnPointwiseOperation, kDnnPointwiseDescriptor, kDnnOfDescriptor, 1},
    {kDnnPointwiseOperation, kDnnPointwiseX, kDnnOfDescriptor, 1},
    {kDnnPointwiseOperation, kDnnPointwiseB, kDnnOfDescriptor, 1, 1, false},
    {kDnnPointwiseOperation, kDnnPointwiseT, kDnnOfDescriptor, 1, 1, false},
    {kDnnPointwiseOperation, kDnnPointwiseY, kDnnOfDescriptor, 1},
    {kDnnConvolution, kDnnConvolutionCompute, kDnnOfType, 1},
    {kDnnConvolution, kDnnConvolutionModeIs, kDnnOfConvolutionMode, 1},
    {kDnnConvolution, kDnnConvolutionDims, kDnnOfInt64, 1},
    {kDnnConvolution, kDnnConvolutionDilations, kDnnOfInt64, 2},
    {kDnnConvolution, kDnnConvolutionStrides, kDnnOfInt64, 2},
    {kDnnConvolution, kDnnConvolutionPaddingsBefore, kDnnOfInt64, 2},
    {kDnnConvolution, kDnnConvolutionPaddingsAfter, kDnnOfInt64, 2},
    {kDnnForward, kDnnForwardAlpha, kDnnOfDouble, 1},
    {kDnnForward, kDnnForwardBeta, kDnnOfDouble, 1},
    {kDnnForward, kDnnForwardConvolution, kDnnOfDescriptor, 1},
    {kDnnForward, kDnnForwardX, kDnnOfDescriptor, 1},
    {kDnnForward, kDnnForwardFilter, kDnnOfDescriptor, 1},
    {kDnnForward, kDnnForwardY, kDnnOfDescriptor, 1},
    {kDnnBackwardData, kDnnBackwardDataAlpha, kDnnOfDouble, 1},
    {kDnnBackwardData, kDnnBackwardDataBeta, kDnnOfDouble, 1},
    {kDnnBackwardData, kDnnBackwardDataConvolution, kDnnOfDescriptor, 1},
    {kDnnBackwardData, kDnnBackwardDataDx, kDnnOfDescriptor, 1},
    {kDnnBackwardData, kDnnBackwardDataFilter, kDnnOfDescriptor, 1},
    {kDnnBackwardData, kDnnBackwardDataDy, kDnnOfDescriptor, 1},
    {kDnnBackwardFilter, kDnnBackwardFilterAlpha, kDnnOfDouble, 1},
    {kDnnBackwardFilter, kDnnBackwardFilterBeta, kDnnOfDouble, 1},
    {kDnnBackwardFilter, kDnnBackwardFilterConvolution, kDnnOfDescriptor, 1},
    {kDnnBackwardFilter, kDnnBackwardFilterX, kDnnOfDescriptor, 1},
    {kDnnBackwardFilter, kDnnBackwardFilterDfilter, kDnnOfDescriptor, 1},
    {kDnnBackwardFilter, kDnnBackwardFilterDy, kDnnOfDescriptor, 1},
    {kDnnOperationGraph, kDnnGraphHandle, kDnnOfHandle, 1},
    {kDnnOperationGraph, kDnnGraphOperations, kDnnOfDescriptor, 1, 32},
    {kDnnEngineHeuristics, kDnnHeuristicsGraph, kDnnOfDescriptor, 1},
    {kDnnEngineHeuristics, kDnnHeuristicsMode, kDnnOfHeuristics, 1},
    {kDnnExecutionPlan, kDnnPlanHandle, kDnnOfHandle, 1},
    {kDnnExecutionPlan, kDnnPlanConfig, kDnnOfDescriptor, 1},
    {kDnnVariantPack, kDnnPackIds, kDnnOfInt64, 3, kMostPointers},
    {kDnnVariantPack, kDnnPackPointers, kDnnOfPointer, 3, kMostPointers},
    {kDnnVariantPack, kDnnPackWorkspace, kDnnOfPointer, 1},
};

std::size_t size_of_value(int type) {
  switch (type) {
    case kDnnOfBool:
      return 1;
    case kDnnOfType:
    case kDnnOfNan:
    case kDnnOfReduction:
    case kDnnOfPointwiseMode:
    case kDnnOfConvolutionMode:
    case kDnnOfHeuristics:
    case kDnnOfNumericalNote:
      return 4;
    default:
      return 8;
  }
}

struct Descriptor {
  int kind = 0;
  bool finalized = false;
  std::map<int, std::vector<char>> values;
  Descriptor* graph = nullptr;  // of an engine, or its configuration
  int engine = 0;

  template <class T>
  std::vector<T> all(int attribute) const {
    std::vector<T> list;
    if (const auto found = values.find(attribute); found != values.end()) {
      list.resize(found->second.size() / sizeof(T));
      std::memcpy(list.data(), found->second.data(), found->second.size());
    }
    return list;
  }
  template <class T>
  T one(int attribute) const {
    return all<T>(attribute).at(0);
  }
};

// What the calling thread's last refusal is about.
std::string& last_error() {
  static thread_local std::string text;
  return text;
}

// Descriptors that there are. Guarded by its mutex, and so are they.
struct Library {
  std::mutex mutex;
  std::set<const void*> live;
};
Library& library() {
  static Library& it = *new Library;  // devices of a test may end after all statics here
  return it;
}
bool usable(const Descriptor* d, int kind) {
  return library().live.count(d) != 0 && d->kind == kind && d->finalized;
}

// A dimension of a tensor, and how far apart its elements are.
struct Layout {
  std::array<std::int64_t, 4> dims{}, strides{};  // n, c, h, w
  std::int64_t at(std::int64_t n, std::int64_t c, std::int64_t h, std::int64_t w) const {
    return n * strides[0] + c * strides[1] + h * strides[2] + w * strides[3];
  }
  std::int64_t elements() const { return dims[0] * dims[1] * dims[2] * dims[3]; }
  std::size_t span() const {
    return std::size_t(at(dims[0] - 1, dims[1] - 1, dims[2] - 1, dims[3] - 1) + 1);
  }
};

// What the kernel gets. The driver replaces addresses among these words, but not the copies, whose
// bits are inverted.
struct Call {
  void *x, *filter, *y, *workspace, *bias;
  std::uint64_t given[5];
  std::int64_t of, type, engine, groups;
  std::int64_t has_bias, has_relu, keeps_nan;
  Layout of_x, of_filter, of_y;
  std::array<std::int64_t, 2> stride, dilation, before, after;
};

std::size_t bytes_of(std::int64_t type) { return type == kDnnF64 ? 8 : type == kDnnF32 ? 4 : 2; }
const Layout& result_of(const Call& c) {
  return c.of == kDnnForward ? c.of_y : c.of == kDnnBackwardData ? c.of_x : c.of_filter;
}

// The terms of element number `i` of the result, as term(index of an input, of the other).
template <class Term>
void for_terms(const Call& c, std::int64_t i, Term&& term) {
  const auto& d = result_of(c).dims;
  const std::int64_t p2 = i / d[3] % d[2], p3 = i % d[3];
  const std::int64_t p1 = i / d[3] / d[2] % d[1], p0 = i / d[3] / d[2] / d[1];
  const std::int64_t in = c.of_filter.dims[1], out = c.of_filter.dims[0] / c.groups;
  // y's pixel of x's under place r of the filter, along an axis; -1: none.
  const auto pixel_of_x = [&](std::size_t axis, std::int64_t o, std::int64_t r) {
    const std::int64_t x = o * c.stride[axis] - c.before[axis] + r * c.dilation[axis];
    return x < 0 || x >= c.of_x.dims[axis + 2] ? -1 : x;
  };
  const std::int64_t rows = c.of_filter.dims[2], columns = c.of_filter.dims[3];
  if (c.of == kDnnForward) {  // p: n, k, h', w'
    for (std::int64_t r = 0; r < rows; ++r)
      for (std::int64_t q = 0; q < columns; ++q)
        for (std::int64_t k = 0; k < in; ++k) {
          const std::int64_t h = pixel_of_x(0, p2, r), w = pixel_of_x(1, p3, q);
          if (h < 0 || w < 0) continue;
          term(c.of_x.at(p0, p1 / out * in + k, h, w), c.of_filter.at(p1, k, r, q));
        }
  } else if (c.of == kDnnBackwardData) {  // p: n, c, h, w
    const std::int64_t group = p1 / in;
    for (std::int64_t r = 0; r < rows; ++r)
      for (std::int64_t q = 0; q < columns; ++q) {
        const std::int64_t h = p2 + c.before[0] - r * c.dilation[0];
        const std::int64_t w = p3 + c.before[1] - q * c.dilation[1];
        if (h < 0 || w < 0 || h % c.stride[0] != 0 || w % c.stride[1] != 0) continue;
        if (h / c.stride[0] >= c.of_y.dims[2] || w / c.stride[1] >= c.of_y.dims[3]) continue;
        for (std::int64_t k = group * out; k < (group + 1) * out; ++k)
          term(c.of_filter.at(k, p1 % in, r, q),
               c.of_y.at(p0, k, h / c.stride[0], w / c.stride[1]));
      }
  } else {  // p: k, c/groups, r, q
    for (std::int64_t n = 0; n < c.of_x.dims[0]; ++n)
      for (std::int64_t oh = 0; oh < c.of_y.dims[2]; ++oh)
        for (std::int64_t ow = 0; ow < c.of_y.dims[3]; ++ow) {
          const std::int64_t h = pixel_of_x(0, oh, p2), w = pixel_of_x(1, ow, p3);
          if (h < 0 || w < 0) continue;
          term(c.of_x.at(n, p0 / out * in + p1, h, w), c.of_y.at(n, p0, oh, ow));
        }
  }
}

template <class T>
void compute(const Call& c) {
  using Sum = typename T::Sum;
  static std::atomic<unsigned> runs{0};
  const unsigned run = runs.fetch_add(1);
  const void* a = c.of == kDnnBackwardData ? c.filter : c.x;
  const void* b = c.of == kDnnForward ? c.filter : c.y;
  void* to = c.of == kDnnForward ? c.y : c.of == kDnnBackwardData ? c.x : c.filter;
  const Layout& result = result_of(c);
  const bool rounds = c.engine == 2 || c.engine == 3;
  auto* parts = static_cast<Sum*>(c.workspace);
  std::vector<Sum> terms;
  for (std::int64_t i = 0; i < result.elements(); ++i) {
    const auto& d = result.dims;
    terms.clear();
    for_terms(c, i, [&](std::int64_t of_a, std::int64_t of_b) {
      Sum first = T::load(a, of_a);
      if (c.engine == 4 && c.type == kDnnF32) first = Sum(to_tf32(float(first)));
      if (rounds) {
        std::uint16_t rounded = 0;
        Bf16::store(&rounded, 0, float(first));
        first = Sum(Bf16::load(&rounded, 0));
      }
      terms.push_back(first * T::load(b, of_b));
    });
    if (c.engine == 1)
      std::rotate(terms.begin(), terms.begin() + (terms.empty() ? 0 : run % terms.size()),
                  terms.end());
    if (c.engine == 8) std::reverse(terms.begin(), terms.end());
    const auto sum = [&](std::size_t from, std::size_t end) {
      Sum all = 0;
      for (std::size_t k = from; k < end; ++k) all += terms[k];
      return all;
    };
    const std::size_t half = c.engine == 7 ? terms.size() / 2 : 0;
    Sum all = sum(half, terms.size());
    if (c.engine == 7) {
      parts[i] = sum(0, half);
      all = parts[i] + all;
    }
    if (c.has_bias) all = all + T::load(c.bias, i / d[3] / d[2] % d[1]);
    if (c.has_relu && (all < 0 || (all != all && !c.keeps_nan))) all = 0;
    T::store(to,
             result.at(i / d[3] / d[2] / d[1], i / d[3] / d[2] % d[1], i / d[3] % d[2], i % d[3]),
             all);
  }
}

// Convolutions that were computed, and handles that ended after their stream.
std::atomic<std::size_t> computed{0}, late_ends{0};

Result run(const Launched& launched) {
  const Call& c = *static_cast<const Call*>(launched.arguments[0]);
  const void* pointers[] = {c.x, c.filter, c.y, c.workspace, c.bias};
  for (int i = 0; i < 5; ++i)  // what is as it was given is no memory of the device
    if (pointers[i] && ~c.given[i] == reinterpret_cast<std::uint64_t>(pointers[i]))
      return kIllegalAddress;
  const auto touch = of_driver<Touch>("troupe_fake_touch");
  const std::size_t bytes = bytes_of(c.type);
  touch(c.x, c.of_x.span() * bytes, c.of == kDnnBackwardData);
  touch(c.filter, c.of_filter.span() * bytes, c.of == kDnnBackwardFilter);
  touch(c.y, c.of_y.span() * bytes, c.of == kDnnForward);
  if (c.bias) touch(c.bias, std::size_t(c.of_y.dims[1]) * bytes, 0);
  if (c.workspace)
    touch(c.workspace, std::size_t(result_of(c).elements()) * std::max<std::size_t>(4, bytes), 1);
  switch (c.type) {
    case kDnnF32:
      compute<Plain<float>>(c);
      break;
    case kDnnF64:
      compute<Plain<double>>(c);
      break;
    case kDnnF16:
      compute<Half>(c);
      break;
    default:
      compute<Bf16>(c);
  }
  computed.fetch_add(1);
  return kSuccess;
}

// Where an operation has its descriptors.
struct Places {
  int window, x, filter, y;
};
Places places_of(int kind) {
  if (kind == kDnnForward)
    return {kDnnForwardConvolution, kDnnForwardX, kDnnForwardFilter, kDnnForwardY};
  if (kind == kDnnBackwardData)
    return {kDnnBackwardDataConvolution, kDnnBackwardDataDx, kDnnBackwardDataFilter,
            kDnnBackwardDataDy};
  return {kDnnBackwardFilterConvolution, kDnnBackwardFilterX, kDnnBackwardFilterDfilter,
          kDnnBackwardFilterDy};
}

Layout layout_of(const Descriptor& tensor) {
  Layout layout;
  const auto dims = tensor.all<std::int64_t>(kDnnTensorDims);
  const auto strides = tensor.all<std::int64_t>(kDnnTensorStrides);
  std::copy_n(dims.begin(), 4, layout.dims.begin());
  std::copy_n(strides.begin(), 4, layout.strides.begin());
  return layout;
}

bool is_virtual(const Descriptor& tensor) {
  return tensor.values.count(kDnnTensorIsVirtual) != 0 && tensor.one<char>(kDnnTensorIsVirtual);
}

// What an operation says, without addresses. Not fine: it contradicts itself.
DnnResult describe(const Descriptor& operation, Call& call) {
  const Places at = places_of(operation.kind);
  const auto* window = operation.one<Descriptor*>(at.window);
  const Descriptor* tensors[] = {operation.one<Descriptor*>(at.x),
                                 operation.one<Descriptor*>(at.filter),
                                 operation.one<Descriptor*>(at.y)};
  if (!usable(window, kDnnConvolution)) return kNotFinalized;
  for (const Descriptor* tensor : tensors)
    if (!usable(tensor, kDnnTensor)) return kNotFinalized;
  call.of = operation.kind;
  call.type = tensors[0]->one<int>(kDnnTensorType);
  const int sums = call.type == kDnnF64 ? kDnnF64 : kDnnF32;
  for (const Descriptor* tensor : tensors)
    if (tensor->one<int>(kDnnTensorType) != (is_virtual(*tensor) ? sums : call.type)) return kBad;
  const int compute = window->one<int>(kDnnConvolutionCompute);
  if (compute != sums) return kUnsupported;
  call.of_x = layout_of(*tensors[0]), call.of_filter = layout_of(*tensors[1]);
  call.of_y = layout_of(*tensors[2]);
  const auto pair = [&](int attribute) {
    const auto all = window->all<std::int64_t>(attribute);
    return std::array{all[0], all[1]};
  };
  call.stride = pair(kDnnConvolutionStrides), call.dilation = pair(kDnnConvolutionDilations);
  call.before = pair(kDnnConvolutionPaddingsBefore);
  call.after = pair(kDnnConvolutionPaddingsAfter);
  const auto &x = call.of_x.dims, &filter = call.of_filter.dims, &y = call.of_y.dims;
  if (x[1] % filter[1] != 0) return kMismatch;
  call.groups = x[1] / filter[1];
  if (x[0] != y[0] || filter[0] != y[1] || filter[0] % call.groups != 0) return kMismatch;
  for (std::size_t axis = 0; axis < 2; ++axis) {
    const std::int64_t reach = (filter[axis + 2] - 1) * call.dilation[axis] + 1;
    const std::int64_t room = x[axis + 2] + call.before[axis] + call.after[axis] - reach;
    if (room < 0 || y[axis + 2] != room / call.stride[axis] + 1) return kMismatch;
  }
  return kFine;
}

// An operation on each element of `x`, which is between the two.
DnnResult describe_pointwise(const Descriptor& operation, const Descriptor* x, Call& call) {
  const auto* function = operation.one<Descriptor*>(kDnnPointwiseDescriptor);
  const auto* y = operation.one<Descriptor*>(kDnnPointwiseY);
  if (!usable(function, kDnnPointwise) || !usable(y, kDnnTensor)) return kNotFinalized;
  const int sums = call.type == kDnnF64 ? kDnnF64 : kDnnF32;
  if (operation.one<Descriptor*>(kDnnPointwiseX) != x || !is_virtual(*x)) return kUnsupported;
  if (function->one<int>(kDnnPointwiseCompute) != sums) return kUnsupported;
  if (y->one<int>(kDnnTensorType) != (is_virtual(*y) ? sums : call.type)) return kBad;
  if (layout_of(*y).dims != call.of_y.dims) return kMismatch;
  const bool has_b = operation.values.count(kDnnPointwiseB) != 0;
  if (function->one<int>(kDnnPointwiseModeIs) == kDnnAdd) {
    if (!has_b || call.has_bias || call.has_relu) return kUnsupported;
    const auto* b = operation.one<Descriptor*>(kDnnPointwiseB);
    if (!usable(b, kDnnTensor)) return kNotFinalized;
    if (is_virtual(*b) || b->one<int>(kDnnTensorType) != call.type) return kBad;
    if (layout_of(*b).dims != std::array<std::int64_t, 4>{1, call.of_y.dims[1], 1, 1})
      return kMismatch;
    call.has_bias = 1;
    return kFine;
  }
  if (has_b || !call.has_bias || call.has_relu) return kUnsupported;
  call.has_relu = 1;
  call.keeps_nan = function->values.count(kDnnPointwiseNan) != 0 &&
                   function->one<int>(kDnnPointwiseNan) == kDnnKeepNan;
  return kFine;
}

// The tensor that the last operation of a graph makes.
const Descriptor* result_of_graph(const Descriptor& graph) {
  const auto* last = graph.all<Descriptor*>(kDnnGraphOperations).back();
  return last->one<Descriptor*>(last->kind == kDnnPointwiseOperation ? int(kDnnPointwiseY)
                                                                     : places_of(last->kind).y);
}

DnnResult describe_graph(const Descriptor& graph, Call& call) {
  const auto operations = graph.all<Descriptor*>(kDnnGraphOperations);
  for (const Descriptor* operation : operations)
    if (library().live.count(operation) == 0 || !operation->finalized) return kNotFinalized;
  const Descriptor& first = *operations[0];
  if (first.kind == kDnnPointwiseOperation) return kUnsupported;
  if (const DnnResult wrong = describe(first, call)) return wrong;
  if (operations.size() == 1) return kFine;
  if (first.kind != kDnnForward) return kUnsupported;
  const auto* between = first.one<Descriptor*>(kDnnForwardY);
  for (std::size_t i = 1; i < operations.size(); ++i) {
    if (operations[i]->kind != kDnnPointwiseOperation) return kUnsupported;
    if (const DnnResult wrong = describe_pointwise(*operations[i], between, call)) return wrong;
    between = operations[i]->one<Descriptor*>(kDnnPointwiseY);
  }
  return is_virtual(*between) ? kBad : kFine;
}

// Whether a graph is one of products of matrices, and what goes with them.
bool is_program(const Descriptor& graph) {
  for (const Descriptor* operation : graph.all<Descriptor*>(kDnnGraphOperations))
    if (operation->kind == kDnnMatmulOperation) return true;
  return false;
}

bool has_flag(const Descriptor& tensor, int attribute) {
  return tensor.values.count(attribute) != 0 && tensor.one<char>(attribute);
}

GraphTensor graph_tensor(const Descriptor& tensor) {
  GraphTensor made;
  made.type = tensor.one<int>(kDnnTensorType);
  made.kind = has_flag(tensor, kDnnTensorIsVirtual)   ? GraphTensor::between
              : has_flag(tensor, kDnnTensorIsByValue) ? GraphTensor::by_value
                                                      : GraphTensor::in_memory;
  made.id = tensor.one<std::int64_t>(kDnnTensorId);
  made.alignment = tensor.one<std::int64_t>(kDnnTensorAlignment);
  const Layout layout = layout_of(tensor);
  made.dims = layout.dims, made.strides = layout.strides;
  return made;
}

// Whether dimensions meet: equal, or one.
bool meet(const GraphTensor& x, const GraphTensor& y) {
  for (std::size_t d = 0; d < 4; ++d)
    if (x.dims[d] != y.dims[d] && x.dims[d] != 1) return false;
  return true;
}

// Not fine: a step contradicts itself.
DnnResult check_step(const GraphProgram& p, const GraphStep& s) {
  const auto tensor = [&](int i) -> const GraphTensor& { return p.tensors[std::size_t(i)]; };
  const GraphTensor& y = tensor(s.y);
  const GraphTensor* x = s.x < 0 ? nullptr : &tensor(s.x);
  const GraphTensor* b = s.b < 0 ? nullptr : &tensor(s.b);
  if (y.kind == GraphTensor::by_value) return kBad;
  switch (s.kind) {
    case kDnnMatmulOperation: {
      for (std::size_t d = 0; d < 2; ++d)
        if (x->dims[d] != b->dims[d] || x->dims[d] != y.dims[d]) return kMismatch;
      const bool fit =
          x->dims[2] == y.dims[2] && b->dims[3] == y.dims[3] && x->dims[3] == b->dims[2];
      if (!fit) return kMismatch;
      const bool halves = x->type == b->type && (x->type == kDnnF16 || x->type == kDnnBf16);
      return halves ? kFine : kUnsupported;
    }
    case kDnnReductionOperation:
      return meet(y, *x) ? kFine : kMismatch;
    case kDnnReshapeOperation:
      return x->elements() == y.elements() && x->span() == y.span() ? kFine : kMismatch;
    default:
      for (const int i : {s.x, s.b, s.t})
        if (i >= 0 && !meet(tensor(i), y)) return kMismatch;
      return kFine;
  }
}

// What a graph says as a program, without pointers.
DnnResult describe_program(const Descriptor& graph, GraphProgram& p) {
  std::map<const Descriptor*, int> numbers;
  bool fine = true;
  const auto number = [&](const Descriptor& operation, int attribute) {
    if (operation.values.count(attribute) == 0) return -1;
    const auto* tensor = operation.one<Descriptor*>(attribute);
    if (!usable(tensor, kDnnTensor)) {
      fine = false;
      return -1;
    }
    const auto [at, added] = numbers.emplace(tensor, int(p.tensors.size()));
    if (added) p.tensors.push_back(graph_tensor(*tensor));
    return at->second;
  };
  for (const Descriptor* operation : graph.all<Descriptor*>(kDnnGraphOperations)) {
    if (library().live.count(operation) == 0 || !operation->finalized) return kNotFinalized;
    GraphStep s;
    s.kind = operation->kind;
    const auto of = [&](int attribute) { return number(*operation, attribute); };
    switch (s.kind) {
      case kDnnMatmulOperation:
        s.x = of(kDnnMatmulA), s.b = of(kDnnMatmulB), s.y = of(kDnnMatmulC);
        break;
      case kDnnReductionOperation:
        s.x = of(kDnnReductionX), s.y = of(kDnnReductionY);
        s.mode =
            operation->one<Descriptor*>(kDnnReductionDescriptor)->one<int>(kDnnReductionOperator);
        break;
      case kDnnReshapeOperation:
        s.x = of(kDnnReshapeX), s.y = of(kDnnReshapeY);
        break;
      case kDnnPointwiseOperation: {
        const auto* function = operation->one<Descriptor*>(kDnnPointwiseDescriptor);
        if (!usable(function, kDnnPointwise)) return kNotFinalized;
        s.mode = function->one<int>(kDnnPointwiseModeIs);
        if (function->values.count(kDnnPointwiseAxis))
          s.axis = function->one<std::int64_t>(kDnnPointwiseAxis);
        s.x = of(kDnnPointwiseX), s.b = of(kDnnPointwiseB), s.t = of(kDnnPointwiseT);
        s.y = of(kDnnPointwiseY);
        break;
      }
      default:
        return kUnsupported;
    }
    if (!fine) return kNotFinalized;
    if (const DnnResult wrong = check_step(p, s)) return wrong;
    // What is between operations is made by one of them, before others read it.
    for (const int i : {s.x, s.b, s.t})
      if (i >= 0 && p.tensors[std::size_t(i)].kind == GraphTensor::between &&
          !p.tensors[std::size_t(i)].written)
        return kBad;
    if (std::exchange(p.tensors[std::size_t(s.y)].written, true)) return kBad;
    p.steps.push_back(s);
  }
  return kFine;
}

// Whether NVIDIA's library knows such a graph.
bool is_known(const GraphProgram& p) {
  const std::int64_t size = p.tensors[std::size_t(p.first_product()->x)].dims[3];
  bool has_stats = false;
  for (const GraphTensor& t : p.tensors) {
    const bool column = t.dims[3] == 1;
    if (t.kind != GraphTensor::in_memory) continue;
    if (t.type == kDnnF32) has_stats = has_stats || column;
    const bool halves = t.type == kDnnF16 || t.type == kDnnBf16;
    if (!halves && !(t.type == kDnnF32 && column)) return false;
  }
  return has_stats && size % 8 == 0 && size <= 128;
}

std::vector<int> engines_of(int mode, const Descriptor& graph) {
  if (setting("none") != 0) return {};
  if (setting("alone") != 0 && graph.all<Descriptor*>(kDnnGraphOperations).size() > 1) return {};
  if (is_program(graph)) {
    GraphProgram p;
    if (describe_program(graph, p) != kFine || !is_known(p)) return {};
  }
  if (const int only = setting("engine"))
    return (only == 8) == (mode == kDnnHeuristicsFallback) ? std::vector{only} : std::vector<int>();
  if (mode == kDnnHeuristicsFallback) return {8};
  return is_program(graph) ? std::vector{1, 5, 6, 7} : std::vector{1, 2, 3, 4, 5, 6, 7};
}

std::vector<int> notes_of(int engine) {
  switch (engine) {
    case 1:
      return {kDnnNondeterministic};
    case 2:
      return {kDnnTensorCore, kDnnDownConvertInputs};
    case 3:
      return {kDnnWinograd};
    case 4:
      return {kDnnTensorCore};
    case 7:
      return setting("note") != 0 ? std::vector{setting("note")} : std::vector<int>();
    default:
      return {};
  }
}

std::int64_t workspace_of(int engine, const Call& call) {
  if (engine == 5) return std::int64_t{1} << 40;
  if (engine != 7) return 0;
  return result_of(call).elements() * std::int64_t(std::max<std::size_t>(4, bytes_of(call.type)));
}

DnnResult finalize(Descriptor& d) {
  for (const Rule& rule : kRules)
    if (rule.kind == d.kind && rule.needed && d.values.count(rule.attribute) == 0) return kBad;
  Call call{};
  switch (d.kind) {
    case kDnnTensor: {
      const Layout layout = layout_of(d);
      for (std::size_t i = 0; i < 4; ++i)
        if (layout.dims[i] < 1 || layout.strides[i] < 1) return kBad;
      return kFine;
    }
    case kDnnConvolution: {
      for (const int attribute : {kDnnConvolutionStrides, kDnnConvolutionDilations})
        for (const std::int64_t value : d.all<std::int64_t>(attribute))
          if (value < 1) return kBad;
      const bool plain = d.one<std::int64_t>(kDnnConvolutionDims) == 2 &&
                         d.one<int>(kDnnConvolutionModeIs) == kDnnCrossCorrelation;
      return plain ? kFine : kUnsupported;
    }
    case kDnnForward:
    case kDnnBackwardData:
    case kDnnBackwardFilter: {
      const int alpha = d.kind == kDnnForward        ? kDnnForwardAlpha
                        : d.kind == kDnnBackwardData ? kDnnBackwardDataAlpha
                                                     : kDnnBackwardFilterAlpha;
      if (d.one<double>(alpha) != 1 || d.one<double>(alpha + 1) != 0) return kUnsupported;
      return describe(d, call);
    }
    case kDnnPointwise: {
      constexpr std::array kModes{kDnnAdd, kDnnMul,  kDnnSub,          kDnnDiv,   kDnnExp,
                                  kDnnLog, kDnnRelu, kDnnGreaterEqual, kDnnIndex, kDnnSelect};
      const int mode = d.one<int>(kDnnPointwiseModeIs);
      return std::find(kModes.begin(), kModes.end(), mode) != kModes.end() ? kFine : kUnsupported;
    }
    case kDnnMatmul:
      return d.one<int>(kDnnMatmulCompute) == kDnnF32 ? kFine : kUnsupported;
    case kDnnReduction: {
      const int by = d.one<int>(kDnnReductionOperator);
      const bool known = by == kDnnSum || by == kDnnMax;
      return known && d.one<int>(kDnnReductionCompute) == kDnnF32 ? kFine : kUnsupported;
    }
    case kDnnMatmulOperation:
      return usable(d.one<Descriptor*>(kDnnMatmulDescriptor), kDnnMatmul) ? kFine : kNotFinalized;
    case kDnnReductionOperation:
      return usable(d.one<Descriptor*>(kDnnReductionDescriptor), kDnnReduction) ? kFine
                                                                                : kNotFinalized;
    case kDnnOperationGraph: {
      if (!is_program(d)) return describe_graph(d, call);
      GraphProgram p;
      return describe_program(d, p);
    }
    case kDnnEngineHeuristics: {
      if (const int refused = setting("heuristics")) return refused;
      return usable(d.one<Descriptor*>(kDnnHeuristicsGraph), kDnnOperationGraph) ? kFine
                                                                                 : kNotFinalized;
    }
    case kDnnExecutionPlan: {
      if (const int refused = setting("plan")) return refused;
      const auto* config = d.one<Descriptor*>(kDnnPlanConfig);
      if (!usable(config, kDnnEngineConfig)) return kNotFinalized;
      return config->engine == 6 ? kUnsupported : kFine;
    }
    default:
      return kFine;
  }
}

// What the kernel of graphs gets, as above. The program is what of the graph is not its memory.
struct GraphCall {
  void* pointers[kMostPointers + 1];  // the last one: workspace
  std::uint64_t given[kMostPointers + 1];
  const GraphProgram* program;
};

Result run_graph(const Launched& launched) {
  static std::atomic<unsigned> runs{0};
  const GraphCall& c = *static_cast<const GraphCall*>(launched.arguments[0]);
  for (std::size_t i = 0; i <= std::size_t(kMostPointers); ++i)
    if (c.pointers[i] && ~c.given[i] == reinterpret_cast<std::uint64_t>(c.pointers[i]))
      return kIllegalAddress;
  const auto touch = of_driver<Touch>("troupe_fake_touch");
  for (const GraphTensor& t : c.program->tensors)
    if (t.kind == GraphTensor::in_memory) touch(c.pointers[t.pointer], t.bytes(), t.written);
  void* workspace = c.pointers[kMostPointers];
  if (workspace) touch(workspace, std::size_t(c.program->workspace()), 1);
  c.program->run(c.pointers, static_cast<float*>(workspace), runs.fetch_add(1));
  computed.fetch_add(1);
  return kSuccess;
}

DnnResult execute_program(OpaqueDnn& handle, const Descriptor& graph, int engine,
                          const Descriptor& pack) {
  // A run may be over after its plan.
  static auto& programs = *new std::vector<std::unique_ptr<GraphProgram>>;
  auto p = std::make_unique<GraphProgram>();
  if (const DnnResult wrong = describe_program(graph, *p)) return wrong;
  p->engine = engine;
  const auto ids = pack.all<std::int64_t>(kDnnPackIds);
  const auto given = pack.all<void*>(kDnnPackPointers);
  if (ids.size() != given.size()) return kBad;
  GraphCall call{};
  int next = 0;
  for (GraphTensor& t : p->tensors) {
    if (t.kind == GraphTensor::between) continue;
    const auto id = std::find(ids.begin(), ids.end(), t.id);
    if (id == ids.end()) return kBad;
    void* pointer = given[std::size_t(id - ids.begin())];
    if (!pointer) return kNull;
    if (t.kind == GraphTensor::by_value) {
      std::memcpy(&t.value, pointer, sizeof t.value);
      continue;
    }
    if (reinterpret_cast<std::uint64_t>(pointer) % std::uint64_t(t.alignment) != 0)
      return kMisaligned;
    t.pointer = next++;
    call.pointers[t.pointer] = pointer;
  }
  if (engine == 7) {
    void* workspace = pack.one<void*>(kDnnPackWorkspace);
    if (!workspace) return kNull;
    if (reinterpret_cast<std::uint64_t>(workspace) % 256 != 0) return kMisaligned;
    call.pointers[kMostPointers] = workspace;
  }
  for (std::size_t i = 0; i <= std::size_t(kMostPointers); ++i)
    call.given[i] = ~reinterpret_cast<std::uint64_t>(call.pointers[i]);
  call.program = p.get();
  programs.push_back(std::move(p));
  return handle.graph_kernel.launch(handle.stream, &call) ? kFine : kFailed;
}

DnnResult execute(OpaqueDnn& handle, const Descriptor& plan, const Descriptor& pack) {
  if (!usable(&plan, kDnnExecutionPlan) || !usable(&pack, kDnnVariantPack)) return kNotFinalized;
  const auto* config = plan.one<Descriptor*>(kDnnPlanConfig);
  if (!usable(config, kDnnEngineConfig) || !usable(config->graph, kDnnOperationGraph))
    return kNotFinalized;
  if (is_program(*config->graph))
    return execute_program(handle, *config->graph, config->engine, pack);
  Call call{};
  if (const DnnResult wrong = describe_graph(*config->graph, call)) return wrong;
  call.engine = config->engine;
  const auto ids = pack.all<std::int64_t>(kDnnPackIds);
  const auto given = pack.all<void*>(kDnnPackPointers);
  const auto operations = config->graph->all<Descriptor*>(kDnnGraphOperations);
  const Places at = places_of(operations[0]->kind);
  void** const to[] = {&call.x, &call.filter, &call.y, &call.bias};
  std::vector<const Descriptor*> tensors = {operations[0]->one<Descriptor*>(at.x),
                                            operations[0]->one<Descriptor*>(at.filter),
                                            result_of_graph(*config->graph)};
  if (call.has_bias) tensors.push_back(operations[1]->one<Descriptor*>(kDnnPointwiseB));
  if (ids.size() != given.size()) return kBad;
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    const auto* tensor = tensors[i];
    const auto id = std::find(ids.begin(), ids.end(), tensor->one<std::int64_t>(kDnnTensorId));
    if (id == ids.end()) return kBad;
    *to[i] = given[std::size_t(id - ids.begin())];
    if (!*to[i]) return kNull;
    const auto alignment = std::uint64_t(tensor->one<std::int64_t>(kDnnTensorAlignment));
    if (reinterpret_cast<std::uint64_t>(*to[i]) % alignment != 0) return kMisaligned;
  }
  if (workspace_of(config->engine, call) != 0) {
    call.workspace = pack.one<void*>(kDnnPackWorkspace);
    if (!call.workspace) return kNull;
    if (reinterpret_cast<std::uint64_t>(call.workspace) % 256 != 0) return kMisaligned;
  }
  const void* pointers[] = {call.x, call.filter, call.y, call.workspace, call.bias};
  for (int i = 0; i < 5; ++i) call.given[i] = ~reinterpret_cast<std::uint64_t>(pointers[i]);
  return handle.kernel.launch(handle.stream, &call) ? kFine : kFailed;
}

// A value, or several, of an attribute that was not set but is known.
template <class T>
DnnResult give(const std::vector<T>& values, std::int64_t most, std::int64_t* count, void* to) {
  *count = std::int64_t(values.size());
  if (most > 0 && !to) return kNull;
  std::copy_n(values.begin(), std::min<std::int64_t>(most, *count), static_cast<T*>(to));
  return kFine;
}

DnnResult get(const Descriptor& d, int attribute, int type, std::int64_t most, std::int64_t* count,
              void* to) {
  const auto made = [&](std::int64_t i) { return static_cast<Descriptor**>(to)[i]; };
  if (d.kind == kDnnEngineHeuristics && attribute == kDnnHeuristicsResults) {
    if (type != kDnnOfDescriptor) return kBadType;
    const std::vector<int> engines =
        engines_of(d.one<int>(kDnnHeuristicsMode), *d.one<Descriptor*>(kDnnHeuristicsGraph));
    *count = std::int64_t(engines.size());
    if (most == 0) return kFine;
    *count = std::min(*count, most);
    for (std::int64_t i = 0; i < *count; ++i) {
      if (library().live.count(made(i)) == 0 || made(i)->kind != kDnnEngineConfig) return kBad;
      made(i)->finalized = true;
      made(i)->engine = engines[std::size_t(i)];
      made(i)->graph = d.one<Descriptor*>(kDnnHeuristicsGraph);
    }
    return kFine;
  }
  if (d.kind == kDnnEngineConfig && attribute == kDnnConfigEngine) {
    if (type != kDnnOfDescriptor) return kBadType;
    *count = 1;
    if (most == 0) return kFine;
    if (library().live.count(made(0)) == 0 || made(0)->kind != kDnnEngine) return kBad;
    made(0)->finalized = true;
    made(0)->engine = d.engine, made(0)->graph = d.graph;
    return kFine;
  }
  if (d.kind == kDnnEngine && attribute == kDnnEngineNotes)
    return type == kDnnOfNumericalNote ? give(notes_of(d.engine), most, count, to) : kBadType;
  if (d.kind == kDnnEngine && attribute == kDnnEngineIndex)
    return type == kDnnOfInt64 ? give(std::vector<std::int64_t>{d.engine}, most, count, to)
                               : kBadType;
  if (d.kind == kDnnExecutionPlan && attribute == kDnnPlanWorkspace) {
    const auto* config = d.one<Descriptor*>(kDnnPlanConfig);
    std::int64_t bytes = 0;
    if (is_program(*config->graph)) {
      GraphProgram p;
      if (const DnnResult wrong = describe_program(*config->graph, p)) return wrong;
      bytes = config->engine == 5 ? std::int64_t{1} << 40 : config->engine == 7 ? p.workspace() : 0;
    } else {
      Call call{};
      if (const DnnResult wrong = describe_graph(*config->graph, call)) return wrong;
      bytes = workspace_of(config->engine, call);
    }
    return type == kDnnOfInt64 ? give(std::vector<std::int64_t>{bytes}, most, count, to) : kBadType;
  }
  return kBad;
}

}  // namespace

#pragma GCC visibility push(default)
extern "C" {

int troupe_fake_cudnn() { return 1; }
// How many descriptors there are.
std::size_t troupe_fake_cudnn_descriptors() {
  std::lock_guard lock(library().mutex);
  return library().live.size();
}

std::size_t troupe_fake_cudnn_computed() { return computed.load(); }
std::size_t troupe_fake_cudnn_late_ends() { return late_ends.load(); }

std::size_t cudnnGetVersion() {
  return std::size_t(setting_in("TROUPE_FAKE_CUDNN", "version", 91900));
}
std::size_t cudnnGetCudartVersion() { return 13000; }
const char* cudnnGetErrorString(DnnResult result) {
  switch (result) {
    case kNoLibrary:
      return "CUDNN_STATUS_NOT_INITIALIZED";
    case kBad:
      return "CUDNN_STATUS_BAD_PARAM";
    case kNull:
      return "CUDNN_STATUS_BAD_PARAM_NULL_POINTER";
    case kMisaligned:
      return "CUDNN_STATUS_BAD_PARAM_MISALIGNED_POINTER";
    case kNotFinalized:
      return "CUDNN_STATUS_BAD_PARAM_NOT_FINALIZED";
    case kMismatch:
      return "CUDNN_STATUS_BAD_PARAM_SHAPE_MISMATCH";
    case kBadType:
      return "CUDNN_STATUS_BAD_PARAM_ATTRIBUTE_TYPE";
    case kUnsupported:
      return "CUDNN_STATUS_NOT_SUPPORTED";
    case 4004:
      return "CUDNN_STATUS_INTERNAL_ERROR_DEVICE_ALLOCATION_FAILED";
    case kFailed:
      return "CUDNN_STATUS_EXECUTION_FAILED";
    default:
      return "unknown";
  }
}
void cudnnGetLastErrorString(char* text, std::size_t most) {
  std::strncpy(text, last_error().c_str(), most);
}
DnnResult cudnnCreate(DnnHandle* handle) {
  last_error().clear();
  if (const int refused = setting("create")) return refused;
  auto made = new OpaqueDnn;
  if (!made->kernel.load("fake_cudnn_convolution", run, sizeof(Call)) ||
      !made->graph_kernel.load("fake_cudnn_graph", run_graph, sizeof(GraphCall))) {
    delete made;
    return kNoLibrary;
  }
  *handle = made;
  return kFine;
}
DnnResult cudnnDestroy(DnnHandle handle) {
  if (handle->stream && of_driver<decltype(DriverTable::cuStreamSynchronize)>(
                            "cuStreamSynchronize")(handle->stream) == kInvalidHandle)
    late_ends.fetch_add(1);
  handle->kernel.unload();
  handle->graph_kernel.unload();
  delete handle;
  return kFine;
}
DnnResult cudnnSetStream(DnnHandle handle, StreamHandle stream) {
  handle->stream = stream;
  return kFine;
}
DnnResult cudnnBackendCreateDescriptor(int kind, void** descriptor) {
  std::lock_guard lock(library().mutex);
  auto made = new Descriptor;
  made->kind = kind;
  library().live.insert(made);
  *descriptor = made;
  return kFine;
}
DnnResult cudnnBackendDestroyDescriptor(void* descriptor) {
  std::lock_guard lock(library().mutex);
  if (library().live.erase(descriptor) == 0) return kBad;
  delete static_cast<Descriptor*>(descriptor);
  return kFine;
}
DnnResult cudnnBackendFinalize(void* descriptor) {
  std::lock_guard lock(library().mutex);
  if (library().live.count(descriptor) == 0) return kBad;
  auto& d = *static_cast<Descriptor*>(descriptor);
  const DnnResult result = finalize(d);
  if (result != kFine) last_error() = "descriptor " + std::to_string(d.kind);
  d.finalized = result == kFine;
  return result;
}
DnnResult cudnnBackendSetAttribute(void* descriptor, int attribute, int type, std::int64_t count,
                                   const void* values) {
  std::lock_guard lock(library().mutex);
  if (library().live.count(descriptor) == 0) return kBad;
  auto& d = *static_cast<Descriptor*>(descriptor);
  if (d.finalized) return kBad;
  if (!values) return kNull;
  for (const Rule& rule : kRules) {
    if (rule.kind != d.kind || rule.attribute != attribute) continue;
    if (rule.type != type) return kBadType;
    if (count < rule.count || count > rule.most) return kBad;
    const auto* bytes = static_cast<const char*>(values);
    d.values[attribute] = {bytes, bytes + std::size_t(count) * size_of_value(type)};
    return kFine;
  }
  return kBad;
}
DnnResult cudnnBackendGetAttribute(void* descriptor, int attribute, int type, std::int64_t most,
                                   std::int64_t* count, void* values) {
  std::lock_guard lock(library().mutex);
  if (library().live.count(descriptor) == 0) return kBad;
  const auto& d = *static_cast<Descriptor*>(descriptor);
  return d.finalized ? get(d, attribute, type, most, count, values) : kNotFinalized;
}
DnnResult cudnnBackendExecute(DnnHandle handle, void* plan, void* pack) {
  last_error().clear();
  if (const int refused = setting("execute"); refused && handle->executed >= setting("good"))
    return refused;
  ++handle->executed;
  std::lock_guard lock(library().mutex);
  return execute(*handle, *static_cast<Descriptor*>(plan), *static_cast<Descriptor*>(pack));
}

}  // extern "C"
#pragma GCC visibility pop
