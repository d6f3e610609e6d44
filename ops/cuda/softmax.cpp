#include "ops/cuda/softmax.hpp"

#include "ops/cuda/device_kernel.hpp"
#include "ops/cuda/element_types.hpp"
#include "ops/cuda/launch.hpp"
#include "ops/cuda/moves.hpp"
#include "ops/detail/class_labels.hpp"
#include "ops/device/arguments.hpp"

namespace troupe::cuda {
namespace {

using detail::rows_of;

// A function of each row of input 0.
class Rows : public DeviceKernel {
 public:
  Rows(const KernelSpec& spec, const std::string& function)
      : dtype_(spec.type()), function_{device_type("Rows", {function, element_type(dtype_)})} {}

  std::span<GpuFunction> functions() override { return {&function_, 1}; }

 protected:
  // y of the shape of input 0, and where there is a loss one for each row.
  Status run(const KernelContext& ctx, const void* other, Tensor* loss, Tensor& y) {
    const Tensor& x = ctx.input(0);
    TROUPE_TRY(y, ctx.reuse_or_allocate(0, dtype_, x.shape()));
    if (loss) {
      TROUPE_TRY(*loss, ctx.allocate(dtype_, rows_of(x.shape())));
    }
    const std::int64_t n = x.dim(x.rank() - 1), rows = n == 0 ? 0 : x.elements() / n;
    if (loss && n == 0 && loss->elements() > 0)
      return invalid_argument("cross entropy over no classes");
    if (rows == 0) return ok_status();
    device::RowsArgs args{x.raw(), other, y.mutable_raw(), loss ? loss->mutable_raw() : nullptr,
                          rows,    n};
    return launch(ctx, function_, block_for_each(rows), &args);
  }

 private:
  DType dtype_;
  GpuFunction function_;
};

class Softmax final : public Rows {
 public:
  using Rows::Rows;
  Status compute(KernelContext& ctx) override {
    const Tensor& x = ctx.input(0);
    if (x.rank() < 1) return invalid_argument("softmax wants at least one dimension");
    if (ctx.inputs() == 2 && ctx.input(1).shape() != x.shape())
      return invalid_argument("dy is " + x.shape().text() + ", y is " +
                              ctx.input(1).shape().text());
    Tensor y;
    TROUPE_TRY(run(ctx, ctx.inputs() == 2 ? ctx.input(1).raw() : nullptr, nullptr, y));
    ctx.set_output(0, std::move(y));
    return ok_status();
  }
};

class CrossEntropy final : public Rows {
 public:
  explicit CrossEntropy(const KernelSpec& spec) : Rows(spec, "troupe::device::CrossEntropy") {}
  Status compute(KernelContext& ctx) override {
    const Tensor &logits = ctx.input(0), &labels = ctx.input(1);
    TROUPE_TRY(detail::check_probabilities(logits, labels));
    Tensor loss, backprop;
    TROUPE_TRY(run(ctx, labels.raw(), &loss, backprop));
    ctx.set_output(0, std::move(loss));
    ctx.set_output(1, std::move(backprop));
    return ok_status();
  }
};

template <class Label>
class SparseCrossEntropy final : public Rows {
 public:
  explicit SparseCrossEntropy(const KernelSpec& spec)
      : Rows(spec, "troupe::device::SparseCrossEntropy<" + element_type(dtype_of<Label>) + ">") {}
  Status compute(KernelContext& ctx) override {
    const Tensor &logits = ctx.input(0), &labels = ctx.input(1);
    TROUPE_TRY(detail::check_classes<Label>(logits, labels));
    TROUPE_TRY(const Tensor there, uploaded(ctx, labels));
    Tensor loss, backprop;
    TROUPE_TRY(run(ctx, there.raw(), &loss, backprop));
    ctx.set_output(0, std::move(loss));
    ctx.set_output(1, std::move(backprop));
    return ok_status();
  }
};

}  // namespace

Expected<std::unique_ptr<Kernel>> softmax(const KernelSpec& spec) {
  return std::unique_ptr<Kernel>(new Softmax(spec, "troupe::device::" + spec.node.op));
}
Expected<std::unique_ptr<Kernel>> cross_entropy(const KernelSpec& spec) {
  return std::unique_ptr<Kernel>(new CrossEntropy(spec));
}
Expected<std::unique_ptr<Kernel>> sparse_cross_entropy(const KernelSpec& spec) {
  if (spec.type("Tlabels") == DType::i32)
    return std::unique_ptr<Kernel>(new SparseCrossEntropy<std::int32_t>(spec));
  return std::unique_ptr<Kernel>(new SparseCrossEntropy<std::int64_t>(spec));
}

}  // namespace troupe::cuda
