// Cumsum, Cumprod, and what the gradient of a product is made of: a linear recurrence.
#include <fmt/core.h>

#include "ops/cuda/device_kernel.hpp"
#include "ops/cuda/element_types.hpp"
#include "ops/cuda/launch.hpp"
#include "ops/kernels/support/args.hpp"
#include "ops/kernels/support/grad.hpp"
#include "ops/kernels/support/indices.hpp"

using namespace troupe;

namespace {

Status along_one_axis(InferenceContext& c) {
  if (c.shape(0).known_rank()) TROUPE_TRY(checked_axis(c.int_attr("axis"), c.shape(0).rank()));
  return same_shape(c);
}

// A walk along one dimension: several lines at a time, as each waits for its own last step. Lanes
// share the lines, each of which is one lane's.
struct Walk {
  static constexpr std::int64_t kColumns = 256, kRows = 8;
  RowBlocks blocks;
  bool reverse;

  // begin(state, lines), then step(state, lines, at, apart) for each step in order: where the first
  // line's element is, and how far apart those of the lines are.
  template <class State, class Begin, class Step>
  void run(const KernelContext& ctx, Begin begin, Step step) const {
    const std::int64_t n = blocks.size, row = blocks.row;
    if (row == 0 || n == 0) return;
    if (row == 1) return run_rows<State>(ctx, begin, step);
    const Chunks columns = Chunks::of_step(row, kColumns);
    const Chunks outer = row_chunks(blocks.outer, n * std::min(row, kColumns));
    if (outer.count == 0) return;
    ctx.parallel(outer.count * columns.count, [&](std::int64_t c) {
      const Range r = columns[c % columns.count], o = outer[c / columns.count];
      State state[kColumns];
      for (std::int64_t b = o.begin; b < o.end && !ctx.cancelled(); ++b) {
        begin(state, r.size());
        for (std::int64_t i = 0; i < n; ++i) {
          const std::int64_t at = reverse ? n - 1 - i : i;
          step(state, r.size(), (b * n + at) * row + r.begin, kNeighbours);
        }
      }
    });
  }

 private:
  static constexpr std::integral_constant<std::int64_t, 1> kNeighbours{};

