// Reverse-mode differentiation as graph construction (paper section 4.1).
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "core/status.hpp"
#include "graph/builder.hpp"

namespace troupe {

// One forward node, seen by its op's gradient function.
class GradContext {
 public:
  GraphBuilder& g;
  Op op;
  std::vector<Output> x;   // the node's inputs
  std::vector<Output> y;   // its outputs
  std::vector<Output> dy;  // gradients of its outputs; zeros where none came
  // Of the inputs, whose gradient is asked for. Only ops that would do much for nothing look.
  std::vector<bool> wanted;
  // Of a loop: gradients of the lists that SavedList nodes have made of what its run left.
  struct OfSaved {
    NodeId node = kNoNode;
    Output gradient;
  };
  std::vector<OfSaved> of_saved;

  const NodeDef& node() const { return g.node(op.node()); }
  std::int64_t int_attr(std::string_view name) const;
  double float_attr(std::string_view name) const;
  bool bool_attr(std::string_view name) const;
  const std::string& string_attr(std::string_view name) const;
  DType type_attr(std::string_view name) const;
  const std::vector<std::int64_t>& ints_attr(std::string_view name) const;
};

// Zeros in the form of x, a tensor or a list: its gradient where none comes.
Output zero_gradient(const Output& x);

// x, cast if it is of another dtype.
Output of_dtype(const Output& x, DType dtype);

// d(sum of ys)/d(xs), one Output per x; empty where no path leads from x to a y (None, not zeros).
// Several gradients of one port are summed with AddN in node order. Gradient nodes keep the site
// of their forward node and stand under the scope "gradients". Ports among `stop` are held constant
// for what lies before them.
//
// Of a complex x = u + i v, the gradient of a real loss L is dL/du + i dL/dv: the direction in
// which L grows fastest, as in TensorFlow and PyTorch. So the gradient of y = f(x), f holomorphic,
// is dy * conj(f'(x)). A loss must be real: complex ys need grad_ys.
//
// An x that is a variable's handle, or a read of it, stands for the value that the variable has in
// the run's snapshot: the gradient is the sum over all its reads, whichever handle of that name
// they use. A read ordered after a write of the same run has another value. As an x it stands for
// itself alone; on a path to the variable it is refused, since no gradient flows through a write.
//
// Errors: not_found for an op on the path without gradient (op name, type and site);
// invalid_argument for ys that are not trainable, complex ones without grad_ys, and such a read.
Expected<std::vector<Output>> gradients(std::span<const Output> ys, std::span<const Output> xs,
                                        std::span<const Output> grad_ys = {},
                                        std::span<const Output> stop = {});

}  // namespace troupe
