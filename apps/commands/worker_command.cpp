#include <fmt/format.h>

#include "troupe/actors/runtime/worker_process.hpp"
#include "troupe/apps/commands/cli.hpp"
#include "troupe/apps/commands/commands.hpp"

namespace troupe {

int worker_command(const std::string& master, const std::string& listen,
                   const std::string& secret_file) {
  WorkerProcessOptions options;
  auto run = [&]() -> Status {
    TROUPE_TRY(options.master, parse_endpoint(master));
    if (!listen.empty()) {
      TROUPE_TRY(options.listen, parse_endpoint(listen));
    }
    TROUPE_TRY(options.secret, read_secret(secret_file));
    return run_worker(options);
  };
  Status status = run();
  if (status.ok()) return 0;
  fmt::print(stderr, "error: {}\n", status.text());
  return status.code() == Code::unavailable ? 75 : exit_code(status);
}

}  // namespace troupe
