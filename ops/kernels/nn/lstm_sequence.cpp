// LstmSequence: an LSTM over all steps of a sequence. Lanes divide its units among them, so that
// each keeps its part of the recurrent matrix, packed once, in its own cache.
#include "devices/chunks.hpp"
#include "graph/gradient_through.hpp"
#include "graph/slicing.hpp"
#include "ops/cuda/lstm.hpp"
#include "ops/detail/scan_shapes.hpp"
#include "ops/kernels/nn/lstm.hpp"
#include "ops/kernels/nn/lstm_sizes.hpp"
#include "ops/kernels/support/grad.hpp"
#include "ops/kernels/support/packed_product.hpp"
#include "ops/kernels/support/typed.hpp"
#include "ops/op.hpp"

using namespace troupe;

namespace {

// What the arguments say of the sizes, together.
struct SequenceShapes {
  std::int64_t time;
  std::int64_t batch = PartialShape::kUnknown, hidden = PartialShape::kUnknown;

  static Expected<SequenceShapes> of(const InferenceContext& c) {
    const std::int64_t steps = c.int_attr("steps");
    if (steps == kAnySteps) return SequenceShapes{PartialShape::kUnknown};
    if (steps < 1) return invalid_argument("a sequence has at least one step");
    return SequenceShapes{steps};
  }
  PartialShape states() const { return {time, batch, hidden}; }
  PartialShape gates() const { return {time, batch, four()}; }
  PartialShape state() const { return {batch, hidden}; }
  PartialShape weights() const { return {hidden, four()}; }

  // Input i has the shape that `of` these sizes is, and what it knows is known from now on.
  Status take(InferenceContext& c, int i, PartialShape (SequenceShapes::*of)() const) {
    PartialShape shape = (this->*of)();
    TROUPE_TRY(c.want_rank(i, shape.rank()));
    TROUPE_TRY(shape, PartialShape::merge(shape, c.shape(i)));
    const int last = shape.rank() - 1;
    const bool has_gates = of == &SequenceShapes::gates || of == &SequenceShapes::weights;
    if (has_gates && shape.known(last) && shape[last] % 4 != 0)
      return invalid_argument("gates " + shape.text() + " are not four of each unit");
    if (shape.rank() == 3 && shape.known(0)) time = shape[0];
    if (shape.known(last)) hidden = shape[last] / (has_gates ? 4 : 1);
    if (of == &SequenceShapes::weights) {
      if (shape.known(0)) hidden = shape[0];
    } else if (shape.known(last - 1)) {
      batch = shape[last - 1];
    }
    return ok_status();
  }

 private:
  std::int64_t four() const { return hidden < 0 ? hidden : 4 * hidden; }
};

Status sequence_shape(InferenceContext& c) {
  using S = SequenceShapes;
  TROUPE_TRY(S s, S::of(c));
  for (int round = 0; round < 2; ++round) {  // what the last one knows goes for the first as well
    TROUPE_TRY(s.take(c, 0, &S::gates));
    TROUPE_TRY(s.take(c, 1, &S::state));
    TROUPE_TRY(s.take(c, 2, &S::state));
    TROUPE_TRY(s.take(c, 3, &S::weights));
  }
  c.set(0, s.states());
  c.set(1, s.states());
  c.set(2, s.gates());
  return ok_status();
}

Status sequence_grad_shape(InferenceContext& c) {
  using S = SequenceShapes;
  TROUPE_TRY(S s, S::of(c));
  for (int round = 0; round < 2; ++round) {
    for (int i : {0, 1, 3, 4}) TROUPE_TRY(s.take(c, i, &S::states));
    TROUPE_TRY(s.take(c, 2, &S::gates));
    for (int i : {5, 6}) TROUPE_TRY(s.take(c, i, &S::state));
    TROUPE_TRY(s.take(c, 7, &S::weights));
  }
  c.set(0, s.gates());
  c.set(1, s.state());
  c.set(2, s.state());
  c.set(3, s.weights());
  return ok_status();
}

// The ops here as graphs of single steps, for derivatives that they do not compute themselves: of
// short sequences, as the graph grows with the steps.
constexpr std::int64_t kMostUnrolled = 64;
struct Unrolled {
  GraphBuilder& g;
  std::int64_t steps;

