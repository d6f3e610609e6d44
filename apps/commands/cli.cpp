#include "apps/commands/cli.hpp"

#include <fmt/format.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>

#include "actors/runtime/worker_process.hpp"
#include "apps/commands/print.hpp"
#include "ops/isa.hpp"

namespace troupe {
namespace {

// What decides speed and bits, too.
std::string version_text() {
  NumericProfile profile = numeric_profile();
  return fmt::format("troupe {}\n{} build, kernels for {}", TROUPE_VERSION, TROUPE_BUILD_TYPE,
                     profile_text(profile));
}

}  // namespace

int run_cli(int argc, char** argv, void (*add)(CommandLine&)) {
  // A file beyond what `ulimit -f` allows is an error of its writer. Workers inherit this.
  std::signal(SIGXFSZ, SIG_IGN);
  if (Status s = ops::ready(); !s.ok()) {
    print_err("troupe: {}\n", s.text());
    return kUsage;
  }
  if (int descriptor = worker_argument(argc, argv); descriptor >= 0)
    return run_inherited_worker(descriptor);
  CommandLine line("Troupe runs machine learning graphs on actors.", version_text);
  add(line);
  int code = line.run(argc, argv);
  if (std::fflush(stdout) == 0 && std::ferror(stdout) == 0) return code;
  print_err("error: cannot write the result: {}\n", std::strerror(errno));
  return code == 0 ? 1 : code;
}

}  // namespace troupe
