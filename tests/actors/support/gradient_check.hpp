// Gradients of first and second order against differences.
#pragma once

#include <functional>
#include <vector>

#include "ops/api.hpp"
#include "tests/actors/support/sessions.hpp"

namespace troupe::test {

// dy/dx, which must exist.
Output gradient_of(Output y, Output x);

// body(i, v), n times over, of a value that begins with `first`.
Output loop_of(Graph& g, Output n, Output first,
               const std::function<Output(Output i, Output v)>& body,
               const LoopOptions& options = {});

// The three numbers at which gradients are checked, one of them moved.
Tensor point(double move = 0, std::size_t at = 0);

// y(s, x) of a vector x and something that selects, for each of `selected`: dy/dx against
// differences of y, and the gradient of a sum of dy/dx with weights, a product of the Hessian with
// a vector, against differences of dy/dx.
void check_gradients(const std::function<Output(Graph&, Output s, Output x)>& make,
                     const std::vector<Tensor>& selected, const Place& place = kPlaces[0]);

// The same of a number.
void check_gradients(const std::function<Output(Graph&, Output n, Output x)>& make,
                     const std::vector<std::int32_t>& numbers = {0, 1, 2, 5},
                     const Place& place = kPlaces[0]);

}  // namespace troupe::test
