#pragma once

#include <string>
#include <vector>

namespace troupe {

// The stages of compile() that Target::disabled may name.
std::vector<std::string> optional_stage_names();

}  // namespace troupe
