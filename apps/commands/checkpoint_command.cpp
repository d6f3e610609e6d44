#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "troupe/apps/commands/commands.hpp"
#include "troupe/serialization/checkpoint.hpp"

namespace troupe {

int checkpoint_list_command(const std::string& directory, const Printing& printing) {
  auto found = list_checkpoints(directory);
  if (!found.ok()) return report_error(found.status(), printing);
  nlohmann::json rows = nlohmann::json::array();
  bool damaged = false;
  for (const auto& [step, path] : *found) {
    Status status = verify_checkpoint(path);
    damaged |= !status.ok();
    rows.push_back({{"path", path}, {"step", step}, {"ok", status.ok()}});
    if (!status.ok()) rows.back()["error"] = status.text();
    if (!printing.json) fmt::print("{}  {}\n", path, status.ok() ? "ok" : status.text());
  }
  if (printing.json)
    fmt::print("{}\n", rows.dump());
  else if (found->empty())
    fmt::print("no checkpoint in {}\n", directory);
  return damaged ? 1 : 0;
}

int checkpoint_verify_command(const std::string& path, const Printing& printing) {
  Status status = verify_checkpoint(path);
  if (!status.ok()) return report_error(status, printing);
  if (printing.json)
    fmt::print("{}\n", nlohmann::json{{"path", path}, {"ok", true}}.dump());
  else
    fmt::print("{}  ok\n", path);
  return 0;
}

}  // namespace troupe
