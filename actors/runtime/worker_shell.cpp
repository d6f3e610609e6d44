#include "actors/runtime/worker_shell.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <caf/actor_system.hpp>
#include <caf/send.hpp>

#include "actors/processes/gathering.hpp"
#include "actors/processes/membership.hpp"
#include "actors/runtime/registered.hpp"
#include "actors/worker/worker_actor.hpp"
#include "core/log.hpp"
#include "core/processors.hpp"
#include "ops/isa.hpp"
#include "serialization/wire.hpp"

namespace troupe {
namespace {

constexpr std::chrono::seconds kJoinWithin{10};

// Sets up this process to compute the same bits as its master; failed_precondition if it cannot.
Status apply(const NumericProfile& profile) {
  NumericProfile mine = numeric_profile();
  if (profile.kernels != mine.kernels || !ops::can_compute_at(int(profile.isa)))
    return failed_precondition(
        fmt::format("this process cannot compute as the master does: {} against {}",
                    profile_text(mine), profile_text(profile)));
  TROUPE_TRY(ops::limit_isa(int(profile.isa)));
  return ops::set_cache_sizes({profile.l1, profile.l2, profile.l3});
}

// The lower of two limits, where 0 means none.
std::uint64_t smaller_limit(std::uint64_t a, std::uint64_t b) {
  return a == 0 ? b : b == 0 ? a : std::min(a, b);
}

}  // namespace

WorkerShell::WorkerShell(WorkerProcessOptions options, std::function<const OpTable&()> ops,
                         Platform& platform)
    : options_(std::move(options)), ops_(std::move(ops)), platform_(platform), hub_(~0u, *this) {
  words_.incarnation = platform_.random() | 1;  // 0 stands for any
  words_.job = options_.job;
  words_.listen_host = options_.announce.empty() ? options_.listen.host : options_.announce;
  words_.cpus = std::uint32_t(usable_processors());
  words_.profile = numeric_profile();
  words_.registered = registered();
  hub_.record(trace_);
}

// ---- events -----------------------------------------------------------------------------------

Status WorkerShell::may_connect(const Join& join) const {
  return troupe::may_connect(words_, join);
}

void WorkerShell::up(PeerId peer, const Join& join) {
  events_.push([=, this] { mesh_->up(peer, join, out_); });
}

void WorkerShell::down(PeerId peer, Status why) {
  events_.push([=, this] { mesh_->down(peer, why, out_); });
}

void WorkerShell::message(ProcessId, WireMessage message) {
  if (auto* order = std::get_if<RecordTrace>(&message)) return record(order->on);
  events_.push([this, message = std::move(message)] {
    if (auto* welcome = std::get_if<Welcome>(&message)) mesh_->welcome(*welcome, out_);
    if (auto* members = std::get_if<Members>(&message)) mesh_->members(*members, out_);
    if (std::holds_alternative<Leave>(message)) mesh_->leave(out_);
  });
}

// Handled on the transport's thread, before the next message of the master.
void WorkerShell::record(bool on) {
  if (on) trace_->collect();
  trace_->enable(on);
  if (!on) events_.push([this] { tell_recorded(); });
}

void WorkerShell::tell_recorded() {
  for (const TraceSpans& message : in_messages(trace_->collect()))
    // Fails only if the master is lost, which is reported separately.
    if (Status status = hub_.send(0, message); !status.ok())
      TROUPE_LOG(debug, "worker", status.text());
}

void WorkerShell::handle(EventQueue::Event event) {
  if (event) event();
  for (; !out_.empty(); out_.pop_front())
    std::visit([this](auto& output) { carry_out(output); }, out_.front());
}

// ---- what Mesh decides ------------------------------------------------------------------------

void WorkerShell::carry_out(const Mesh::Connect& connect) {
  const Member& to = connect.to;
  mesh_->connecting(
      to.process,
      hub_.connect({to.host, to.port}, words(), to.process, to.incarnation, kJoinWithin), out_);
}

void WorkerShell::carry_out(const Mesh::Admit& admit) { hub_.admit(admit.peer, admit.process); }

void WorkerShell::carry_out(Mesh::Close& close) {
  hub_.close_peer(close.peer, std::move(close.why));
}

void WorkerShell::carry_out(const Mesh::Host& host) {
  mesh_->hosting(this->host(host.welcome), out_);
}

void WorkerShell::carry_out(const Mesh::Place& place) { hub_.place(place.task, place.process); }

void WorkerShell::carry_out(const Mesh::Report& report) {
  // Fails only if the master is lost, which is reported separately.
  Status status =
      std::visit([&](const auto& message) { return hub_.send(0, message); }, report.message);
  if (!status.ok()) TROUPE_LOG(debug, "worker", status.text());
}

void WorkerShell::carry_out(Mesh::End& end) { ended_ = std::move(end.status); }

Join WorkerShell::words() const {
  Join words = words_;
  words.process = process();
  return words;
}

// Makes the devices and actors that the master requests. Whatever was made stays until end().
Expected<std::vector<std::string>> WorkerShell::host(const Welcome& welcome) {
  TROUPE_TRY(apply(welcome.profile));
  Cluster cluster;
  cluster.threads = int(welcome.threads);
  cluster.devices = welcome.devices;
  cluster.cuda_sync = welcome.cuda_sync;
  TROUPE_TRY(devices_, platform_.make_devices(cluster, welcome.task));
  master_ = spawn_master_proxy(platform_.actors(), hub_, in_use_.token());
  WorkerOptions worker;
  worker.task = welcome.task;
  std::vector<std::string> names;
  for (auto& device : devices_) {
    worker.devices.push_back(device.get());
    names.push_back(device->name().text());
  }
  worker.ops = &ops_();  // of the master's level, since apply()
  worker.coordinator = master_;
  worker.hub = &hub_;
  worker.own_threads = platform_.own_threads();
  worker.handle_inline = platform_.handle_inline();
  worker.files = &platform_.files();
  worker.random = [this] { return platform_.random(); };
  worker.trace = trace_;
  worker.step_memory = smaller_limit(options_.step_memory, welcome.step_memory);
  worker.alive = in_use_.token();
  worker_ = spawn_worker(platform_.actors(), std::move(worker));
  hub_.deliver_to(worker_);
  return names;
}

// ---- beginning and end ------------------------------------------------------------------------

Status WorkerShell::begin() {
  TROUPE_TRY(transport_, open_transport(platform_, options_.secret, options_.silence, hub_));
  TROUPE_TRY(Hello hello, encode_join(words()));
  TROUPE_TRY(words_.listen_port, transport_->listen(options_.listen, std::move(hello)));
  TROUPE_TRY(PeerId master, hub_.connect(options_.master, words(), 0, 0, kJoinWithin));
  mesh_.emplace(words_, master);
  if (options_.parent != 0)
    hub_.allow_silence(0,
                       [this, master = options_.parent] { return platform_.is_stopped(master); });
  return ok_status();
}

void WorkerShell::end() {
  if (worker_) {
    caf::anon_send(worker_, Leave{});
    caf::anon_send_exit(master_, caf::exit_reason::user_shutdown);
    worker_ = nullptr;
    master_ = nullptr;
    hub_.deliver_to(WorkerActor{});
  }
  in_use_.release();
  if (transport_) transport_->shutdown();
}

}  // namespace troupe
