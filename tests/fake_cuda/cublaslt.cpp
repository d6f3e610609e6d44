// cuBLASLt without a GPU, for tests: build/fake-cublaslt/libcublasLt.so.13 has the functions of
// devices/cuda/cublaslt.hpp. Products are computed by a kernel of the fake driver beside it, in the
// order of its stream. Sums of two and more terms are split in two, whose parts go through the
// workspace in the type that they are computed in: NVIDIA's order is not Troupe's either.
//
// The epilogue of a bias adds a number for each row of the result to the sums before they are
// rounded. There is no other.
//
// What NVIDIA's library refuses is refused: sizes that do not fit, attributes of another size,
// operands that are aligned less than was promised, a workspace that is too small. How a bias is
// aligned is promised by its address when a way is chosen, and its epilogue is the one of the
// choice.
//
// TROUPE_FAKE_CUBLASLT: "create=N", "heuristic=N", "matmul=N", "state=N": that call, or what was
// chosen, fails with N; "none=1": no way is known to compute anything; "alone=1": nor one where
// something follows on a product; "with_bias=N": such a product fails with N when it is run.
#include <dlfcn.h>

#include <algorithm>
#include <cstring>
#include <string_view>

#include "devices/cuda/cublaslt.hpp"
#include "tests/fake_cuda/stand_in.hpp"

using namespace troupe::cuda;
using namespace troupe::fake_cuda;

namespace troupe::cuda {

struct OpaqueLt {
  troupe::fake_cuda::OwnKernel kernel;
};
struct OpaqueLtOperation {
  int compute = 0, scale = 0;
  std::int32_t transpose_a = 0, transpose_b = 0;
  std::uint32_t epilogue = kLtNothing;
  const void* bias = nullptr;
};
struct OpaqueLtLayout {
  int type = 0;
  std::uint64_t rows = 0, columns = 0;
  std::int64_t leading = 0;
  std::int32_t count = 1;
  std::int64_t stride = 0;
};
struct OpaqueLtPreference {
  std::uint64_t workspace = 0;
  std::uint32_t reductions = 7;
  std::uint32_t alignments[4] = {256, 256, 256, 256};  // of a, b, c, d
};

}  // namespace troupe::cuda

