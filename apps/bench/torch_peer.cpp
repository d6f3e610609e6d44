#include "troupe/apps/bench/torch_peer.hpp"

#include <fmt/format.h>

#include <array>
#include <cstdio>
#include <filesystem>
#include <nlohmann/json.hpp>

namespace troupe {
namespace {

// What a command prints; failed_precondition when it fails.
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

// Beside the sources in a build tree, in share/troupe of an installed one.
Expected<std::string> script() {
  std::error_code error;
  auto self = std::filesystem::read_symlink("/proc/self/exe", error);
  auto installed = self.parent_path().parent_path() / "share/troupe/torch_peer.py";
  for (const std::filesystem::path& path :
       {std::filesystem::path(TROUPE_SOURCE_DIR "/apps/bench/torch_peer.py"), installed})
    if (std::filesystem::exists(path, error)) return path.string();
  return not_found("torch_peer.py is neither among the sources nor at " + installed.string());
}

}  // namespace

Expected<std::vector<TorchPeer>> TorchPeer::find() {
  std::vector<TorchPeer> found;
  std::string first;
  for (const char* python : {"/usr/bin/python3", "python3"}) {
    auto file = output_of(
        fmt::format("{} -c 'import torch.nn; print(torch.__file__)' 2>/dev/null", python));
    if (!file.ok() || *file == first) continue;
    if (first.empty()) first = *file;
    found.push_back(TorchPeer(python));
  }
  if (found.empty())
    return not_found("no python3 here can import torch; on Debian: apt install python3-torch");
  return found;
}

Expected<TorchFigure> TorchPeer::step(const std::string& model, int threads, double seconds,
                                      bool plain) const {
  TROUPE_TRY(std::string path, script());
  TROUPE_TRY(std::string text, output_of(fmt::format("{} '{}' {} {} {:.2f}{}", python_, path, model,
                                                     threads, seconds, plain ? " --plain" : "")));
  auto json = nlohmann::json::parse(text, nullptr, false);
  if (json.is_discarded() || !json.contains("ms") || !json.contains("torch"))
    return internal_error("torch_peer.py printed no figure: " + text);
  return TorchFigure{json["torch"].get<std::string>(), json["ms"].get<double>(),
                     json.value("mkl", std::string())};
}

}  // namespace troupe
