#include "apps/bench/rows.hpp"

namespace troupe {

bool wanted(const BenchOptions& options, const std::string& name) {
  return name.find(options.only) != std::string::npos;
}

}  // namespace troupe