  std::vector<Output> unpack(Output x) const {
    return g.add(NodeSpec{.op = "Unpack", .inputs = {x}, .attrs = {{"N", steps}}}).outputs();
  }
  Output pack(std::vector<Output> parts) const {
    return g.add(NodeSpec{.op = "Pack", .inputs = std::move(parts)}).output();
  }
  Output product(Output a, Output b, bool transpose_a, bool transpose_b) const {
    return g.add("MatMul", {a, b}, {{"transpose_a", transpose_a}, {"transpose_b", transpose_b}});
  }

  // h, next and gates of LstmSequence, whose inputs are `x`.
  std::vector<Output> forward(const std::vector<Output>& x) const {
    Output h = x[1], c = x[2];
    std::vector<Output> hs, cs, gates;
    for (Output part : unpack(x[0])) {
      const Op cell =
          g.add(NodeSpec{.op = "LstmCell", .inputs = {part, product(h, x[3], false, false), c}});
      hs.push_back(h = cell.output(0));
      cs.push_back(c = cell.output(1));
      gates.push_back(cell.output(2));
    }
    return {pack(hs), pack(cs), pack(gates)};
  }

  // dx, dh0, dc0 and dr of LstmSequenceGrad, whose inputs are `x`.
  std::vector<Output> backward(const std::vector<Output>& x) const {
    const auto dh = unpack(x[0]), dnext = unpack(x[1]), gates = unpack(x[2]);
    const auto h = unpack(x[3]), next = unpack(x[4]);
    std::vector<Output> dx(static_cast<std::size_t>(steps)), dr;
    Output from_h, from_c;
    for (auto t = std::size_t(steps); t-- > 0;) {
      const bool last = from_h.empty();
      const Op cell = g.add(NodeSpec{
          .op = "LstmCellGrad",
          .inputs = {last ? dh[t] : plus(dh[t], from_h), last ? dnext[t] : plus(dnext[t], from_c),
                     gates[t], t == 0 ? x[6] : next[t - 1], next[t]}});
      dx[t] = cell.output(0);
      from_c = cell.output(1);
      from_h = product(dx[t], x[7], false, true);
      dr.push_back(product(t == 0 ? x[5] : h[t - 1], dx[t], true, false));
    }
    const Output sum = g.add(NodeSpec{.op = "AddN", .inputs = dr}).output();
    return {pack(dx), from_h, from_c, sum};
  }
};

// The same as loops, whose graphs hold the nodes of one step.
struct Looped {
  static Output product(Output a, Output b, bool transpose_a, bool transpose_b) {
    return a.graph().add("MatMul", {a, b},
                         {{"transpose_a", transpose_a}, {"transpose_b", transpose_b}});
  }
  // Of a state: a body that is differentiated may know less of it later.
  static LoopOptions any_shapes() { return {.shapes = {2, PartialShape::unknown()}}; }
  static Output reversed(Output x) {
    return x.graph().add("Reverse", {x}, {{"axes", std::vector<std::int64_t>{0}}});
  }
  // The state before each step.
  static Output before(Output first, Output all) {
    GraphBuilder& g = all.graph();
    const Output row = g.add("ExpandDims", {first}, {{"axis", std::int64_t{0}}});
    const Output both = g.add("Concat", {row, all}, {{"axis", std::int64_t{0}}});
    return both[range(std::nullopt, -1)];
  }
  // All steps below each other.
  static Output rows(Output x) {
    GraphBuilder& g = x.graph();
    const Output shape = g.add("Shape", {x});
    const Output last = shape[range(-1, std::nullopt)];
    const Output wanted = g.add("Concat", {i64_const(g, {-1}), last}, {{"axis", std::int64_t{0}}});
    return g.add("Reshape", {x, wanted});
  }

