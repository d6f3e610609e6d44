#include "apps/bench/peer_script.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>

namespace troupe {
namespace {

// Beside the sources in a build tree, in share/troupe of an installed one.
Expected<std::string> find_script(std::string_view name) {
  std::error_code error;
  auto self = std::filesystem::read_symlink("/proc/self/exe", error);
  auto installed = self.parent_path().parent_path() / "share/troupe" / name;
  for (const std::filesystem::path& path :
       {std::filesystem::path(TROUPE_SOURCE_DIR "/apps/bench") / name, installed})
    if (std::filesystem::exists(path, error)) return path.string();
  return not_found(
      fmt::format("{} is neither among the sources nor at {}", name, installed.string()));
}

}  // namespace

Expected<std::string> output_of(const std::string& command) {
  std::FILE* pipe = popen(command.c_str(), "r");
  if (pipe == nullptr) return unavailable("cannot start a shell");
  std::string output;
  std::array<char, 4096> piece;
  while (std::size_t n = std::fread(piece.data(), 1, piece.size(), pipe))
    output.append(piece.data(), n);
  int status = pclose(pipe);
  if (status != 0)
    return failed_precondition(fmt::format("'{}' ended with status {}", command, status));
  return output;
}

Expected<PeerScript> PeerScript::start(const std::string& python, std::string_view script,
                                       const std::vector<std::string>& arguments) {
  TROUPE_TRY(const std::string path, find_script(script));
  std::vector<std::string> words = {python, path};
  words.insert(words.end(), arguments.begin(), arguments.end());
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);

  int ends[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0)
    return unavailable(fmt::format("cannot talk to {}: {}", script, std::strerror(errno)));
  File both_ways(fdopen(ends[0], "r")), complaints(std::tmpfile());
  if (!both_ways || !complaints) {
    close(ends[1]);
    return unavailable(fmt::format("cannot talk to {}: {}", script, std::strerror(errno)));
  }
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  for (int standard : {STDIN_FILENO, STDOUT_FILENO})
    posix_spawn_file_actions_adddup2(&actions, ends[1], standard);
  posix_spawn_file_actions_adddup2(&actions, fileno(complaints.get()), STDERR_FILENO);
  pid_t process = 0;
  const int error = posix_spawnp(&process, argv[0], &actions, nullptr, argv.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  close(ends[1]);
  if (error != 0)
    return unavailable(fmt::format("cannot start {}: {}", python, std::strerror(error)));
  PeerScript started(fmt::format("{}", fmt::join(words, " ")), process, std::move(both_ways),
                     std::move(complaints));
  TROUPE_TRY(started.about_, started.next_line());
  return started;
}

// At the end of its input a script ends by itself.
PeerScript::~PeerScript() {
  if (!both_ways_) return;
  both_ways_.reset();
  waitpid(process_, nullptr, 0);
}

Expected<PeerScript::Round> PeerScript::round(double seconds, std::string_view of) {
  const std::string line = fmt::format("{}{}{:.3f}\n", of, of.empty() ? "" : " ", seconds);
  if (send(fileno(both_ways_.get()), line.data(), line.size(), MSG_NOSIGNAL) < 0) return ended();
  TROUPE_TRY(const nlohmann::json said, next_line());
  if (!said.contains("ms") || !said.contains("p99"))
    return internal_error(fmt::format("'{}' printed no figure: {}", command_, said.dump()));
  return Round{said["ms"].get<double>(), said["p99"].get<double>()};
}

Expected<nlohmann::json> PeerScript::next_line() {
  char* line = nullptr;
  std::size_t capacity = 0;
  const ssize_t size = getline(&line, &capacity, both_ways_.get());
  const std::string text(line, line + std::max<ssize_t>(size, 0));
  std::free(line);
  if (size < 0) return ended();
  auto json = nlohmann::json::parse(text, nullptr, false);
  if (!json.is_object())
    return internal_error(fmt::format("'{}' printed no line of JSON: {}", command_, text));
  return json;
}

// With the last line that it complained with.
Status PeerScript::ended() const {
  std::rewind(complaints_.get());
  std::string last;
  char piece[4096];
  while (std::fgets(piece, sizeof piece, complaints_.get()) != nullptr)
    if (std::string_view line = piece; line.find_first_not_of(" \n") != line.npos) last = line;
  while (last.ends_with('\n')) last.pop_back();
  return failed_precondition(
      fmt::format("'{}' ended early{}{}", command_, last.empty() ? "" : ": ", last));
}

}  // namespace troupe
