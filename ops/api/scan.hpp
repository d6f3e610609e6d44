// Loops over the slices of tensors along their first dimension:
//
//   auto [last, sums] = scan(xs, h0, [&](Output h, Output x) { return std::pair{h + x, h}; });
//   Output squares = map(xs, [](Output v) { return v * v; });
//   Output total = fold(xs, zero, [](Output sum, Output x) { return sum + x; });
//
// Each is a while_loop, and has gradients. A slice shares the memory of its tensor.
#pragma once

#include "ops/api/control.hpp"

namespace troupe {
namespace detail {

struct Scanned {
  std::vector<Output> state, stacked;
};
using ScanBody =
    std::function<Scanned(const std::vector<Output>& state, const std::vector<Output>& slices)>;

// `outputs`: how many values `body` has stacked.
Scanned scan(const std::vector<Output>& xs, const std::vector<Output>& state, std::size_t outputs,
             const ScanBody& body, const LoopOptions& options, Site site);

// The values as a tuple, for calls with several groups of them.
template <class Form>
auto tuple_of(const Form& form, const std::vector<Output>& values) {
  if constexpr (std::is_convertible_v<Form, Output> || std::is_same_v<Form, std::vector<Output>>)
    return std::make_tuple(in_form(form, values));
  else
    return in_form(form, values);
}

template <class T>
constexpr std::size_t values_in() {
  if constexpr (std::is_convertible_v<T, Output>)
    return 1;
  else
    return std::tuple_size_v<T>;
}

// In the form of R, an Output or a tuple of them.
template <class R>
auto stacked_as(const std::vector<Output>& values) {
  if constexpr (std::is_convertible_v<R, Output>) {
    return values[0];
  } else {
    return [&]<std::size_t... I>(std::index_sequence<I...>) {
      return std::make_tuple(((void)I, values[I])...);
    }
    (std::make_index_sequence<std::tuple_size_v<R>>());
  }
}

// What f returns for a state and slices in these forms.
template <class F, class State, class Slices>
using Returned = decltype(std::apply(
    std::declval<F&>(), std::tuple_cat(tuple_of(std::declval<State>(), std::vector<Output>()),
                                       tuple_of(std::declval<Slices>(), std::vector<Output>()))));

}  // namespace detail

// Calls f(state..., slice...) for each slice of xs in turn; f returns a pair: the next state and
// the step's output. Returns the last state (`first` if there are no slices) and the outputs,
// stacked along a new first dimension. xs is an Output or a tuple of Outputs of equal length. The
// state is an Output, or a tuple or vector of Outputs (f then takes the vector). A step's output is
// an Output or a tuple. `options.shapes` are the shapes of the state.
template <class Slices, class State, class F>
auto scan(const Slices& xs, const State& first, F&& f, const LoopOptions& options = {},
          Site site = Site::here()) {
  using Result = detail::Returned<F, State, Slices>;
  using Out = std::remove_cvref_t<decltype(std::declval<Result>().second)>;
  const auto made = detail::scan(
      detail::results_of(xs), detail::results_of(first), detail::values_in<Out>(),
      [&](const std::vector<Output>& state, const std::vector<Output>& slices) {
        auto [next, out] = std::apply(
            f, std::tuple_cat(detail::tuple_of(first, state), detail::tuple_of(xs, slices)));
        return detail::Scanned{detail::results_of(next), detail::results_of(out)};
      },
      options, std::move(site));
  return std::pair{detail::in_form(first, made.state), detail::stacked_as<Out>(made.stacked)};
}

// The results of f(slice...) for all slices, stacked along a new first dimension.
template <class Slices, class F>
auto map(const Slices& xs, F&& f, Site site = Site::here()) {
  using Out =
      std::remove_cvref_t<decltype(std::apply(f, detail::tuple_of(xs, std::vector<Output>())))>;
  const auto made = detail::scan(
      detail::results_of(xs), {}, detail::values_in<Out>(),
      [&](const std::vector<Output>&, const std::vector<Output>& slices) {
        return detail::Scanned{{}, detail::results_of(std::apply(f, detail::tuple_of(xs, slices)))};
      },
      {}, std::move(site));
  return detail::stacked_as<Out>(made.stacked);
}

// Calls state = f(state..., slice...) for each slice in turn, and returns the last state.
template <class Slices, class State, class F>
auto fold(const Slices& xs, const State& first, F&& f, const LoopOptions& options = {},
          Site site = Site::here()) {
  const auto made = detail::scan(
      detail::results_of(xs), detail::results_of(first), 0,
      [&](const std::vector<Output>& state, const std::vector<Output>& slices) {
        return detail::Scanned{
            detail::results_of(std::apply(
                f, std::tuple_cat(detail::tuple_of(first, state), detail::tuple_of(xs, slices)))),
            {}};
      },
      options, std::move(site));
  return detail::in_form(first, made.state);
}

}  // namespace troupe
