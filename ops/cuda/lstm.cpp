#include "ops/cuda/lstm.hpp"

#include <type_traits>
#include <vector>

#include "ops/cuda/device_kernel.hpp"
#include "ops/cuda/element_types.hpp"
#include "ops/cuda/launch.hpp"
#include "ops/cuda/matmul.hpp"
#include "ops/cuda/moves.hpp"
#include "ops/device/arguments.hpp"
#include "ops/kernels/nn/lstm_sizes.hpp"

namespace troupe::cuda {
namespace {

class Lstm : public DeviceKernel {
 public:
  Lstm(const KernelSpec& spec, const char* step)
      : dtype_(spec.type()),
        functions_{GpuFunction{device_type(step, {element_type(dtype_)})},
                   matmul_function(dtype_)} {}
  std::span<GpuFunction> functions() override { return functions_; }

 protected:
  template <class Args>
  Status step(const KernelContext& c, Args& args) const {
    const std::int64_t elements = args.rows * args.n;
    return elements == 0 ? ok_status() : launch(c, functions_[0], grid_for(elements), &args);
  }
  // y [m, n] = a b, of a [m, k], or a's transpose, and b [k, n], or b's.
  Status product(const KernelContext& c, const void* a, bool transpose_a, const void* b,
                 bool transpose_b, void* y, std::int64_t m, std::int64_t n, std::int64_t k) const {
    device::MatMulArgs args = matmul_args(m, n, k, transpose_a, transpose_b);
    args.a = a, args.b = b, args.y = y;
    if (m * n == 0) return ok_status();
    return launch(c, functions_[1], block_for_each_tile(1, m, n), &args);
  }
  // Element `i`.
  template <class P>
  P* at(P* data, std::int64_t i) const {
    using Byte = std::conditional_t<std::is_const_v<P>, const std::byte, std::byte>;
    return static_cast<Byte*>(data) + i * std::int64_t(dtype_size(dtype_));
  }

  const DType dtype_;
  std::vector<GpuFunction> functions_;
};

class Cell final : public Lstm {
 public:
  explicit Cell(const KernelSpec& spec) : Lstm(spec, "LstmStep") {}
  Status compute(KernelContext& c) override {
    TROUPE_TRY(want_four_gates(c, "LstmCell", 0, {1}, {2}));
    const Shape shape = c.input(2).shape();
    TROUPE_TRY(Tensor gates, c.reuse_or_allocate(1, dtype_, c.input(1).shape()));
    TROUPE_TRY(Tensor h, c.allocate(dtype_, shape));
    TROUPE_TRY(Tensor next, c.allocate(dtype_, shape));
    device::LstmArgs args{
        c.input(0).raw(), c.input(1).raw(),   c.input(2).raw(), gates.mutable_raw(),
        h.mutable_raw(),  next.mutable_raw(), shape[0],         shape[1]};
    TROUPE_TRY(step(c, args));
    c.set_output(0, std::move(h));
    c.set_output(1, std::move(next));
    c.set_output(2, std::move(gates));
    return ok_status();
  }
};

class CellGrad final : public Lstm {
 public:
  explicit CellGrad(const KernelSpec& spec) : Lstm(spec, "LstmStepGrad") {}
  Status compute(KernelContext& c) override {
    TROUPE_TRY(want_four_gates(c, "LstmCellGrad", 2, {}, {0, 1, 3, 4}));
    const Shape shape = c.input(3).shape();
    TROUPE_TRY(Tensor slopes, c.reuse_or_allocate(2, dtype_, c.input(2).shape()));
    TROUPE_TRY(Tensor dc, c.reuse_or_allocate(1, dtype_, shape));
    device::LstmGradArgs args{};
    args.dh = c.input(0).raw(), args.dnext = c.input(1).raw(), args.gates = c.input(2).raw();
    args.c = c.input(3).raw(), args.next = c.input(4).raw();
    args.slopes = slopes.mutable_raw(), args.dc = dc.mutable_raw();
    args.rows = shape[0], args.n = shape[1];
    TROUPE_TRY(step(c, args));
    c.set_output(0, std::move(slopes));
    c.set_output(1, std::move(dc));
    return ok_status();
  }
};

class Sequence final : public Lstm {
 public:
  explicit Sequence(const KernelSpec& spec)
      : Lstm(spec, "LstmStep"), steps_(spec.int_attr("steps")) {}
  Status compute(KernelContext& c) override {
    TROUPE_TRY(const LstmSizes s, lstm_sizes(c, "LstmSequence", steps_, 0, {}, {1, 2}, 3));
    TROUPE_TRY(Tensor h, c.allocate(dtype_, Shape{s.steps, s.batch, s.hidden}));
    TROUPE_TRY(Tensor next, c.allocate(dtype_, h.shape()));
    TROUPE_TRY(Tensor gates, c.reuse_or_allocate(0, dtype_, c.input(0).shape()));
    TROUPE_TRY(Tensor r, c.allocate(dtype_, Shape{s.batch, 4 * s.hidden}));
    const void *h_before = c.input(1).raw(), *c_before = c.input(2).raw();
    for (std::int64_t t = 0; t < s.steps && s.gates() > 0; ++t) {
      TROUPE_TRY(product(c, h_before, false, c.input(3).raw(), false, r.mutable_raw(), s.batch,
                         4 * s.hidden, s.hidden));
      device::LstmArgs args{at(c.input(0).raw(), t * s.gates()),
                            r.raw(),
                            c_before,
                            at(gates.mutable_raw(), t * s.gates()),
                            at(h.mutable_raw(), t * s.state()),
                            at(next.mutable_raw(), t * s.state()),
                            s.batch,
                            s.hidden};
      TROUPE_TRY(step(c, args));
      h_before = args.h, c_before = args.next;
    }
    c.set_output(0, std::move(h));
    c.set_output(1, std::move(next));
    c.set_output(2, std::move(gates));
    return ok_status();
  }

