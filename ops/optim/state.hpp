// State of optimizers: a variable for each parameter.
#pragma once

#include <string_view>

#include "ops/api/variable.hpp"

namespace troupe::optim {

// A variable, initially zero, on the device and in the container of `beside`, named in the current
// scope. Not trainable.
Variable zeros_beside(const Variable& beside, std::string_view name, DType dtype,
                      const Shape& shape, const Site& site);

// The same, named under the parameter, with its shape and dtype.
Variable slot_of(const Variable& parameter, std::string_view name, const Site& site);

}  // namespace troupe::optim
