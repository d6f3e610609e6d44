// Scripts of ours that time a peer in Python, each figure in a process of its own.
#pragma once

#include <sys/types.h>

#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "core/status.hpp"

namespace troupe {

// What a command prints; failed_precondition when it fails.
Expected<std::string> output_of(const std::string& command);

// A script of apps/bench that has made a step, a training step or a loop, and waits to be asked how
// long it takes. It prints a line of JSON when it is ready, and one for each round; what it says
// besides is told only when it fails. Its process ends with this.
class PeerScript {
 public:
  // Returns when it is ready. failed_precondition when it ends before; internal when it prints
  // something else.
  static Expected<PeerScript> start(const std::string& python, std::string_view script,
                                    const std::vector<std::string>& arguments);
  PeerScript(PeerScript&&) = default;
  PeerScript& operator=(PeerScript&&) = delete;
  ~PeerScript();

  // What it said of itself.
  const nlohmann::json& about() const { return about_; }

  struct Round {
    double ms = 0, p99_ms = 0;  // of a step; the median
  };
  // `of` names the step, of a script that has several.
  Expected<Round> round(double seconds, std::string_view of = {});

 private:
  struct Close {
    void operator()(std::FILE* file) const { std::fclose(file); }
  };

  using File = std::unique_ptr<std::FILE, Close>;

  PeerScript(std::string command, pid_t process, File both_ways, File complaints)
      : command_(std::move(command)),
        process_(process),
        both_ways_(std::move(both_ways)),
        complaints_(std::move(complaints)) {}
  Expected<nlohmann::json> next_line();
  Status ended() const;

  std::string command_;
  pid_t process_;
  File both_ways_;   // empty when moved from
  File complaints_;  // its standard error
  nlohmann::json about_;
};

// A step of a peer, ready to be timed.
struct PeerStep {
  std::string name;  // of the peer, its version and how it computes
  double units = 1;  // of a loop: iterations or nodes of a step
  PeerScript script;
};

}  // namespace troupe
