#include "tests/actors/sim/process.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <caf/actor_system.hpp>
#include <caf/actor_system_config.hpp>
#include <caf/scheduled_actor.hpp>
#include <caf/scheduler/test_coordinator.hpp>
#include <csignal>

#include "actors/runtime/compiler_actor.hpp"
#include "tests/devices/sim_device.hpp"

namespace troupe::test {
namespace {

// As a master's process waits for its workers (master_process.cpp, children.cpp).
constexpr Instant kLeaveWithin = std::chrono::seconds(5), kGrace = std::chrono::seconds(5);
constexpr Instant kLookEvery = std::chrono::milliseconds(20);

struct SimConfig : caf::actor_system_config {
  SimConfig() {
    set("scheduler.policy", caf::atom("testing"));
    set("logger.inline-output", true);
  }
};

bool is_compiler(caf::resumable& job) {
  auto* actor = dynamic_cast<caf::scheduled_actor*>(&job);
  return actor != nullptr && std::string_view(actor->name()) == kCompiler;
}

}  // namespace

struct SimProcess::System {
  explicit System(Instant now) {
    scheduler.clock().current_time = caf::actor_clock::time_point(now);
  }
  SimConfig config;
  caf::actor_system actors{config};
  caf::scheduler::test_coordinator& scheduler =
      dynamic_cast<caf::scheduler::test_coordinator&>(actors.scheduler());
  const std::size_t running_before = actors.registry().running();
};

// The machine's, until the process is gone.
class SimProcess::Files final : public FileSystem {
 public:
  explicit Files(FileSystem& files) : files_(files) {}
  void sever() { gone_ = true; }

  Expected<std::unique_ptr<WritableFile>> create(const std::string& path) override {
    TROUPE_TRY(here());
    return files_.create(path);
  }
  Expected<std::unique_ptr<ReadableFile>> open(const std::string& path) override {
    TROUPE_TRY(here());
    return files_.open(path);
  }
  Status make_dirs(const std::string& path) override {
    TROUPE_TRY(here());
    return files_.make_dirs(path);
  }
  Status make_dir(const std::string& path) override {
    TROUPE_TRY(here());
    return files_.make_dir(path);
  }
  Status rename(const std::string& from, const std::string& to) override {
    TROUPE_TRY(here());
    return files_.rename(from, to);
  }
  Status exchange(const std::string& a, const std::string& b) override {
    TROUPE_TRY(here());
    return files_.exchange(a, b);
  }
  Status sync_dir(const std::string& path) override {
    TROUPE_TRY(here());
    return files_.sync_dir(path);
  }
  Expected<std::vector<std::string>> list(const std::string& path) override {
    TROUPE_TRY(here());
    return files_.list(path);
  }
  Status remove(const std::string& path) override {
    TROUPE_TRY(here());
    return files_.remove(path);
  }
  Status remove_dir(const std::string& path) override {
    TROUPE_TRY(here());
    return files_.remove_dir(path);
  }

 private:
  Status here() const { return gone_ ? internal_error("the process is gone") : ok_status(); }

  FileSystem& files_;
  bool gone_ = false;
};

// A master's workers on the simulated machine. Whoever owns the processes says when they end.
class SimProcess::Workers final : public ChildProcesses {
 public:
  Workers(SimProcess& self, Ended ended) : self_(self), ended_(std::move(ended)) {}
  ~Workers() override {
    kill_all();
    self_.workers_ = nullptr;
  }

  Expected<pid_t> start(const std::string&, const std::vector<std::string>&,
                        std::string_view input) override {
    TROUPE_TRY(pid_t child, self_.machine_.start(self_, std::string(input)));
    children_.push_back(child);
    return child;
  }
  void kill_all() override {
    for (pid_t child : living()) self_.machine_.find(child)->crash();
  }
  std::vector<pid_t> wait(std::chrono::milliseconds) override {
    TROUPE_CHECK(false, "no simulated process waits");
    return {};
  }
  std::string last_words(pid_t) const override { return {}; }

  void ended(pid_t child, const ChildEnd& end) {
    if (std::erase(children_, child) > 0) ended_(child, end);
  }
  std::vector<pid_t> living() const { return children_; }
  // They live on without their parent.
  void orphan() {
    for (pid_t child : std::exchange(children_, {})) self_.machine_.find(child)->parent_ = nullptr;
  }

