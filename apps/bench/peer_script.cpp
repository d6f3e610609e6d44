#include "troupe/apps/bench/peer_script.hpp"

#include <fmt/format.h>

#include <array>
#include <cstdio>
#include <filesystem>
#include <nlohmann/json.hpp>

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

Expected<nlohmann::json> run_peer_script(const std::string& python, std::string_view script,
                                         const std::string& arguments,
                                         std::initializer_list<const char*> keys) {
  TROUPE_TRY(std::string path, find_script(script));
  TROUPE_TRY(std::string text, output_of(fmt::format("{} '{}' {}", python, path, arguments)));
  auto json = nlohmann::json::parse(text, nullptr, false);
  bool whole = json.is_object();
  for (const char* key : keys) whole = whole && json.contains(key);
  if (!whole) return internal_error(fmt::format("{} printed no figure: {}", script, text));
  return json;
}

}  // namespace troupe
