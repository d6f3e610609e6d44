// L2Loss: half the sum of squares, for weight decay.
#include "devices/chunks.hpp"
#include "ops/kernels/support/typed.hpp"
#include "ops/kernels/support/vector_math.hpp"
#include "ops/op.hpp"

using namespace troupe;

namespace {

struct L2Loss {
  template <class T>
  static Status run(KernelContext& c) {
    const Tensor& x = c.input(0);
    const Chunks leaves = sum_leaves(x.elements());
    TROUPE_TRY(Tensor partials,
               c.allocate(dtype_of<T>, Shape{std::max<std::int64_t>(leaves.count, 1)}));
    T* part = partials.mutable_data<T>();
    part[0] = T(0);
    const T* v = x.data<T>();
    const Chunks chunks = sum_chunks(leaves.count);
    c.parallel(chunks.count, [&](std::int64_t k) {
      for (std::int64_t i = chunks[k].begin; i < chunks[k].end; ++i) {
        const T* from = v + leaves[i].begin;
        part[i] = row_sum<T>(leaves[i].size(), [&](std::int64_t j) { return from[j] * from[j]; });
      }
    });
    tree_sum(leaves.count, [&](std::int64_t to, std::int64_t from) { part[to] += part[from]; });
    TROUPE_TRY(Tensor loss, c.allocate(dtype_of<T>, Shape{}));
    *loss.mutable_data<T>() = part[0] / 2;
    c.set_output(0, std::move(loss));
    return ok_status();
  }
};

std::vector<Output> l2_grad(GradContext& c) { return {c.g.add("Mul", {c.x[0], c.dy[0]})}; }

}  // namespace

TROUPE_OPS(l2_loss) {
  r.add({.name = "L2Loss",
         .in = {"x"},
         .out = {"loss"},
         .types = "f32 f64",
         .shape = scalar_shape,
         .grad = l2_grad,
         .doc = "sum(x^2) / 2 over all elements, summed in a fixed order."})
      .cpu(float_function<L2Loss>);
}
