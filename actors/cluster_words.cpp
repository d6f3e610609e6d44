#include "actors/cluster_words.hpp"

#include <fmt/format.h>
#include <limits.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>

#include "actors/net/transport.hpp"
#include "actors/processes/launch.hpp"
#include "actors/runtime/worker_process.hpp"
#include "core/name.hpp"

namespace troupe {
namespace {

// What means nothing without another word.
Status belong_together(const ClusterWords& words, int workers) {
  const bool listens = !words.listen.empty();
  if (words.spares > 0 && words.wait_for == 0)
    return invalid_argument("--spares needs --wait-for N");
  if (words.wait_for > 0 && !listens)
    return invalid_argument("--wait-for needs --listen HOST:PORT");
  if (listens && words.wait_for == 0 && workers == 0)
    return invalid_argument("--listen needs --wait-for N");
  if (!words.secret_file.empty() && !listens && workers == 0)
    return invalid_argument("--secret-file needs workers: --listen HOST:PORT or --cluster local:W");
  return ok_status();
}

std::optional<std::string> variable(const std::string& name) {
  const char* value = std::getenv(name.c_str());
  return value == nullptr ? std::nullopt : std::optional<std::string>(value);
}

std::string host_name() {
  std::array<char, HOST_NAME_MAX + 1> name{};
  return gethostname(name.data(), name.size() - 1) == 0 ? name.data() : "localhost";
}

// The place that a launcher gave this process.
Status take_place(const ClusterWords& words, Cluster& cluster) {
  if (words.wait_for > 0 || words.spares > 0)
    return invalid_argument(fmt::format(
        "--cluster {} says how many workers there are: leave out --wait-for and --spares",
        words.cluster));
  TROUPE_TRY(const Launch place,
             launch_by({words.cluster, words.listen, words.secret_file}, variable, host_name()));
  if (place.workers == 0) return ok_status();  // alone
  TROUPE_TRY(cluster.secret, read_secret(place.secret_file));
  if (place.role == Launch::Role::worker) {
    cluster.join = place.join;
    cluster.announce = place.announce;
  } else {
    cluster.listen = place.listen;
    cluster.wait_for = place.workers;
  }
  return ok_status();
}

// A GPU has a CPU beside it, which computes what has no kernel for GPUs.
std::vector<std::string> with_cpu_beside_gpu(std::vector<std::string> devices) {
  const auto is = [](const char* type) {
    return [type](const std::string& word) {
      const auto name = DeviceName::parse("/device:" + word + ":0");
      return name.ok() && name->type == type;
    };
  };
  const bool gpu = std::any_of(devices.begin(), devices.end(), is("CUDA"));
  if (gpu && std::none_of(devices.begin(), devices.end(), is("CPU")))
    devices.insert(devices.begin(), "CPU");
  return devices;
}

}  // namespace

Status understand(const ClusterWords& words, Cluster& cluster) {
  if (!words.devices.empty()) cluster.devices = with_cpu_beside_gpu(words.devices);
  cluster.orphan_timeout = std::chrono::seconds(words.orphan_timeout);
  cluster.replace_within = std::chrono::seconds(words.replace_within);
  if (is_launcher(words.cluster)) return take_place(words, cluster);
  if (!words.cluster.starts_with("local"))
    return invalid_argument(fmt::format(
        "--cluster wants 'local', 'local:W', 'slurm' or 'torchrun', not '{}'", words.cluster));
  TROUPE_TRY(cluster.workers, Cluster::parse_workers(words.cluster));
  TROUPE_TRY(belong_together(words, cluster.workers));
  if (!words.listen.empty()) TROUPE_TRY(parse_endpoint(words.listen).status());
  TROUPE_TRY(cluster.secret, read_secret(words.secret_file));
  cluster.listen = words.listen;
  cluster.wait_for = words.wait_for;
  cluster.spares = words.spares;
  return ok_status();
}

}  // namespace troupe
