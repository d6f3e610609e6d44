// Bincount: how often each small integer appears.
#include <fmt/core.h>

#include "ops/kernels/support/args.hpp"
#include "ops/kernels/support/indices.hpp"

using namespace troupe;

namespace {

Expected<Shape> bins(std::int64_t size) {
  if (size >= 0) return Shape{size};
  return invalid_argument(fmt::format("size is {}; it must not be negative", size));
}
Status bincount_shape(InferenceContext& c) {
  TROUPE_TRY(const Shape shape, bins(c.int_attr("size")));
  c.set(0, shape);
  return ok_status();
}
struct Bincount final : Kernel {
  explicit Bincount(const KernelSpec& s) : size(s.int_attr("size")) {}
  Status compute(KernelContext& ctx) override {
    const Tensor& x = ctx.input(0);
    TROUPE_TRY(const Shape shape, bins(size));
    TROUPE_TRY(check_indices(x, size));
    TROUPE_TRY(Tensor y, ctx.allocate(DType::i64, shape));
    std::int64_t* out = y.mutable_data<std::int64_t>();
    std::fill_n(out, size, 0);
    with_indices(x, [&](const auto* at) { count(at, x.elements(), out); });
    ctx.set_output(0, std::move(y));
    return ok_status();
  }

 private:
  // Many elements have a few counts each to add to: one that was written just now can not be read
  // at once. So four elements in a row never have the same one.
  template <class T>
  void count(const T* at, std::int64_t n, std::int64_t* out) const {
    std::int64_t i = 0;
    if (n >= 8 * size) {
      std::vector<std::int64_t> more(std::size_t(3 * size), 0);
      std::int64_t *const a = more.data(), *const b = a + size, *const c = b + size;
      for (; i + 4 <= n; i += 4) {
        ++out[at[i]];
        ++a[at[i + 1]];
        ++b[at[i + 2]];
        ++c[at[i + 3]];
      }
      for (std::int64_t k = 0; k < size; ++k) out[k] += a[k] + b[k] + c[k];
    }
    for (; i < n; ++i) ++out[at[i]];
  }

  std::int64_t size;
};

}  // namespace

TROUPE_OPS(bincount) {
  r.add({.name = "Bincount",
         .in = {"x"},
         .out = {"counts: i64"},
         .types = "i32 i64",
         .attrs = {"size: int"},
         .shape = bincount_shape,
         .no_gradient = "computed of integers",
         .doc = "counts[v] is the number of elements of x that equal v, for v in [0, size); any "
                "other element is an error. For weights use UnsortedSegmentSum."})
      .cpu(make_kernel<Bincount>);
}
