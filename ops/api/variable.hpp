// Variables as a client makes them.
#pragma once

#include <initializer_list>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "core/tensor.hpp"
#include "graph/builder.hpp"

namespace troupe {

struct VariableOptions {
  bool trainable = true;         // false: no optimizer touches it
  std::string container = {};    // the namespace of state it belongs to
  std::string shared_name = {};  // empty: the node's name
};

// A variable of a graph: its handle, and one read of it made at once, which is the value that
// layers use. As an x of gradients() it stands for all its reads. Copies freely, like Output. One
// that variable() did not make is empty, and so is its value.
class Variable {
 public:
  Variable() = default;
  Variable(Output handle, Output value) : handle_(handle), value_(value) {}

  bool empty() const { return handle_.empty(); }
  const Output& handle() const { return handle_; }
  // As of the run's snapshot: every reader in a run sees the same value. In the body of a loop, as
  // of the beginning of the iteration: a loop may write it.
  Output value() const;
  operator Output() const { return value(); }
  // These throw Error, with the line that asks, for an empty one.
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

// Makes a variable whose first value is `initial`, computed by Session::init; nothing else runs it.
// Throws Error when the initial value's shape is not fully known.
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

// A read after everything that `after` waits for; see ReadVariable for what it sees.
Output read(const Variable& v, const std::vector<Op>& after = {}, Site site = Site::here());
Op assign(const Variable& v, Output value, Site site = Site::here());
Op assign_add(const Variable& v, Output value, Site site = Site::here());
Op assign_sub(const Variable& v, Output value, Site site = Site::here());
// Of some rows: the ones that `indices` name, one after the other.
Op scatter_add(const Variable& v, Output indices, Output rows, Site site = Site::here());
Op scatter_sub(const Variable& v, Output indices, Output rows, Site site = Site::here());
Op scatter_update(const Variable& v, Output indices, Output rows, Site site = Site::here());

// The first of those that are one variable: the same, or of one name and container.
std::vector<Variable> distinct(const std::vector<Variable>& variables, Site site = Site::here());

// The variables that an optimizer changes unless told otherwise: those of the graph, in the order
// of creation, that are trainable and of a float dtype.
std::vector<Variable> trainable_variables(GraphBuilder& g);

// A node that is done when all of `ops` are. Throws Error for an empty one.
Op group(GraphBuilder& g, std::vector<Op> ops, std::string_view name = {},
         Site site = Site::here());

}  // namespace troupe