namespace {

constexpr LtResult kFine = 0, kNoLibrary = 1, kInvalid = 7, kFailed = 13, kUnsupported = 15;

int setting(const char* name) { return setting_in("TROUPE_FAKE_CUBLASLT", name); }

struct Matrix {
  std::int64_t leading = 0, stride = 0;
  bool transposed = false;
  std::int64_t at(std::int64_t number, std::int64_t row, std::int64_t column) const {
    return number * stride + (transposed ? column + row * leading : row + column * leading);
  }
};

// What the kernel gets. The driver replaces addresses among these words.
struct Call {
  const void *a, *b;
  void *d, *workspace;
  const void* bias;
  std::int64_t rows, columns, depth, count;
  std::int64_t type, tf32;
  Matrix of_a, of_b, of_d;
};

template <class T>
void compute(const Call& c) {
  using Sum = typename T::Sum;
  auto* parts = static_cast<Sum*>(c.workspace);
  const auto rounded = [&](Sum x) { return c.tf32 ? Sum(to_tf32(float(x))) : x; };
  for (std::int64_t p = 0; p < c.count; ++p)
    for (std::int64_t j = 0; j < c.columns; ++j)
      for (std::int64_t i = 0; i < c.rows; ++i) {
        const auto sum = [&](std::int64_t from, std::int64_t to) {
          Sum all = 0;
          for (std::int64_t l = from; l < to; ++l)
            all += rounded(T::load(c.a, c.of_a.at(p, i, l))) *
                   rounded(T::load(c.b, c.of_b.at(p, l, j)));
          return all;
        };
        const std::int64_t half = c.workspace ? c.depth / 2 : 0;
        Sum all = sum(half, c.depth);
        if (c.workspace) {
          parts[i + j * c.rows] = sum(0, half);
          all = parts[i + j * c.rows] + all;
        }
        if (c.bias) all = all + T::load(c.bias, i);
        T::store(c.d, c.of_d.at(p, i, j), all);
      }
}

std::int64_t size_of(std::int64_t type) { return type == kLtF64 ? 8 : type == kLtF32 ? 4 : 2; }

Result run(const Launched& launched) {
  const Call& c = *static_cast<const Call*>(launched.arguments[0]);
  const auto touch = of_driver<Touch>("troupe_fake_touch");
  const auto bytes = [&](const Matrix& m, std::int64_t rows, std::int64_t columns) {
    return std::size_t((m.at(c.count - 1, rows - 1, columns - 1) + 1) * size_of(c.type));
  };
  touch(c.a, bytes(c.of_a, c.rows, c.depth), 0);
  touch(c.b, bytes(c.of_b, c.depth, c.columns), 0);
  touch(c.d, bytes(c.of_d, c.rows, c.columns), 1);
  if (c.bias) touch(c.bias, std::size_t(c.rows * size_of(c.type)), 0);
  if (c.workspace)
    touch(c.workspace, std::size_t(c.rows * c.columns * std::max<std::int64_t>(4, size_of(c.type))),
          1);
  switch (c.type) {
    case kLtF32:
      compute<Plain<float>>(c);
      break;
    case kLtF64:
      compute<Plain<double>>(c);
      break;
    case kLtF16:
      compute<Half>(c);
      break;
    default:
      compute<Bf16>(c);
  }
  return kSuccess;
}

// A bias belongs to the epilogue that adds one; it is of one product here.
LtResult check_epilogue(const OpaqueLtOperation& o, const OpaqueLtLayout& d) {
  if (o.epilogue == kLtNothing) return o.bias ? kInvalid : kFine;
  if (o.epilogue != kLtBias) return kUnsupported;
  if (!o.bias) return kInvalid;
  return d.count == 1 ? kFine : kUnsupported;
}

// The bytes, up to 256, that divide an address.
std::uint64_t alignment_of_address(const void* address) {
  const std::uint64_t bits = reinterpret_cast<std::uint64_t>(address) | 256;
  return bits & (~bits + 1);
}

// The product that the descriptions say, without addresses. False: they do not fit.
bool describe(const OpaqueLtOperation& o, const OpaqueLtLayout& a, const OpaqueLtLayout& b,
              const OpaqueLtLayout& d, Call& call) {
  call.of_a = {a.leading, a.count == 1 ? 0 : a.stride, o.transpose_a != 0};
  call.of_b = {b.leading, b.count == 1 ? 0 : b.stride, o.transpose_b != 0};
  call.of_d = {d.leading, d.count == 1 ? 0 : d.stride, false};
  call.rows = std::int64_t(d.rows), call.columns = std::int64_t(d.columns);
  call.depth = std::int64_t(o.transpose_a ? a.rows : a.columns);
  call.count = d.count, call.type = d.type, call.tf32 = o.compute == kLtComputeTf32;
  const bool sizes = (o.transpose_a ? a.columns : a.rows) == d.rows &&
                     (o.transpose_b ? b.rows : b.columns) == d.columns &&
                     std::int64_t(o.transpose_b ? b.columns : b.rows) == call.depth &&
                     call.depth > 0;
  bool types = a.type == d.type && b.type == d.type &&
               (d.type == kLtF64 ? o.compute == kLtComputeF64 && o.scale == kLtF64
                                 : o.compute == kLtComputeF32 && o.scale == kLtF32);
  if (call.tf32 && d.type == kLtF32 && a.type == kLtF32 && b.type == kLtF32 && o.scale == kLtF32)
    types = true;
  const bool leading = a.leading >= std::int64_t(a.rows) && b.leading >= std::int64_t(b.rows) &&
                       d.leading >= std::int64_t(d.rows);
  const bool counts = a.count == d.count && b.count == d.count &&
                      (d.count == 1 || d.stride >= d.leading * std::int64_t(d.columns));
  return sizes && types && leading && counts;
}

template <class T>
LtResult set(T& member, const void* value, std::size_t bytes) {
  if (!value || bytes != sizeof member) return kInvalid;
  std::memcpy(&member, value, bytes);
  return kFine;
}

}  // namespace

