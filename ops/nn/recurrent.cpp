#include "ops/nn/recurrent.hpp"

#include "graph/slicing.hpp"
#include "ops/api/constant.hpp"
#include "ops/api/math.hpp"
#include "ops/api/node.hpp"
#include "ops/api/operators.hpp"
#include "ops/detail/scan_shapes.hpp"
#include "ops/nn/initial.hpp"
#include "ops/nn/shapes.hpp"

namespace troupe::nn {

namespace {

std::vector<Output> gates_of(Output packed, int count, const Site& site) {
  return split(packed, count, {.axis = -1}, site);
}

// [batch of x, hidden].
Output zero_rows(Output x, std::int64_t hidden, DType dtype, const Site& site) {
  GraphBuilder& g = x.graph();
  const Output dims = pack({dimension(x, -2, site), constant(g, hidden, site)}, {}, site);
  return fill(dims, constant(g, value_or_throw(scalar_of(dtype, std::int64_t{0})), site), site);
}

std::int64_t time_of(Output sequence) { return sequence.shape()[0]; }

template <class Cell>
typename Cell::Sequence unroll(const Cell& cell, Output input_parts, typename Cell::State state,
                               const Site& site) {
  const std::int64_t time = time_of(input_parts);
  if (time < 1)
    throw Error(invalid_argument("an unrolled sequence has a known number of steps, at least 1; "
                                 "over_time = loop goes through any number")
                    .at(site));
  std::vector<Output> h;
  for (const Output& part : unpack(input_parts, time, {}, site)) {
    state = cell.step(part, state, site);
    h.push_back(state.h);
  }
  return {pack(h, {}, site), state};
}

std::vector<Output> values_of(const LstmCell::State& state) { return {state.h, state.c}; }
std::vector<Output> values_of(const GruCell::State& state) { return {state.h}; }
LstmCell::State state_of(const LstmCell&, const std::vector<Output>& v) { return {v[0], v[1]}; }
GruCell::State state_of(const GruCell&, const std::vector<Output>& v) { return {v[0]}; }

std::string typed(DType dtype, const PartialShape& shape) {
  return std::string(dtype_name(dtype)) + shape.text();
}

void check_sequence(Output x, const Site& site) {
  check_given("a sequence", x, site);
  if (x.shape().known_rank() && x.shape().rank() == 3) return;
  throw Error(
      invalid_argument("a sequence is [time, batch, in], not " + x.shape().text()).at(site));
}

// Throws Error unless these can be a state of the sequence.
void check_state(Output input_parts, const std::vector<Output>& state, std::int64_t hidden,
                 const Site& site) {
  const PartialShape wanted{input_parts.shape()[1], hidden};
  const DType dtype = input_parts.dtype();
  for (const Output& value : state) {
    if (!value.empty() && value.dtype() == dtype && PartialShape::merge(value.shape(), wanted).ok())
      continue;
    const std::string is = value.empty() ? "empty" : typed(value.dtype(), value.shape());
    throw Error(
        invalid_argument("a state of the sequence is " + typed(dtype, wanted) + ", not " + is)
            .at(site));
  }
}

template <class Cell>
typename Cell::Sequence loop(const Cell& cell, std::int64_t hidden, Output input_parts,
                             const typename Cell::State& first, const Site& site) {
  const PartialShape shape{input_parts.shape()[1], hidden};  // of each state
  std::vector<Output> values = values_of(first);
  for (Output& value : values)
    if (value_or_throw(PartialShape::merge(value.shape(), shape)) != value.shape())
      value = ensure_shape(value, shape, site);
  const auto step = [&](const std::vector<Output>& before, const std::vector<Output>& part) {
    const auto state = cell.step(part[0], state_of(cell, before), site);
    return detail::Scanned{values_of(state), {state.h}};
  };
  const auto shape_of_h = [&](std::size_t) {
    const Output time = dimension(input_parts, 0, site), batch = dimension(input_parts, 1, site);
    return pack({time, batch, constant(input_parts.graph(), hidden, site)}, {}, site);
  };
  const auto made = detail::scan({input_parts}, values, 1, step, {.shapes = {values.size(), shape}},
                                 site, shape_of_h);
  return {made.stacked[0], state_of(cell, made.state)};
}

// The last of the states of a sequence; `first` of one that may have no steps.
Output last_of(Output sequence, Output first, const Site& site) {
  if (time_of(sequence) < 1)
    sequence = concat({expand_dims(first, 0, site), sequence[range(-1, std::nullopt, 1, site)]},
                      {.axis = 0}, site);
  return sequence[Index(-1, site)];
}

// 0 but for the second of four quarters.
Tensor lstm_bias(std::int64_t hidden, double forget, DType dtype, const Site& site) {
  Tensor bias = zeros(dtype, {4 * hidden}, site);
  for (std::int64_t i = hidden; i < 2 * hidden; ++i) {
    if (dtype == DType::f64)
      bias.mutable_data<double>()[i] = forget;
    else
      bias.mutable_data<float>()[i] = float(forget);
  }
  return bias;
}

void check_recurrent(std::string_view what, std::int64_t in, std::int64_t hidden, DType dtype,
                     const Site& site) {
  check_sizes(what, {in, hidden}, site);
  if (dtype != DType::f32 && dtype != DType::f64)
    throw Error(
        invalid_argument(std::string(what) + ": f32 or f64, not " + std::string(dtype_name(dtype)))
            .at(site));
}

}  // namespace

LstmCell::LstmCell(Module& parent, std::string_view name, std::int64_t in, std::int64_t hidden,
                   const RecurrentOptions& options, Site site)
    : Module(parent, name), hidden_(hidden), over_time_(options.over_time) {
  check_recurrent("LSTM", in, hidden, options.dtype, site);
  auto inside = scope().enter();
  const auto weights = [&](std::int64_t rows) {
    return initial_weights(graph(), Init::glorot, {rows, 4 * hidden}, rows, hidden, options.dtype,
                           site);
  };
  w_ = parameter("W", weights(in), site);
  r_ = parameter("R", weights(hidden), site);
  b_ = parameter("b", lstm_bias(hidden, options.forget_bias, options.dtype, site), site);
}

Output LstmCell::input_part(Output x, const Site& site) const {
  check_given("LSTM: x", x, site);
  return affine(x, w_, b_, site);
}

LstmCell::State LstmCell::step(Output input_part, const State& state, const Site& site) const {
  check_given("LSTM: what the input gives", input_part, site);
  for (const Output& value : values_of(state)) check_given("LSTM: the state", value, site);
  auto inside = scope().enter();
  const LstmCellOutputs y = lstm_cell(input_part, mat_mul(state.h, r_, {}, site), state.c, site);
  return {y.h, y.next};
}

LstmCell::Sequence LstmCell::steps(Output input_parts, const State& first, const Site& site) const {
  check_sequence(input_parts, site);
  check_state(input_parts, values_of(first), hidden_, site);
  if (over_time_ == OverTime::loop) return loop(*this, hidden_, input_parts, first, site);
  if (over_time_ == OverTime::unrolled) return unroll(*this, input_parts, first, site);
  auto inside = scope().enter();
  const std::int64_t time = time_of(input_parts);
  const LstmSequenceOutputs y =
      lstm_sequence(input_parts, first.h, first.c, r_, time < 1 ? -1 : time, site);
  return {y.h, {last_of(y.h, first.h, site), last_of(y.next, first.c, site)}};
}

LstmCell::State LstmCell::operator()(Output x, const State& state, Site site) const {
  auto inside = scope().enter();
  return step(input_part(x, site), state, site);
}

LstmCell::State LstmCell::zero_state(Output x, Site site) const {
  check_given("LSTM: x", x, site);
  const Output zero = zero_rows(x, hidden_, w_.dtype(), site);
  return {zero, zero};
}

GruCell::GruCell(Module& parent, std::string_view name, std::int64_t in, std::int64_t hidden,
                 const RecurrentOptions& options, Site site)
    : Module(parent, name), hidden_(hidden), over_time_(options.over_time) {
  check_recurrent("GRU", in, hidden, options.dtype, site);
  auto inside = scope().enter();
  const auto weights = [&](std::int64_t rows) {
    return initial_weights(graph(), Init::glorot, {rows, 3 * hidden}, rows, hidden, options.dtype,
                           site);
  };
  w_ = parameter("W", weights(in), site);
  r_ = parameter("R", weights(hidden), site);
  b_ = parameter("b", zeros(options.dtype, {3 * hidden}, site), site);
  c_ = parameter("c", zeros(options.dtype, {3 * hidden}, site), site);
}

Output GruCell::input_part(Output x, const Site& site) const {
  check_given("GRU: x", x, site);
  return affine(x, w_, b_, site);
}

GruCell::State GruCell::step(Output input_part, const State& state, const Site& site) const {
  check_given("GRU: what the input gives", input_part, site);
  check_given("GRU: the state", state.h, site);
  auto inside = scope().enter();
  const auto x = gates_of(input_part, 3, site),
             h = gates_of(affine(state.h, r_, c_, site), 3, site);
  const Output reset = sigmoid(add(x[0], h[0], site), site);
  const Output keep = sigmoid(add(x[1], h[1], site), site);
  const Output fresh = tanh(add(x[2], mul(reset, h[2], site), site), site);
  return {add(fresh, mul(keep, sub(state.h, fresh, site), site), site)};
}

GruCell::Sequence GruCell::steps(Output input_parts, const State& first, const Site& site) const {
  check_sequence(input_parts, site);
  check_state(input_parts, values_of(first), hidden_, site);
  const bool in_loop =
      over_time_ == OverTime::fused ? time_of(input_parts) < 1 : over_time_ == OverTime::loop;
  return in_loop ? loop(*this, hidden_, input_parts, first, site)
                 : unroll(*this, input_parts, first, site);
}

GruCell::State GruCell::operator()(Output x, const State& state, Site site) const {
  auto inside = scope().enter();
  return step(input_part(x, site), state, site);
}

GruCell::State GruCell::zero_state(Output x, Site site) const {
  check_given("GRU: x", x, site);
  return {zero_rows(x, hidden_, w_.dtype(), site)};
}

template <class Cell>
Recurrent<Cell>::Recurrent(Module& parent, std::string_view name, std::int64_t in,
                           std::int64_t hidden, const RecurrentOptions& options, Site site)
    : Module(parent, name), cell_(*this, "cell", in, hidden, options, std::move(site)) {}

template <class Cell>
typename Recurrent<Cell>::Sequence Recurrent<Cell>::operator()(Output x, const State& first,
                                                               Site site) const {
  check_sequence(x, site);
  auto inside = scope().enter();
  return cell_.steps(cell_.input_part(x, site), first, site);
}

template <class Cell>
typename Recurrent<Cell>::Sequence Recurrent<Cell>::operator()(Output x, Site site) const {
  return (*this)(x, cell_.zero_state(x, site), site);
}

template <class Cell>
typename Recurrent<Cell>::Steps Recurrent<Cell>::operator()(const std::vector<Output>& x,
                                                            const State& first, Site site) const {
  auto inside = scope().enter();
  if (x.empty()) throw Error(invalid_argument("a sequence has at least one step").at(site));
  Steps steps{{}, first};
  for (const Output& part : x) {
    steps.last = cell_(part, steps.last, site);
    steps.h.push_back(steps.last.h);
  }
  return steps;
}

template <class Cell>
typename Recurrent<Cell>::Steps Recurrent<Cell>::operator()(const std::vector<Output>& x,
                                                            Site site) const {
  if (x.empty()) throw Error(invalid_argument("a sequence has at least one step").at(site));
  return (*this)(x, cell_.zero_state(x.front(), site), site);
}

namespace {

void check_lengths(Output x, Output lengths, const Site& site) {
  check_given("a sequence", x, site);
  check_given("the lengths of sequences", lengths, site);
  const bool ints = lengths.dtype() == DType::i32 || lengths.dtype() == DType::i64;
  if (ints && x.shape().known_rank() && x.shape().rank() >= 2 &&
      PartialShape::merge(lengths.shape(), PartialShape{x.shape()[1]}).ok())
    return;
  throw Error(invalid_argument("lengths are i32 or i64 [batch] beside a sequence " +
                               x.shape().text() + ", not " +
                               typed(lengths.dtype(), lengths.shape()))
                  .at(site));
}

Output steps_of(Output size, const Site& site) {
  GraphBuilder& g = size.graph();
  return range(constant<std::int64_t>(g, 0, site), size, constant<std::int64_t>(g, 1, site), site);
}

// As i64 [batch]. One length is not that of all sequences, even where only a run knows it.
Output lengths_beside(Output x, Output lengths, const Site& site) {
  check_lengths(x, lengths, site);
  const Output each = cast(lengths, DType::i64, site);
  if (each.shape().fully_known() && x.shape().known(1)) return each;
  return ensure_same_shape(each, steps_of(dimension(x, 1, site), site), site);
}

// [.., batch] of pairs: a step, and the number of its sequence.
Output places(Output steps, Output x, const Site& site) {
  const Output sequence = steps_of(dimension(x, 1, site), site);
  return pack(
      {steps, add(sequence, mul(steps, constant<std::int64_t>(x.graph(), 0, site), site), site)},
      {.axis = -1}, site);
}

// A state whose h is another.
LstmCell::State with_h(const LstmCell::State& state, Output h) { return {h, state.c}; }
GruCell::State with_h(const GruCell::State&, Output h) { return {h}; }

// A row of `gates` numbers for each of `hidden` units, gate by gate.
Output gate_constants(GraphBuilder& g, std::initializer_list<double> gates, std::int64_t hidden,
                      DType dtype, const Site& site) {
  std::vector<Output> parts;
  for (double gate : gates)
    parts.push_back(fill(constant(g, std::vector<std::int64_t>{hidden}, site),
                         constant(g, value_or_throw(scalar_of(dtype, gate)), site), site));
  return concat(parts, {.axis = 0}, site);
}
// Of which the sigmoid is 1, and that of its negative 0, whatever the state adds.
constexpr double kWideOpen = 1e9;

}  // namespace

Output LstmCell::idle_part(const Site& site) const {
  return gate_constants(graph(), {-kWideOpen, kWideOpen, 0, 0}, hidden_, w_.dtype(), site);
}
Output GruCell::idle_part(const Site& site) const {
  return gate_constants(graph(), {0, kWideOpen, 0}, hidden_, w_.dtype(), site);
}

Output reverse_sequences(Output x, Output lengths, Site site) {
  const Output length = lengths_beside(x, lengths, site);
  const Output step = expand_dims(steps_of(dimension(x, 0, site), site), 1, site);
  const Output turned =
      sub(sub(length, step, site), constant<std::int64_t>(x.graph(), 1, site), site);
  const Output from = select(less(step, length, site), turned, step, site);
  return gather_nd(x, places(from, x, site), site);
}

template <class Cell>
typename Recurrent<Cell>::Sequence Recurrent<Cell>::with_lengths(Output x, Output lengths,
                                                                 const State& first,
                                                                 Site site) const {
  check_sequence(x, site);
  auto inside = scope().enter();
  const Output length = lengths_beside(x, lengths, site);
  const Output step = expand_dims(steps_of(dimension(x, 0, site), site), 1, site);
  const Output within = expand_dims(less(step, length, site), 2, site);  // [time, batch, 1]
  // What stands behind the end is replaced before it is multiplied: in the gradient of W it meets
  // zeros, and 0 * NaN would be NaN. There a sequence idles: then the last c is that of its last
  // step. The last h is looked up among the steps.
  const Output own = select(within, x, Operand(0.0, site).beside(x), site);
  const Output parts = select(within, cell_.input_part(own, site), cell_.idle_part(site), site);
  const Sequence all = cell_.steps(parts, first, site);
  const Output from_first = concat({expand_dims(first.h, 0, site), all.h}, {.axis = 0}, site);
  const Output last = gather_nd(from_first, places(length, x, site), site);
  const Output h = select(within, all.h, Operand(0.0, site).beside(all.h), site);
  return {h, with_h(all.last, last)};
}

template <class Cell>
typename Recurrent<Cell>::Sequence Recurrent<Cell>::with_lengths(Output x, Output lengths,
                                                                 Site site) const {
  return with_lengths(x, lengths, cell_.zero_state(x, site), site);
}

template <class Layer>
Bidirectional<Layer>::Bidirectional(Module& parent, std::string_view name, std::int64_t in,
                                    std::int64_t hidden, const RecurrentOptions& options, Site site)
    : Module(parent, name),
      forward_(*this, "forward", in, hidden, options, site),
      backward_(*this, "backward", in, hidden, options, site) {}

template <class Layer>
typename Bidirectional<Layer>::Sequence Bidirectional<Layer>::operator()(Output x,
                                                                         Site site) const {
  check_sequence(x, site);
  return (*this)(x, {forward_.cell().zero_state(x, site), backward_.cell().zero_state(x, site)},
                 site);
}

template <class Layer>
typename Bidirectional<Layer>::Sequence Bidirectional<Layer>::operator()(Output x,
                                                                         const State& first,
                                                                         Site site) const {
  check_sequence(x, site);
  auto inside = scope().enter();
  const auto there = forward_(x, first.forward, site),
             back = backward_(reverse(x, {.axes = {0}}, site), first.backward, site);
  return {concat({there.h, reverse(back.h, {.axes = {0}}, site)}, {.axis = 2}, site), there.last,
          back.last};
}

template <class Layer>
typename Bidirectional<Layer>::Sequence Bidirectional<Layer>::with_lengths(Output x, Output lengths,
                                                                           Site site) const {
  check_sequence(x, site);
  return with_lengths(x, lengths,
                      {forward_.cell().zero_state(x, site), backward_.cell().zero_state(x, site)},
                      site);
}

template <class Layer>
typename Bidirectional<Layer>::Sequence Bidirectional<Layer>::with_lengths(Output x, Output lengths,
                                                                           const State& first,
                                                                           Site site) const {
  check_sequence(x, site);
  auto inside = scope().enter();
  const auto there = forward_.with_lengths(x, lengths, first.forward, site),
             back = backward_.with_lengths(reverse_sequences(x, lengths, site), lengths,
                                           first.backward, site);
  return {concat({there.h, reverse_sequences(back.h, lengths, site)}, {.axis = 2}, site),
          there.last, back.last};
}

template <class Layer>
Stacked<Layer>::Stacked(Module& parent, std::string_view name, std::int64_t in, std::int64_t hidden,
                        std::int64_t layers, const RecurrentOptions& options, Site site)
    : Module(parent, name) {
  check_sizes("Stacked", {in, hidden, layers}, site);
  for (std::int64_t i = 0; i < layers; ++i)
    layers_.push_back(std::make_unique<Layer>(*this, std::to_string(i),
                                              i == 0 ? in : Layer::kDirections * hidden, hidden,
                                              options, site));
}

template <class Layer>
template <class Step>
typename Stacked<Layer>::Sequences Stacked<Layer>::through(Output x, Step step) const {
  auto inside = scope().enter();
  Sequences made{x, {}};
  for (std::size_t i = 0; i < layers_.size(); ++i) {
    made.layers.push_back(step(i, made.h));
    made.h = made.layers.back().h;
  }
  return made;
}

template <class Layer>
void Stacked<Layer>::check_states(const States& first, const Site& site) const {
  if (first.size() == layers_.size()) return;
  throw Error(invalid_argument(std::to_string(first.size()) + " states for " +
                               std::to_string(layers_.size()) + " layers")
                  .at(site));
}

template <class Layer>
typename Stacked<Layer>::Sequences Stacked<Layer>::operator()(Output x, Site site) const {
  return through(x, [&](std::size_t i, Output in) { return (*layers_[i])(in, site); });
}

template <class Layer>
typename Stacked<Layer>::Sequences Stacked<Layer>::operator()(Output x, const States& first,
                                                              Site site) const {
  check_states(first, site);
  return through(x, [&](std::size_t i, Output in) { return (*layers_[i])(in, first[i], site); });
}

template <class Layer>
typename Stacked<Layer>::Sequences Stacked<Layer>::with_lengths(Output x, Output lengths,
                                                                Site site) const {
  return through(
      x, [&](std::size_t i, Output in) { return layers_[i]->with_lengths(in, lengths, site); });
}

template <class Layer>
typename Stacked<Layer>::Sequences Stacked<Layer>::with_lengths(Output x, Output lengths,
                                                                const States& first,
                                                                Site site) const {
  check_states(first, site);
  return through(x, [&](std::size_t i, Output in) {
    return layers_[i]->with_lengths(in, lengths, first[i], site);
  });
}

template class Recurrent<LstmCell>;
template class Recurrent<GruCell>;
template class Bidirectional<Lstm>;
template class Bidirectional<Gru>;
template class Stacked<Lstm>;
template class Stacked<Gru>;
template class Stacked<Bidirectional<Lstm>>;
template class Stacked<Bidirectional<Gru>>;

}  // namespace troupe::nn
