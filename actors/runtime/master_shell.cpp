#include "actors/runtime/master_shell.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <caf/actor_system.hpp>
#include <caf/send.hpp>

#include "actors/runtime/registered.hpp"
#include "actors/runtime/worker_process.hpp"
#include "core/log.hpp"
#include "serialization/wire.hpp"

namespace troupe {
namespace {

constexpr std::chrono::seconds kStartWithin{20};
// Time limit for collecting recordings, some megabytes per worker.
constexpr std::chrono::seconds kGatherWithin{10};
// How often the clock is read while a timer is running.
constexpr std::chrono::milliseconds kLookEvery{100};

std::string random_bytes(Platform& platform, std::size_t n) {
  std::string bytes;
  while (bytes.size() < n) bytes.push_back(char(platform.random() & 0xff));
  return bytes;
}

// Describes a worker on this machine that ended before the job ran. `unavailable`, which is worth
// another try, only if that may be an accident.
Status ended_early(pid_t child, const ChildEnd& end) {
  std::string text = fmt::format("worker process {} {} before the job ran", child, end.text());
  if (end.signal != 0 || end.code == kTryAgain) return unavailable(std::move(text));
  if (end.code == 0) text += ": a program becomes a worker where it makes its Session";
  return failed_precondition(std::move(text));
}

}  // namespace

MasterShell::MasterShell(Cluster cluster, const OpTable& ops, Platform& platform,
                         std::vector<TaskId> tasks)
    : cluster_(std::move(cluster)),
      ops_(ops),
      platform_(platform),
      tasks_(std::move(tasks)),
      hub_(0, *this) {
  hub_.record(trace_);
  words_.job = fmt::format("{:016x}", hash_text(random_bytes(platform_, 16)));
  words_.registered = registered();
  children_ = platform_.make_children(
      [this](pid_t child, const ChildEnd& end) { child_ended(child, end); });
}

// ---- events -----------------------------------------------------------------------------------

void MasterShell::up(PeerId peer, const Join& join) {
  tell([=](Membership& m, Instant now, auto& out) { m.up(peer, join, now, out); });
}

void MasterShell::down(PeerId peer, Status why) {
  tell([=](Membership& m, Instant now, auto& out) { m.down(peer, why, now, out); });
}

void MasterShell::message(ProcessId from, WireMessage message) {
  if (auto* spans = std::get_if<TraceSpans>(&message))
    return events_.push([this, from, spans = std::move(*spans)]() mutable {
      gathering_.take(from, std::move(spans));
      if (gathering_.done()) end_gathering();
    });
  tell([from, message = std::move(message)](Membership& m, Instant now, auto& out) {
    if (auto* ready = std::get_if<Ready>(&message)) m.ready(from, *ready, now, out);
    if (auto* lost = std::get_if<LinkLost>(&message)) m.link_lost(from, *lost, now, out);
  });
}

void MasterShell::child_ended(pid_t child, const ChildEnd& end) {
  tell([=, status = ended_early(child, end)](Membership& m, Instant now, auto& out) {
    m.child_ended(status, now, out);
  });
}

void MasterShell::stop() { membership_->stop(now(), out_); }

void MasterShell::leave() {
  tell([](Membership& m, Instant now, auto& out) { m.leave(now, out); });
}

void MasterShell::handle(EventQueue::Event event) {
  if (event) event();
  membership_->tick(now(), out_);
  if (clock_.reading() >= gather_until_) end_gathering();
  for (; !out_.empty(); out_.pop_front())
    std::visit([this](auto& output) { carry_out(output); }, out_.front());
}

Instant MasterShell::now() {
  looked_ = platform_.now();
  clock_.look(looked_);
  return clock_.reading();
}

// The clock must be read regularly, or it falls behind.
Instant MasterShell::next_wakeup() const {
  const Instant due = std::min(membership_->next_wakeup(), gather_until_);
  if (due == kNever) return kNever;
  return looked_ + std::clamp<Instant>(due - clock_.reading(), Instant(0), kLookEvery);
}

// ---- what Membership decides ------------------------------------------------------------------

void MasterShell::carry_out(const Membership::Admit& admit) {
  hub_.admit(admit.peer, admit.process);
}

void MasterShell::carry_out(Membership::Close& close) {
  hub_.close_peer(close.peer, std::move(close.why));
}

void MasterShell::carry_out(const Membership::Send& send) {
  // Fails only if the process is down, which is reported separately.
  if (Status status = hub_.send(send.to, send.message); !status.ok())
    TROUPE_LOG(debug, "master", status.text());
}

void MasterShell::carry_out(const Membership::Note& note) {
  TROUPE_LOG(warning, "master", note.text);
}

void MasterShell::carry_out(Membership::Started& started) {
  started_ = with_last_words(std::move(started.status));
}

void MasterShell::carry_out(const Membership::Over&) { over_ = true; }

void MasterShell::carry_out(const Membership::Up& member) {
  hub_.place(member.task, member.process);
  TaskUp up;
  up.task = member.task;
  up.name = member.name;
  // The device types are known here: workers with other registrations do not join.
  for (const DeviceName& name : member.devices)
    if (const DeviceType* type = ops_.devices.find(*name.type))
      up.devices.push_back({name, type->space});
  up.actor = spawn_task_proxy(platform_.actors(), hub_, member.task, in_use_.token());
  proxies_.push_back(up.actor);
  members_[member.process] = member.name;
  caf::anon_send(master_, std::move(up));
}

void MasterShell::carry_out(const Membership::Lost& lost) {
  lost_any_ = true;
  members_.erase(lost.process);
  gathering_.lost(lost.process);
  if (gathering_.done()) end_gathering();
  for (TaskId task : hub_.tasks_of(lost.process)) caf::anon_send(master_, TaskLost{task, lost.why});
  if (told_of_losses_) told_of_losses_(lost.why);
}

// Adds the last words of workers that did not join in time.
Status MasterShell::with_last_words(Status status) const {
  if (status.code() != Code::deadline_exceeded) return status;
  std::string text = status.message();
  for (pid_t child : children_here_)
    if (std::string words = children_->last_words(child); !words.empty())
      text += fmt::format("; process {} said '{}'", child, words);
  return deadline_exceeded(std::move(text));
}

// ---- recording --------------------------------------------------------------------------------

void MasterShell::start_recording(std::function<void()> told) {
  events_.push([this, told = std::move(told)] {
    for (const auto& [process, _] : members_) (void)hub_.send(process, RecordTrace{true});
    told();
  });
}

void MasterShell::gather(Gathered done) {
  events_.push([this, done = std::move(done)]() mutable {
    gathered_ = std::move(done);
    gather_until_ = now() + kGatherWithin;
    begin_gathering();
  });
}

void MasterShell::begin_gathering() {
  for (const auto& [process, name] : members_) {
    gathering_.ask(process, "worker " + name, hub_.clock_of(process));
    if (!hub_.send(process, RecordTrace{false}).ok()) gathering_.lost(process);
  }
  if (gathering_.done()) end_gathering();
}

void MasterShell::end_gathering() {
  gather_until_ = kNever;
  if (Gathered done = std::exchange(gathered_, nullptr)) done(gathering_.result());
}

// ---- beginning and end ------------------------------------------------------------------------

Membership::Options MasterShell::job() {
  Membership::Options job;
  job.workers = std::size_t(std::max(cluster_.workers, cluster_.wait_for));
  job.words = words_;
  job.welcome.threads = std::uint32_t(cluster_.threads);
  job.welcome.step_memory = cluster_.step_memory;
  job.welcome.cuda_sync = cluster_.cuda_sync;
  job.welcome.profile = numeric_profile();
  job.welcome.devices = cluster_.devices;
  job.tasks = tasks_;
  job.spares = std::size_t(cluster_.spares);
  job.start_within = kStartWithin;
  if (cluster_.wait_for > 0) job.start_within = join_within_;
  if (job.start_within > Instant(0)) job.start_until = now() + job.start_within;
  return job;
}

MasterOptions MasterShell::master_options() const {
  MasterOptions options;
  options.ops = &ops_;
  options.soft_placement = cluster_.soft_placement;
  options.replicas = cluster_.replicas;
  options.disabled_passes = cluster_.disabled_passes;
  options.trace = trace_;
  options.stands_still = cluster_.stands_still;
  options.own_threads = platform_.own_threads();
  return options;
}

Status MasterShell::begin() {
  master_ = spawn_master(platform_.actors(), master_options());
  hub_.deliver_to(CoordinatorActor(master_));
  membership_.emplace(job());
  TROUPE_TRY(listen());
  TROUPE_TRY(start_workers());
  TROUPE_LOG(info, "master",
             fmt::format("waiting for workers at {}: {} wanted", endpoint_.text(),
                         std::max(cluster_.workers, cluster_.wait_for)));
  return ok_status();
}

Status MasterShell::listen() {
  secret_ = cluster_.secret;
  if (cluster_.workers > 0 && secret_.empty()) secret_ = random_bytes(platform_, 32);
  TROUPE_TRY(transport_, open_transport(platform_, secret_, cluster_.silence, hub_));
  endpoint_ = {"127.0.0.1", 0};
  if (!cluster_.listen.empty()) {
    TROUPE_TRY(endpoint_, parse_endpoint(cluster_.listen));
  }
  TROUPE_TRY(Hello hello, encode_join(words_));
  auto port = transport_->listen(endpoint_, std::move(hello));
  // No worker was lost.
  if (port.status().code() == Code::unavailable)
    return failed_precondition(port.status().message());
  TROUPE_TRY(endpoint_.port, std::move(port));
  return ok_status();
}

Status MasterShell::start_workers() {
  std::string program = cluster_.worker_program;
  if (program.empty() && cluster_.workers > 0) {
    TROUPE_TRY(program, platform_.program());
  }
  WorkerProcessOptions options;
  options.master = endpoint_;
  options.secret = secret_;
  options.job = words_.job;
  options.silence = cluster_.silence;
  options.parent = platform_.process_id();
  const std::string argument = fmt::format("{}{}", kWorkerArgument, Children::kInput);
  for (int w = 0; w < cluster_.workers; ++w) {
    TROUPE_TRY(pid_t child, children_->start(program, {argument}, worker_settings_text(options)));
    children_here_.push_back(child);
  }
  return ok_status();
}

void MasterShell::end() {
  for (const ProcessActor& proxy : proxies_)
    caf::anon_send_exit(proxy, caf::exit_reason::user_shutdown);
  proxies_.clear();
  if (master_) caf::anon_send_exit(master_, caf::exit_reason::user_shutdown);
  in_use_.release();
  if (transport_) transport_->shutdown();
  hub_.deliver_to(CoordinatorActor{});
  master_ = nullptr;
}

void MasterShell::abandon() {
  children_->kill_all();
  if (transport_) transport_->shutdown();
}

}  // namespace troupe
