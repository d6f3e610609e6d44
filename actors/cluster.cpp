#include "actors/cluster.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>

#include "actors/cluster_words.hpp"
#include "actors/net/transport.hpp"
#include "actors/program_options.hpp"
#include "core/byte_count.hpp"
#include "core/name.hpp"
#include "graph/compile.hpp"
#include "graph/optional_stages.hpp"
#include "ops/op.hpp"

namespace troupe {
namespace {

constexpr int kMostThreads = 1024, kMostReplicas = 1024, kMostWorkers = 4096;
constexpr std::size_t kMostDevices = 16;

Status in_range(std::string_view what, std::int64_t value, std::int64_t low, std::int64_t high) {
  if (value >= low && value <= high) return ok_status();
  return invalid_argument(
      fmt::format("{} is a number from {} to {}, not {}", what, low, high, value));
}

// Types in the words of who asked. The test device is there for those who know of it.
Status known_devices(const std::vector<std::string>& wanted) {
  const DeviceTypes& types = ops::builtin().devices;
  for (const std::string& word : wanted) {
    auto name = DeviceName::parse("/device:" + word + ":0");
    if (!name.ok() || !name->type)
      return invalid_argument(fmt::format("'{}' is no type of device, such as CPU", word));
    if (types.find(*name->type)) continue;
    std::string known;
    for (const DeviceType& type : types.all())
      if (type.name != "FAKE") known += (known.empty() ? "" : ", ") + type.name;
    return not_found(fmt::format("there is no device of type '{}'; known are: {}", word, known));
  }
  return ok_status();
}

Status known_passes(const std::vector<std::string>& wanted) {
  std::vector<std::string> known = optional_stage_names();
  for (const PassDef& pass : ops::builtin().passes) known.push_back(pass.name);
  for (const std::string& name : wanted) {
    if (std::find(known.begin(), known.end(), name) != known.end()) continue;
    return not_found(
        fmt::format("there is no pass '{}' to disable; known are {}", name, fmt::join(known, " ")));
  }
  return ok_status();
}

constexpr std::array<ProgramOption, 12> kClusterOptions = {
    {{"--threads", "N", "compute threads of each CPU device (default 0: one per processor)"},
     {"--replicas", "N", "data parallel copies of each step (default 1)"},
     {"--cluster", "WHERE",
      "local: this process; local:W: W worker processes on this machine; slurm, torchrun: the "
      "processes that these have started (default local)"},
     {"--device", "TYPE",
      "device type of each worker, e.g. CUDA (with a CPU beside it); may be given several times "
      "(default CPU)"},
     {"--step-memory", "BYTES",
      "memory limit of a step in each process, e.g. 2GiB (default 0: none)"},
     {"--cuda-sync", "", "wait for each kernel of a GPU, so that an error names the node; slow"},
     {"--listen", "HOST:PORT", "where workers of other machines join (troupe worker --master)"},
     {"--wait-for", "N", "number of workers to wait for at --listen"},
     {"--spares", "N", "workers beyond those that wait there to replace lost ones (default 0)"},
     {"--replace-within", "SECONDS", "how long a lost worker's place may be empty (default 60)"},
     {"--secret-file", "FILE", "16 to 64 bytes that these workers have, too"},
     {"--orphan-timeout", "SECONDS",
      "how long a worker of slurm or torchrun waits for its master (default 60)"}}};

}  // namespace

Status Cluster::check() const {
  TROUPE_TRY(in_range("Cluster::threads", threads, 0, kMostThreads));
  TROUPE_TRY(in_range("Cluster::replicas", replicas, 1, kMostReplicas));
  TROUPE_TRY(in_range("Cluster::workers", workers, 0, kMostWorkers));
  TROUPE_TRY(in_range("Cluster::wait_for", wait_for, 0, kMostWorkers));
  TROUPE_TRY(in_range("Cluster::spares", spares, 0, kMostWorkers));
  TROUPE_TRY(in_range("Cluster::replace_within, in seconds", replace_within.count(), 1,
                      kMostReplaceWithin));
  TROUPE_TRY(in_range("Cluster::devices: how many there are", std::int64_t(devices.size()), 1,
                      std::int64_t(kMostDevices)));
  TROUPE_TRY(known_devices(devices));
  if (silence < kLeastSilence)
    return invalid_argument(fmt::format("a silence of {} ms says nothing: {} ms are the least",
                                        silence.count(), kLeastSilence.count()));
  if (!secret.empty() && (secret.size() < 16 || secret.size() > 64))
    return invalid_argument("a shared secret has 16 to 64 bytes");
  if (wait_for > 0 && listen.empty())
    return invalid_argument("Cluster::wait_for wants Cluster::listen: where the workers join");
  if (spares > 0 && wait_for == 0)
    return invalid_argument("Cluster::spares wants Cluster::wait_for: they replace such workers");
  if (!listen.empty() && wait_for == 0 && workers == 0)
    return invalid_argument("Cluster::listen wants Cluster::wait_for: how many workers join there");
  if (!listen.empty()) TROUPE_TRY(parse_endpoint(listen).status());
  TROUPE_TRY(in_range("Cluster::orphan_timeout", orphan_timeout.count(), 0, kMostOrphanTimeout));
  if (!join.empty()) TROUPE_TRY(parse_endpoint(join).status());
  if (!join.empty() && (!listen.empty() || workers > 0))
    return invalid_argument(
        "Cluster::join is for a worker, Cluster::listen and workers for a master");
  return known_passes(disabled_passes);
}

Expected<int> Cluster::parse_workers(const std::string& text) {
  if (text == "local") return 0;
  std::string_view prefix = "local:";
  if (text.rfind(prefix, 0) != 0)
    return invalid_argument("--cluster wants 'local' or 'local:W', not '" + text + "'");
  TROUPE_TRY(const std::int64_t workers,
             parse_count("--cluster local:", std::string_view(text).substr(prefix.size()), 0,
                         kMostWorkers));
  return int(workers);
}

std::string Cluster::options_text() { return troupe::options_text(kClusterOptions); }

Expected<Cluster> Cluster::try_from_args(int argc, char** argv) {
  TROUPE_TRY(const auto given, options_given(argc, argv, kClusterOptions));
  Cluster cluster;
  ClusterWords words;
  for (const auto& [option, text] : given) {
    if (option == "--threads") {
      TROUPE_TRY(const std::int64_t n, parse_count(option, text, 0, kMostThreads));
      cluster.threads = int(n);
    } else if (option == "--replicas") {
      TROUPE_TRY(const std::int64_t n, parse_count(option, text, 1, kMostReplicas));
      cluster.replicas = int(n);
    } else if (option == "--cluster") {
      words.cluster = text;
    } else if (option == "--device") {
      words.devices.push_back(text);
    } else if (option == "--cuda-sync") {
      cluster.cuda_sync = true;
    } else if (option == "--listen") {
      words.listen = text;
    } else if (option == "--wait-for") {
      TROUPE_TRY(const std::int64_t n, parse_count(option, text, 0, kMostWorkers));
      words.wait_for = int(n);
    } else if (option == "--spares") {
      TROUPE_TRY(const std::int64_t n, parse_count(option, text, 0, kMostWorkers));
      words.spares = int(n);
    } else if (option == "--replace-within") {
      TROUPE_TRY(words.replace_within, parse_count(option, text, 1, kMostReplaceWithin));
    } else if (option == "--secret-file") {
      words.secret_file = text;
    } else if (option == "--orphan-timeout") {
      TROUPE_TRY(words.orphan_timeout, parse_count(option, text, 0, kMostOrphanTimeout));
    } else {
      TROUPE_TRY(cluster.step_memory, parse_byte_count(option, text));
    }
  }
  TROUPE_TRY(understand(words, cluster));
  return cluster;
}

Cluster Cluster::from_args(int argc, char** argv) {
  answer_help(argc, argv, options_text());
  return value_or_throw(try_from_args(argc, argv));
}

}  // namespace troupe
