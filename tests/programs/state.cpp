// What the variables of a job take, for tests/accept/ground_4.sh and jobs_4.sh:
//   state spread init|step|restore    on which tasks 8 variables of 1 MiB are, by what is first
//   state waiting                     200 commits while a run waits that may read the first value
//   state blind                       200 commits that nobody reads
//   state fresh                       3,000 requests, each on nodes of its own
//   state checkpoints MIB STEPS       a Job with variables of that size, all of which each step
//   changes
// Each prints lines "NAME VALUE". Cluster options come last.
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <string_view>

#include "apps/troupe.hpp"
using namespace troupe;

namespace {

constexpr int kCommits = 200;
constexpr std::int64_t kLarge = 2 << 20;  // elements: 8 MiB

// The most that a process has held. It then begins to count anew.
std::uint64_t take_peak(const std::string& process) {
  std::ifstream status("/proc/" + process + "/status");
  unsigned long long kilobytes = 0;
  for (std::string line; std::getline(status, line);)
    if (std::sscanf(line.c_str(), "VmHWM: %llu", &kilobytes) == 1) break;
  std::ofstream("/proc/" + process + "/clear_refs") << 5;
  return kilobytes << 10;
}

// Of this process and its workers together.
std::uint64_t take_peaks() {
  std::uint64_t sum = take_peak("self");
  std::ifstream workers("/proc/self/task/" + std::to_string(getpid()) + "/children");
  for (std::string pid; workers >> pid;) sum += take_peak(pid);
  return sum;
}

Output filled(Graph& g, std::int64_t elements, float value) {
  return fill(constant(g, Tensor::of<std::int64_t>({1}, {elements})), constant(g, value));
}

int spread(std::string_view first, const Cluster& cluster) {
  constexpr std::int64_t kSide = 512;  // 1 MiB
  Graph g;
  auto [x, y] = data::digits(64).batch(8).repeat().outputs(g);
  Output h = reshape(x, {-1, 784})[{whole, range(0, kSide)}];
  std::vector<std::pair<std::string, Tensor>> values;
  for (int i = 0; i < 8; ++i) {
    const std::string name = "v" + std::to_string(i);
    values.emplace_back(name, value_or_throw(Tensor::zeros(DType::f32, {kSide, kSide})));
    h = mat_mul(h, variable(g, name, values.back().second).value());
  }
  const Output loss = mean(h) + 0.f * mean(cast<float>(y));
  const Op train = optim::Sgd{.lr = 0.1}.minimize(loss);
  Session session{g, cluster};
  if (first == "step") (void)session.compile({loss}, {train});
  if (first == "restore") session.restore(values, 1);
  session.init();
  session.run({loss}, {train});
  for (const std::string& line : session.describe())
    if (line.starts_with("variables")) print("{}\n", line);
  return 0;
}

// The peak of 200 updates beside that of the first ten.
template <class Step>
void print_peaks(Step&& step) {
  for (int i = 0; i < 10; ++i) step();
  const std::uint64_t few = take_peaks();
  for (int i = 10; i < kCommits; ++i) step();
  print("first {}\n", few);
  print("all {}\n", take_peaks());
}

int waiting(const Cluster& cluster) {
  Graph g;
  Variable w = variable(g, "w", filled(g, kLarge, 0));
  Output queue = fifo_queue(g, {DType::f32});
  Output fed = placeholder<float>(g, PartialShape::scalar());
  Op put = enqueue(queue, {fed});
  Output taken = dequeue(queue, {DType::f32})[0];
  Output late = mean(read(w, {taken})) + taken;
  Op add = assign_add(w, filled(g, kLarge, 1));
  Session session{g, cluster};
  session.init();
  auto step = session.compile({}, {add});
  auto waits = session.compile({late}).start();
  print_peaks([&] { step.run(); });
  session.run({}, {put}, {{fed, Tensor::scalar(0.5f)}});
  print("read {}\n", waits.get()[0].item<float>());
  return 0;
}

int blind(const Cluster& cluster) {
  Graph g;
  Variable w = variable(g, "w", filled(g, kLarge, 0));
  Op add = assign_add(w, filled(g, kLarge, 1));
  Session session{g, cluster};
  session.init();
  auto step = session.compile({}, {add});
  print_peaks([&] { step.run(); });
  print("value {}\n", session.run({mean(w.value())})[0].item<float>());
  return 0;
}

int fresh(const Cluster& cluster) {
  Graph g;
  Session session{g, cluster};
  const auto began = std::chrono::steady_clock::now();
  float sum = 0;
  for (int i = 0; i < 3000; ++i) sum += session.run({constant(g, float(i)) * 2.f})[0].item<float>();
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - began;
  print("sum {}\n", sum);
  print("seconds {:.2f}\n", took.count());
  return 0;
}

// Of this process, now.
std::uint64_t resident() {
  std::ifstream statm("/proc/self/statm");
  unsigned long long size = 0, pages = 0;
  statm >> size >> pages;
  return pages * std::uint64_t(sysconf(_SC_PAGESIZE));
}

int checkpoints(std::int64_t mebibytes, std::int64_t steps, const Cluster& cluster,
                const JobOptions& options) {
  const std::int64_t pieces = std::max<std::int64_t>(8, mebibytes / 16);
  const std::int64_t elements = (mebibytes << 18) / pieces;
  Graph g;
  std::vector<Op> adds;
  std::vector<Output> sums;
  for (std::int64_t i = 0; i < pieces; ++i) {
    Variable v = variable(g, "v" + std::to_string(i), filled(g, elements, float(i)));
    adds.push_back(assign_add(v, filled(g, elements, 1)));
    sums.push_back(mean(v.value()));
  }
  Output sum = sums[0];
  for (std::size_t i = 1; i < sums.size(); ++i) sum = sum + sums[i];
  Session session{g, cluster};
  Job job{session, options};
  auto step = session.compile({}, adds);
  const bool resumed = job.resumed();
  const std::int64_t from = job.step();
  std::uint64_t before = 0;
  std::chrono::steady_clock::time_point began;
  for (const JobStep& each : job.steps(steps)) {
    if (before == 0) {
      (void)take_peak("self");
      before = resident();
      began = std::chrono::steady_clock::now();
    }
    step.run({}, each);
  }
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - began;
  print("resumed {}\n", resumed ? from : 0);
  print("before {}\n", before);
  print("peak {}\n", take_peak("self"));
  print("ms_per_step {:.3f}\n",
        1e3 * took.count() / double(std::max<std::int64_t>(1, steps - from)));
  for (const std::string& line : session.describe())
    if (line.starts_with("variables")) print("{}\n", line);
  print("sum {}\n", session.run({sum})[0].item<float>());
  return job.exit_code();
}

}  // namespace

int main(int argc, char** argv) {
  become_worker_if_started_as_one();
  const std::string_view what = argc > 1 ? argv[1] : "";
  const Cluster cluster = Cluster::from_args(argc, argv);
  if (what == "spread") return spread(argc > 2 ? argv[2] : "", cluster);
  if (what == "waiting") return waiting(cluster);
  if (what == "blind") return blind(cluster);
  if (what == "fresh") return fresh(cluster);
  if (what == "checkpoints" && argc > 3) {
    const std::int64_t mebibytes = std::atoll(argv[2]), steps = std::atoll(argv[3]);
    return checkpoints(mebibytes, steps, cluster, JobOptions::from_args(argc, argv));
  }
  return 2;
}
