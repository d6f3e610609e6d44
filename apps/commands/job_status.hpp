// What `troupe status` and /metrics tell of a job under `troupe run`, as JSON.
#pragma once

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "core/status.hpp"

namespace troupe {

// What the programs of the job say: a document for each, or why it says nothing.
nlohmann::ordered_json ask_programs(const std::string& folder, std::string_view question,
                                    int answer_within_ms);

struct JobStatusOptions {
  int answer_within_ms = 3000;  // a program asks its workers for a quarter of a second
};
// The supervisor's processes, how far the job is, its checkpoint, its programs, and what is wrong.
// not_found: no job has been in that folder.
Expected<nlohmann::ordered_json> status_of_job(const std::string& folder,
                                               const JobStatusOptions& options);

// A field that another process wrote; empty: it is not there, or no text.
std::string text_in(const nlohmann::ordered_json& json, const char* field);

// Calls `then` with each wait, and whose it is: "session 2: " where there are several.
template <class Then>
void for_each_wait(const nlohmann::ordered_json& program, Then then) {
  if (!program.contains("sessions") || !program["sessions"].is_array()) return;
  const auto& sessions = program["sessions"];
  for (std::size_t s = 0; s < sessions.size(); ++s)
    if (sessions[s].is_object() && sessions[s].contains("waits") && sessions[s]["waits"].is_array())
      for (const auto& wait : sessions[s]["waits"])
        then(wait, sessions.size() > 1 ? fmt::format("session {}: ", s + 1) : std::string());
}

}  // namespace troupe
