// Recurrent layers.
//
// A cell is one time step. Its matrices hold all gates side by side, so that a step is one product
// with the input and one with the state; a layer computes the former for all steps at once. A
// sequence runs as one node, as one subgraph per step, or as a loop. Its length may be unknown
// until the run, and may be 0.
#pragma once

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

}  // namespace troupe::nn