  static std::vector<Output> forward(const std::vector<Output>& x) {
    const auto step = [&](const std::vector<Output>& state, const std::vector<Output>& part) {
      const Output r = product(state[0], x[3], false, false);
      const Op cell =
          part[0].graph().add(NodeSpec{.op = "LstmCell", .inputs = {part[0], r, state[1]}});
      return detail::Scanned{{cell.output(0), cell.output(1)}, cell.outputs()};
    };
    const auto shape_of = [&](std::size_t k) {
      GraphBuilder& g = x[0].graph();
      const Output gates = g.add("Shape", {x[0]});
      if (k == 2) return gates;
      const Output hidden = g.add("Shape", {x[3]})[range(std::nullopt, 1)];
      return g.add(NodeSpec{.op = "Concat", .inputs = {gates[range(std::nullopt, -1)], hidden}})
          .output();
    };
    return detail::scan({x[0]}, {x[1], x[2]}, 3, step, any_shapes(), {}, shape_of).stacked;
  }

  static std::vector<Output> backward(const std::vector<Output>& x) {
    std::vector<Output> parts{x[0], x[1], x[2], before(x[6], x[4]), x[4]};
    for (Output& part : parts) part = reversed(part);
    const auto step = [&](const std::vector<Output>& state, const std::vector<Output>& part) {
      const Op cell = part[0].graph().add(NodeSpec{
          .op = "LstmCellGrad",
          .inputs = {plus(part[0], state[0]), plus(part[1], state[1]), part[2], part[3], part[4]}});
      const Output slopes = cell.output(0);
      return detail::Scanned{{product(slopes, x[7], false, true), cell.output(1)}, {slopes}};
    };
    const Output zero = x[5].graph().add("ZerosLike", {x[5]});
    const auto shape_of_gates = [&](std::size_t) { return x[2].graph().add("Shape", {x[2]}); };
    const auto made = detail::scan(parts, {zero, zero}, 1, step, any_shapes(), {}, shape_of_gates);
    const Output dx = reversed(made.stacked[0]);
    return {dx, made.state[0], made.state[1],
            product(rows(before(x[5], x[3])), rows(dx), true, false)};
  }
};

// Nothing but LstmSequenceGrad asks for the gates themselves: only a second derivative has a
// gradient for them.
std::vector<Output> sequence_grad(GradContext& c) {
  const std::int64_t steps = c.int_attr("steps");
  const bool loops = steps == kAnySteps || steps > kMostUnrolled;
  if (c.g.node(c.dy[2].node()).op != "ZerosLike")
    return gradient_through(c, [&](const std::vector<Output>& x) {
      return loops ? Looped::forward(x) : Unrolled{c.g, steps}.forward(x);
    });
  return c.g
      .add(NodeSpec{.op = "LstmSequenceGrad",
                    .inputs = {c.dy[0], c.dy[1], c.y[2], c.y[0], c.y[1], c.x[1], c.x[2], c.x[3]},
                    .attrs = {{"steps", steps}}})
      .outputs();
}

std::vector<Output> sequence_grad_grad(GradContext& c) {
  const std::int64_t steps = c.int_attr("steps");
  const bool loops = steps == kAnySteps || steps > kMostUnrolled;
  return gradient_through(c, [&](const std::vector<Output>& x) {
    return loops ? Looped::backward(x) : Unrolled{c.g, steps}.backward(x);
  });
}

// Ranges of units of which a step's product is at least 8 MFLOP: lanes meet at each step. A power
// of two of them.
Chunks unit_chunks(std::int64_t batch, std::int64_t units) {
  const double megaflops = 8e-6 * double(batch) * double(units) * double(units);
  std::int64_t count = 1;
  while (count < 32 && megaflops / double(2 * count) >= 8 && units / (2 * count) >= 32) count *= 2;
  return Chunks::even(units, count, 16);
}

// Memory that is cut into pieces which begin at multiples of 64 bytes.
class Pieces {
 public:
  std::size_t add(std::size_t bytes) {
    return std::exchange(size_, size_ + (bytes + 63) / 64 * 64);
  }
  Status allocate(const KernelContext& c) {
    TROUPE_TRY(memory_, c.allocate(DType::u8, Shape{std::int64_t(size_)}));
    return ok_status();
  }
  template <class T = void>
  T* at(std::size_t offset) {
    return reinterpret_cast<T*>(static_cast<std::byte*>(memory_.mutable_raw()) + offset);
  }

