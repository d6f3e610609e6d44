// State that optimizers keep beside the parameters.
#pragma once

#include <string_view>

#include "ops/api/variable.hpp"

namespace troupe::optim {

// A variable on the device and in the container of `beside`, zero at first. Its name stands in the
// scope that is open. No optimizer changes it.
Variable zeros_beside(const Variable& beside, std::string_view name, DType dtype,
                      const Shape& shape, const Site& site);

// The same under the parameter's own name, of its shape and dtype.
Variable slot_of(const Variable& parameter, std::string_view name, const Site& site);

}  // namespace troupe::optim
