// Compiled steps for people and programs: what `troupe graph --stage plan` prints.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "graph/plan.hpp"

namespace troupe {

// A partition after the other: nodes in the order in which they are numbered, with the slots they
// read and write; feeds and fetches; the bytes that its tensors need at most. Then the channels.
std::string plan_text(const CompiledGraph& compiled);

// The same as {"partitions": [...], "channels": [...]}.
nlohmann::json plan_json(const CompiledGraph& compiled);

}  // namespace troupe