 private:
  std::size_t size_ = 0;
  Tensor memory_;
};

// The recurrent product of a range of units, and where its parts are.
template <class T>
struct UnitPart {
  Range units;
  typename PackedProducts<T>::Made product;
  std::size_t packed = 0, scratch = 0, result = 0;  // in Pieces
};

using Sizes = LstmSizes;

template <class T>
class LstmSequence final : public Kernel {
 public:
  explicit LstmSequence(const KernelSpec& spec) : steps_(spec.int_attr("steps")) {}

  Status compute(KernelContext& c) override {
    TROUPE_TRY(const Sizes s, lstm_sizes(c, "LstmSequence", steps_, 0, {}, {1, 2}, 3));
    TROUPE_TRY(Tensor h, c.allocate(dtype_of<T>, Shape{s.steps, s.batch, s.hidden}));
    TROUPE_TRY(Tensor next, c.allocate(dtype_of<T>, h.shape()));
    TROUPE_TRY(Tensor gates, c.reuse_or_allocate(0, dtype_of<T>, c.input(0).shape()));
    if (s.gates() > 0)
      TROUPE_TRY(run(c, s, h.mutable_data<T>(), next.mutable_data<T>(), gates.mutable_data<T>()));
    c.set_output(0, std::move(h));
    c.set_output(1, std::move(next));
    c.set_output(2, std::move(gates));
    return ok_status();
  }

 private:
  Status run(KernelContext& c, const Sizes& s, T* h, T* next, T* gates) {
    Pieces pieces;
    TROUPE_TRY(const auto parts, make_parts(c, s, pieces));
    const T *x = c.input(0).data<T>(), *h_before = c.input(1).data<T>();
    const T* c_before = c.input(2).data<T>();
    const auto part_count = std::int64_t(parts.size());
    for (std::int64_t t = 0; t < s.steps && !c.cancelled(); ++t) {
      TROUPE_TRY(parallel_chunks(c, part_count, [&](std::int64_t k) -> Status {
        const UnitPart<T>& part = parts[std::size_t(k)];
        const std::int64_t first = part.units.begin, n = part.units.size();
        T* product = pieces.at<T>(part.result);
        TROUPE_TRY(
            part.product->run(h_before, pieces.at(part.packed), product, pieces.at(part.scratch)));
        for (std::int64_t b = 0; b < s.batch; ++b) {
          const std::int64_t of_gates = 4 * b * s.hidden + first, of_state = b * s.hidden + first;
          lstm_row<T>(n, {x + of_gates, s.hidden}, {product + 4 * b * n, n}, c_before + of_state,
                      {gates + of_gates, s.hidden}, h + of_state, next + of_state);
        }
        return ok_status();
      }));
      h_before = std::exchange(h, h + s.state());
      c_before = std::exchange(next, next + s.state());
      x += s.gates();
      gates += s.gates();
    }
    return ok_status();
  }

  // The columns of all gates of some units side by side, packed.
  Expected<std::vector<UnitPart<T>>> make_parts(KernelContext& c, const Sizes& s, Pieces& pieces) {
    const Chunks chunks = unit_chunks(s.batch, s.hidden);
    std::vector<UnitPart<T>> parts;
    for (std::int64_t k = 0; k < chunks.count; ++k) {
      const std::int64_t n = 4 * chunks[k].size();
      TROUPE_TRY(auto product, products_.get({s.batch, n, s.hidden, s.hidden, n}));
      parts.push_back({chunks[k], product, pieces.add(product->packed_bytes()),
                       pieces.add(product->scratch_bytes()),
                       pieces.add(std::size_t(s.batch * n) * sizeof(T))});
    }
    TROUPE_TRY(pieces.allocate(c));
    TROUPE_TRY(Tensor columns, c.allocate(dtype_of<T>, Shape{s.hidden, 4 * s.hidden}));
    const T* r = c.input(3).data<T>();
    TROUPE_TRY(parallel_chunks(c, chunks.count, [&](std::int64_t k) {
      const UnitPart<T>& part = parts[std::size_t(k)];
      const std::int64_t first = part.units.begin, n = part.units.size();
      T* dense = columns.mutable_data<T>() + 4 * s.hidden * first;
      for (std::int64_t i = 0; i < s.hidden; ++i)
        for (std::int64_t gate = 0; gate < 4; ++gate)
          std::copy_n(r + (4 * i + gate) * s.hidden + first, n, dense + (4 * i + gate) * n);
      return part.product->pack({dense, 4 * n}, pieces.at(part.packed));
    }));
    return parts;
  }

