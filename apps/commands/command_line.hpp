// What the commands of `troupe` share. Each is a file commands/NAME_command.cpp, which defines
//
//   void add_NAME(CommandLine& line);
//
// its command with options and action. The build calls all of them, in the order of their names.
// The library that parses is known to command_line.cpp alone: it takes seconds to compile.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "core/status.hpp"

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace troupe {

inline constexpr int kUsage = 2;

struct Printing {
  bool json = false;
  bool quiet = false;
};

// What is known of an option beside its name. A word that does not fit is a usage error.
class Option {
 public:
  explicit Option(CLI::Option* option) : option_(option) {}
  Option& required();
  Option& within(std::int64_t low, std::int64_t high);
  Option& within_numbers(double low, double high);  // which NaN is not
  Option& above(double low, double high);           // without `low` itself
  Option& one_of(std::vector<std::string> words);
  Option& list();  // several values, with commas between them or one in each of several options
  Option& from_environment(const std::string& variable);  // unless the line says
  Option& only_with(const Option& other);
  Option& not_with(const Option& other);
  bool given() const;  // once the line is parsed

 private:
  CLI::Option* option_;
};

class CommandLine;

// A command being described. Variables of options outlive the parsing; they keep the value that
// they have unless the line says another.
class Command {
 public:
  // Of a command that is only a name for several: one of them must be chosen.
  Command subcommand(const std::string& name, const std::string& about);

  // "--name VALUE", or without dashes a word in its place. Whole numbers are decimal digits,
  // without a sign where the variable has none.
  template <class T>
  Option option(const std::string& name, T& value, const std::string& about = {});
  Option flag(const std::string& name, bool& value, const std::string& about);

  // All words after the first "--" as they are, which the library would change; one at least.
  void rest(std::vector<std::string>& words, const std::string& about);

  // The options that all commands have, and what it does: `run` returns the exit code.
  void runs(std::function<int()> run);

 private:
  friend class CommandLine;
  Command(CommandLine* line, CLI::App* app) : line_(line), app_(app) {}
  CommandLine* line_;
  CLI::App* app_;
};

extern template Option Command::option(const std::string&, std::string&, const std::string&);
extern template Option Command::option(const std::string&, int&, const std::string&);
extern template Option Command::option(const std::string&, std::int64_t&, const std::string&);
extern template Option Command::option(const std::string&, std::uint64_t&, const std::string&);
extern template Option Command::option(const std::string&, double&, const std::string&);
extern template Option Command::option(const std::string&, std::vector<std::string>&,
                                       const std::string&);
extern template Option Command::option(const std::string&, std::vector<int>&, const std::string&);

// One line that is parsed, and what it chose to do.
class CommandLine {
 public:
  // `version` is printed for --version.
  CommandLine(const std::string& about, std::function<std::string()> version);
  CommandLine(const CommandLine&) = delete;
  CommandLine& operator=(const CommandLine&) = delete;
  ~CommandLine();

  const Printing& printing() const { return printing_; }
  Command command(const std::string& name, const std::string& about);
  // A command that is a program of its own, beside this one: it gets the line as it is.
  void program(const std::string& name, const std::string& about, const std::string& file);

  // Parses, and does what was chosen. Returns its exit code; kUsage, and the cause on stderr, for
  // what nobody understands, with what may have been meant; 0 after --help, --version or `help`.
  int run(int argc, char** argv);

 private:
  friend class Command;
  std::vector<std::string>* take_rest(int& argc, char** argv);
  int help(const std::vector<std::string>& command);
  // Prints what is wrong where a command has to be and none is.
  bool names_no_command(const std::vector<std::string>& words) const;
  void suggest(const std::vector<std::string>& words) const;

  std::unique_ptr<CLI::App> app_;
  std::map<std::string, std::string, std::less<>> programs_;  // by the command's name
  std::map<std::string, std::vector<std::string>*, std::less<>> rests_;
  Printing printing_;
  std::string output_ = "text", log_ = "warning", log_format_ = "text";
  std::function<int()> chosen_;
};

// Every command (generated).
void add_commands(CommandLine& line);

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
