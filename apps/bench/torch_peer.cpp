#include "troupe/apps/bench/torch_peer.hpp"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "troupe/apps/bench/peer_script.hpp"

namespace troupe {

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
  TROUPE_TRY(const nlohmann::json json,
             run_peer_script(
                 python_, "torch_peer.py",
                 fmt::format("{} {} {:.2f}{}", model, threads, seconds, plain ? " --plain" : ""),
                 {"torch", "ms"}));
  return TorchFigure{json["torch"].get<std::string>(), json["ms"].get<double>(),
                     json.value("mkl", std::string())};
}

}  // namespace troupe