  const std::int64_t steps_;
  PackedProducts<T> products_;
};

// From the last step to the first: the gradient of h is what arrives at it and what the step after
// it sends back, slopes R^T.
template <class T>
class LstmSequenceGrad final : public Kernel {
 public:
  explicit LstmSequenceGrad(const KernelSpec& spec) : steps_(spec.int_attr("steps")) {}

  Status compute(KernelContext& c) override {
    TROUPE_TRY(const Sizes s,
               lstm_sizes(c, "LstmSequenceGrad", steps_, 2, {0, 1, 3, 4}, {5, 6}, 7));
    TROUPE_TRY(Tensor dx, c.reuse_or_allocate(2, dtype_of<T>, c.input(2).shape()));
    TROUPE_TRY(Tensor dh0, c.allocate(dtype_of<T>, Shape{s.batch, s.hidden}));
    TROUPE_TRY(Tensor dc0, c.allocate(dtype_of<T>, dh0.shape()));
    TROUPE_TRY(Tensor dr, c.allocate(dtype_of<T>, c.input(7).shape()));
    if (s.gates() > 0)
      TROUPE_TRY(run(c, s, dx.mutable_data<T>(), dh0.mutable_data<T>(), dc0.mutable_data<T>()));
    if (s.steps > 0)
      TROUPE_TRY(weight_gradient(c, s, dx.data<T>(), dr.mutable_data<T>()));
    else
      std::fill_n(dr.mutable_data<T>(), dr.elements(), T(0));
    c.set_output(0, std::move(dx));
    c.set_output(1, std::move(dh0));
    c.set_output(2, std::move(dc0));
    c.set_output(3, std::move(dr));
    return ok_status();
  }

 private:
  // dh and dc hold what a step sends back to the one before.
  Status run(KernelContext& c, const Sizes& s, T* dx, T* dh, T* dc) {
    Pieces pieces;
    TROUPE_TRY(const auto parts, make_parts(c, s, pieces));
    std::fill_n(dh, s.state(), T(0));
    std::fill_n(dc, s.state(), T(0));
    const auto part_count = std::int64_t(parts.size());
    for (std::int64_t t = s.steps; t-- > 0 && !c.cancelled();) {
      TROUPE_TRY(parallel_chunks(c, part_count, [&](std::int64_t k) -> Status {
        const UnitPart<T>& part = parts[std::size_t(k)];
        if (t + 1 < s.steps) TROUPE_TRY(send_back(part, pieces, dx + (t + 1) * s.gates(), dh));
        step(c, s, t, part.units, dx, dh, dc);
        return ok_status();
      }));
    }
    if (s.steps == 0) return ok_status();
    return parallel_chunks(c, part_count, [&](std::int64_t k) {
      return send_back(parts[std::size_t(k)], pieces, dx, dh);
    });
  }

  static Status send_back(const UnitPart<T>& part, Pieces& pieces, const T* slopes, T* dh) {
    return part.product->run(slopes, pieces.at(part.packed), dh + part.units.begin,
                             pieces.at(part.scratch));
  }

  static void step(const KernelContext& c, const Sizes& s, std::int64_t t, Range units, T* dx,
                   T* dh, T* dc) {
    const T *dh_here = c.input(0).data<T>(), *dc_here = c.input(1).data<T>();
    const T *gates = c.input(2).data<T>(), *next = c.input(4).data<T>();
    const T* c_before = t == 0 ? c.input(6).data<T>() : next + (t - 1) * s.state();
    const std::int64_t n = units.size();
    for (std::int64_t b = 0; b < s.batch; ++b) {
      const std::int64_t row = b * s.hidden + units.begin, at = t * s.state() + row;
      const std::int64_t of_gates = t * s.gates() + 4 * b * s.hidden + units.begin;
#pragma omp simd
      for (std::int64_t j = 0; j < n; ++j) {
        dh[row + j] += dh_here[at + j];
        dc[row + j] += dc_here[at + j];
      }
      lstm_grad_row<T>(n, dh + row, dc + row, {gates + of_gates, s.hidden}, c_before + row,
                       next + at, {dx + of_gates, s.hidden}, dc + row);
    }
  }

