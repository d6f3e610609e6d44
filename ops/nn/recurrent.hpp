// Recurrent layers.
//
// A cell is one time step. Its matrices hold all gates side by side, so that a step is one product
// with the input and one with the state; a layer computes the former for all steps at once. A
// sequence runs as one node, as one subgraph per step, or as a loop. Its length may be unknown
// until the run, and may be 0.
#pragma once

#include <memory>
#include <vector>

#include "ops/nn/module.hpp"

namespace troupe::nn {

// How a layer runs over time. All forms compute the same values, up to rounding.
enum class OverTime {
  fused,     // Lstm: one node for all steps. Gru: unrolled, or a loop if the length is unknown
  unrolled,  // one subgraph per step; the length must be known, and at least 1
  loop,      // a loop over the steps (scan)
};

struct RecurrentOptions {
  double forget_bias = 0;  // initial bias of an LSTM's forget gate
  OverTime over_time = OverTime::fused;
  DType dtype = DType::f32;
};

// One step of an LSTM (Hochreiter and Schmidhuber, 1997). With x [batch, in] and the state h and c
// [batch, hidden], and the gates i, f, g, o in this order (as PyTorch's nn.LSTM has them) the four
// quarters of x W + h R + b:
//   c' = sigmoid(f) c + sigmoid(i) tanh(g)      h' = sigmoid(o) tanh(c')
// W is [in, 4 hidden], R [hidden, 4 hidden], b [4 hidden].
class LstmCell : public Module {
 public:
  struct State {
    Output h, c;
  };
  struct Sequence {
    Output h;  // [time, batch, hidden]
    State last;
  };
  LstmCell(Module& parent, std::string_view name, std::int64_t in, std::int64_t hidden,
           const RecurrentOptions& options = {}, Site site = Site::here());

  State operator()(Output x, const State& state, Site site = Site::here()) const;
  // Zeros for the batch of x [..., batch, in].
  State zero_state(Output x, Site site = Site::here()) const;

  // A step in two parts: input_part() is x W + b for x [..., in]; step() does the rest for one
  // step, steps() for all of [time, batch, 4 hidden].
  Output input_part(Output x, const Site& site) const;
  State step(Output input_part, const State& state, const Site& site) const;
  Sequence steps(Output input_parts, const State& first, const Site& site) const;
  // An input part [4 hidden] with which a step leaves c as it is.
  Output idle_part(const Site& site) const;

 private:
  std::int64_t hidden_;
  OverTime over_time_;
  Variable w_, r_, b_;
};

// One step of a gated recurrent unit (Cho et al., 2014), as PyTorch's nn.GRU: with the gates r, z,
// n in this order the three thirds of x W + b, and of h R + c for those of the state:
//   r = sigmoid(r_x + r_h)   z = sigmoid(z_x + z_h)   n = tanh(n_x + r n_h)   h' = (1 - z) n + z h
// W is [in, 3 hidden], R [hidden, 3 hidden], both biases [3 hidden].
class GruCell : public Module {
 public:
  struct State {
    Output h;
  };
  struct Sequence {
    Output h;
    State last;
  };
  GruCell(Module& parent, std::string_view name, std::int64_t in, std::int64_t hidden,
          const RecurrentOptions& options = {}, Site site = Site::here());

  State operator()(Output x, const State& state, Site site = Site::here()) const;
  State zero_state(Output x, Site site = Site::here()) const;

  Output input_part(Output x, const Site& site) const;
  State step(Output input_part, const State& state, const Site& site) const;
  Sequence steps(Output input_parts, const State& first, const Site& site) const;
  // An input part [3 hidden] with which a step leaves the state as it is, up to rounding.
  Output idle_part(const Site& site) const;

 private:
  std::int64_t hidden_;
  OverTime over_time_;
  Variable w_, r_, b_, c_;
};

// A recurrent layer: a cell applied over time.
template <class Cell>
class Recurrent : public Module {
 public:
  using State = typename Cell::State;
  static constexpr std::int64_t kDirections = 1;
  struct Steps {
    std::vector<Output> h;  // [batch, hidden] after each step
    State last;
  };
  using Sequence = typename Cell::Sequence;
  Recurrent(Module& parent, std::string_view name, std::int64_t in, std::int64_t hidden,
            const RecurrentOptions& options = {}, Site site = Site::here());

