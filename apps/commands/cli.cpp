#include "troupe/apps/commands/cli.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>

#include "troupe/actors/runtime/worker_process.hpp"
#include "troupe/apps/commands/command_line.hpp"
#include "troupe/core/name.hpp"

namespace troupe {
namespace {

// What decides speed and bits, too.
std::string version_text() {
  NumericProfile profile = numeric_profile();
  return fmt::format("troupe {}\n{} build, kernels for {}", TROUPE_VERSION, TROUPE_BUILD_TYPE,
                     profile_text(profile));
}

void suggest(const CLI::App& app, int argc, char** argv) {
  if (argc < 2 || argv[1][0] == '-') return;
  std::vector<std::string> names;
  for (const CLI::App* c : app.get_subcommands({})) names.push_back(c->get_name());
  if (std::find(names.begin(), names.end(), argv[1]) != names.end()) return;
  auto near = near_names(argv[1], names, 1);
  if (!near.empty()) fmt::print(stderr, "did you mean 'troupe {}'?\n", near.front());
}

}  // namespace

int run_cli(int argc, char** argv) {
  CLI::App app{"Troupe runs machine learning graphs on actors.", "troupe"};
  CommandLine line;
  app.require_subcommand(1);
  app.set_version_flag("--version", version_text);
  add_commands(app, line);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    int code = app.exit(error);
    if (code != 0) suggest(app, argc, argv);
    return code == 0 ? 0 : kUsage;
  }
  int code = line.run_chosen();
  if (std::fflush(stdout) == 0 && std::ferror(stdout) == 0) return code;
  fmt::print(stderr, "error: cannot write the result: {}\n", std::strerror(errno));
  return code == 0 ? 1 : code;
}

}  // namespace troupe
