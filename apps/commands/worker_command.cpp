#include <fmt/format.h>

#include <csignal>
#include <memory>
#include <nlohmann/json.hpp>

#include "actors/runtime/worker_process.hpp"
#include "apps/commands/command_line.hpp"
#include "core/byte_count.hpp"

namespace troupe {
namespace {

struct WorkerWords {
  std::string master, listen, secret_file, step_memory = "0";
};

Status run_worker(const WorkerWords& words) {
  WorkerProcessOptions options;
  TROUPE_TRY(options.master, parse_endpoint(words.master));
  if (!words.listen.empty()) {
    TROUPE_TRY(options.listen, parse_endpoint(words.listen));
  }
  TROUPE_TRY(options.secret, read_secret(words.secret_file));
  TROUPE_TRY(options.step_memory, parse_byte_count("--step-memory", words.step_memory));
  return troupe::run_worker(options);
}

}  // namespace

void add_worker(CommandLine& line) {
  auto words = std::make_shared<WorkerWords>();
  Command c = line.command("worker", "Join a master: troupe worker --master HOST:PORT");
  c.option("--master", words->master, "HOST:PORT of the job").required();
  c.option("--listen", words->listen, "HOST:PORT where other workers reach this one");
  c.option("--secret-file", words->secret_file, "16 to 64 bytes shared with the master");
  c.option("--step-memory", words->step_memory,
           "bytes that a step may hold in this process, e.g. 2GiB (0: as the job says)");
  c.runs([words, &line] {
    std::signal(SIGPIPE, SIG_IGN);
    Status status = run_worker(*words);
    if (!status.ok()) return report_error(status, line.printing());
    if (line.printing().json) print_json({{"left", true}});
    return 0;
  });
}

}  // namespace troupe
