#include "actors/processes/launch.hpp"

#include <arpa/inet.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstdint>

#include "actors/net/transport.hpp"
#include "core/number.hpp"

namespace troupe {
namespace {

constexpr std::int64_t kMostRanks =
    4097;  // a master and as many workers as Cluster::wait_for may say
constexpr std::size_t kMostNodes = 65536;
// Below those that systems give out by themselves (32768 and up).
constexpr std::uint64_t kFirstPort = 15000, kPorts = 15000;
// The step id of a batch script, which srun did not start.
constexpr std::int64_t kBatchStep = 0xfffffffb;

// The variables of one launcher, by whose name people know what is meant.
class LauncherReader {
 public:
  LauncherReader(const LaunchWords& words, const Variables& variables)
      : by_(words.by), variables_(variables) {}

  Status wrong(const std::string& what) const {
    return invalid_argument(fmt::format("--cluster {}: {}", by_, what));
  }
  std::string text_or(const std::string& name, const std::string& other) const {
    return variables_(name).value_or(other);
  }
  Expected<std::string> text(const std::string& name) const {
    const auto value = variables_(name);
    if (value && !value->empty()) return *value;
    return wrong(fmt::format("{} is {}: start the program with {}", name,
                             value ? "empty" : "not set", by_ == "slurm" ? "srun" : by_));
  }
  Expected<std::int64_t> number(const std::string& name, std::int64_t low,
                                std::int64_t high) const {
    TROUPE_TRY(const std::string value, text(name));
    const auto n = parse_number<std::int64_t>(value);
    if (n && *n >= low && *n <= high) return *n;
    return wrong(fmt::format("{} is a number from {} to {}, not '{}'", name, low, high,
                             value.substr(0, 60)));
  }
  // 0 without it.
  Expected<std::int64_t> number_or_0(const std::string& name, std::int64_t high) const {
    if (text_or(name, "").empty()) return std::int64_t{0};
    return number(name, 0, high);
  }