  // The rows of the recurrent matrix that belong to some units, transposed and packed.
  Expected<std::vector<UnitPart<T>>> make_parts(KernelContext& c, const Sizes& s, Pieces& pieces) {
    const Chunks chunks = unit_chunks(s.batch, s.hidden);
    std::vector<UnitPart<T>> parts;
    for (std::int64_t k = 0; k < chunks.count; ++k) {
      TROUPE_TRY(auto product,
                 products_.get({s.batch, chunks[k].size(), 4 * s.hidden, 4 * s.hidden, s.hidden}));
      parts.push_back({chunks[k], product, pieces.add(product->packed_bytes()),
                       pieces.add(product->scratch_bytes()), 0});
    }
    TROUPE_TRY(pieces.allocate(c));
    const T* r = c.input(7).data<T>();
    TROUPE_TRY(parallel_chunks(c, chunks.count, [&](std::int64_t k) {
      const UnitPart<T>& part = parts[std::size_t(k)];
      return part.product->pack({r + 4 * s.hidden * part.units.begin, 4 * s.hidden, true},
                                pieces.at(part.packed));
    }));
    return parts;
  }

  // The sum over all steps of (the state before it)^T slopes: one product, and one more for the
  // first state.
  static Status weight_gradient(KernelContext& c, const Sizes& s, const T* dx, T* dr) {
    const T *h = c.input(3).data<T>(), *h0 = c.input(5).data<T>();
    const std::int64_t wide = 4 * s.hidden;
    const Chunks columns = Chunks::even(wide, std::clamp<std::int64_t>(wide / 128, 1, 8), 16);
    return parallel_chunks(c, s.hidden == 0 ? 0 : columns.count, [&](std::int64_t k) {
      const std::int64_t first = columns[k].begin, n = columns[k].size();
      TROUPE_TRY(gemm<T>(s.hidden, n, s.batch, {h0, s.hidden, true}, {dx + first, wide}, false,
                         {dr + first, wide}));
      if (s.steps == 1) return ok_status();
      return gemm<T>(s.hidden, n, (s.steps - 1) * s.batch, {h, s.hidden, true},
                     {dx + s.gates() + first, wide}, true, {dr + first, wide});
    });
  }

  const std::int64_t steps_;
  PackedProducts<T> products_;
};

}  // namespace

TROUPE_OPS(lstm_sequence) {
  r.add({.name = "LstmSequence",
         .in = {"x", "h0", "c0", "r"},
         .out = {"h", "next", "gates"},
         .types = "f32 f64",
         .attrs = {"steps: int"},
         .shape = sequence_shape,
         .grad = sequence_grad,
         .contraction = true,
         .doc = "LstmCell over the steps of x [steps,batch,4 hidden], starting from h0 and c0 "
                "[batch,hidden]: in each step the cell's r is the previous h times r [hidden,4 "
                "hidden]. The outputs hold all steps. steps = -1 means all that x has."})
      .cpu(float_kernel<LstmSequence>)
      .cuda(cuda::lstm_sequence);
  r.add({.name = "LstmSequenceGrad",
         .in = {"dh", "dnext", "gates", "h", "next", "h0", "c0", "r"},
         .out = {"dx", "dh0", "dc0", "dr"},
         .types = "f32 f64",
         .attrs = {"steps: int"},
         .shape = sequence_grad_shape,
         .grad = sequence_grad_grad,
         .contraction = true,
         .doc = "The gradient of LstmSequence, given its outputs."})
      .cpu(float_kernel<LstmSequenceGrad>)
      .cuda(cuda::lstm_sequence_grad);
}
