#include <fmt/format.h>

#include <memory>
#include <nlohmann/json.hpp>
#include <optional>

#include "apps/commands/command_line.hpp"
#include "apps/commands/print.hpp"
#include "serialization/checkpoint.hpp"

namespace troupe {
namespace {

int list(const std::string& directory, const Printing& printing) {
  auto found = list_checkpoints(directory);
  if (!found.ok()) return report_error(found.status(), printing);
  nlohmann::json rows = nlohmann::json::array();
  bool damaged = false;
  for (const CheckpointInfo& each : *found) {
    const std::optional<Status> status = verify_listed(each);
    if (!status) continue;
    damaged |= !status->ok();
    rows.push_back({{"path", each.path}, {"step", each.step}, {"ok", status->ok()}});
    if (!status->ok()) rows.back()["error"] = status->text();
    if (!printing.json) print_out("{}  {}\n", each.path, status->ok() ? "ok" : status->text());
  }
  if (printing.json)
    print_json(rows);
  else if (found->empty())
    print_out("no checkpoint in {}\n", directory);
  return damaged ? 1 : 0;
}

int verify(const std::string& path, const Printing& printing) {
  Status status = verify_checkpoint(path);
  if (!status.ok()) return report_error(status, printing);
  if (printing.json)
    print_json(nlohmann::json{{"path", path}, {"ok", true}});
  else
    print_out("{}  ok\n", path);
  return 0;
}

}  // namespace

void add_checkpoint(CommandLine& line) {
  auto path = std::make_shared<std::string>();
  Command c = line.command("ckpt", "Look at checkpoints");
  Command ls = c.subcommand("ls", "List and verify, e.g. troupe ckpt ls DIR");
  ls.option("directory", *path).required();
  ls.runs([path, &line] { return list(*path, line.printing()); });
  Command check = c.subcommand("verify", "Check every byte of one");
  check.option("path", *path).required();
  check.runs([path, &line] { return verify(*path, line.printing()); });
}

}  // namespace troupe