#pragma GCC visibility push(default)
extern "C" {

int troupe_fake_cublaslt() { return 1; }

std::size_t cublasLtGetVersion() {
  Dl_info info;  // a copy under the name of the version before is of that version
  const bool older = dladdr(reinterpret_cast<void*>(&troupe_fake_cublaslt), &info) != 0 &&
                     info.dli_fname && std::string_view(info.dli_fname).ends_with(".so.12");
  return older ? 120800 : 130100;
}
const char* cublasLtGetStatusName(LtResult result) {
  switch (result) {
    case kNoLibrary:
      return "CUBLAS_STATUS_NOT_INITIALIZED";
    case 3:
      return "CUBLAS_STATUS_ALLOC_FAILED";
    case kInvalid:
      return "CUBLAS_STATUS_INVALID_VALUE";
    case kFailed:
      return "CUBLAS_STATUS_EXECUTION_FAILED";
    case kUnsupported:
      return "CUBLAS_STATUS_NOT_SUPPORTED";
    default:
      return "unknown";
  }
}
LtResult cublasLtCreate(LtHandle* handle) {
  if (const int refused = setting("create")) return refused;
  auto made = new OpaqueLt;
  if (!made->kernel.load("fake_cublaslt_matmul", run, sizeof(Call))) {
    delete made;
    return kNoLibrary;
  }
  *handle = made;
  return kFine;
}
LtResult cublasLtDestroy(LtHandle handle) {
  handle->kernel.unload();
  delete handle;
  return kFine;
}
LtResult cublasLtMatmulDescCreate(LtOperation* operation, int compute, int scale) {
  *operation = new OpaqueLtOperation{compute, scale};
  return kFine;
}
LtResult cublasLtMatmulDescDestroy(LtOperation operation) {
  delete operation;
  return kFine;
}
LtResult cublasLtMatmulDescSetAttribute(LtOperation operation, int attribute, const void* value,
                                        std::size_t bytes) {
  if (attribute == kLtTransposeA) return set(operation->transpose_a, value, bytes);
  if (attribute == kLtTransposeB) return set(operation->transpose_b, value, bytes);
  if (attribute == kLtEpilogueIs) return set(operation->epilogue, value, bytes);
  if (attribute == kLtBiasPointer) return set(operation->bias, value, bytes);
  return kInvalid;
}
LtResult cublasLtMatrixLayoutCreate(LtLayout* layout, int type, std::uint64_t rows,
                                    std::uint64_t columns, std::int64_t leading) {
  *layout = new OpaqueLtLayout{type, rows, columns, leading};
  return kFine;
}
LtResult cublasLtMatrixLayoutDestroy(LtLayout layout) {
  delete layout;
  return kFine;
}
LtResult cublasLtMatrixLayoutSetAttribute(LtLayout layout, int attribute, const void* value,
                                          std::size_t bytes) {
  if (attribute == kLtBatchCount) return set(layout->count, value, bytes);
  if (attribute == kLtBatchStride) return set(layout->stride, value, bytes);
  return kInvalid;
}
LtResult cublasLtMatmulPreferenceCreate(LtPreference* preference) {
  *preference = new OpaqueLtPreference;
  return kFine;
}
LtResult cublasLtMatmulPreferenceDestroy(LtPreference preference) {
  delete preference;
  return kFine;
}
LtResult cublasLtMatmulPreferenceSetAttribute(LtPreference preference, int attribute,
                                              const void* value, std::size_t bytes) {
  if (attribute == kLtMostWorkspace) return set(preference->workspace, value, bytes);
  if (attribute == kLtReductionSchemes) return set(preference->reductions, value, bytes);
  if (attribute >= kLtAlignmentA && attribute <= kLtAlignmentD)
    return set(preference->alignments[attribute - kLtAlignmentA], value, bytes);
  return kInvalid;
}
LtResult cublasLtMatmulAlgoGetHeuristic(LtHandle, LtOperation operation, LtLayout a, LtLayout b,
                                        LtLayout c, LtLayout d, LtPreference preference, int most,
                                        LtHeuristic* found, int* count) {
  if (const int refused = setting("heuristic")) return refused;
  Call call{};
  if (most < 1 || c != d || !describe(*operation, *a, *b, *d, call)) return kInvalid;
  if (const LtResult wrong = check_epilogue(*operation, *d)) return wrong;
  const bool follows = operation->epilogue != kLtNothing;
  *count = setting("none") == 0 && !(follows && setting("alone") != 0);
  *found = {};
  found->state = setting("state");
  std::copy_n(preference->alignments, 4, found->algorithm.data);
  // A sum whose parts are added up in place would not have the same bits in each run.
  const std::size_t parts = std::size_t(call.rows * call.columns) * (call.type == kLtF64 ? 8 : 4);
  const bool split = call.depth > 1 && parts <= preference->workspace &&
                     preference->reductions == kLtReduceInWorkspace;
  found->workspace = split ? parts : 0;
  found->algorithm.data[4] = found->workspace;
  found->algorithm.data[5] = operation->epilogue;
  found->algorithm.data[6] = follows ? alignment_of_address(operation->bias) : 1;
  return kFine;
}
LtResult cublasLtMatmul(LtHandle handle, LtOperation operation, const void* alpha, const void* a,
                        LtLayout of_a, const void* b, LtLayout of_b, const void* beta,
                        const void* c, LtLayout of_c, void* d, LtLayout of_d,
                        const LtAlgorithm* algorithm, void* workspace, std::size_t bytes,
                        StreamHandle stream) {
  if (const int refused = setting("matmul")) return refused;
  Call call{};
  if (c != d || of_c != of_d || !describe(*operation, *of_a, *of_b, *of_d, call)) return kInvalid;
  if (const LtResult wrong = check_epilogue(*operation, *of_d)) return wrong;
  if (operation->epilogue != algorithm->data[5] ||
      reinterpret_cast<std::uint64_t>(operation->bias) % algorithm->data[6] != 0)
    return kInvalid;
  if (operation->epilogue != kLtNothing)
    if (const int refused = setting("with_bias")) return refused;
  const bool f64 = call.type == kLtF64;
  const bool plain =
      f64 ? *static_cast<const double*>(alpha) == 1 && *static_cast<const double*>(beta) == 0
          : *static_cast<const float*>(alpha) == 1 && *static_cast<const float*>(beta) == 0;
  const void* operands[] = {a, b, c, d};
  for (int i = 0; i < 4; ++i)
    if (reinterpret_cast<std::uint64_t>(operands[i]) % algorithm->data[i] != 0) return kInvalid;
  if (bytes < algorithm->data[4] || (algorithm->data[4] != 0 && !workspace) ||
      reinterpret_cast<std::uint64_t>(workspace) % 256 != 0)
    return kInvalid;
  if (!plain) return kUnsupported;
  call.bias = operation->bias;
  call.a = a, call.b = b, call.d = d, call.workspace = algorithm->data[4] ? workspace : nullptr;
  return handle->kernel.launch(stream, &call) ? kFine : kFailed;
}

}  // extern "C"
#pragma GCC visibility pop
