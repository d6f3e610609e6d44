// Products with one right operand, used many times: laid out once as the machine likes it, where
// oneDNN is built in; else as it is.
#pragma once

#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "ops/kernels/support/gemm.hpp"
#include "ops/op.hpp"

#if TROUPE_ONEDNN
#include "ops/onednn/onednn.hpp"
#endif

namespace troupe {

// C [m,n] = A [m,k] op(B), whose rows are lda and ldc elements apart.
struct ProductSizes {
  std::int64_t m = 0, n = 0, k = 0, lda = 0, ldc = 0;
  std::int64_t packed_for = 0;  // the m of the product that packs B; 0: this one
  friend bool operator==(const ProductSizes&, const ProductSizes&) = default;
};

// How products of these sizes are computed. Immutable: overlapping steps share it.
template <class T>
class PackedProduct {
 public:
  // Whether products have a layout of their own, rather than a copy.
#if TROUPE_ONEDNN
  static constexpr bool kPacks = std::is_same_v<T, float>;
#else
  static constexpr bool kPacks = false;
#endif

  static Expected<std::shared_ptr<const PackedProduct>> make(
      const ProductSizes& sizes, [[maybe_unused]] const PackedProduct* packs = nullptr) {
    auto product = std::shared_ptr<PackedProduct>(new PackedProduct(sizes));
#if TROUPE_ONEDNN
    const bool empty = sizes.m == 0 || sizes.n == 0 || sizes.k == 0;
    if constexpr (std::is_same_v<T, float>) {
      if (!empty && (packs == nullptr || packs->primitive_)) {
        auto made = onednn::Product::make({sizes.m, sizes.n, sizes.k, sizes.lda, sizes.ldc},
                                          packs ? packs->primitive_.get() : nullptr);
        if (made.ok())
          product->primitive_ = std::move(made).value();
        else if (packs != nullptr || made.status().code() != Code::unimplemented)
          return made.status();
      }
    }
#endif
    return std::shared_ptr<const PackedProduct>(std::move(product));
  }

  // Of bytes that begin at multiples of 64.
  std::size_t packed_bytes() const {
#if TROUPE_ONEDNN
    if (primitive_) return round_up(primitive_->packed_bytes());
#endif
    return round_up(std::size_t(sizes_.k * sizes_.n) * sizeof(T));
  }
  std::size_t scratch_bytes() const {
#if TROUPE_ONEDNN
    if (primitive_) return round_up(primitive_->scratch_bytes());
#endif
    return 0;
  }
  Status pack(Matrix<const T> b, void* packed) const {
#if TROUPE_ONEDNN
    if constexpr (std::is_same_v<T, float>)
      if (primitive_) return primitive_->pack(b.data, b.stride, b.transpose, packed);
#endif
    T* out = static_cast<T*>(packed);
    for (std::int64_t i = 0; i < sizes_.k; ++i)
      for (std::int64_t j = 0; j < sizes_.n; ++j)
        out[i * sizes_.n + j] = b.transpose ? b.data[j * b.stride + i] : b.data[i * b.stride + j];
    return ok_status();
  }
  Status run(const T* a, const void* packed, T* c, [[maybe_unused]] void* scratch) const {
#if TROUPE_ONEDNN
    if constexpr (std::is_same_v<T, float>)
      if (primitive_) return primitive_->run(a, packed, c, scratch);
#endif
    return gemm<T>(sizes_.m, sizes_.n, sizes_.k, {a, sizes_.lda},
                   {static_cast<const T*>(packed), sizes_.n}, false, {c, sizes_.ldc});
  }

 private:
  explicit PackedProduct(const ProductSizes& sizes) : sizes_(sizes) {}
  static std::size_t round_up(std::size_t bytes) { return (bytes + 63) / 64 * 64; }

  ProductSizes sizes_;
#if TROUPE_ONEDNN
  std::unique_ptr<onednn::Product> primitive_;
#endif
};

// The products of one node, by sizes, since batches vary. Bounded, because a feed decides the
// sizes; the oldest goes first, and steps that still use it keep it alive.
template <class T>
class PackedProducts {
 public:
  using Made = std::shared_ptr<const PackedProduct<T>>;

  Expected<Made> get(const ProductSizes& sizes) {
    {
      std::lock_guard lock(mutex_);
      for (const auto& [known, product] : made_)
        if (known == sizes) return product;
    }
    Made packs;
    if (sizes.packed_for != 0) {
      ProductSizes other = sizes;
      other.m = std::exchange(other.packed_for, 0);
      TROUPE_TRY(packs, get(other));
    }
    // May take a millisecond: unlocked.
    TROUPE_TRY(Made product, PackedProduct<T>::make(sizes, packs.get()));
    std::lock_guard lock(mutex_);
    if (made_.size() == kMost) made_.erase(made_.begin());
    made_.emplace_back(sizes, product);
    return product;
  }

 private:
  static constexpr std::size_t kMost = 16;
  std::mutex mutex_;
  std::vector<std::pair<ProductSizes, Made>> made_;
};

}  // namespace troupe
