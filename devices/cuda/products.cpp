#include "devices/cuda/products.hpp"

#include <array>

#include "devices/cuda/alignment.hpp"

namespace troupe::cuda {
namespace {

constexpr std::uint64_t kMostWorkspace = std::uint64_t{32} << 20;
// That of all memory of a device: whether more divides an address depends on which block was free,
// and the choice of the library must not.
constexpr std::uint32_t kMostAlignment = 64;
constexpr std::size_t kMostPlans = 4096;

LtType type_of(DType dtype) {
  switch (dtype) {
    case DType::f64:
      return kLtF64;
    case DType::f16:
      return kLtF16;
    case DType::bf16:
      return kLtBf16;
    default:
      return kLtF32;
  }
}

// The description of what is computed, without the matrices.
class Operation {
 public:
  explicit Operation(const CublasLt& library) : library_(library) {}
  Operation(const Operation&) = delete;
  Operation& operator=(const Operation&) = delete;
  ~Operation() {
    if (raw_) library_.cublasLtMatmulDescDestroy(raw_);
  }
  LtOperation raw() const { return raw_; }

  // Called once.
  Status describe(const LtProduct& product, bool tf32, const void* bias) {
    const bool f64 = product.dtype == DType::f64;
    const LtCompute compute = f64                                   ? kLtComputeF64
                              : tf32 && product.dtype == DType::f32 ? kLtComputeTf32
                                                                    : kLtComputeF32;
    TROUPE_TRY(
        library_.check(library_.cublasLtMatmulDescCreate(&raw_, compute, f64 ? kLtF64 : kLtF32),
                       "cublasLtMatmulDescCreate"));
    TROUPE_TRY(set(kLtTransposeA, transposition(product.transpose_b)));
    TROUPE_TRY(set(kLtTransposeB, transposition(product.transpose_a)));
    if (!product.bias) return ok_status();
    TROUPE_TRY(set(kLtEpilogueIs, std::uint32_t{kLtBias}));
    return set(kLtBiasPointer, bias);
  }

 private:
  static std::int32_t transposition(bool transposed) {
    return transposed ? kLtTransposed : kLtPlain;
  }

  template <class T>
  Status set(LtOperationAttribute which, T value) {
    return library_.check(
        library_.cublasLtMatmulDescSetAttribute(raw_, which, &value, sizeof value),
        "cublasLtMatmulDescSetAttribute");
  }

  const CublasLt& library_;
  LtOperation raw_ = nullptr;
};

}  // namespace

// A matrix that lies row by row is, column by column, its transpose. So the library is asked for
// y' = b' a', where it takes b first; a number for each column of y is one for each row of y'.
class Products::Plan {
 public:
  Plan(const CublasLt& library, const LtProduct& product, bool tf32)
      : library_(library), product_(product), tf32_(tf32), operation_(library) {}
  Plan(const Plan&) = delete;
  Plan& operator=(const Plan&) = delete;
  ~Plan() {
    for (LtLayout layout : {first_, second_, result_})
      if (layout) library_.cublasLtMatrixLayoutDestroy(layout);
  }

  Status describe(const Alignments& alignments) {
    // How a bias is aligned the library takes from its address, which it does not look at here: one
    // that is aligned so and to no more.
    const auto* bias = reinterpret_cast<const void*>(std::uintptr_t(alignments.bias));
    TROUPE_TRY(operation_.describe(product_, tf32_, bias));
    TROUPE_TRY(lay_out(first_, product_.n, product_.k, product_.transpose_b, product_.next_b));
    TROUPE_TRY(lay_out(second_, product_.k, product_.m, product_.transpose_a, product_.next_a));
    return lay_out(result_, product_.n, product_.m, false, product_.m * product_.n);
  }

  // Has the library choose.
  Status choose(LtHandle handle, const Alignments& alignments) {
    LtPreference preference = nullptr;
    TROUPE_TRY(library_.check(library_.cublasLtMatmulPreferenceCreate(&preference),
                              "cublasLtMatmulPreferenceCreate"));
    Status chosen = choose(handle, preference, alignments);
    library_.cublasLtMatmulPreferenceDestroy(preference);
    return chosen;
  }

  std::size_t workspace() const { return chosen_.workspace; }

  Status run(LtHandle handle, const Operands& operands, void* workspace,
             StreamHandle stream) const {
    if (!product_.bias) return run(handle, operation_.raw(), operands, workspace, stream);
    // The description tells where the bias is, so each run has its own.
    Operation own(library_);
    TROUPE_TRY(own.describe(product_, tf32_, operands.bias));
    return run(handle, own.raw(), operands, workspace, stream);
  }

 private:
  Status run(LtHandle handle, LtOperation operation, const Operands& operands, void* workspace,
             StreamHandle stream) const {
    const float one = 1, zero = 0;
    const double one_f64 = 1, zero_f64 = 0;
    const bool f64 = product_.dtype == DType::f64;
    const void* alpha = f64 ? static_cast<const void*>(&one_f64) : &one;
    const void* beta = f64 ? static_cast<const void*>(&zero_f64) : &zero;
    return library_.check(
        library_.cublasLtMatmul(handle, operation, alpha, operands.b, first_, operands.a, second_,
                                beta, operands.y, result_, operands.y, result_, &chosen_.algorithm,
                                workspace, chosen_.workspace, stream),
        "cublasLtMatmul");
  }

