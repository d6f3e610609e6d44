#include <fmt/format.h>

#include <fstream>
#include <sstream>

#include "actors/node.hpp"
#include "apps/commands/cli.hpp"
#include "apps/commands/commands.hpp"

namespace troupe {

int worker_command(const std::string& master, const std::string& listen,
                   const std::string& secret_file) {
  NodeOptions options;
  auto run = [&]() -> Status {
    TROUPE_TRY(options.master, parse_endpoint(master));
    if (!listen.empty()) {
      TROUPE_TRY(options.listen, parse_endpoint(listen));
    }
    if (!secret_file.empty()) {
      std::ifstream in(secret_file, std::ios::binary);
      if (!in) return not_found("cannot open '" + secret_file + "'");
      std::ostringstream content;
      content << in.rdbuf();
      options.secret = content.str();
      while (!options.secret.empty() && options.secret.back() == '\n') options.secret.pop_back();
    }
    return run_worker(options);
  };
  Status status = run();
  if (status.ok()) return 0;
  fmt::print(stderr, "error: {}\n", status.text());
  return status.code() == Code::unavailable ? 75 : exit_code(status);
}

}  // namespace troupe
