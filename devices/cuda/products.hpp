// Products: products of matrices on one GPU, by cuBLASLt.
#pragma once

#include <compare>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>

#include "core/dtype.hpp"
#include "devices/cuda/context.hpp"
#include "devices/cuda/cublaslt.hpp"
#include "devices/cuda/library_choice.hpp"

namespace troupe::cuda {

// y = a b, for each of `count` pairs of matrices that lie row by row: a is [m, k], or [k, m] if it
// lies transposed, b [k, n] or [n, k], y [m, n]. Of f32 and f64; of f16 and bf16, which are added
// up in f32 and rounded once. With a bias, a number for each column of y is added to the sums
// before they are rounded. REQUIRES: m, n, k and count are positive, count less than 2^31; 1 with a
// bias.
struct LtProduct {
  DType dtype = DType::f32;
  std::int64_t m = 0, n = 0, k = 0;
  bool transpose_a = false, transpose_b = false;
  std::int64_t count = 1;
  std::int64_t next_a = 0, next_b = 0;  // elements from one matrix to the next; 0: one for all
  bool bias = false;
  auto operator<=>(const LtProduct&) const = default;
};
struct Operands {
  const void *a = nullptr, *b = nullptr;
  void* y = nullptr;
  const void* bias = nullptr;  // [n], of a product with one
};

// The library's handle of a GPU, and what it has chosen for each product. Sums are split only where
// their parts are added up in a fixed order, so two runs on one GPU have the same bits. f32 is not
// rounded to fewer bits unless TF32 is allowed. Owned by the device; any thread may use it.
class Products {
 public:
  class Plan;
  using PlanPtr = std::shared_ptr<const Plan>;

  // `alone`: a product that the library does not know is an error. `tf32`: see settings.hpp.
  static Expected<std::unique_ptr<Products>> make(CublasLt library, ContextPtr context, bool alone,
                                                  bool tf32);
  Products(const Products&) = delete;
  Products& operator=(const Products&) = delete;
  ~Products();

  // How the library computes a product whose operands are aligned as these are. Errors name the
  // function of the library that failed; unimplemented: it knows no way.
  Expected<PlanPtr> plan(const LtProduct& product, const Operands& operands);
  // Bytes of device memory that a run needs, aligned to 256, until the stream is through with it.
  static std::size_t workspace(const Plan& plan);
  Status run(const Plan& plan, const Operands& operands, void* workspace,
             StreamHandle stream) const;
  // Whether Troupe's kernel is to compute what the library answered so; warns the first time.
  bool leaves(const Status& status) const { return gaps_.leaves(status); }

 private:
  struct Alignments {
    std::uint32_t a = 0, b = 0, y = 0, bias = 0;
    auto operator<=>(const Alignments&) const = default;
  };
  Products(CublasLt library, ContextPtr context, bool alone, bool tf32)
      : library_(std::move(library)),
        context_(std::move(context)),
        gaps_(alone, "products"),
        tf32_(tf32) {}

  const CublasLt library_;
  const ContextPtr context_;
  const LibraryGaps gaps_;
  const bool tf32_;
  LtHandle handle_ = nullptr;
  std::mutex mutex_;
  std::map<std::pair<LtProduct, Alignments>, PlanPtr> plans_;
};

// What computes products, and why. TROUPE_CUDA_MATMUL is "cublaslt", "kernels" (Troupe's own), or
// not set: cuBLASLt where it is installed and made for the driver.
using ProductsChoice = TableChoice<CublasLt>;
// invalid_argument for another value; failed_precondition for a library that is broken, or asked
// for and missing.
Expected<ProductsChoice> choose_products(const Search& search, const Driver& driver);

}  // namespace troupe::cuda
