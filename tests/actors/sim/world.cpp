#include "tests/actors/sim/world.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdlib>

namespace troupe::test {

std::uint64_t schedules(std::uint64_t usual) {
  const char* text = std::getenv("TROUPE_SCHEDULES");
  return std::max<std::uint64_t>(usual, text ? std::strtoull(text, nullptr, 10) : 0);
}

namespace {

constexpr std::uint64_t kMostToStart = 20'000, kMostToEnd = 50'000;
// Whoever could not join comes again, but not for ever.
constexpr std::size_t kMostProcesses = 64;
constexpr pid_t kFirstProcess = 100;
constexpr Instant kBusy = std::chrono::milliseconds(5);

}  // namespace

World::World(std::uint64_t seed, const Options& options)
    : options_(options), random_(seed), network_(random_()) {
  for (std::uint64_t* weight : {&job_weight_, &device_weight_, &network_weight_})
    *weight = std::uint64_t{1} << random_.below(5);
  machine_.network = &network_;
  machine_.files = options_.files ? options_.files : &own_files_;
  machine_.ops = options_.ops;
  machine_.handle_inline = random_.below(2) == 0;
  machine_.early = std::array<std::uint64_t, 3>{0, 1000, Arrivals::kEarlyBytes}[seed % 3];
  machine_.start = [this](SimProcess& parent, const std::string& settings) -> Expected<pid_t> {
    TROUPE_TRY(WorkerProcessOptions worker, parse_worker_settings(settings));
    TROUPE_TRY(pid_t pid, add_worker(std::move(worker)));
    machine_.find(pid)->be_child_of(parent);
    return pid;
  };
  machine_.find = [this](pid_t pid) { return processes_[std::size_t(pid - kFirstProcess)].get(); };
  children_ = random_.below(2) == 0;
  if (options_.children) children_ = *options_.children;
}

World::World(std::uint64_t seed, int workers, const OpTable& ops)
    : World(seed, Options{.workers = workers, .ops = &ops}) {
  throw_if_error(start());
}

World::~World() {
  hold_compilers_ = false;  // what is held does not end
  (void)shut_down();
}

SimProcess& World::add_process(std::string name) {
  const pid_t pid = kFirstProcess + pid_t(processes_.size());
  processes_.push_back(std::make_unique<SimProcess>(machine_, std::move(name), pid, random_()));
  return *processes_.back();
}

Expected<pid_t> World::add_worker(WorkerProcessOptions options) {
  SimProcess& worker = add_process(fmt::format("worker{}", processes_.size()));
  options.listen = {worker.name(), 1};
  TROUPE_TRY(worker.become_worker(std::move(options)));
  return worker.process_id();
}

Status World::start() {
  Cluster cluster;
  cluster.listen = "master:1";
  cluster.secret = "sixteen and more bytes";
  (children_ ? cluster.workers : cluster.wait_for) = options_.workers;
  TROUPE_TRY(add_process("master").become_master(std::move(cluster), options_.tasks));
  for (int n = 0; !children_ && n < options_.workers; ++n)
    TROUPE_TRY(add_worker({.master = {"master", 1}, .secret = "sixteen and more bytes"}).status());
  const SimProcess& master = *processes_.front();
  while (!master.ended() && !master.master()->started()) {
    if (events_ > kMostToStart) return deadline_exceeded("the job does not start; " + text());
    inflict_faults();
    if (!step({}))
      return unavailable("nothing can happen any more while the job starts; " + text());
    TROUPE_TRY(lost_);
  }
  if (master.ended()) return unavailable("the master is gone");
  return *master.master()->started();
}

SimProcess& World::holder(ProcessId number) const {
  for (const auto& process : processes_)
    if (process->worker() && process->worker()->process() == number && !process->ended())
      return *process;
  TROUPE_CHECK(false, "the number is a worker's");
  return *processes_.front();
}

std::string World::text() const {
  std::string text = fmt::format("{} events, {} us", events_, now().count() / 1000);
  for (const auto& p : processes_) {
    text += fmt::format("; {}", p->name());
    if (p->ended())
      text += " " + p->end().text();
    else
      text += fmt::format("{}: {} jobs, {} events, {} bursts", p->paused() ? " (paused)" : "",
                          p->jobs(true), p->events(), p->bursts());
  }
  return text;
}

// ---- time -------------------------------------------------------------------------------------

void World::at(Instant when, std::function<void()> what) { later_.emplace(when, std::move(what)); }

// When something changes by the clock alone.
std::optional<MemoryNetwork::Time> World::next_change() const {
  Instant due = later_.empty() ? kNever : later_.begin()->first;
  for (const auto& process : processes_) due = std::min(due, process->next_wakeup());
  auto at = network_.next();
  if (due == kNever) return at;
  due = std::max(due, network_.now());
  return at ? std::min(*at, due) : due;
}

// To whatever comes first: the end of a fault, a timer or a delivery.
bool World::pass_time() {
  const auto due = next_change();
  if (!due) return false;
  const auto delivery = network_.next();
  const bool fault_ends = !later_.empty() && later_.begin()->first <= *due;
  if (delivery && *delivery <= *due && !fault_ends)
    network_.step();
  else
    network_.advance_to(*due);
  if (fault_ends) {
    auto what = later_.extract(later_.begin());
    what.mapped()();
  }
  for (std::size_t i = 0; i < processes_.size(); ++i) processes_[i]->look();
  return true;
}

// When something happens next if nobody does anything.
std::optional<MemoryNetwork::Time> World::next_time() {
  for (const auto& process : processes_)
    if (process->jobs(true) + process->events() + process->bursts() > 0) return now();
  return next_change();
}

void World::pass(MemoryNetwork::Time duration) {
  const auto until = now() + duration;
  for (auto next = next_time(); next && *next <= until; next = next_time()) step({});
  network_.advance_to(std::max(now(), until));
  for (const auto& process : processes_) process->look();
}

std::size_t World::timers() const {
  std::size_t timers = 0;
  for (const auto& process : processes_) timers += process->timers();
  return timers;
}

// ---- what happens next ------------------------------------------------------------------------

bool World::step(const std::vector<Client*>& clients) {
  ++events_;
  const bool compilers = !hold_compilers_;
  std::size_t of_actors = 0, of_devices = 0, ready = 0;
  for (const auto& process : processes_) {
    of_actors += process->jobs(compilers) + process->events();
    of_devices += process->bursts();
  }
  const bool clients_run = processes_.front()->running();
  for (Client* client : clients) ready += clients_run && client->ready();
  if (of_actors + of_devices + ready == 0) return pass_time();
  const std::uint64_t acting = job_weight_ * (of_actors + ready);
  const std::uint64_t computing = device_weight_ * of_devices;
  // Nobody who has something to do is longer about it than that.
  const auto next = network_.next();
  const bool soon = next && *next <= now() + kBusy;
  const std::uint64_t all = acting + computing + (soon ? network_weight_ : 0);
  std::uint64_t drawn = random_.below(all);
  trace_ = hash_combine(trace_, hash_combine(all, drawn));
  if (drawn >= acting + computing) return pass_time();
  if (drawn >= acting) {
    std::size_t index = (drawn - acting) / device_weight_;
    for (const auto& process : processes_) {
      if (index < process->bursts()) {
        process->run_burst(index);
        return true;
      }
      index -= process->bursts();
    }
  }
  std::size_t index = drawn / job_weight_;
  for (std::size_t i = 0; i < processes_.size(); ++i) {
    SimProcess& process = *processes_[i];
    const std::size_t jobs = process.jobs(compilers), events = process.events();
    if (index < jobs) {
      process.run_job(index, compilers);
      return true;
    }
    index -= jobs;
    if (index < events) {
      process.run_event();
      return true;
    }
    index -= events;
  }
  for (Client* client : clients)
    if (client->ready() && index-- == 0) {
      client->handle_inline(machine_.handle_inline);
      client->step();
      break;
    }
  return true;
}

Status World::run(const std::vector<Client*>& clients, std::uint64_t most_events) {
  auto pending = [&] {
    std::string text;
    for (const Client* client : clients) text += "; " + client->text();
    return text + "; " + this->text();
  };
  std::uint64_t until = events_ + most_events;
  while (!std::all_of(clients.begin(), clients.end(), [](Client* c) { return c->finished(); })) {
    if (!alive(0)) return ok_status();
    if (events_ >= until) return deadline_exceeded(fmt::format("{} events{}", events_, pending()));
    inflict_faults();
    if (!step(clients)) return unavailable("nothing can happen any more" + pending());
    check_unprovoked();
    TROUPE_TRY(lost_);
  }
  return ok_status();
}

Status World::shut_down() {
  if (processes_.empty()) return ok_status();
  if (!leaving_ && alive(0)) {
    leaving_ = true;
    for (const auto& process : processes_) process->resume();
    processes_.front()->leave();
  }
  leaving_ = true;
  auto all_ended = [&] {
    return std::all_of(processes_.begin(), processes_.end(), [](auto& p) { return p->ended(); });
  };
  const std::uint64_t until = events_ + kMostToEnd;
  while (!all_ended() && events_ < until && step({})) {
  }
  if (!all_ended()) return deadline_exceeded("not all processes end; " + text());
  for (const auto& process : processes_) TROUPE_TRY(process->left_behind());
  return ok_status();
}

// ---- faults -----------------------------------------------------------------------------------

void World::crash(Index index) {
  provoked_ = true;
  processes_[index]->crash();
}

void World::pause(Index index, Instant duration) {
  provoked_ = true;
  processes_[index]->pause();
  at(now() + duration, [this, index] { processes_[index]->resume(); });
}

void World::cut(Index from, Index to, Instant duration, bool both_ways) {
  provoked_ = true;
  const std::string &a = processes_[from]->name(), &b = processes_[to]->name();
  network_.cut(a, b);
  ++disturbed_[{a, b}].first;
  at(now() + duration, [this, a, b] {
    if (--disturbed_[{a, b}].first == 0) network_.heal(a, b);
  });
  if (both_ways) cut(to, from, duration, false);
}

void World::slow(Index from, Index to, Instant more, Instant duration) {
  provoked_ = true;
  const std::string &a = processes_[from]->name(), &b = processes_[to]->name();
  network_.slow(a, b, more);
  ++disturbed_[{a, b}].second;
  at(now() + duration, [this, a, b] {
    if (--disturbed_[{a, b}].second == 0) network_.slow(a, b, Instant(0));
  });
}

void World::crash_after(std::uint64_t events, ProcessId process) {
  crash_at_ = events_ + events;
  crash_ = process;
}

void World::break_link_after(std::uint64_t events, ProcessId a, ProcessId b) {
  break_at_ = events_ + events;
  break_ = {a, b};
}

void World::inflict_faults() {
  if (!crashed_ && events_ >= crash_at_) {
    crashed_ = provoked_ = true;
    holder(crash_).crash();
  }
  if (!link_broken_ && events_ >= break_at_) {
    link_broken_ = provoked_ = true;
    network_.reset(holder(break_.first).name(), holder(break_.second).name());
  }
  if (before_event_) before_event_();
  come_again();
}

// A worker that came by itself, and ended before the job ran.
void World::come_again() {
  if (!options_.come_again || children_ || leaving_) return;
  if (!alive(0) || processes_.front()->master()->started()) return;
  std::size_t living = 0;
  for (std::size_t i = 1; i < processes_.size(); ++i) living += alive(i);
  if (processes_.size() >= kMostProcesses) lost_ = unavailable("workers come in vain; " + text());
  for (; lost_.ok() && living < std::size_t(options_.workers); ++living)
    (void)add_worker({.master = {"master", 1}, .secret = "sixteen and more bytes"});
}

void World::check_unprovoked() {
  if (provoked_ || leaving_ || !lost_.ok()) return;
  for (const auto& process : processes_)
    if (process->ended() || (process->worker() && process->worker()->ended()))
      lost_ = unavailable("a process ended without a fault; " + text());
}

}  // namespace troupe::test
