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
// A body uses values of the graph around it as they are. What a body does (writes, queues, files,
// Print, Assert) happens in a run exactly when the body is run, whether or not a result is used.
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
  // A call: its results, in order. Throws Error for other arguments than were declared.
  std::vector<Output> call(const std::vector<Output>& arguments, Site site = Site::here()) const;
  Op call_op(const std::vector<Output>& arguments, Site site = Site::here()) const;
  // Of a function with one result. The line is that of the first argument.
  Output operator()(const Passed& a) const { return one({a.output}, a.site); }
  Output operator()(const Passed& a, const Passed& b) const {
    return one({a.output, b.output}, a.site);
  }
  Output operator()(const Passed& a, const Passed& b, const Passed& c) const {
    return one({a.output, b.output, c.output}, a.site);
  }

 private:
  Output one(const std::vector<Output>& arguments, const Site& site) const;

  GraphBuilder* graph_;
  std::string name_;
};

// What bodies return: nothing, an Op, one value, or several.
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

// Argument `i` of a function under construction. Throws Error when it has fewer.
Output argument_of(const std::vector<Output>& values, std::size_t i, std::string_view name,
                   const Site& site);
Op branch(const Output& selector, const Bodies& bodies, bool two_ways, Site site);
Function make_function(
    GraphBuilder& g, std::string_view name, const std::vector<ValueType>& arguments,
    const std::vector<ValueType>& results, Site site,
    const std::function<std::vector<Output>(Function&, const std::vector<Output>&)>& body);

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

// The results of one of two bodies, as the scalar predicate says; the other one is not run. Both
// return the same number of values of the same dtypes: an Output, a vector or a tuple of them; or
// nothing or an Op, and then the node is returned, for targets and control edges. Throws Error, and
// leaves the graph as it was, where they do not agree or a body throws.
template <class Then, class Else>
auto cond(const Output& predicate, Then&& then_branch, Else&& else_branch,
          Site site = Site::here()) {
  return detail::returned_as<std::invoke_result_t<Then&>>(
      detail::branch(predicate, {detail::body_of(else_branch), detail::body_of(then_branch)}, true,
                     std::move(site)));
}

// The result of the body that the scalar index (i32 or i64) names; out of range, of the last one.
Output switch_case(const Output& index, std::vector<std::function<Output()>> bodies,
                   Site site = Site::here());
// The same for bodies that return several values, or none.
Op switch_case_op(const Output& index, const Bodies& bodies, Site site = Site::here());

// A function that is called by its name. The body gets the function itself and its arguments; it
// may use values around it, too, which each call then passes on. One that calls itself runs on one
// device; its body is made twice where it uses such values.
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
        else if constexpr (std::is_invocable_v<F&, Function&, Output>)
          return detail::results_of(body(self, argument(values, 0)));
        else if constexpr (std::is_invocable_v<F&, Function&, Output, Output>)
          return detail::results_of(body(self, argument(values, 0), argument(values, 1)));
        else
          return detail::results_of(
              body(self, argument(values, 0), argument(values, 1), argument(values, 2)));
      });
}

// What a loop keeps of each iteration for its gradient: the values that that needs, or its
// variables alone, from which the gradient computes those values again. What was drawn, read,
// dequeued or printed is kept, too: it happens once.
enum class LoopSave : std::uint8_t { values, variables };

struct LoopOptions {
  // Of the variables, where a shape changes from iteration to iteration; unless given, those of the
  // first values.
  std::vector<PartialShape> shapes = {};
  // Of a loop over several devices: how many iterations may be under way at once, 1 to 1024 (the
  // paper's parallel_iterations). Results do not depend on it.
  std::int64_t window = 10;
  LoopSave save = LoopSave::values;
};

// A variable of a loop as bodies get it: in the form of the first one.
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

// The variables after as many iterations as `cond` is true of them before: body(body(... first)).
// `first` is an Output, a tuple of them or a vector; cond and body take the same and return one
// bool and, in the same form, the next values, which have the dtypes and shapes of the first ones.
// Values around the bodies are used as they are. A variable of the graph that the loop does not
// write is read once, before the loop; of one that it writes, an iteration sees what the one before
// left.
//
// A body's nodes run where the loop does, but for those that name another device. Bodies may write
// variables, use queues and take elements of datasets; the condition writes no variable and takes
// no element; neither uses files. Throws Error, and leaves the graph as it was, where dtypes,
// shapes or numbers of values do not agree.
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
