// Functions and branches as a client writes them:
//
//   Output safe = cond(d != 0, [&] { return a / d; }, [&] { return zeros_like(a); });
//   Output y = switch_case(index, {[&] { return f(x); }, [&] { return g(x); }});
//   auto [i, p] = while_loop(std::tuple{constant(g, 0), x},
//                            [&](Output i, Output) { return i < n; },
//                            [&](Output i, Output p) { return std::tuple{i + 1, p * x}; });
//   Function square = function(g, "square", {f32_scalar}, {f32_scalar},
//                              [](Function&, Output k) { return k * k; });
//   Output z = square(x);
//
// A body may use values of the graph around it. Its effects (writes, queues, files, Print, Assert)
// happen in a run exactly when the body runs, whether or not a result is used.
#pragma once

#include <concepts>
#include <functional>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "graph/builder.hpp"
#include "graph/control/functions/body.hpp"

namespace troupe {

inline const ValueType f32_scalar{DType::f32, PartialShape::scalar()};
inline const ValueType f64_scalar{DType::f64, PartialShape::scalar()};
inline const ValueType i64_scalar{DType::i64, PartialShape::scalar()};
inline const ValueType bool_scalar{DType::bool_, PartialShape::scalar()};

// An argument, and the line that passes it: operators cannot have default arguments.
struct Passed {
  template <std::convertible_to<Output> T>
  Passed(const T& value, Site from = Site::here()) : output(value), site(std::move(from)) {}
  Output output;
  Site site;
};

// A function of a graph. A handle: copies freely, valid as long as its graph.
class Function {
 public:
  Function(GraphBuilder& graph, std::string name) : graph_(&graph), name_(std::move(name)) {}

  const std::string& name() const { return name_; }
  GraphBuilder& graph() const { return *graph_; }
  // Adds a call and returns its results, in order. Throws Error unless the arguments have the
  // declared dtypes and shapes.
  std::vector<Output> call(const std::vector<Output>& arguments, Site site = Site::here()) const;
  Op call_op(const std::vector<Output>& arguments, Site site = Site::here()) const;
  // For functions with one result. Errors show the line of the first argument.
  Output operator()(const Passed& a) const { return one({a.output}, a.site); }
  Output operator()(const Passed& a, const Passed& b) const {
    return one({a.output, b.output}, a.site);
  }
  Output operator()(const Passed& a, const Passed& b, const Passed& c) const {
    return one({a.output, b.output, c.output}, a.site);
  }
  Output operator()(const Passed& a, const Passed& b, const Passed& c, const Passed& d) const {
    return one({a.output, b.output, c.output, d.output}, a.site);
  }

 private:
  Output one(const std::vector<Output>& arguments, const Site& site) const;