 private:
  SimProcess& self_;
  const Ended ended_;
  std::vector<pid_t> children_;
};

SimProcess::SimProcess(SimMachine& machine, std::string name, pid_t pid, std::uint64_t seed)
    : machine_(machine),
      name_(std::move(name)),
      pid_(pid),
      random_(seed),
      files_(std::make_unique<Files>(*machine.files)) {}

SimProcess::~SimProcess() {
  if (!system_) return;
  // What does not end would keep its system's destructor waiting for ever: rather leak.
  if (drain().ok()) return;
  (void)master_.release();
  (void)worker_.release();
  (void)system_.release();
}

Status SimProcess::become_master(Cluster cluster, std::vector<TaskId> tasks) {
  master_ =
      std::make_unique<MasterShell>(std::move(cluster), *machine_.ops, *this, std::move(tasks));
  master_->hub().limit_early(machine_.early);
  return master_->begin();
}

Status SimProcess::become_worker(WorkerProcessOptions options) {
  worker_ = std::make_unique<WorkerShell>(
      std::move(options), [ops = machine_.ops]() -> const OpTable& { return *ops; }, *this);
  worker_->hub().limit_early(machine_.early);
  return worker_->begin();
}

// ---- what it can do ---------------------------------------------------------------------------

std::size_t SimProcess::jobs(bool compilers) const {
  if (!running() || !system_) return 0;
  const auto& jobs = system_->scheduler.jobs;
  if (compilers) return jobs.size();
  return std::size_t(
      std::count_if(jobs.begin(), jobs.end(), [](auto* job) { return !is_compiler(*job); }));
}

std::size_t SimProcess::events() const {
  if (!running()) return 0;
  return std::size_t(master_ ? !master_->events().empty() : worker_ && !worker_->events().empty());
}

std::size_t SimProcess::bursts() const {
  if (!running()) return 0;
  return std::size_t(std::count_if(devices_.begin(), devices_.end(),
                                   [](const SimDevice* d) { return d->pending() > 0; }));
}

void SimProcess::run_job(std::size_t index, bool compilers) {
  auto& jobs = system_->scheduler.jobs;
  auto chosen = jobs.begin();
  for (;; ++chosen) {
    if (!compilers && is_compiler(**chosen)) continue;
    if (index-- == 0) break;
  }
  std::rotate(jobs.begin(), chosen, chosen + 1);
  system_->scheduler.try_run_once();
  settle();
}

void SimProcess::run_event() {
  if (master_)
    master_->handle(master_->events().take(Instant(0)));
  else
    worker_->handle(worker_->events().take(Instant(0)));
  settle();
}

void SimProcess::run_burst(std::size_t index) {
  for (SimDevice* device : devices_)
    if (device->pending() > 0 && index-- == 0) {
      device->run_one();
      break;
    }
  settle();
}

Instant SimProcess::next_wakeup() const {
  if (!running()) return kNever;
  Instant due = next_farewell_;
  if (master_ && state_ == State::running) due = std::min(due, master_->next_wakeup());
  if (system_)
    if (const auto& timers = system_->scheduler.clock().schedule(); !timers.empty())
      due = std::min<Instant>(due, timers.begin()->first.time_since_epoch());
  return due;
}

// The actors' clock follows the network's; what is due on it happens.
void SimProcess::set_clock() {
  if (!system_) return;
  auto& clock = system_->scheduler.clock();
  const caf::actor_clock::time_point due(now());
  if (due > clock.now()) clock.advance_time(due - clock.now());
}

void SimProcess::look() {
  if (!running()) return;
  set_clock();
  if (master_ && state_ == State::running && master_->next_wakeup() <= now()) master_->handle({});
  if (next_farewell_ <= now()) look_after_workers();
  settle();
}

std::size_t SimProcess::timers() const {
  return system_ ? system_->scheduler.clock().schedule().size() : 0;
}

// ---- its end ----------------------------------------------------------------------------------

// As the destructor of a cluster's runtime.
void SimProcess::leave() {
  master_->leave();
  if (!master_->started() || !master_->started()->ok()) master_->children().kill_all();
  farewell_.emplace(now(), kLeaveWithin, kGrace);
  next_farewell_ = now();
}

// As Children::wait.
void SimProcess::look_after_workers() {
  const std::vector<pid_t> living = workers_->living();
  next_farewell_ = living.empty() ? kNever : now() + kLookEvery;
  for (pid_t child : living) {
    SimProcess* worker = machine_.find(child);
    if (farewell_->look(child, worker->paused(), now()) != Farewell::Deed::kill) continue;
    ++killed_;
    worker->crash();
  }
}

// Goes on where a thread of production's waits for something.
void SimProcess::settle() {
  if (state_ == State::running && worker_ && worker_->ended()) {
    worker_->end();
    state_ = State::leaving;
  }
  if (state_ == State::running && master_ && farewell_ && workers_->living().empty() &&
      master_->over()) {
    master_->end();
    state_ = State::leaving;
  }
  if (state_ != State::leaving) return;
  auto& in_use = master_ ? master_->in_use() : worker_->in_use();
  if (!in_use.gone() || (system_ && !system_->scheduler.jobs.empty())) return;
  ChildEnd end;
  if (worker_) {
    end.code = worker_exit_code(*worker_->ended());
    if (end.code != 0) end.last_words = worker_->ended()->text();
  }
  end_with(end);
  left_behind_ = drain();
}

void SimProcess::end_with(ChildEnd end) {
  state_ = State::ended;
  end_ = std::move(end);
  if (parent_ && parent_->workers_ && !parent_->ended()) parent_->workers_->ended(pid_, end_);
}

void SimProcess::pause() {
  TROUPE_CHECK(running(), "only what runs is paused");
  leaving_ = state_ == State::leaving;
  state_ = State::paused;
  machine_.network->pause(name_);
}

void SimProcess::resume() {
  if (state_ != State::paused) return;
  state_ = leaving_ ? State::leaving : State::running;
  machine_.network->resume(name_);
  look();
}

void SimProcess::crash() {
  if (ended()) return;
  machine_.network->resume(name_);
  machine_.network->crash(name_);
  files_->sever();
  if (workers_) workers_->orphan();
  end_with({-1, SIGKILL, {}});
}

// Frees what the process had. Nothing of it reaches anybody else any more.
Status SimProcess::drain() {
  if (!system_) return ok_status();
  if (master_) master_->end();
  if (worker_) worker_->end();
  auto& scheduler = system_->scheduler;
  for (int rounds = 0; rounds < 100'000; ++rounds) {
    if (scheduler.try_run_once()) continue;
    const auto busy = std::find_if(devices_.begin(), devices_.end(),
                                   [](SimDevice* device) { return device->run_one(); });
    if (busy == devices_.end() && !scheduler.trigger_timeout()) break;
  }
  const std::size_t running = system_->actors.registry().running();
  const bool gone = master_ ? master_->in_use().gone() : !worker_ || worker_->in_use().gone();
  if (running > system_->running_before || !gone)
    return failed_precondition(fmt::format("{} actors of {} did not end{}",
                                           running - system_->running_before, name_,
                                           gone ? "" : ", and hold on to the process"));
  devices_.clear();
  master_.reset();
  worker_.reset();
  system_.reset();
  return ok_status();
}

// ---- Platform ---------------------------------------------------------------------------------

FileSystem& SimProcess::files() { return *files_; }

bool SimProcess::is_stopped(pid_t process) {
  const SimProcess* other = machine_.find(process);
  return other && other->paused();
}

std::unique_ptr<ChildProcesses> SimProcess::make_children(ChildProcesses::Ended ended) {
  auto workers = std::make_unique<Workers>(*this, std::move(ended));
  workers_ = workers.get();
  return workers;
}

Expected<std::shared_ptr<Transport>> SimProcess::make_transport(const Security&,
                                                                const TransportLimits&,
                                                                TransportHandler& handler) {
  return machine_.network->host(name_, handler);
}

Expected<std::vector<std::unique_ptr<Device>>> SimProcess::make_devices(const Cluster& cluster,
                                                                        TaskId task) {
  std::vector<std::unique_ptr<Device>> devices;
  for (std::size_t i = 0; i < cluster.devices.size(); ++i) {
    auto text = fmt::format("/job:worker/task:{}/device:CPU:{}", number(task), i);
    TROUPE_TRY(DeviceName name, DeviceName::parse(text));
    auto device = std::make_unique<SimDevice>(std::move(name));
    devices_.push_back(device.get());
    devices.push_back(std::move(device));
  }
  return devices;
}

caf::actor_system& SimProcess::actors() {
  if (!system_) system_ = std::make_unique<System>(now());
  return system_->actors;
}

}  // namespace troupe::test
