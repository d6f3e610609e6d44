// Which file of ops/kernels/ defines which op.
#pragma once

#include <functional>
#include <map>
#include <string>

namespace troupe::ops::detail {

// File by op, of the kernels that this process has loaded.
std::map<std::string, std::string, std::less<>> op_files();

}  // namespace troupe::ops::detail
