// Scripts of ours that time a peer in Python, each figure in a process of its own.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

#include "troupe/core/status.hpp"

namespace troupe {

// What a command prints; failed_precondition when it fails.
Expected<std::string> output_of(const std::string& command);

// The line of JSON that a script of apps/bench prints. internal when it prints something else, or
// lacks one of the keys.
Expected<nlohmann::json> run_peer_script(const std::string& python, std::string_view script,
                                         const std::string& arguments,
                                         std::initializer_list<const char*> keys);

}  // namespace troupe
