#include "troupe/apps/commands/cli.hpp"

#include <fmt/format.h>

#include <cerrno>
#include <cstdio>
#include <cstring>

#include "troupe/actors/runtime/worker_process.hpp"
#include "troupe/apps/commands/command_line.hpp"

namespace troupe {
namespace {

// What decides speed and bits, too.
std::string version_text() {
  NumericProfile profile = numeric_profile();
  return fmt::format("troupe {}\n{} build, kernels for {}", TROUPE_VERSION, TROUPE_BUILD_TYPE,
                     profile_text(profile));
}

}  // namespace

int run_cli(int argc, char** argv) {
  CommandLine line("Troupe runs machine learning graphs on actors.", version_text);
  add_commands(line);
  int code = line.run(argc, argv);
  if (std::fflush(stdout) == 0 && std::ferror(stdout) == 0) return code;
  fmt::print(stderr, "error: cannot write the result: {}\n", std::strerror(errno));
  return code == 0 ? 1 : code;
}

}  // namespace troupe
