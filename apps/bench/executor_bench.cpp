#include "apps/bench/executor_bench.hpp"

#include <time.h>

#include <algorithm>

#include "actors/burst/step_state.hpp"
#include "apps/bench/graph_gen.hpp"

namespace troupe {
namespace {

class Nothing final : public Kernel {
 public:
  Status compute(KernelContext&) override { return {}; }
};

class PassOn final : public Kernel {
 public:
  Status compute(KernelContext& ctx) override {
    if (ctx.inputs() > 0) {
      ctx.set_output(0, ctx.input(0));
      return {};
    }
    TROUPE_TRY(Tensor made, ctx.allocate(DType::f32, Shape{}));
    *made.mutable_data<float>() = 1;
    ctx.set_output(0, std::move(made));
    return {};
  }
};

// Of this thread, which is the one lane: what other processes do does not count.
double cpu_seconds() {
  timespec now;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return double(now.tv_sec) + double(now.tv_nsec) * 1e-9;
}

class NoOutbox final : public StepOutbox {
 public:
  void send(ChannelId, const Tag&, Tensor, bool) override {}
};

Expected<double> ns_per_node(Plan plan, bool data, Device& device, const ExecutorBench& options) {
  auto make = [&](const PlanInfo&) -> Expected<std::unique_ptr<Kernel>> {
    if (data) return std::unique_ptr<Kernel>(new PassOn);
    return std::unique_ptr<Kernel>(new Nothing);
  };
  const double nodes = double(plan.nodes.size());
  TROUPE_TRY(auto program,
             LoadedPlan::make(std::make_shared<const Plan>(std::move(plan)), device, make));
  return ns_per(std::move(program), nodes, options);
}

}  // namespace

Expected<double> ns_per(std::shared_ptr<const LoadedPlan> program, double units,
                        const ExecutorBench& options) {
  StepState step(std::move(program));
  NoOutbox outbox;
  InlineLanes lanes;
  std::vector<double> rounds;
  for (int round = 0; round <= options.rounds; ++round) {
    const double begin = cpu_seconds();
    double seconds = 0;
    int steps = 0;
    do {
      TROUPE_TRY(step.start({}, outbox));
      BurstResult burst;
      do burst = step.run(lanes);
      while (burst.more);
      if (!burst.finished) return internal_error("a step of the benchmark did not finish");
      TROUPE_TRY(step.result().status);
      ++steps;
      seconds = cpu_seconds() - begin;
    } while (seconds < options.seconds);
    if (round > 0) rounds.push_back(seconds * 1e9 / steps / units);  // the first one warms up
  }
  std::nth_element(rounds.begin(), rounds.begin() + std::ptrdiff_t(rounds.size() / 2),
                   rounds.end());
  return rounds[rounds.size() / 2];
}

Expected<std::vector<ExecutorRow>> bench_executor(Device& device, const ExecutorBench& options) {
  struct Size {
    std::uint32_t width, depth;
  };
  constexpr Size kSizes[] = {{16, 1024}, {32, 8192}, {1024, 16}, {8192, 32}, {1024, 1024}};
  std::vector<ExecutorRow> rows;
  for (bool data : {false, true}) {
    const std::string family = data ? "executor.identity." : "executor.noop.";
    auto measure = [&](const std::string& name, auto&& make_plan) -> Status {
      if (name.find(options.only) == std::string::npos) return {};
      TROUPE_TRY(double ns, ns_per_node(make_plan(), data, device, options));
      rows.push_back({name, ns, "ns/node"});
      return {};
    };
    for (const Size& s : kSizes)
      TROUPE_TRY(measure(family + std::to_string(s.width) + "x" + std::to_string(s.depth),
                         [&] { return layered_graph(s.width, s.depth, data); }));
    TROUPE_TRY(measure(family + "chain", [&] { return chain_graph(10'000, data); }));
  }
  return rows;
}

}  // namespace troupe
