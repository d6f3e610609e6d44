// What the commands of `troupe` share. Each is a file commands/NAME_command.cpp, which defines
//
//   void add_NAME(CLI::App& app, CommandLine& line);
//
// its subcommand with options and action. The build calls all of them, in the order of their names.
#pragma once

#include <CLI/CLI.hpp>
#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "troupe/core/status.hpp"

namespace troupe {

inline constexpr int kUsage = 2;

struct Printing {
  bool json = false;
  bool quiet = false;
};

// One line that is parsed, and what it chose to do.
class CommandLine {
 public:
  const Printing& printing() const { return printing_; }

  // Gives a command the options that all have, and what it does: `run` returns the exit code.
  void add(CLI::App* command, std::function<int()> run);
  // After parsing. REQUIRES: a command was chosen.
  int run_chosen();

 private:
  Printing printing_;
  std::string output_ = "text", log_ = "warning";
  std::function<int()> chosen_;
};

// Every command (generated).
void add_commands(CLI::App& app, CommandLine& line);

// One line on stdout. Texts that are no UTF-8, as names of files may be, have U+FFFD in their
// place.
void print_json(const nlohmann::json& document);
// The exit code that stands for an error.
int exit_code(const Status& status);
// Prints `error: ...` to stderr, or {"error": ...} to stdout, and returns the exit code. With the
// newest good checkpoint (empty: there is none) of a run that writes some.
int report_error(const Status& status, const Printing& printing,
                 const std::string* checkpoint = nullptr);
// The same for what was asked in the wrong way: returns kUsage.
int report_usage(const Status& status, const Printing& printing);

}  // namespace troupe