 private:
  const std::int64_t steps_;
};

// From the last step to the first: the gradient of h is what arrives at it and what the step after
// it sends back, slopes R^T.
class SequenceGrad final : public Lstm {
 public:
  explicit SequenceGrad(const KernelSpec& spec)
      : Lstm(spec, "LstmStepGrad"), steps_(spec.int_attr("steps")) {
    functions_.push_back({copy_type(dtype_)});
  }

  Status compute(KernelContext& c) override {
    TROUPE_TRY(const LstmSizes s,
               lstm_sizes(c, "LstmSequenceGrad", steps_, 2, {0, 1, 3, 4}, {5, 6}, 7));
    TROUPE_TRY(Tensor dx, c.reuse_or_allocate(2, dtype_, c.input(2).shape()));
    TROUPE_TRY(Tensor dh, c.allocate(dtype_, Shape{s.batch, s.hidden}));
    TROUPE_TRY(Tensor dc, c.allocate(dtype_, dh.shape()));
    TROUPE_TRY(Tensor dr, c.allocate(dtype_, c.input(7).shape()));
    const void *r = c.input(7).raw(), *next = c.input(4).raw();
    for (std::int64_t t = s.steps; t-- > 0 && s.gates() > 0;) {
      device::LstmGradArgs args{};
      args.dh = at(c.input(0).raw(), t * s.state());
      args.dnext = at(c.input(1).raw(), t * s.state());
      if (t + 1 < s.steps) args.more_dh = dh.raw(), args.more_dnext = dc.raw();
      args.gates = at(c.input(2).raw(), t * s.gates());
      args.c = t == 0 ? c.input(6).raw() : at(next, (t - 1) * s.state());
      args.next = at(next, t * s.state());
      args.slopes = at(dx.mutable_raw(), t * s.gates());
      args.dc = dc.mutable_raw();
      args.rows = s.batch, args.n = s.hidden;
      TROUPE_TRY(step(c, args));
      TROUPE_TRY(product(c, args.slopes, false, r, true, dh.mutable_raw(), s.batch, s.hidden,
                         4 * s.hidden));
    }
    if (s.steps == 0)  // zeros
      for (Tensor* none : {&dh, &dc})
        TROUPE_TRY(product(c, r, false, r, false, none->mutable_raw(), s.batch, s.hidden, 0));
    TROUPE_TRY(const Tensor before, states_before(c, s));
    TROUPE_TRY(product(c, before.raw(), true, dx.raw(), false, dr.mutable_raw(), s.hidden,
                       4 * s.hidden, s.steps * s.batch));
    c.set_output(0, std::move(dx));
    c.set_output(1, std::move(dh));
    c.set_output(2, std::move(dc));
    c.set_output(3, std::move(dr));
    return ok_status();
  }

 private:
  // h before each step, all steps below each other.
  Expected<Tensor> states_before(const KernelContext& c, const LstmSizes& s) const {
    TROUPE_TRY(Tensor before, c.allocate(dtype_, Shape{s.steps, s.batch, s.hidden}));
    if (before.elements() == 0) return before;
    TROUPE_TRY(copy_elements(c, functions_[2], c.input(5).raw(), before.mutable_raw(), s.state()));
    TROUPE_TRY(copy_elements(c, functions_[2], c.input(3).raw(),
                             at(before.mutable_raw(), s.state()), (s.steps - 1) * s.state()));
    return before;
  }

  const std::int64_t steps_;
};

}  // namespace

Expected<std::unique_ptr<Kernel>> lstm_cell(const KernelSpec& spec) {
  return std::unique_ptr<Kernel>(new Cell(spec));
}
Expected<std::unique_ptr<Kernel>> lstm_cell_grad(const KernelSpec& spec) {
  return std::unique_ptr<Kernel>(new CellGrad(spec));
}
Expected<std::unique_ptr<Kernel>> lstm_sequence(const KernelSpec& spec) {
  return std::unique_ptr<Kernel>(new Sequence(spec));
}
Expected<std::unique_ptr<Kernel>> lstm_sequence_grad(const KernelSpec& spec) {
  return std::unique_ptr<Kernel>(new SequenceGrad(spec));
}

}  // namespace troupe::cuda
