#include "apps/commands/command_line.hpp"

namespace troupe {

void add_bench(CommandLine& line) {
  line.program("bench", "Measure, e.g. troupe bench step --output json", "troupe-bench");
}

}  // namespace troupe
