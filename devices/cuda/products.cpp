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

}  // namespace

// A matrix that lies row by row is, column by column, its transpose. So the library is asked for
// y' = b' a', where it takes b first.
class Products::Plan {
 public:
  Plan(const CublasLt& library, const LtProduct& product) : library_(library), product_(product) {}
  Plan(const Plan&) = delete;
  Plan& operator=(const Plan&) = delete;
  ~Plan() {
    if (operation_) library_.cublasLtMatmulDescDestroy(operation_);
    for (LtLayout layout : {first_, second_, result_})
      if (layout) library_.cublasLtMatrixLayoutDestroy(layout);
  }

  Status describe(bool tf32) {
    const bool f64 = product_.dtype == DType::f64;
    const LtCompute compute = f64                                    ? kLtComputeF64
                              : tf32 && product_.dtype == DType::f32 ? kLtComputeTf32
                                                                     : kLtComputeF32;
    TROUPE_TRY(library_.check(
        library_.cublasLtMatmulDescCreate(&operation_, compute, f64 ? kLtF64 : kLtF32),
        "cublasLtMatmulDescCreate"));
    TROUPE_TRY(transpose(kLtTransposeA, product_.transpose_b));
    TROUPE_TRY(transpose(kLtTransposeB, product_.transpose_a));
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
    const float one = 1, zero = 0;
    const double one_f64 = 1, zero_f64 = 0;
    const bool f64 = product_.dtype == DType::f64;
    const void* alpha = f64 ? static_cast<const void*>(&one_f64) : &one;
    const void* beta = f64 ? static_cast<const void*>(&zero_f64) : &zero;
    return library_.check(
        library_.cublasLtMatmul(handle, operation_, alpha, operands.b, first_, operands.a, second_,
                                beta, operands.y, result_, operands.y, result_, &chosen_.algorithm,
                                workspace, chosen_.workspace, stream),
        "cublasLtMatmul");
  }

 private:
  Status transpose(LtOperationAttribute which, bool transposed) {
    const std::int32_t value = transposed ? kLtTransposed : kLtPlain;
    return library_.check(
        library_.cublasLtMatmulDescSetAttribute(operation_, which, &value, sizeof value),
        "cublasLtMatmulDescSetAttribute");
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
        library_.cublasLtMatmulAlgoGetHeuristic(handle, operation_, first_, second_, result_,
                                                result_, preference, 1, &chosen_, &count),
        "cublasLtMatmulAlgoGetHeuristic"));
    if (count == 0)
      return unimplemented("cublasLtMatmulAlgoGetHeuristic knows no way to compute it");
    return library_.check(chosen_.state, "cublasLtMatmulAlgoGetHeuristic");
  }

  const CublasLt& library_;
  const LtProduct product_;
  LtOperation operation_ = nullptr;
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
                                           product.count == 1 ? 0 : product.m * product.n * size)};
  std::lock_guard lock(mutex_);
  const std::pair key(product, alignments);
  if (const auto known = plans_.find(key); known != plans_.end()) return known->second;
  auto plan = std::make_shared<Plan>(library_, product);
  context_->enter();
  TROUPE_TRY(plan->describe(tf32_));
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
  return choose_table<CublasLt>({.variable = "TROUPE_CUDA_MATMUL",
                                 .word = "cublaslt",
                                 .library = "cublasLt",
                                 .what = "products of matrices"},
                                driver, search, open_cublaslt, cublaslt_finding);
}

}  // namespace troupe::cuda
