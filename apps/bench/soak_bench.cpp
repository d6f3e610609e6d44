#include <unistd.h>

#include <fstream>
#include <sstream>

#include "troupe/apps/bench/rows.hpp"
#include "troupe/troupe.hpp"

namespace troupe {
namespace {

constexpr int kSteps = 200'000;
constexpr int kParts = 10;

// What this process and its children have used and hold.
struct Usage {
  double cpu_seconds = 0;
  double resident_bytes = 0;
};

Expected<Usage> usage_of(const std::string& pid) {
  std::ifstream stat("/proc/" + pid + "/stat"), memory("/proc/" + pid + "/statm");
  std::string line;
  double pages = 0, resident = 0;
  if (!std::getline(stat, line) || !(memory >> pages >> resident))
    return not_found("process " + pid + " has ended");
  // After the program's name, which may hold spaces: state, then numbers; user and system time are
  // the 12th and 13th of those after the state.
  std::istringstream fields(line.substr(line.rfind(')') + 2));
  std::string skipped;
  double user = 0, system = 0;
  for (int i = 0; i < 11; ++i) fields >> skipped;
  fields >> user >> system;
  return Usage{(user + system) / double(sysconf(_SC_CLK_TCK)),
               resident * double(sysconf(_SC_PAGESIZE))};
}

Expected<Usage> usage_of_job() {
  TROUPE_TRY(Usage sum, usage_of("self"));
  std::ifstream children("/proc/self/task/" + std::to_string(getpid()) + "/children");
  for (std::string pid; children >> pid;) {
    TROUPE_TRY(Usage child, usage_of(pid));
    sum.cpu_seconds += child.cpu_seconds;
    sum.resident_bytes += child.resident_bytes;
  }
  return sum;
}

struct Regression : nn::Module {
  using Module::Module;
  nn::Linear out{*this, "out", 16, 4};
};

// A few kernels, one container of variables, one commit a step.
Expected<std::vector<BenchRow>> soak(const std::string& family, const Cluster& cluster) {
  Graph graph{1};
  Regression net{graph.scope("net")};
  Output error = net.out(random_standard_normal(graph, {8, 16})) - 1.0f;
  Op train = optim::Sgd{.lr = 1e-3}.minimize(mean(error * error));
  Session session{graph, cluster};
  TROUPE_TRY(session.try_init());
  TROUPE_TRY(CompiledStep step, session.try_compile({}, {train}));
  for (int i = 0; i < kSteps / 50; ++i) TROUPE_TRY(step.try_run());

  TROUPE_TRY(Usage before, usage_of_job());
  std::vector<double> cpu;  // of each part
  std::vector<double> resident;
  for (int part = 0; part < kParts; ++part) {
    for (int i = 0; i < kSteps / kParts; ++i) TROUPE_TRY(step.try_run());
    TROUPE_TRY(Usage after, usage_of_job());
    cpu.push_back(after.cpu_seconds - before.cpu_seconds);
    resident.push_back(after.resident_bytes);
    before = after;
  }
  TROUPE_TRY(session.try_close());
  BenchRow cost{family + ".cpu_per_step", cpu.back() * 1e6 / (kSteps / kParts), "us"};
  cost.peer = "its first tenth";
  cost.peer_value = cpu.front() * 1e6 / (kSteps / kParts);
  cost.ratio = cost.value / cost.peer_value;
  BenchRow memory{family + ".resident", resident.back(), "bytes"};
  memory.peer = "its first tenth";
  memory.peer_value = resident.front();
  memory.ratio = memory.value / memory.peer_value;
  return std::vector<BenchRow>{cost, memory};
}

}  // namespace

Expected<std::vector<BenchRow>> bench_soak(const BenchOptions& options) {
  Cluster two_processes;
  two_processes.workers = 2;
  two_processes.replicas = 2;
  const std::pair<std::string, Cluster> families[] = {{"soak.local", {}},
                                                      {"soak.two_process", two_processes}};
  std::vector<BenchRow> rows;
  for (const auto& [family, cluster] : families) {
    if (!wanted(options, family + ".cpu_per_step") && !wanted(options, family + ".resident"))
      continue;
    TROUPE_TRY(auto measured, soak(family, cluster));
    for (BenchRow& row : measured)
      if (wanted(options, row.name)) rows.push_back(std::move(row));
  }
  return rows;
}

}  // namespace troupe