  template <class State, class Begin, class Step>
  void run_rows(const KernelContext& ctx, Begin begin, Step step) const {
    const std::int64_t n = blocks.size;
    const Chunks rows = row_chunks(blocks.outer, n);
    if (rows.count == 0) return;
    ctx.parallel(rows.count, [&](std::int64_t c) {
      const Range r = rows[c];
      State state[kRows];
      for (std::int64_t b = r.begin; b < r.end && !ctx.cancelled(); b += kRows) {
        const std::int64_t lines = std::min(kRows, r.end - b);
        begin(state, lines);
        for (std::int64_t i = 0; i < n; ++i) {
          const std::int64_t at = b * n + (reverse ? n - 1 - i : i);
          // Of a number that the compiler knows.
          if (lines == kRows)
            step(state, kRows, at, n);
          else
            step(state, lines, at, n);
        }
      }
    });
  }
};

// What integers are added and multiplied as, so that they wrap around.
template <class T>
struct WrapsAs {
  using type = Compute<T>;
};
template <std::integral T>
struct WrapsAs<T> {
  using type = std::uint64_t;
};

template <bool Product>
struct Cumulative {
  template <class T>
  struct Of final : Kernel {
    using C = typename WrapsAs<T>::type;
    explicit Of(const KernelSpec& s)
        : axis(s.int_attr("axis")),
          exclusive(s.bool_attr("exclusive")),
          reverse(s.bool_attr("reverse")) {}
    Status compute(KernelContext& ctx) override {
      const Tensor& x = ctx.input(0);
      TROUPE_TRY(const int along, checked_axis(axis, x.rank()));
      const Shape shape = x.shape();
      const T* in = x.data<T>();
      TROUPE_TRY(Tensor y, ctx.reuse_or_allocate(0, dtype_of<T>, shape));
      T* out = y.mutable_data<T>();
      Walk{RowBlocks(shape, along), reverse}.run<C>(
          ctx, [](C* so_far, std::int64_t n) { std::fill_n(so_far, n, C(Product ? 1 : 0)); },
          [in, out, before = exclusive](C* so_far, std::int64_t n, std::int64_t at, auto apart) {
            each(n, [=](std::int64_t k) {
              const C old = so_far[k], x = C(in[at + k * apart]);
              so_far[k] = Product ? old * x : old + x;
              out[at + k * apart] = T(before ? old : so_far[k]);
            });
          });
      ctx.set_output(0, std::move(y));
      return ok_status();
    }
    std::int64_t axis;
    bool exclusive, reverse;
  };
};

template <class T>
struct LinearRecurrence final : Kernel {
  using C = Compute<T>;
  struct State {
    C y, a;
  };
  explicit LinearRecurrence(const KernelSpec& s)
      : axis(s.int_attr("axis")), reverse(s.bool_attr("reverse")), behind(s.bool_attr("behind")) {}
  Status compute(KernelContext& ctx) override {
    const Tensor &a = ctx.input(0), &b = ctx.input(1);
    if (a.shape() != b.shape())
      return invalid_argument(fmt::format("a is {}, b is {}", a.shape().text(), b.shape().text()));
    TROUPE_TRY(const int along, checked_axis(axis, a.rank()));
    TROUPE_TRY(Tensor y, ctx.allocate(dtype_of<T>, a.shape()));
    T* out = y.mutable_data<T>();
    Walk{RowBlocks(a.shape(), along), reverse}.run<State>(
        ctx,
        [](State* s, std::int64_t n) {
          std::fill_n(s, n, State{C(0), C(0)});
        },
        [a = a.data<T>(), b = b.data<T>(), out, late = behind](State* s, std::int64_t n,
                                                               std::int64_t at, auto apart) {
          for (std::int64_t k = 0; k < n; ++k) {
            const std::int64_t e = at + k * apart;
            const C mine = C(a[e]), factor = late ? s[k].a : mine;
            // A factor of 0 begins anew, whatever was before: an infinity, too.
            s[k] = {factor == 0 ? C(b[e]) : C(b[e]) + factor * s[k].y, mine};
            out[e] = T(s[k].y);
          }
        });
    ctx.set_output(0, std::move(y));
    return ok_status();
  }
  std::int64_t axis;
  bool reverse, behind;
};

// Lines are long where a thread alone would take too long for one, and few where there are not
// enough of them for a GPU. Depends on the shape alone.
bool few_and_long(std::int64_t lines, std::int64_t n) { return n >= 1024 && lines < 4096; }

class ScanOnGpu final : public cuda::DeviceKernel {
 public:
  explicit ScanOnGpu(const KernelSpec& spec)
      : dtype_(spec.type()),
        axis_(spec.int_attr("axis")),
        reverse_(spec.bool_attr("reverse")),
        recurs_(spec.node.op == "LinearRecurrence"),
        any_order_(spec.node.op == "Cumsum" || is_integer(dtype_)),
        flag_(spec.bool_attr(recurs_ ? "behind" : "exclusive")) {
    const std::string type = cuda::element_type(cuda::without_sign(dtype_));
    if (recurs_) {
      functions_.push_back({cuda::device_type("RecurrenceLines", {type})});
      return;
    }
    const char* op =
        spec.node.op == "Cumsum" ? "troupe::formula::SumOf" : "troupe::formula::ProdOf";
    for (const char* name : {"ScanLines", "ScanBlocks"})
      functions_.push_back({cuda::device_type(name, {op, type})});
  }

  std::span<cuda::GpuFunction> functions() override { return functions_; }

  Status compute(KernelContext& ctx) override {
    const Shape shape = ctx.input(0).shape();
    if (recurs_ && ctx.input(1).shape() != shape)
      return invalid_argument(
          fmt::format("a is {}, b is {}", shape.text(), ctx.input(1).shape().text()));
    TROUPE_TRY(const int axis, checked_axis(axis_, shape.rank()));
    TROUPE_TRY(Tensor y,
               recurs_ ? ctx.allocate(dtype_, shape) : ctx.reuse_or_allocate(0, dtype_, shape));
    device::ScanArgs args{};
    args.factors = recurs_ ? ctx.input(0).raw() : nullptr;
    args.x = ctx.input(recurs_ ? 1 : 0).raw();
    args.y = y.mutable_raw();
    args.outer = shape.elements(0, axis), args.n = shape.dim(axis);
    args.inner = shape.elements(axis + 1, shape.rank());
    args.reverse = reverse_, args.exclusive = args.behind = flag_;
    const std::int64_t lines = args.outer * args.inner;
    const bool by_blocks = any_order_ && few_and_long(lines, args.n);
    if (y.elements() != 0)
      TROUPE_TRY(by_blocks ? cuda::launch(ctx, functions_[1], cuda::block_for_each(lines), &args)
                           : cuda::launch(ctx, functions_[0], cuda::grid_for(lines), &args));
    ctx.set_output(0, std::move(y));
    return ok_status();
  }

