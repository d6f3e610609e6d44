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
  std::int64_t orphan_timeout = 60;
};

Status run_worker(const WorkerWords& words) {
  WorkerProcessOptions options;
  TROUPE_TRY(options.master, parse_endpoint(words.master));
  options.listen = {};
  if (!words.listen.empty()) {
    TROUPE_TRY(options.listen, parse_endpoint(words.listen));
  }
  TROUPE_TRY(options.secret, read_secret(words.secret_file));
  TROUPE_TRY(options.step_memory, parse_byte_count("--step-memory", words.step_memory));
  return run_waiting_worker(options,
                            {.limit = std::chrono::seconds(words.orphan_timeout),
                             .stop = {},
                             .input = words.secret_file == "-" ? options.secret : std::string()});
}

}  // namespace

void add_worker(CommandLine& line) {
  auto words = std::make_shared<WorkerWords>();
  Command c = line.command("worker", "Join a master: troupe worker --master HOST:PORT");
  c.option("--master", words->master, "HOST:PORT at which the master listens").required();
  c.option("--listen", words->listen,
           "HOST:PORT at which other workers reach this one (default: the address that faces the "
           "master, at a free port)");
  c.option("--secret-file", words->secret_file,
           "file of 16 to 64 bytes that the master has, too; -: standard input");
  c.option("--step-memory", words->step_memory,
           "memory limit of a step in this process, e.g. 2GiB (default: 0, the job's limit)");
  c.option("--orphan-timeout", words->orphan_timeout,
           "seconds to wait for a master that is not there yet, or was lost; 0: end at once "
           "(default: 60)")
      .within(0, 1'000'000'000);
  c.runs([words, &line] {
    std::signal(SIGPIPE, SIG_IGN);
    Status status = run_worker(*words);
    if (!status.ok()) return report_error(status, line.printing());
    if (line.printing().json) print_json({{"left", true}});
    return 0;
  });
}

}  // namespace troupe
