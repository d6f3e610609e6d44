// The threads of a master's process: they pump its shell.
#include <fmt/format.h>

#include <future>
#include <thread>

#include "actors/runtime/faults.hpp"
#include "actors/runtime/master_shell.hpp"
#include "actors/runtime/runtime.hpp"
#include "core/log.hpp"
#include "ops/isa.hpp"

namespace troupe {
namespace {

// The time that workers on this machine have to leave.
constexpr std::chrono::seconds kLeaveWithin{5};
// How often a start asks Cluster::stop. A signal handler can set a flag but wake nobody.
constexpr std::chrono::milliseconds kAskStopEvery{20};

// The shell is pumped by the thread that starts the job, then by its own until the job is over.
class ClusterRuntime final : public Runtime {
 public:
  ClusterRuntime(const Cluster& cluster, caf::actor_system* system, Hooks hooks)
      : owns_system_(system == nullptr),
        stop_(cluster.stop),
        platform_(this_machine(system)),
        shell_(cluster, ops::builtin(), *platform_) {
    ops::settle();
    shell_.tell_of_losses(std::move(hooks.lost));
    shell_.wait_at_most(hooks.join_within);
    if (owns_system_ && hooks.fault) tell_of_faults(platform_->actors(), std::move(hooks.fault));
  }
  ~ClusterRuntime() override;

  Status start();
  const MasterActor& master() const override { return shell_.master(); }
  void start_trace() override;
  Timeline stop_trace() override;

 private:
  void end_other_processes() override { shell_.abandon(); }
  bool left_within(std::chrono::seconds limit) override {
    shell_.in_use().release();
    return shell_.in_use().gone_within(limit);
  }
  void handle_one(Instant until) {
    shell_.handle(shell_.events().take(std::min(until, shell_.next_wakeup())));
  }

  const bool owns_system_;
  const std::function<bool()> stop_;
  const std::unique_ptr<Platform> platform_;
  MasterShell shell_;
  std::int64_t trace_began_ns_ = 0;
  std::thread handler_;
};

void ClusterRuntime::start_trace() {
  trace_began_ns_ = begin_recording(*shell_.trace());
  std::promise<void> told;
  shell_.start_recording([&] { told.set_value(); });
  told.get_future().wait();
}

Timeline ClusterRuntime::stop_trace() {
  Timeline timeline{trace_began_ns_, 0, {end_recording(*shell_.trace())}};
  std::promise<std::vector<ProcessTimeline>> gathered;
  shell_.gather([&](std::vector<ProcessTimeline> all) { gathered.set_value(std::move(all)); });
  for (ProcessTimeline& worker : gathered.get_future().get())
    timeline.processes.push_back(std::move(worker));
  timeline.end_ns = Trace::now_ns();
  return timeline;
}

Status ClusterRuntime::start() {
  TROUPE_TRY(shell_.begin());
  while (!shell_.started()) {
    if (stop_ && stop_()) shell_.stop();
    handle_one(steady_now() + kAskStopEvery);
  }
  TROUPE_TRY(*shell_.started());
  handler_ = std::thread([this] {
    while (!shell_.over()) handle_one(kNever);
  });
  return ok_status();
}

ClusterRuntime::~ClusterRuntime() {
  if (owns_system_) end_at_faults(platform_->actors());
  shell_.leave();
  // No orderly end is needed if the workers hold nothing yet, or if the job has lost a part: their
  // state is of no use without it, and they may be running a long kernel.
  if (!handler_.joinable() || shell_.lost_any()) shell_.children().kill_all();
  for (pid_t left : shell_.children().wait(kLeaveWithin))
    TROUPE_LOG(
        warning, "master",
        fmt::format("worker process {} was killed and does not end: it is left behind", left));
  if (handler_.joinable())
    handler_.join();
  else
    while (!shell_.over()) handle_one(kNever);
  shell_.end();
  shell_.wait();
}

}  // namespace

Expected<std::unique_ptr<Runtime>> start_cluster(const Cluster& cluster, caf::actor_system* system,
                                                 Runtime::Hooks hooks) {
  auto runtime = std::make_unique<ClusterRuntime>(cluster, system, std::move(hooks));
  TROUPE_TRY(runtime->start());
  return std::unique_ptr<Runtime>(std::move(runtime));
}

}  // namespace troupe