  // Runs over x [time, batch, in], where time and batch may be unknown (-1), starting from zeros or
  // from `first`. For an empty sequence the last state is the first.
  Sequence operator()(Output x, Site site = Site::here()) const;
  Sequence operator()(Output x, const State& first, Site site = Site::here()) const;
  // Sequences of different lengths [batch] (i32 or i64) in one tensor: those of a length below
  // `time` end there. h is 0 from there on, the last state is that of the last step, and what
  // stands behind it has no gradient. A length outside [0, time] fails the run.
  Sequence with_lengths(Output x, Output lengths, Site site = Site::here()) const;
  Sequence with_lengths(Output x, Output lengths, const State& first,
                        Site site = Site::here()) const;
  // The same for a vector of steps, each [batch, in].
  Steps operator()(const std::vector<Output>& x, Site site = Site::here()) const;
  Steps operator()(const std::vector<Output>& x, const State& first,
                   Site site = Site::here()) const;

  const Cell& cell() const { return cell_; }

 private:
  Cell cell_;
};

using Lstm = Recurrent<LstmCell>;
using Gru = Recurrent<GruCell>;
extern template class Recurrent<LstmCell>;
extern template class Recurrent<GruCell>;

// Two recurrent layers, of which the second reads the sequence from its end: h [time, batch,
// 2 hidden] is what the first one and the second one gave at each step, side by side.
template <class Layer>
class Bidirectional : public Module {
 public:
  struct State {
    typename Layer::State forward, backward;
  };
  struct Sequence {
    Output h;
    typename Layer::State forward, backward;  // after the last step and after the first
  };
  static constexpr std::int64_t kDirections = 2 * Layer::kDirections;
  Bidirectional(Module& parent, std::string_view name, std::int64_t in, std::int64_t hidden,
                const RecurrentOptions& options = {}, Site site = Site::here());

  Sequence operator()(Output x, Site site = Site::here()) const;
  Sequence operator()(Output x, const State& first, Site site = Site::here()) const;
  // See Recurrent. The second layer begins at the last step of each sequence.
  Sequence with_lengths(Output x, Output lengths, Site site = Site::here()) const;
  Sequence with_lengths(Output x, Output lengths, const State& first,
                        Site site = Site::here()) const;

  const Layer& forward() const { return forward_; }
  const Layer& backward() const { return backward_; }

 private:
  Layer forward_, backward_;
};

// Layers of which each reads what the one before it gave: "0", "1", ... inside of this module.
template <class Layer>
class Stacked : public Module {
 public:
  struct Sequences {
    Output h;                                      // of the last layer
    std::vector<typename Layer::Sequence> layers;  // of each one
  };
  Stacked(Module& parent, std::string_view name, std::int64_t in, std::int64_t hidden,
          std::int64_t layers, const RecurrentOptions& options = {}, Site site = Site::here());

  // From zeros, or from the states that another sequence left in each layer.
  using States = std::vector<typename Layer::State>;
  Sequences operator()(Output x, Site site = Site::here()) const;
  Sequences operator()(Output x, const States& first, Site site = Site::here()) const;
  Sequences with_lengths(Output x, Output lengths, Site site = Site::here()) const;
  Sequences with_lengths(Output x, Output lengths, const States& first,
                         Site site = Site::here()) const;

  const Layer& layer(std::size_t i) const { return *layers_[i]; }

 private:
  // `step` runs layer i over its input.
  template <class Step>
  Sequences through(Output x, Step step) const;
  void check_states(const States& first, const Site& site) const;

  std::vector<std::unique_ptr<Layer>> layers_;
};

extern template class Bidirectional<Lstm>;
extern template class Bidirectional<Gru>;
extern template class Stacked<Lstm>;
extern template class Stacked<Gru>;
extern template class Stacked<Bidirectional<Lstm>>;
extern template class Stacked<Bidirectional<Gru>>;

// Sequences x [time, batch, ...] turned around along time, each as far as its length [batch] (i32
// or i64) goes; what stands behind that stays where it is.
Output reverse_sequences(Output x, Output lengths, Site site = Site::here());

}  // namespace troupe::nn
