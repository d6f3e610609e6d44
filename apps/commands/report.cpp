#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "apps/commands/command_line.hpp"
#include "apps/commands/print.hpp"
#include "core/uncaught.hpp"

namespace troupe {

void print_json(const nlohmann::json& document) {
  print_out("{}\n", document.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace));
}

int exit_code(const Status& status) {
  return status.code() == Code::internal ? 70 : exit_code_of(status);
}

int report_error(const Status& status, const Printing& printing, const std::string* checkpoint) {
  write_last_error(status);
  if (printing.json) {
    nlohmann::json out = {{"error", status.text()},
                          {"code", std::string(code_name(status.code()))}};
    if (checkpoint)
      out["checkpoint"] = checkpoint->empty() ? nlohmann::json() : nlohmann::json(*checkpoint);
    print_json(out);
  } else {
    print_err("error: {}\n", status.text());
  }
  return exit_code(status);
}

int report_usage(const Status& status, const Printing& printing) {
  report_error(status, printing);
  return kUsage;
}

}  // namespace troupe
