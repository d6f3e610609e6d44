// The sizes of an LSTM's inputs, for its kernels of all devices.
#pragma once

#include <initializer_list>
#include <string>
#include <string_view>

#include "devices/kernel.hpp"

namespace troupe {

struct LstmSizes {
  std::int64_t steps, batch, hidden;
  std::int64_t state() const { return batch * hidden; }
  std::int64_t gates() const { return 4 * batch * hidden; }
};

inline constexpr std::int64_t kAnySteps = -1;  // as many as there are in a run

// The inputs as sizes, where input `gates` is [steps, batch, 4 hidden].
inline Expected<LstmSizes> lstm_sizes(const KernelContext& c, std::string_view op,
                                      std::int64_t steps, int gates,
                                      std::initializer_list<int> sequences,
                                      std::initializer_list<int> states, int weights) {
  const auto wrong_shapes = [&] {
    std::string message = std::string(op) + ": the sizes of its inputs do not fit:";
    for (int i = 0; i < c.inputs(); ++i) message += " " + c.input(i).shape().text();
    return invalid_argument(message);
  };
  const Shape& g = c.input(gates).shape();
  const bool of_length = g.rank() == 3 && (steps == kAnySteps || g[0] == steps);
  if (!of_length || g[2] % 4 != 0) return wrong_shapes();
  const LstmSizes s{g[0], g[1], g[2] / 4};
  bool fit = c.input(weights).shape() == Shape{s.hidden, 4 * s.hidden};
  for (int i : sequences) fit = fit && c.input(i).shape() == Shape{s.steps, s.batch, s.hidden};
  for (int i : states) fit = fit && c.input(i).shape() == Shape{s.batch, s.hidden};
  if (!fit) return wrong_shapes();
  return s;
}

// ok if `gates` has four of each element of all states.
inline Status want_four_gates(const KernelContext& c, std::string_view op, int gates,
                              std::initializer_list<int> more_gates,
                              std::initializer_list<int> states) {
  const Shape& g = c.input(gates).shape();
  bool fit = g.rank() == 2;
  for (int i : more_gates) fit = fit && c.input(i).shape() == g;
  for (int i : states) {
    const Shape& state = c.input(i).shape();
    fit = fit && state.rank() == 2 && state[0] == g[0] && g[1] % 4 == 0 && state[1] == g[1] / 4;
  }
  if (fit) return ok_status();
  std::string message = std::string(op) + " wants four gates of each unit of its states, not";
  for (int i = 0; i < c.inputs(); ++i) message += " " + c.input(i).shape().text();
  return invalid_argument(message);
}

}  // namespace troupe
