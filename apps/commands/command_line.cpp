#include "apps/commands/command_line.hpp"
#include "apps/commands/print.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstdlib>
#include <cstring>

#include "core/log.hpp"
#include "core/log_writer.hpp"
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

std::vector<std::string> subcommands(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::App* c : app.get_subcommands([](const CLI::App*) { return true; }))
    names.push_back(c->get_name());
  return names;
}

const CLI::App* subcommand(const CLI::App& app, const std::string& name) {
  for (const CLI::App* c : app.get_subcommands([](const CLI::App*) { return true; }))
    if (c->get_name() == name) return c;
  return nullptr;
}

std::vector<std::string> long_options(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::Option* option : app.get_options())
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
  return names;
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

Option& Option::above(double low, double high) {
  option_->check(CLI::Validator(
      [=](std::string& text) {
        double value = 0;
        bool number = CLI::detail::lexical_cast(text, value) && value > low && value <= high;
        return number ? std::string{}
                      : fmt::format("Value {} is not above {} and up to {}", text, low, high);
      },
      "NUMBER"));
  return *this;
}

Option& Option::one_of(std::vector<std::string> words) {
  option_->check(CLI::IsMember(std::move(words)));
  return *this;
}

Option& Option::list() {
  option_->allow_extra_args(false)->delimiter(',');
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

Option& Option::not_with(const Option& other) {
  option_->excludes(other.option_);
  return *this;
}

bool Option::given() const { return option_->count() > 0; }

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

void Command::rest(std::vector<std::string>& words, const std::string& about) {
  app_->footer("  -- WORDS                    " + about);
  line_->rests_[app_->get_name()] = &words;
}

void Command::runs(std::function<int()> run) {
  option("--output", line_->output_, "format of the result: text or json").one_of({"text", "json"});
  flag("--quiet", line_->printing_.quiet, "print no progress");
  option("--log", line_->log_,
         "least severe log messages to print: debug, info, warning, error or off")
      .one_of({"debug", "info", "warning", "error", "off"})
      .from_environment("TROUPE_LOG");
  option("--log-format", line_->log_format_, "log messages as text, or as a JSON object a line")
      .one_of({"text", "json"})
      .from_environment("TROUPE_LOG_FORMAT");
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
  const std::vector<std::string> words(argv + std::min(argc, 1), argv + argc);
  if (words.empty()) {
    write_err(app_->help());
    return kUsage;
  }
  if (words.front() == "help") return help({words.begin() + 1, words.end()});
  const std::vector<std::string>* rest = take_rest(argc, argv);
  try {
    app_->parse(argc, argv);
    if (rest && rest->empty())
      throw CLI::RequiredError(fmt::format("troupe {}: a program after --", words.front()));
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) return app_->exit(error);  // it was asked for help
    if (!names_no_command(words)) app_->exit(error);
    suggest(words);
    return kUsage;
  }
  printing_.json = output_ == "json";
  set_log_level(level_of(log_));
  set_log_format(log_format_ == "json" ? LogFormat::json : LogFormat::text);
  setenv("TROUPE_LOG_FORMAT", log_format_.c_str(), 1);  // workers and programs that it starts
  return chosen_();
}

// Of a command that has them: takes them off the line.
std::vector<std::string>* CommandLine::take_rest(int& argc, char** argv) {
  const auto found = argc > 1 ? rests_.find(argv[1]) : rests_.end();
  if (found == rests_.end()) return nullptr;
  const auto dashes = std::find_if(argv, argv + argc,
                                   [](const char* word) { return std::strcmp(word, "--") == 0; });
  if (dashes == argv + argc) return found->second;
  found->second->assign(dashes + 1, argv + argc);
  argc = int(dashes - argv);
  return found->second;
}

// As `troupe COMMAND --help` does.
int CommandLine::help(const std::vector<std::string>& command) {
  const CLI::App* app = app_.get();
  if (!command.empty())
    if (auto named = programs_.find(command.front()); named != programs_.end()) {
      std::string words[] = {"troupe", named->first, "--help"};
      char* argv[] = {words[0].data(), words[1].data(), words[2].data(), nullptr};
      return become(named->second, argv);
    }
  std::string above;
  for (const std::string& word : command) {
    const CLI::App* next = subcommand(*app, word);
    if (!next) {
      names_no_command(command);
      suggest(command);
      return kUsage;
    }
    above += (above.empty() ? "" : " ") + app->get_name();
    app = next;
  }
  write_out(app->help(above));
  return 0;
}

bool CommandLine::names_no_command(const std::vector<std::string>& words) const {
  const CLI::App* app = app_.get();
  std::string command = "troupe";
  for (const std::string& word : words) {
    if (word == "--") continue;
    const std::vector<std::string> names = subcommands(*app);
    if (names.empty()) return false;
    if (word.starts_with('-')) {
      print_err("'{}' stands before the command: '{}' needs one of {}\n", word, command,
                fmt::join(names, ", "));
      return true;
    }
    app = subcommand(*app, word);
    command += " " + word;
    if (app) continue;
    print_err("there is no command '{}'; known are {}\n", command, fmt::join(names, ", "));
    return true;
  }
  const std::vector<std::string> names = subcommands(*app);
  if (!names.empty()) print_err("'{}' needs one of {}\n", command, fmt::join(names, ", "));
  return !names.empty();
}

// What may have been meant by words that nobody understood.
void CommandLine::suggest(const std::vector<std::string>& words) const {
  const CLI::App* app = app_.get();
  std::string command = "troupe";
  for (const std::string& word : words) {
    if (word.starts_with("--")) {
      const std::string name = word.substr(0, word.find('='));
      const std::vector<std::string> known = long_options(*app);
      if (std::find(known.begin(), known.end(), name) != known.end()) continue;
      if (auto near = near_names(name, known, 1); !near.empty())
        print_err("did you mean '{}'?\n", near.front());
      return;
    }
    const std::vector<std::string> names = subcommands(*app);
    if (names.empty() || word.starts_with('-')) continue;
    if (const CLI::App* next = subcommand(*app, word)) {
      app = next;
      command += " " + word;
      continue;
    }
    if (auto near = near_names(word, names, 1); !near.empty())
      print_err("did you mean '{} {}'?\n", command, near.front());
    return;
  }
}

}  // namespace troupe
