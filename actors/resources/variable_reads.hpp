// What reads of variables are answered with.
#pragma once

#include <string>

#include "core/status.hpp"

namespace troupe {

// Of one without a value: failed_precondition. So are writes that compute with the value.
Status uninitialised(const std::string& variable);

}  // namespace troupe