  // Of a factor of `rows` and `columns`, or of its transpose, which lies in memory.
  Status lay_out(LtLayout& layout, std::int64_t rows, std::int64_t columns, bool transposed,
                 std::int64_t next) {
    if (transposed) std::swap(rows, columns);
    TROUPE_TRY(library_.check(
        library_.cublasLtMatrixLayoutCreate(&layout, type_of(product_.dtype), std::uint64_t(rows),
                                            std::uint64_t(columns), rows),
        "cublasLtMatrixLayoutCreate"));
    if (product_.count == 1) return ok_status();
    const std::int32_t count = std::int32_t(product_.count);
    TROUPE_TRY(library_.check(
        library_.cublasLtMatrixLayoutSetAttribute(layout, kLtBatchCount, &count, sizeof count),
        "cublasLtMatrixLayoutSetAttribute"));
    return library_.check(
        library_.cublasLtMatrixLayoutSetAttribute(layout, kLtBatchStride, &next, sizeof next),
        "cublasLtMatrixLayoutSetAttribute");
  }

  Status choose(LtHandle handle, LtPreference preference, const Alignments& alignments) {
    const auto prefer = [&](LtPreferenceAttribute which, auto value) {
      return library_.check(
          library_.cublasLtMatmulPreferenceSetAttribute(preference, which, &value, sizeof value),
          "cublasLtMatmulPreferenceSetAttribute");
    };
    TROUPE_TRY(prefer(kLtMostWorkspace, kMostWorkspace));
    TROUPE_TRY(prefer(kLtReductionSchemes, kLtReduceInWorkspace));
    TROUPE_TRY(prefer(kLtAlignmentA, alignments.b));
    TROUPE_TRY(prefer(kLtAlignmentB, alignments.a));
    TROUPE_TRY(prefer(kLtAlignmentC, alignments.y));
    TROUPE_TRY(prefer(kLtAlignmentD, alignments.y));
    int count = 0;
    TROUPE_TRY(library_.check(
        library_.cublasLtMatmulAlgoGetHeuristic(handle, operation_.raw(), first_, second_, result_,
                                                result_, preference, 1, &chosen_, &count),
        "cublasLtMatmulAlgoGetHeuristic"));
    if (count == 0)
      return unimplemented("cublasLtMatmulAlgoGetHeuristic knows no way to compute it");
    return library_.check(chosen_.state, "cublasLtMatmulAlgoGetHeuristic");
  }

  const CublasLt& library_;
  const LtProduct product_;
  const bool tf32_;
  Operation operation_;
  LtLayout first_ = nullptr, second_ = nullptr, result_ = nullptr;
  LtHeuristic chosen_{};
};

Expected<std::unique_ptr<Products>> Products::make(CublasLt library, ContextPtr context, bool alone,
                                                   bool tf32) {
  std::unique_ptr<Products> products(
      new Products(std::move(library), std::move(context), alone, tf32));
  products->context_->enter();
  TROUPE_TRY(products->library_.check(products->library_.cublasLtCreate(&products->handle_),
                                      "cublasLtCreate"));
  return products;
}

Products::~Products() {
  if (!handle_) return;
  context_->enter();
  library_.cublasLtDestroy(handle_);
}

Expected<Products::PlanPtr> Products::plan(const LtProduct& product, const Operands& operands) {
  const auto size = std::int64_t(dtype_size(product.dtype));
  const Alignments alignments{alignment_of(operands.a, kMostAlignment, product.next_a * size),
                              alignment_of(operands.b, kMostAlignment, product.next_b * size),
                              alignment_of(operands.y, kMostAlignment,
                                           product.count == 1 ? 0 : product.m * product.n * size),
                              product.bias ? alignment_of(operands.bias, kMostAlignment) : 0};
  std::lock_guard lock(mutex_);
  const std::pair key(product, alignments);
  if (const auto known = plans_.find(key); known != plans_.end()) return known->second;
  auto plan = std::make_shared<Plan>(library_, product, tf32_);
  context_->enter();
  TROUPE_TRY(plan->describe(alignments));
  TROUPE_TRY(plan->choose(handle_, alignments));
  if (plans_.size() == kMostPlans) plans_.clear();
  return plans_.emplace(key, std::move(plan)).first->second;
}

std::size_t Products::workspace(const Plan& plan) { return plan.workspace(); }

Status Products::run(const Plan& plan, const Operands& operands, void* workspace,
                     StreamHandle stream) const {
  return plan.run(handle_, operands, workspace, stream);
}

Expected<ProductsChoice> choose_products(const Search& search, const Driver& driver) {
  const auto open = [&](const Search& where) { return open_cublaslt(where, driver.version); };
  return choose_table<CublasLt>({.variable = "TROUPE_CUDA_MATMUL",
                                 .word = "cublaslt",
                                 .library = "cublasLt",
                                 .what = "products of matrices"},
                                driver, search, open, cublaslt_finding);
}

}  // namespace troupe::cuda