 private:
  const std::string& by_;
  const Variables& variables_;
};

std::string address_text(const std::string& host, std::uint64_t port) {
  return host.find(':') == host.npos ? fmt::format("{}:{}", host, port)
                                     : fmt::format("[{}]:{}", host, port);
}

bool is_loopback_name(const std::string& host) {
  return host == "localhost" || host == "::1" || host.starts_with("127.");
}

// Of a name, which may mean a loopback address where it is the machine's own, all addresses: others
// may know it by one of IPv4 or of IPv6.
std::string listen_text(const std::string& host, std::uint64_t port) {
  if (is_loopback_name(host)) return address_text(host, port);
  in_addr four{};
  return address_text(inet_pton(AF_INET, host.c_str(), &four) == 1 ? "0.0.0.0" : "::", port);
}

std::string short_name(const std::string& host) { return host.substr(0, host.find('.')); }

struct LauncherRanks {
  std::int64_t rank = 0, of = 1;
};

Expected<LauncherRanks> read_ranks(const LauncherReader& read, const std::string& rank,
                                   const std::string& of) {
  LauncherRanks ranks;
  TROUPE_TRY(ranks.of, read.number(of, 1, kMostRanks));
  TROUPE_TRY(ranks.rank, read.number(rank, 0, kMostRanks - 1));
  if (ranks.rank >= ranks.of)
    return read.wrong(fmt::format("{} {} is not below {} {}", rank, ranks.rank, of, ranks.of));
  return ranks;
}

struct MasterPlace {
  std::string host;  // of the master
  std::uint64_t port = 0;
  std::string announce;  // of this process
};

// The first host of the step, which has rank 0.
Expected<std::string> first_host(const LauncherReader& read, const LauncherRanks& ranks) {
  std::string name = "SLURM_STEP_NODELIST";
  const bool of_step = !read.text_or(name, "").empty();
  if (!of_step) name = "SLURM_NODELIST";
  TROUPE_TRY(const std::string list, read.text(name));
  const auto hosts = hosts_of(list, kMostNodes);
  if (!hosts.ok()) return read.wrong(fmt::format("{}: {}", name, hosts.status().message()));
  if (of_step && std::int64_t(hosts->size()) > ranks.of)
    return read.wrong(fmt::format("{} has {} hosts for the {} tasks of SLURM_NTASKS", name,
                                  hosts->size(), ranks.of));
  const std::string here = read.text_or("SLURMD_NODENAME", "");
  if (ranks.rank == 0 && !here.empty() && short_name(here) != short_name(hosts->front()))
    return read.wrong(fmt::format(
        "task 0 runs on {}, and not on {}, the first host of {}: say --listen HOST:PORT", here,
        hosts->front(), name));
  return hosts->front();
}

Expected<MasterPlace> where_slurm(const LauncherReader& read, const LauncherRanks& ranks,
                                  const std::string& host) {
  MasterPlace where;
  TROUPE_TRY(where.host, first_host(read, ranks));
  TROUPE_TRY(const std::int64_t job, read.number("SLURM_JOB_ID", 0, INT64_MAX / 64));
  TROUPE_TRY(const std::int64_t step, read.number_or_0("SLURM_STEP_ID", UINT32_MAX));
  where.port = kFirstPort + std::uint64_t(job * 16 + step % 16) % kPorts;
  where.announce = read.text_or("SLURMD_NODENAME", host);
  return where;
}

Expected<MasterPlace> where_torchrun(const LauncherReader& read, const std::string& host) {
  MasterPlace where;
  TROUPE_TRY(where.host, read.text("MASTER_ADDR"));
  TROUPE_TRY(const std::int64_t port, read.number("MASTER_PORT", 1, 65535));
  const std::string taken = read.text_or("TORCHELASTIC_USE_AGENT_STORE", "");
  const bool next = taken == "True" || taken == "true" || taken == "1";
  where.port = std::uint64_t(!next ? port : port < 65535 ? port + 1 : port - 1);
  where.announce = host;
  if (!parse_endpoint(address_text(where.host, where.port)).ok())
    return read.wrong(fmt::format("MASTER_ADDR is no host: '{}'", where.host.substr(0, 60)));
  return where;
}

// The addresses that the user gave, or those of the launcher.
Status find_addresses(const LaunchWords& words, const LauncherReader& read,
                      const LauncherRanks& ranks, const std::string& host, Launch& launch) {
  if (!words.listen.empty()) {
    TROUPE_TRY(const Endpoint at, parse_endpoint(words.listen));
    if (at.port == 0) return read.wrong("--listen wants a port that all processes know, not 0");
    launch.listen = launch.join = words.listen;
    if (!is_loopback_name(at.host)) launch.announce = read.text_or("SLURMD_NODENAME", host);
    return ok_status();
  }
  TROUPE_TRY(const MasterPlace where,
             words.by == "slurm" ? where_slurm(read, ranks, host) : where_torchrun(read, host));
  launch.listen = listen_text(where.host, where.port);
  launch.join = address_text(where.host, where.port);
  if (!is_loopback_name(where.host)) launch.announce = where.announce;
  return ok_status();
}

}  // namespace

bool is_launcher(std::string_view by) { return by == "slurm" || by == "torchrun"; }

Expected<Launch> launch_by(const LaunchWords& words, const Variables& variables,
                           const std::string& host) {
  if (!is_launcher(words.by))
    return invalid_argument(
        fmt::format("there is no launcher '{}'; known are slurm, torchrun", words.by));
  const LauncherReader read(words, variables);
  const bool slurm = words.by == "slurm";
  TROUPE_TRY(const LauncherRanks ranks, read_ranks(read, slurm ? "SLURM_PROCID" : "RANK",
                                                   slurm ? "SLURM_NTASKS" : "WORLD_SIZE"));
  Launch launch;
  if (ranks.of == 1) return launch;
  if (slurm) {
    TROUPE_TRY(const std::int64_t step, read.number_or_0("SLURM_STEP_ID", UINT32_MAX));
    if (step == kBatchStep)
      return read.wrong("a batch script is one process: start the program with srun");
  }
  launch.rank = int(ranks.rank);
  launch.workers = int(ranks.of - 1);
  launch.role = ranks.rank == 0 ? Launch::Role::master : Launch::Role::worker;
  TROUPE_TRY(find_addresses(words, read, ranks, host, launch));
  launch.secret_file =
      words.secret_file.empty() ? read.text_or("TROUPE_SECRET_FILE", "") : words.secret_file;
  if (launch.secret_file.empty())
    return read.wrong(
        "the processes need a secret: make one with `(umask 077; head -c 32 /dev/urandom > FILE)`, "
        "where all of them can read it, and say --secret-file FILE or TROUPE_SECRET_FILE=FILE");
  (launch.role == Launch::Role::master ? launch.join : launch.listen).clear();
  if (launch.role == Launch::Role::master) launch.announce.clear();
  return launch;
}

}  // namespace troupe