  GraphBuilder* graph_;
  std::string name_;
};

// Bodies as functions of their results: none, an Op, one value, or several.
using Bodies = std::vector<std::function<std::vector<Output>()>>;

namespace detail {

template <class R>
std::vector<Output> results_of(R&& returned) {
  using Plain = std::remove_cvref_t<R>;
  if constexpr (std::is_same_v<Plain, Op>) {
    return {};
  } else if constexpr (std::is_convertible_v<R, Output>) {
    return {Output(returned)};
  } else if constexpr (std::is_same_v<Plain, std::vector<Output>>) {
    return returned;
  } else {
    return std::apply([](const auto&... each) { return std::vector<Output>{Output(each)...}; },
                      returned);
  }
}

template <class F>
std::function<std::vector<Output>()> body_of(F&& body) {
  return [&body]() -> std::vector<Output> {
    if constexpr (std::is_void_v<std::invoke_result_t<F&>>) {
      body();
      return {};
    } else {
      return results_of(body());
    }
  };
}

template <std::size_t>
using OutputOf = Output;
// Whether F can be called with `First...` and an Output for each of I.
template <class F, class... First, std::size_t... I>
constexpr bool takes(std::index_sequence<I...>) {
  return std::is_invocable_v<F&, First..., OutputOf<I>...>;
}
constexpr std::size_t kMostByName = 16;  // values of a function that takes each by name

// Argument `i` of a function under construction. Throws Error when it has fewer.
Output argument_of(const std::vector<Output>& values, std::size_t i, std::string_view name,
                   const Site& site);
Op branch(const Output& selector, const Bodies& bodies, bool two_ways, Site site);
Function make_function(
    GraphBuilder& g, std::string_view name, const std::vector<ValueType>& arguments,
    const std::vector<ValueType>& results, Site site,
    const std::function<std::vector<Output>(Function&, const std::vector<Output>&)>& body);

// `body` with as many arguments as it takes, N or more, argument(i) each.
template <std::size_t N = 1, class F, class Argument>
std::vector<Output> results_with(F& body, Function& self, const Argument& argument) {
  static_assert(N <= kMostByName,
                "the body takes a Function&, and an Output for each argument or a vector of them");
  constexpr auto kEach = std::make_index_sequence<N>();
  if constexpr (takes<F, Function&>(kEach)) {
    const auto apply = [&]<std::size_t... I>(std::index_sequence<I...>) {
      return results_of(body(self, argument(I)...));
    };
    return apply(kEach);
  } else if constexpr (N <= kMostByName) {
    return results_with<N + 1>(body, self, argument);
  }
}

// The node's results in the form in which a body returned them.
template <class R>
auto returned_as(const Op& node) {
  using Plain = std::remove_cvref_t<R>;
  std::vector<Output> results = node.outputs();
  results.pop_back();  // what it saves
  if constexpr (std::is_void_v<R> || std::is_same_v<Plain, Op>) {
    return node;
  } else if constexpr (std::is_convertible_v<R, Output>) {
    return results[0];
  } else if constexpr (std::is_same_v<Plain, std::vector<Output>>) {
    return results;
  } else {
    return [&]<std::size_t... I>(std::index_sequence<I...>) {
      return std::make_tuple(((void)I, results[I])...);
    }
    (std::make_index_sequence<std::tuple_size_v<Plain>>());
  }
}

}  // namespace detail

// Runs then_branch if the scalar bool predicate is true, else else_branch, and returns its results.
// Both return the same number of values with the same dtypes: an Output, a vector or a tuple of
// Outputs. If they return nothing or an Op, the node is returned, for targets and control edges.
// Throws Error, and leaves the graph unchanged, if the results do not match or a body throws.
template <class Then, class Else>
auto cond(const Output& predicate, Then&& then_branch, Else&& else_branch,
          Site site = Site::here()) {
  return detail::returned_as<std::invoke_result_t<Then&>>(
      detail::branch(predicate, {detail::body_of(else_branch), detail::body_of(then_branch)}, true,
                     std::move(site)));
}

// The result of bodies[index], where index is a scalar i32 or i64; out of range: of the last body.
Output switch_case(const Output& index, std::vector<std::function<Output()>> bodies,
                   Site site = Site::here());
// switch_case() for bodies that return several values, or none.
Op switch_case_op(const Output& index, const Bodies& bodies, Site site = Site::here());

// Defines a function. The body receives the function itself, for recursive calls, and the
// arguments. It may also use outside values, which every call then passes on. A recursive function
// runs on one device, and its body is run twice if it uses outside values.
template <class F>
Function function(GraphBuilder& g, std::string_view name, const std::vector<ValueType>& arguments,
                  const std::vector<ValueType>& results, F&& body, Site site = Site::here()) {
  const auto argument = [&, site](const std::vector<Output>& values, std::size_t i) {
    return detail::argument_of(values, i, name, site);
  };
  return detail::make_function(
      g, name, arguments, results, site, [&](Function& self, const std::vector<Output>& values) {
        if constexpr (std::is_invocable_v<F&, Function&>)
          return detail::results_of(body(self));
        else if constexpr (std::is_invocable_v<F&, Function&, const std::vector<Output>&>)
          return detail::results_of(body(self, values));
        else
          return detail::results_with(body, self,
                                      [&](std::size_t i) { return argument(values, i); });
      });
}

// What a loop keeps of each iteration for its gradient: all values that the gradient needs, or the
// loop variables only, from which the gradient recomputes the others. Random numbers, values read
// or dequeued are always kept; effects happen once.
enum class LoopSave : std::uint8_t { values, variables };

struct LoopOptions {
  // Shapes of the loop variables, where a shape changes between iterations. Default: the shapes of
  // the first values.
  std::vector<PartialShape> shapes = {};
  // Loops over several devices: the number of iterations that may overlap, 1 to 1024 (the paper's
  // parallel_iterations). Results do not depend on it.
  std::int64_t window = 10;
  LoopSave save = LoopSave::values;
};

// Converts the value of a loop variable to the type of its first value, for the bodies.
inline Output in_form_of(const Output&, const Output& value) { return value; }

namespace detail {

using LoopBody = std::function<std::vector<Output>(const std::vector<Output>&)>;

Op loop(const std::vector<Output>& first, const LoopBody& cond, const LoopBody& body,
        const LoopOptions& options, Site site);

// The same of variables of these types, where the first values are made when the bodies are there.
Op loop(GraphBuilder& g, const std::vector<ValueType>& variables,
        const std::function<std::vector<Output>()>& first, const LoopBody& cond,
        const LoopBody& body, const LoopOptions& options, Site site);

// Values in the form in which the first ones were given.
template <class Variables>
auto in_form(const Variables& first, const std::vector<Output>& values) {
  if constexpr (std::is_same_v<Variables, std::vector<Output>>) {
    return values;
  } else if constexpr (std::is_convertible_v<Variables, Output>) {
    return in_form_of(first, values[0]);
  } else {
    return [&]<std::size_t... I>(std::index_sequence<I...>) {
      return std::make_tuple(in_form_of(std::get<I>(first), values[I])...);
    }
    (std::make_index_sequence<std::tuple_size_v<Variables>>());
  }
}

// Calls `f` with them.
template <class Variables, class F>
auto call_with(F& f, const Variables& first, const std::vector<Output>& values) {
  if constexpr (std::is_convertible_v<Variables, Output> ||
                std::is_same_v<Variables, std::vector<Output>>)
    return f(in_form(first, values));
  else
    return std::apply(f, in_form(first, values));
}

}  // namespace detail

// Repeats variables = body(variables), starting from `first`, while cond(variables) is true, and
// returns the last variables. `first` is an Output, or a tuple or vector of Outputs. cond takes the
// same and returns a scalar bool; body takes the same and returns the next values in the same form,
// with the dtypes and shapes of the first ones. Both may use outside values. A graph variable that
// the loop does not write is read once, before the loop; of one that it writes, each iteration sees
// the writes of the iterations before.
//
// Nodes of a body run on the device of the loop unless they name another. The body may write
// variables, use queues and take elements of datasets; the condition may use queues only. Neither
// may use files. Throws Error, and leaves the graph unchanged, if dtypes, shapes or numbers of
// values do not match.
template <class Variables, class Cond, class BodyFunction>
auto while_loop(const Variables& first, Cond&& cond, BodyFunction&& body,
                const LoopOptions& options = {}, Site site = Site::here()) {
  const Op made = detail::loop(
      detail::results_of(first),
      [&](const std::vector<Output>& values) {
        return detail::results_of(detail::call_with(cond, first, values));
      },
      [&](const std::vector<Output>& values) {
        return detail::results_of(detail::call_with(body, first, values));
      },
      options, std::move(site));
  std::vector<Output> last = made.outputs();
  last.pop_back();  // what it saves
  return detail::in_form(first, last);
}

}  // namespace troupe