 private:
  const DType dtype_;
  const std::int64_t axis_;
  // In blocks, products of parts of a line are made, which may overflow where the line's do not.
  const bool reverse_, recurs_, any_order_, flag_;
  std::vector<cuda::GpuFunction> functions_;
};

std::vector<Output> cumsum_grad(GradContext& c) {
  return {c.g.add("Cumsum", {c.dy[0]},
                  {{"axis", c.int_attr("axis")},
                   {"exclusive", c.bool_attr("exclusive")},
                   {"reverse", !c.bool_attr("reverse")}})};
}

Output shifted(Output x, std::int64_t by, std::int64_t axis) {
  return x.graph().add("Shift", {x}, {{"by", by}, {"axis", axis}});
}

// dx[k] = the product of what is before k, times the sum over i behind k of dy[i] times the product
// of what is between them. That sum follows from the one of the next k, without a division.
std::vector<Output> cumprod_grad(GradContext& c) {
  const std::int64_t axis = c.int_attr("axis");
  const bool reverse = c.bool_attr("reverse");
  const Output before =
      c.g.add("Cumprod", {c.x[0]}, {{"axis", axis}, {"exclusive", true}, {"reverse", reverse}});
  const Output dy = c.bool_attr("exclusive") ? shifted(c.dy[0], reverse ? 1 : -1, axis) : c.dy[0];
  // The last element of an exclusive product counts nowhere, an infinity neither.
  const auto but_last = [&](Output x) {
    if (!c.bool_attr("exclusive")) return x;
    return shifted(shifted(x, reverse ? -1 : 1, axis), reverse ? 1 : -1, axis);
  };
  const Output sums = c.g.add("LinearRecurrence", {but_last(c.x[0]), dy},
                              {{"axis", axis}, {"reverse", !reverse}, {"behind", true}});
  return {multiply(but_last(before), sums)};
}

// A recurrence the other way is the gradient for b, and with it what a multiplied that for a.
std::vector<Output> linear_recurrence_grad(GradContext& c) {
  const std::int64_t axis = c.int_attr("axis");
  const bool reverse = c.bool_attr("reverse"), behind = c.bool_attr("behind");
  const Output db = c.g.add("LinearRecurrence", {c.x[0], c.dy[0]},
                            {{"axis", axis}, {"reverse", !reverse}, {"behind", !behind}});
  const std::int64_t forward = reverse ? -1 : 1;
  return {behind ? multiply(shifted(db, -forward, axis), c.y[0])
                 : multiply(db, shifted(c.y[0], forward, axis)),
          db};
}
Status recurrence_shape(InferenceContext& c) {
  TROUPE_TRY(PartialShape both, PartialShape::merge(c.shape(0), c.shape(1)));
  if (both.known_rank()) TROUPE_TRY(checked_axis(c.int_attr("axis"), both.rank()));
  c.set(0, std::move(both));
  return ok_status();
}

OpDef cumulative(std::string name, GradFn grad, std::string doc) {
  return {.name = std::move(name),
          .in = {"x"},
          .out = {"y"},
          .types = kNumbers,
          .attrs = {"axis: int = 0", "exclusive: bool = false", "reverse: bool = false"},
          .shape = along_one_axis,
          .grad = grad,
          .doc = std::move(doc) +
                 " With `exclusive`, element i itself is left out; with `reverse`, from the end. "
                 "Integers wrap around."};
}

}  // namespace

TROUPE_OPS(cumulative) {
  r.add(cumulative("Cumsum", cumsum_grad, "y[i] = x[0] + ... + x[i] along `axis`."))
      .cpu(typed_kernel<Cumulative<false>::Of, Numbers>)
      .cuda(make_kernel<ScanOnGpu>);
  r.add(cumulative("Cumprod", cumprod_grad,
                   "y[i] = x[0] * ... * x[i] along `axis`. The gradient is exact even with zeros."))
      .cpu(typed_kernel<Cumulative<true>::Of, Numbers>)
      .cuda(make_kernel<ScanOnGpu>);
  r.add({.name = "LinearRecurrence",
         .in = {"a", "b"},
         .out = {"y"},
         .types = kFloats,
         .attrs = {"axis: int = 0", "reverse: bool = false", "behind: bool = false"},
         .shape = recurrence_shape,
         .grad = linear_recurrence_grad,
         .doc = "y[i] = a[i] * y[i - 1] + b[i] along `axis`, starting from 0; with `reverse` from "
                "the end. With `behind`, the factor is a[i - 1]. A factor of 0 restarts with b[i], "
                "even after an infinity or NaN. Used by the gradient of Cumprod."})
      .cpu(typed_kernel<LinearRecurrence, Floats>)
      .cuda(make_kernel<ScanOnGpu>);
}
