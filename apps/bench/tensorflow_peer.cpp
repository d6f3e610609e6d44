#include "apps/bench/tensorflow_peer.hpp"

#include <fmt/format.h>

namespace troupe {

Expected<TensorflowPeer> TensorflowPeer::find() {
  for (const char* python : {"python3", "/usr/bin/python3"})
    if (output_of(fmt::format("{} -c 'import tensorflow' 2>/dev/null", python)).ok())
      return TensorflowPeer(python);
  return not_found("no python3 here can import tensorflow; the package tensorflow-cpu has it");
}

Expected<std::vector<PeerStep>> TensorflowPeer::ready(
    const std::string& model, int threads, std::initializer_list<const char*> modes) const {
  std::vector<PeerStep> steps;
  for (const char* mode : modes) {
    TROUPE_TRY(PeerScript script, PeerScript::start(python_, "tensorflow_peer.py",
                                                    {model, std::to_string(threads), mode}));
    const nlohmann::json about = script.about();
    steps.push_back({"tensorflow " + about.value("tensorflow", "") + ", " + mode,
                     about.value("units", 1.0), std::move(script)});
  }
  return steps;
}

Expected<std::vector<PeerStep>> TensorflowPeer::step(std::string_view model, int threads) const {
  return ready(std::string(model), threads, {"graph", "function"});
}

Expected<std::vector<PeerStep>> TensorflowPeer::loop(std::string_view name,
                                                     bool two_devices) const {
  const std::string model = "loop." + std::string(name);
  return two_devices ? ready(model, 1, {"graph"}) : ready(model, 1, {"graph", "function"});
}

}  // namespace troupe
