#include "apps/commands/command_line.hpp"
#include "apps/commands/print.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstring>

#include "core/log.hpp"
#include "core/name.hpp"

namespace troupe {
namespace {

LogLevel level_of(const std::string& name) {
  if (name == "debug") return LogLevel::debug;
  if (name == "info") return LogLevel::info;
  if (name == "error") return LogLevel::error;
  return name == "off" ? LogLevel::off : LogLevel::warning;
}

// Digits that fit: the library takes -1 for the largest number, and a larger one, too.
std::string unsigned_number(std::string& text) {
  std::uint64_t value = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error == std::errc{} && end == text.data() + text.size()) return {};
  return fmt::format("{} is no number from 0 to 2^64 - 1", text);
}

// Becomes the program `file` in this program's folder; returns only where it cannot.
int become(const std::string& file, char** argv) {
  std::array<char, 4096> here;
  const ssize_t length = readlink("/proc/self/exe", here.data(), here.size());
  std::string path(here.data(), length > 0 ? std::size_t(length) : 0);
  path = path.substr(0, path.rfind('/') + 1) + file;
  execv(path.c_str(), argv);
  const bool missing = errno == ENOENT;
  print_err("error: cannot start '{}': {}{}\n", path, std::strerror(errno),
             missing ? "; ./dev build makes it" : "");
  return 1;
}

}  // namespace

Option& Option::required() {
  option_->required();
  return *this;
}

Option& Option::within(std::int64_t low, std::int64_t high) {
  option_->check(CLI::Range(low, high));
  return *this;
}

Option& Option::within_numbers(double low, double high) {
  option_->check(CLI::Validator(
      [=](std::string& text) {
        double value = 0;
        bool number = CLI::detail::lexical_cast(text, value) && value >= low && value <= high;
        return number ? std::string{}
                      : fmt::format("Value {} not in range {} to {}", text, low, high);
      },
      "NUMBER"));
  return *this;
}

Option& Option::one_of(std::vector<std::string> words) {
  option_->check(CLI::IsMember(std::move(words)));
  return *this;
}

Option& Option::from_environment(const std::string& variable) {
  option_->envname(variable);
  return *this;
}

Option& Option::only_with(const Option& other) {
  option_->needs(other.option_);
  return *this;
}

Command Command::subcommand(const std::string& name, const std::string& about) {
  app_->require_subcommand(1);
  return {line_, app_->add_subcommand(name, about)};
}

template <class T>
Option Command::option(const std::string& name, T& value, const std::string& about) {
  CLI::Option* option = app_->add_option(name, value, about);
  if constexpr (std::is_same_v<T, std::uint64_t>)
    option->check(CLI::Validator(unsigned_number, "NUMBER"));
  return Option(option);
}

template Option Command::option(const std::string&, std::string&, const std::string&);
template Option Command::option(const std::string&, int&, const std::string&);
template Option Command::option(const std::string&, std::int64_t&, const std::string&);
template Option Command::option(const std::string&, std::uint64_t&, const std::string&);
template Option Command::option(const std::string&, double&, const std::string&);
template Option Command::option(const std::string&, std::vector<std::string>&, const std::string&);
template Option Command::option(const std::string&, std::vector<int>&, const std::string&);

Option Command::flag(const std::string& name, bool& value, const std::string& about) {
  return Option(app_->add_flag(name, value, about));
}

void Command::runs(std::function<int()> run) {
  option("--output", line_->output_, "text or json").one_of({"text", "json"});
  flag("--quiet", line_->printing_.quiet, "no progress");
  option("--log", line_->log_, "debug, info, warning, error or off")
      .one_of({"debug", "info", "warning", "error", "off"})
      .from_environment("TROUPE_LOG");
  app_->callback([line = line_, run = std::move(run)] { line->chosen_ = run; });
}

CommandLine::CommandLine(const std::string& about, std::function<std::string()> version)
    : app_(std::make_unique<CLI::App>(about, "troupe")) {
  app_->require_subcommand(1);
  app_->set_version_flag("--version", std::move(version));
}

CommandLine::~CommandLine() = default;

Command CommandLine::command(const std::string& name, const std::string& about) {
  return {this, app_->add_subcommand(name, about)};
}

void CommandLine::program(const std::string& name, const std::string& about,
                          const std::string& file) {
  app_->add_subcommand(name, about);
  programs_[name] = file;
}

int CommandLine::run(int argc, char** argv) {
  if (argc > 1)
    if (auto named = programs_.find(argv[1]); named != programs_.end())
      return become(named->second, argv);
  try {
    app_->parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    if (app_->exit(error) == 0) return 0;
    if (argc > 1) suggest(argv[1]);
    return kUsage;
  }
  printing_.json = output_ == "json";
  set_log_level(level_of(log_));
  return chosen_();
}

void CommandLine::suggest(std::string_view word) const {
  if (word.starts_with('-')) return;
  std::vector<std::string> names;
  for (const CLI::App* c : app_->get_subcommands({})) names.push_back(c->get_name());
  if (std::find(names.begin(), names.end(), word) != names.end()) return;
  auto near = near_names(word, names, 1);
  if (!near.empty()) print_err("did you mean 'troupe {}'?\n", near.front());
}

}  // namespace troupe
