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

Expected<std::vector<TensorflowFigure>> TensorflowPeer::figures(
    const std::string& model, int threads, double seconds,
    std::initializer_list<const char*> modes) const {
  std::vector<TensorflowFigure> figures;
  for (const char* mode : modes) {
    TROUPE_TRY(const nlohmann::json json,
               run_peer_script(python_, "tensorflow_peer.py",
                               fmt::format("{} {} {:.2f} {}", model, threads, seconds, mode),
                               {"tensorflow", "ms", "p99", "units"}));
    figures.push_back({json["tensorflow"].get<std::string>(), mode, json["ms"].get<double>(),
                       json["p99"].get<double>(), json["units"].get<double>()});
  }
  std::stable_sort(figures.begin(), figures.end(),
                   [](const auto& a, const auto& b) { return a.ms < b.ms; });
  return figures;
}

Expected<std::vector<TensorflowFigure>> TensorflowPeer::step(std::string_view model, int threads,
                                                             double seconds) const {
  return figures(std::string(model), threads, seconds, {"graph", "function"});
}

Expected<std::vector<TensorflowFigure>> TensorflowPeer::loop(std::string_view name,
                                                             bool two_devices,
                                                             double seconds) const {
  const std::string model = "loop." + std::string(name);
  return two_devices ? figures(model, 1, seconds, {"graph"})
                     : figures(model, 1, seconds, {"graph", "function"});
}

}  // namespace troupe
