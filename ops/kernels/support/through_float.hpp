// Kernels of f16 and bf16 made of the kernel of f32: inputs are widened, results are rounded once.
#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "ops/kernels/support/elementwise.hpp"
#include "ops/kernels/support/half_rows.hpp"
#include "ops/kernels/support/typed.hpp"

namespace troupe {

// T is half or bfloat16. All outputs are of type T. Inputs that are not, such as sizes, are handed
// on as they are. The memory for the wide copies is the step's, like that of the outputs.
template <class T>
class ThroughFloat final : public Kernel {
 public:
  explicit ThroughFloat(std::unique_ptr<Kernel> wide) : wide_(std::move(wide)) {}

  Status compute(KernelContext& ctx) override {
    std::vector<Slot> in(std::size_t(ctx.inputs()));
    std::vector<std::uint32_t> numbers;
    for (int i = 0; i < ctx.inputs(); ++i) {
      TROUPE_TRY(in[std::size_t(i)].tensor, widened(ctx, ctx.input(i)));
      numbers.push_back(std::uint32_t(i));
    }
    std::vector<Slot> results(std::size_t(ctx.outputs()));
    UnlessCancelled lanes(ctx);
    const KernelPlace place{.device = &ctx.device(),
                            .lanes = &lanes,
                            .memory = &ctx.allocator(),
                            .host_memory = &ctx.host_allocator()};
    KernelContext inner({.slots = in.data(),
                         .input_slots = numbers.data(),
                         .outputs = results.data(),
                         .inputs = std::uint16_t(in.size()),
                         .n_outputs = std::uint16_t(results.size()),
                         .place = &place,
                         .random = ctx.random()});
    TROUPE_TRY(wide_->compute(inner));
    for (std::size_t i = 0; i < results.size(); ++i) {
      TROUPE_TRY(Tensor y, narrowed(ctx, results[i].tensor));
      ctx.set_output(int(i), std::move(y));
    }
    return ok_status();
  }

 private:
  // The lanes of a context, which skip the chunks of a cancelled step: its result is thrown away.
  class UnlessCancelled final : public Lanes {
   public:
    explicit UnlessCancelled(const KernelContext& ctx) : ctx_(ctx) {}
    void parallel(std::int64_t chunks, FunctionRef<void(std::int64_t)> chunk) override {
      ctx_.parallel(chunks, [&](std::int64_t i) {
        if (!ctx_.cancelled()) chunk(i);
      });
    }
    int count() const override { return ctx_.lanes().count(); }

   private:
    const KernelContext& ctx_;
  };

  static Expected<Tensor> widened(const KernelContext& ctx, const Tensor& x) {
    if (x.dtype() != dtype_of<T>) return x;
    TROUPE_TRY(Tensor wide, ctx.allocate(DType::f32, x.shape()));
    float* to = wide.mutable_data<float>();
    for_chunks(ctx, x.elements(),
               [&](Range r) { widen_row(x.data<T>() + r.begin, r.size(), to + r.begin); });
    return wide;
  }

  static Expected<Tensor> narrowed(const KernelContext& ctx, const Tensor& wide) {
    TROUPE_TRY(Tensor y, ctx.allocate(dtype_of<T>, wide.shape()));
    T* to = y.mutable_data<T>();
    for_chunks(ctx, y.elements(),
               [&](Range r) { narrow_row(wide.data<float>() + r.begin, r.size(), to + r.begin); });
    return y;
  }

  std::unique_ptr<Kernel> wide_;
};

// A kernel of `type`, f16 or bf16, made of one of f32.
inline std::unique_ptr<Kernel> through_float(DType type, std::unique_ptr<Kernel> wide) {
  if (type == DType::f16) return std::unique_ptr<Kernel>(new ThroughFloat<half>(std::move(wide)));
  return std::unique_ptr<Kernel>(new ThroughFloat<bfloat16>(std::move(wide)));
}

// A kernel K<T> of f64, or of f32, of which those of f16 and bf16 are made.
template <template <class> class K, class... Args>
std::unique_ptr<Kernel> through_float_kernel(DType type, const Args&... args) {
  if (type == DType::f64) return std::unique_ptr<Kernel>(new K<double>(args...));
  auto kernel = std::unique_ptr<Kernel>(new K<float>(args...));
  return is_half(type) ? through_float(type, std::move(kernel)) : std::move(kernel);
}

// The factory for f16 and bf16, of a kernel class of f32:   .cpu(...)
template <class F32>
Expected<std::unique_ptr<Kernel>> through_float(const KernelSpec& spec) {
  return through_float(spec.type(), std::unique_ptr<Kernel>(new F32(spec)));
}

// The same of a plain template of functions, and as float_function for f32 and f64:
//   .cpu(through_float_function<BiasAdd>)
template <class F>
Expected<std::unique_ptr<Kernel>> through_float_function(const KernelSpec& spec) {
  if (!is_half(spec.type())) return float_function<F>(spec);
  TROUPE_TRY(auto wide, kernel<F::template run<float>>(spec));
  return through_float(spec.type(), std::move(wide));
}

}  // namespace troupe
