#include "troupe/apps/commands/command_line.hpp"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "troupe/core/log.hpp"

namespace troupe {
namespace {

LogLevel level_of(const std::string& name) {
  if (name == "debug") return LogLevel::debug;
  if (name == "info") return LogLevel::info;
  if (name == "error") return LogLevel::error;
  return name == "off" ? LogLevel::off : LogLevel::warning;
}

}  // namespace

void CommandLine::add(CLI::App* command, std::function<int()> run) {
  command->add_option("--output", output_, "text or json")->check(CLI::IsMember({"text", "json"}));
  command->add_flag("--quiet", printing_.quiet, "no progress");
  command->add_option("--log", log_, "debug, info, warning, error or off")
      ->check(CLI::IsMember({"debug", "info", "warning", "error", "off"}))
      ->envname("TROUPE_LOG");
  command->callback([this, run = std::move(run)] { chosen_ = run; });
}

int CommandLine::run_chosen() {
  printing_.json = output_ == "json";
  set_log_level(level_of(log_));
  return chosen_();
}

void print_json(const nlohmann::json& document) {
  fmt::print("{}\n", document.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace));
}

int exit_code(const Status& status) {
  switch (status.code()) {
    case Code::ok:
      return 0;
    case Code::unavailable:
      return 75;
    case Code::internal:
      return 70;
    default:
      return 1;
  }
}

int report_error(const Status& status, const Printing& printing, const std::string* checkpoint) {
  if (printing.json) {
    nlohmann::json out = {{"error", status.text()},
                          {"code", std::string(code_name(status.code()))}};
    if (checkpoint)
      out["checkpoint"] = checkpoint->empty() ? nlohmann::json() : nlohmann::json(*checkpoint);
    print_json(out);
  } else {
    fmt::print(stderr, "error: {}\n", status.text());
  }
  return exit_code(status);
}

int report_usage(const Status& status, const Printing& printing) {
  report_error(status, printing);
  return kUsage;
}

}  // namespace troupe
