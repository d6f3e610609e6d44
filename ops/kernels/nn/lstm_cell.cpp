// LstmCell: one step of an LSTM from what the gates are made of.
#include "devices/chunks.hpp"
#include "ops/cuda/lstm.hpp"
#include "ops/kernels/nn/lstm.hpp"
#include "ops/kernels/nn/lstm_sizes.hpp"
#include "ops/kernels/support/grad.hpp"
#include "ops/kernels/support/typed.hpp"
#include "ops/op.hpp"

using namespace troupe;

namespace {

// Inputs of four gates [batch, 4 hidden], and of states [batch, hidden]: what both have in common
// is known of each.
Status cell_shapes(InferenceContext& c, std::initializer_list<int> of_gates,
                   std::initializer_list<int> of_states, PartialShape& gates, PartialShape& state) {
  gates = state = PartialShape::unknown_of_rank(2);
  for (int i : of_gates) {
    TROUPE_TRY(c.want_rank(i, 2));
    TROUPE_TRY(gates, PartialShape::merge(gates, c.shape(i)));
  }
  for (int i : of_states) {
    TROUPE_TRY(c.want_rank(i, 2));
    TROUPE_TRY(state, PartialShape::merge(state, c.shape(i)));
  }
  PartialShape four = state;
  if (state.known(1)) four.set_dim(1, 4 * state[1]);
  auto both = PartialShape::merge(gates, four);
  if (!both.ok() || (gates.known(1) && gates[1] % 4 != 0))
    return invalid_argument("gates " + gates.text() + " are not four of each unit of a state " +
                            state.text());
  gates = std::move(both).value();
  state = gates;
  if (gates.known(1)) state.set_dim(1, gates[1] / 4);
  return ok_status();
}

Status cell_shape(InferenceContext& c) {
  PartialShape gates, state;
  TROUPE_TRY(cell_shapes(c, {0, 1}, {2}, gates, state));
  c.set(0, state);
  c.set(1, state);
  c.set(2, std::move(gates));
  return ok_status();
}

Status cell_grad_shape(InferenceContext& c) {
  PartialShape gates, state;
  TROUPE_TRY(cell_shapes(c, {2}, {0, 1, 3, 4}, gates, state));
  c.set(0, std::move(gates));
  c.set(1, std::move(state));
  return ok_status();
}

std::vector<Output> gates_of(Output packed) {
  return packed.graph()
      .add(NodeSpec{.op = "Split",
                    .inputs = {packed},
                    .attrs = {{"axis", std::int64_t{-1}}, {"N", std::int64_t{4}}}})
      .outputs();
}
Output side_by_side(std::vector<Output> gates) {
  GraphBuilder& g = gates[0].graph();
  return g
      .add(NodeSpec{
          .op = "Concat", .inputs = std::move(gates), .attrs = {{"axis", std::int64_t{-1}}}})
      .output();
}

Output one_less(Output x) { return minus(scalar_like(x, 1), x); }
// The slope of a sigmoid, and of tanh, where it has that value.
Output sigmoid_slope(Output y) { return multiply(y, one_less(y)); }
Output tanh_slope(Output y) { return one_less(multiply(y, y)); }

// Nothing but LstmCellGrad asks for the gates themselves: only a second derivative has a gradient
// for them.
std::vector<Output> cell_grad(GradContext& c) {
  const Op grad =
      c.g.add(NodeSpec{.op = "LstmCellGrad", .inputs = {c.dy[0], c.dy[1], c.y[2], c.x[2], c.y[1]}});
  Output slopes = grad.output(0);
  if (c.g.node(c.dy[2].node()).op != "ZerosLike") {
    const auto d = gates_of(c.dy[2]), y = gates_of(c.y[2]);
    slopes =
        plus(slopes,
             side_by_side({multiply(d[0], sigmoid_slope(y[0])), multiply(d[1], sigmoid_slope(y[1])),
                           multiply(d[2], tanh_slope(y[2])), multiply(d[3], sigmoid_slope(y[3]))}));
  }
  return {slopes, slopes, grad.output(1)};
}

// The gradient of LstmCellGrad. With t = tanh(next), s = 1 - t^2, d = dnext + dh o s, what is
// differentiated is
//   u_i d g i(1-i) + u_f d c f(1-f) + u_g d i (1-g^2) + u_o dh t o(1-o) + v d f
// where u arrives at the slopes and v at dc.
std::vector<Output> cell_grad_grad(GradContext& c) {
  const auto u = gates_of(c.dy[0]), gates = gates_of(c.x[2]);
  const Output v = c.dy[1], dh = c.x[0], cell = c.x[3];
  const Output i = gates[0], f = gates[1], g = gates[2], o = gates[3];
  const Output t = c.g.add("Tanh", {c.x[4]}), s = tanh_slope(t);
  const Output d = plus(c.x[1], multiply(multiply(dh, o), s));
  const Output at_i = multiply(u[0], sigmoid_slope(i)), at_f = multiply(u[1], sigmoid_slope(f));
  const Output at_g = multiply(u[2], tanh_slope(g)), at_o = multiply(u[3], sigmoid_slope(o));
  const Output by_d =
      plus(plus(multiply(at_i, g), multiply(at_f, cell)), plus(multiply(at_g, i), multiply(v, f)));
  const Output by_dh = plus(multiply(multiply(by_d, o), s), multiply(at_o, t));
  auto bend = [&](Output y) { return one_less(twice(y)); };
  const Output by_i = multiply(d, plus(multiply(multiply(u[0], g), bend(i)), at_g));
  const Output by_f = multiply(d, plus(multiply(multiply(u[1], cell), bend(f)), v));
  const Output by_g = multiply(d, minus(at_i, twice(multiply(multiply(u[2], g), i))));
  const Output by_o = multiply(dh, plus(multiply(multiply(u[3], t), bend(o)), multiply(by_d, s)));
  const Output by_t = multiply(dh, minus(at_o, twice(multiply(multiply(by_d, o), t))));
  return {by_dh, by_d, side_by_side({by_i, by_f, by_g, by_o}), multiply(at_f, d),
          multiply(by_t, s)};
}

// 4 Ki units: as much work as an elementwise chunk, since each takes five exponentials.
Chunks row_chunks(std::int64_t rows, std::int64_t units) {
  return Chunks::of_step(units == 0 ? 0 : rows,
                         std::max<std::int64_t>(1, 4096 / std::max<std::int64_t>(1, units)));
}

struct LstmCell {
  template <class T>
  static Status run(KernelContext& c) {
    const Tensor &x = c.input(0), &r = c.input(1), &cell = c.input(2);
    TROUPE_TRY(want_four_gates(c, "LstmCell", 0, {1}, {2}));
    const std::int64_t rows = cell.dim(0), n = cell.dim(1);
    TROUPE_TRY(Tensor gates, c.reuse_or_allocate(1, dtype_of<T>, r.shape()));
    TROUPE_TRY(Tensor h, c.allocate(dtype_of<T>, cell.shape()));
    TROUPE_TRY(Tensor next, c.allocate(dtype_of<T>, cell.shape()));
    const T *px = x.data<T>(), *pr = r.data<T>(), *pc = cell.data<T>();
    T *pg = gates.mutable_data<T>(), *ph = h.mutable_data<T>(), *pn = next.mutable_data<T>();
    const Chunks chunks = row_chunks(rows, n);
    c.parallel(chunks.count, [&](std::int64_t k) {
      for (std::int64_t i = chunks[k].begin; i < chunks[k].end; ++i)
        lstm_row<T>(n, {px + 4 * i * n, n}, {pr + 4 * i * n, n}, pc + i * n, {pg + 4 * i * n, n},
                    ph + i * n, pn + i * n);
    });
    c.set_output(0, std::move(h));
    c.set_output(1, std::move(next));
    c.set_output(2, std::move(gates));
    return ok_status();
  }
};

struct LstmCellGrad {
  template <class T>
  static Status run(KernelContext& c) {
    const Tensor &dh = c.input(0), &dnext = c.input(1), &gates = c.input(2);
    const Tensor &cell = c.input(3), &next = c.input(4);
    TROUPE_TRY(want_four_gates(c, "LstmCellGrad", 2, {}, {0, 1, 3, 4}));
    const std::int64_t rows = cell.dim(0), n = cell.dim(1);
    TROUPE_TRY(Tensor slopes, c.reuse_or_allocate(2, dtype_of<T>, gates.shape()));
    TROUPE_TRY(Tensor dc, c.reuse_or_allocate(1, dtype_of<T>, cell.shape()));
    const T *pdh = dh.data<T>(), *pdn = dnext.data<T>(), *pg = gates.data<T>();
    const T *pc = cell.data<T>(), *pn = next.data<T>();
    T *ps = slopes.mutable_data<T>(), *pdc = dc.mutable_data<T>();
    const Chunks chunks = row_chunks(rows, n);
    c.parallel(chunks.count, [&](std::int64_t k) {
      for (std::int64_t i = chunks[k].begin; i < chunks[k].end; ++i)
        lstm_grad_row<T>(n, pdh + i * n, pdn + i * n, {pg + 4 * i * n, n}, pc + i * n, pn + i * n,
                         {ps + 4 * i * n, n}, pdc + i * n);
    });
    c.set_output(0, std::move(slopes));
    c.set_output(1, std::move(dc));
    return ok_status();
  }
};

}  // namespace

TROUPE_OPS(lstm_cell) {
  r.add({.name = "LstmCell",
         .in = {"x", "r", "c"},
         .out = {"h", "next", "gates"},
         .types = "f32 f64",
         .shape = cell_shape,
         .grad = cell_grad,
         .doc = "One step of an LSTM with state c [batch,hidden]. The quarters of x + r [batch,4 "
                "hidden] are the inputs of the gates i, f, g and o: tanh for g, sigmoid for the "
                "others. next = f c + i g, h = o tanh(next)."})
      .cpu(float_function<LstmCell>)
      .cuda(cuda::lstm_cell);
  r.add({.name = "LstmCellGrad",
         .in = {"dh", "dnext", "gates", "c", "next"},
         .out = {"slopes", "dc"},
         .types = "f32 f64",
         .shape = cell_grad_shape,
         .grad = cell_grad_grad,
         .doc = "The gradient of LstmCell, given its outputs gates and next: for x (equal to that "
                "for r) and for c."})
      .cpu(float_function<LstmCellGrad>)
      .cuda(cuda::lstm_cell_grad);
}
