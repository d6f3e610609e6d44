#include <fmt/core.h>
#include <unistd.h>

#include <algorithm>
#include <memory>

#include "actors/processes/proc.hpp"
#include "apps/bench/rows.hpp"
#include "apps/troupe.hpp"

namespace troupe {
namespace {

constexpr int kSteps = 200'000;
// Of a tenth, each measured by itself: a shared machine is slower for seconds.
constexpr int kParts = 20;
constexpr int kStepsOfPart = kSteps / 10 / kParts;

// What this process and its children have used and hold.
struct Usage {
  double cpu_seconds = 0;
  double resident_bytes = 0;
};

Expected<Usage> usage_of(pid_t pid) {
  const auto stat = stat_of(pid);
  if (!stat) return not_found(fmt::format("process {} has ended", pid));
  return Usage{double(stat->cpu) / double(sysconf(_SC_CLK_TCK)),
               double(stat->resident) * double(sysconf(_SC_PAGESIZE))};
}

Expected<Usage> usage_of_job() {
  TROUPE_TRY(Usage sum, usage_of(getpid()));
  for (const pid_t pid : children_of(getpid())) {
    TROUPE_TRY(const Usage child, usage_of(pid));
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
class Job {
 public:
  static Expected<std::unique_ptr<Job>> begin(const Cluster& cluster) {
    auto job = std::unique_ptr<Job>(new Job(cluster));
    TROUPE_TRY(job->session_.try_init());
    TROUPE_TRY(job->step_, job->session_.try_compile({}, {job->train_}));
    TROUPE_TRY(job->run(kSteps / 50));
    return job;
  }
  Status run(int steps) {
    for (int i = 0; i < steps; ++i) TROUPE_TRY(step_.try_run());
    return ok_status();
  }
  // The CPU time of a part, in seconds.
  Expected<double> cost() {
    TROUPE_TRY(Usage before, usage_of_job());
    TROUPE_TRY(run(kStepsOfPart));
    TROUPE_TRY(Usage after, usage_of_job());
    return after.cpu_seconds - before.cpu_seconds;
  }
  Status end() { return session_.try_close(); }

 private:
  explicit Job(const Cluster& cluster) : session_(graph_, cluster) {}
  Op minimize() {
    Output error = net_.out(random_standard_normal(graph_, {8, 16})) - 1.0f;
    return optim::Sgd{.lr = 1e-3}.minimize(mean(error * error));
  }

  Graph graph_{1};
  Regression net_{graph_.scope("net")};
  Op train_ = minimize();
  Session session_;
  CompiledStep step_;
};

// The last tenth beside the first steps of a job like it, part by part in turns: how fast the
// machine is then goes for both. `first_tenth` is what the job itself took at its beginning.
Expected<std::vector<BenchRow>> soak(const std::string& family, const Cluster& cluster) {
  TROUPE_TRY(auto job, Job::begin(cluster));
  double first = 0, last = 0, others = 0;  // seconds
  for (int part = 0; part < kParts; ++part) {
    TROUPE_TRY(double cost, job->cost());
    first += cost;
  }
  TROUPE_TRY(Usage early, usage_of_job());
  TROUPE_TRY(job->run(kSteps - 2 * kParts * kStepsOfPart));
  TROUPE_TRY(Usage late, usage_of_job());
  TROUPE_TRY(auto other, Job::begin(cluster));
  for (int part = 0; part < kParts; ++part) {
    TROUPE_TRY(double cost, job->cost());
    TROUPE_TRY(double beside, other->cost());
    last += cost;
    others += beside;
  }
  TROUPE_TRY(other->end());
  TROUPE_TRY(job->end());
  const auto per_step = [](double seconds) { return seconds * 1e6 / (kParts * kStepsOfPart); };
  BenchRow cost{family + ".cpu_per_step", per_step(last), "us"};
  cost.peer = "a job that begins";
  cost.peer_value = per_step(others);
  cost.ratio = cost.value / cost.peer_value;
  cost.details["first_tenth"] = fmt::format("{:.1f}", per_step(first));
  BenchRow memory{family + ".resident", late.resident_bytes, "bytes"};
  memory.peer = "its first tenth";
  memory.peer_value = early.resident_bytes;
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
