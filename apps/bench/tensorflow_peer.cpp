#include "troupe/apps/bench/tensorflow_peer.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "troupe/apps/bench/peer_script.hpp"

namespace troupe {

Expected<TensorflowPeer> TensorflowPeer::find() {
  for (const char* python : {"python3", "/usr/bin/python3"})
    if (output_of(fmt::format("{} -c 'import tensorflow' 2>/dev/null", python)).ok())
      return TensorflowPeer(python);
  return not_found("no python3 here can import tensorflow; the package tensorflow-cpu has it");
}

Expected<std::vector<TensorflowFigure>> TensorflowPeer::step(std::string_view model, int threads,
                                                             double seconds) const {
  std::vector<TensorflowFigure> figures;
  for (const char* mode : {"graph", "function"}) {
    TROUPE_TRY(const nlohmann::json json,
               run_peer_script(python_, "tensorflow_peer.py",
                               fmt::format("{} {} {:.2f} {}", model, threads, seconds, mode),
                               {"tensorflow", "ms", "p99"}));
    figures.push_back({json["tensorflow"].get<std::string>(), mode, json["ms"].get<double>(),
                       json["p99"].get<double>()});
  }
  std::stable_sort(figures.begin(), figures.end(),
                   [](const auto& a, const auto& b) { return a.ms < b.ms; });
  return figures;
}

}  // namespace troupe
