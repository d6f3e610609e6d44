// Variables of a graph.
#pragma once

#include <initializer_list>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "core/tensor.hpp"
#include "graph/builder.hpp"
#include "ops/api/operators.hpp"

namespace troupe {

struct VariableOptions {
  bool trainable = true;         // false: no optimizer touches it
  std::string container = {};    // the namespace of state it belongs to
  std::string shared_name = {};  // empty: the node's name
};

// A variable of a graph: its handle, and one read of it, which is made together with it and is the
// value that layers use. Passed as an x to gradients(), it stands for all its reads. Cheap to copy,
// like Output. A default-constructed Variable is empty, and so is its value.
class Variable {
 public:
  Variable() = default;
  Variable(Output handle, Output value) : handle_(handle), value_(value) {}

  bool empty() const { return handle_.empty(); }
  const Output& handle() const { return handle_; }
  // The value in the run's snapshot: the same for every reader of a run. In the body of a loop that
  // writes the variable: its value at the beginning of the iteration.
  Output value() const;
  operator Output() const { return value(); }
  // Slices of the value: see Output.
  Output operator[](std::initializer_list<Index> where) const;
  Output operator[](const Index& one) const;
  Output operator[](const ComputedIndex& at) const;
  // These throw Error, with the caller's line, if the Variable is empty.
  DType dtype(const char* file = __builtin_FILE(), int line = __builtin_LINE()) const {
    return value_.dtype(file, line);
  }
  const PartialShape& shape(const char* file = __builtin_FILE(),
                            int line = __builtin_LINE()) const {
    return handle_.shape(file, line);
  }
  std::string name(const char* file = __builtin_FILE(), int line = __builtin_LINE()) const;

 private:
  Output handle_, value_;
};

// Makes a variable. Session::init, and nothing else, computes `initial` and assigns it. Other
// variables that it is computed from have their values by then: a copy is variable(g, "copy", v).
// Throws Error unless the shape of the initial value is fully known.
Variable variable(GraphBuilder& g, std::string_view name, Output initial,
                  const VariableOptions& options = {}, Site site = Site::here());
Variable variable(GraphBuilder& g, std::string_view name, Tensor initial,
                  const VariableOptions& options = {}, Site site = Site::here());
// A scalar: variable(g, "b", 0.f); a vector: variable(g, "w", {1.f, 2.f}).
template <class T>
requires(std::is_arithmetic_v<T>) Variable
    variable(GraphBuilder& g, std::string_view name, T initial, const VariableOptions& options = {},
             Site site = Site::here()) {
  return variable(g, name, Tensor::scalar<T>(initial), options, std::move(site));
}
template <class T>
requires(std::is_arithmetic_v<T>) Variable
    variable(GraphBuilder& g, std::string_view name, std::initializer_list<T> initial,
             const VariableOptions& options = {}, Site site = Site::here()) {
  return variable(g, name, Tensor::of<T>(Shape{std::int64_t(initial.size())}, initial), options,
                  std::move(site));
}

namespace detail {
// A tensor of the variable's dtype and shape, each element of which is the number.
Output filled(const Variable& v, const Operand& number, const Site& site);
}  // namespace detail

// A read that runs after all ops in `after`; see ReadVariable for the value it returns.
Output read(const Variable& v, const std::vector<Op>& after = {}, Site site = Site::here());
Op assign(const Variable& v, Output value, Site site = Site::here());
Op assign_add(const Variable& v, Output value, Site site = Site::here());
Op assign_sub(const Variable& v, Output value, Site site = Site::here());
// The same of all elements with one number: assign_add(steps, 1). Throw Error for a number that the
// variable's dtype cannot hold.
template <class T>
requires(std::is_arithmetic_v<T>) Op assign(const Variable& v, T number, Site site = Site::here()) {
  return assign(v, detail::filled(v, Operand(number), site), site);
}
template <class T>
requires(std::is_arithmetic_v<T>) Op
    assign_add(const Variable& v, T number, Site site = Site::here()) {
  return assign_add(v, detail::filled(v, Operand(number), site), site);
}
template <class T>
requires(std::is_arithmetic_v<T>) Op
    assign_sub(const Variable& v, T number, Site site = Site::here()) {
  return assign_sub(v, detail::filled(v, Operand(number), site), site);
}
// Each variable of `to` takes the value of its counterpart in `from`, as it is behind the ops in
// `after`: assign(target.parameters(), net.parameters()) copies a network. The order does not
// matter, as all values are read first, unless `after` writes some of `to`. Throws Error for lists
// of different lengths, or empty ones.
Op assign(const std::vector<Variable>& to, const std::vector<Variable>& from,
          const std::vector<Op>& after = {}, Site site = Site::here());
// Writes of the rows named by `indices`, applied in the order of the indices.
Op scatter_add(const Variable& v, Output indices, Output rows, Site site = Site::here());
Op scatter_sub(const Variable& v, Output indices, Output rows, Site site = Site::here());
Op scatter_update(const Variable& v, Output indices, Output rows, Site site = Site::here());

// Removes duplicates: handles with equal name and container are one variable. Keeps the first.
std::vector<Variable> distinct(const std::vector<Variable>& variables, Site site = Site::here());

// The graph's trainable variables of floating or complex dtype, in the order of creation: what
// optimizers change by default.
std::vector<Variable> trainable_variables(GraphBuilder& g);

// A node that completes when all `ops` have. Throws Error if one of them is empty.
Op group(GraphBuilder& g, std::vector<Op> ops, std::string_view name = {},
         Site site = Site::here());

}  // namespace troupe
