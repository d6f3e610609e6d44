#include "apps/bench/torch_peer.hpp"

#include <fmt/format.h>

#include "core/log.hpp"

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

Expected<std::vector<TorchPeer>> TorchPeer::find_gpu() {
  TROUPE_TRY(std::vector<TorchPeer> all, find());
  std::erase_if(all, [](const TorchPeer& peer) {
    return !output_of(peer.python_ +
                      " -c 'import torch; assert torch.cuda.is_available()' 2>/dev/null")
                .ok();
  });
  if (all.empty()) return not_found("no python3 here has a torch that sees a GPU");
  return all;
}

Expected<PeerStep> TorchPeer::gpu_step(std::string_view model) const {
  TROUPE_TRY(PeerScript script,
             PeerScript::start(python_, "torch_peer.py", {std::string(model), "1", "--gpu"}));
  const std::string name =
      "torch " + script.about().value("torch", "") + " on " + script.about().value("gpu", "");
  const double units = script.about().value("calls", 1);
  return PeerStep{name, units, std::move(script)};
}

Expected<std::vector<PeerStep>> TorchPeer::step(std::string_view model, int threads) const {
  std::vector<PeerStep> steps;
  auto start = [&](std::vector<std::string> arguments) -> Expected<std::string> {
    TROUPE_TRY(PeerScript script, PeerScript::start(python_, "torch_peer.py", arguments));
    const std::string version = script.about().value("torch", "");
    const std::string mkl = script.about().value("mkl", "");
    const std::string name = "torch " + version + (mkl.empty() ? "" : ", MKL's " + mkl);
    steps.push_back({name, 1, std::move(script)});
    return mkl;
  };
  const std::vector<std::string> arguments = {std::string(model), std::to_string(threads)};
  TROUPE_TRY(const std::string mkl, start(arguments));
  if (mkl == "slow path")
    TROUPE_LOG(warning, "bench",
               steps[0].name + ": slower than it could be, for want of a C compiler (cc)");
  else if (!mkl.empty())
    TROUPE_TRY(start({arguments[0], arguments[1], "--plain"}));
  return steps;
}

}  // namespace troupe
