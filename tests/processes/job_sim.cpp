#include "tests/processes/job_sim.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace troupe::testing {
using namespace std::chrono_literals;

namespace {

constexpr Instant kFaultsUntil = 2s, kSettled = 200s;
// A broken link is answered within this, a death within that.
constexpr Instant kLinkAnswer = 3s, kDeathAnswer = 1s;

Membership::Options options(const JobSim::Plan& plan) {
  Membership::Options options;
  options.workers = plan.wanted;
  options.spares = plan.spares;
  options.words.job = "job";
  if (plan.children) options.start_until = options.start_within = 20s;
  return options;
}

}  // namespace

JobSim::Plan JobSim::Plan::draw(Random& random) {
  Plan plan;
  plan.wanted = 1 + random.below(4);
  plan.children = random.below(3) == 0;
  if (!plan.children) plan.extra = random.below(3);
  if (!plan.children) plan.spares = random.below(3);
  for (std::size_t* faults :
       {&plan.deaths, &plan.mute, &plan.misfits, &plan.broken_links, &plan.impostors})
    if (random.below(3) == 0) *faults = 1 + random.below(2);
  return plan;
}

std::string JobSim::Plan::text() const {
  return fmt::format(
      "{} workers{}, {} more, {} spares, {} die, {} mute, {} misfits, {} links break, {} impostors",
      wanted, children ? " started here" : "", extra, spares, deaths, mute, misfits, broken_links,
      impostors);
}

// Side 0 connected. Each side's words to the other come in order.
struct JobSim::Connection {
  struct Side {
    Process* process = nullptr;
    PeerId peer = 0;
    bool up = false, over = false;
    Instant last{};  // when the latest thing under way to this side arrives
  };
  Side side[2];
};

struct JobSim::Process {
  virtual ~Process() = default;
  std::string name;
  bool alive = true;
  PeerId next_peer = 1;
  std::map<PeerId, std::pair<std::shared_ptr<Connection>, int>> peers;
  std::map<PeerId, ProcessId> names;  // who is somebody
};

struct JobSim::Worker final : Process {
  Join words;
  bool mute = false, misfit = false;
  PeerId master = 0;
  std::optional<Mesh> mesh;
  Mesh::Outputs out;
};

JobSim::JobSim(std::uint64_t seed, const Plan& plan)
    : random_(seed),
      slowest_(std::uint64_t{200'000} << random_.below(9)),
      plan_(plan),
      master_(std::make_unique<Process>()),
      membership_(options(plan)) {
  master_->name = "master";
}

JobSim::~JobSim() {
  queue_.clear();
  for (auto& worker : workers_) worker->peers.clear();
  master_->peers.clear();
}

void JobSim::wrong(std::string what) {
  wrong_.push_back(fmt::format("at {} ms: {}", now_ / 1ms, what));
}

void JobSim::at(Instant when, std::function<void()> what) {
  queue_.emplace(std::pair(std::max(when, now_), order_++), std::move(what));
}

// ---- the network -----------------------------------------------------------------------------

void JobSim::deliver(std::shared_ptr<Connection> c, int to,
                     std::function<void(Process&, PeerId)> what) {
  Connection::Side& side = c->side[to];
  side.last = std::max(side.last + Instant(1), now_ + soon());
  at(side.last, [c, to, what = std::move(what)] {
    Connection::Side& side = c->side[to];
    if (!side.over && side.process->alive) what(*side.process, side.peer);
  });
}

// The side hears of it, after all that is under way to it.
void JobSim::end(const std::shared_ptr<Connection>& c, int side, Status why) {
  if (c->side[side].process == nullptr) return;
  deliver(c, side, [this, c, side, why](Process& process, PeerId peer) {
    c->side[side].over = true;
    process.peers.erase(peer);
    process.names.erase(peer);
    if (&process == master_.get())
      master_input([&] { membership_.down(peer, why, now_, out_); });
    else if (auto& worker = static_cast<Worker&>(process); !worker.mute)
      worker_input(worker, [&] { worker.mesh->down(peer, why, worker.out); });
  });
}

void JobSim::connect(Process& from, const std::string& to, Join words, PeerId peer) {
  auto c = std::make_shared<Connection>();
  connections_.push_back(c);
  c->side[0].process = &from;
  c->side[0].peer = peer;
  from.peers[peer] = {c, 0};
  at(now_ + soon(), [this, c, to, words] {
    Process* target = to == "master" ? master_.get() : nullptr;
    for (auto& worker : workers_)
      if (worker->name == to) target = worker.get();
    if (!c->side[0].process->alive) return;
    if (target == nullptr || !target->alive)
      return end(c, 0, deadline_exceeded("nobody answers there"));
    c->side[1].process = target;
    c->side[1].peer = target->next_peer++;
    target->peers[c->side[1].peer] = {c, 1};
    for (int side : {0, 1}) {
      deliver(c, side, [this, c, side, words](Process& process, PeerId peer) {
        c->side[side].up = true;
        if (&process == master_.get()) {
          master_input([&] { membership_.up(peer, words, now_, out_); });
        } else if (auto& worker = static_cast<Worker&>(process); !worker.mute) {
          worker_input(worker,
                       [&] { worker.mesh->up(peer, side == 1 ? words : Join{}, worker.out); });
        }
      });
    }
  });
}

void JobSim::close(Process& process, PeerId peer, const Status& why) {
  auto it = process.peers.find(peer);
  if (it == process.peers.end()) return;
  auto [c, side] = it->second;
  end(c, side, why);
  end(c, 1 - side, why);
}

void JobSim::say(Process& from, PeerId peer, const WireMessage& message) {
  auto it = from.peers.find(peer);
  if (it == from.peers.end()) return;
  auto [c, side] = it->second;
  deliver(c, 1 - side,
          [this, message](Process& process, PeerId peer) { hear(process, peer, message); });
}

void JobSim::hear(Process& process, PeerId peer, const WireMessage& message) {
  if (&process == master_.get()) {
    auto name = process.names.find(peer);
    if (name == process.names.end()) return wrong("a peer that is nobody speaks to the master");
    if (auto* ready = std::get_if<Ready>(&message))
      master_input([&] { membership_.ready(name->second, *ready, now_, out_); });
    if (auto* lost = std::get_if<LinkLost>(&message))
      master_input([&] { membership_.link_lost(name->second, *lost, now_, out_); });
    return;
  }
  auto& worker = static_cast<Worker&>(process);
  if (worker.mute) return;
  worker_input(worker, [&] {
    if (auto* m = std::get_if<Welcome>(&message)) worker.mesh->welcome(*m, worker.out);
    if (auto* m = std::get_if<Members>(&message)) worker.mesh->members(*m, worker.out);
    if (std::holds_alternative<Leave>(message)) worker.mesh->leave(worker.out);
  });
}

// ---- the master ------------------------------------------------------------------------------

void JobSim::master_input(const std::function<void()>& input) {
  input();
  for (; !out_.empty(); out_.pop_front()) carry_out(out_.front());
  arm();
}

void JobSim::arm() {
  Instant wake = membership_.next_wakeup();
  if (wake == kNever || wake == armed_) return;
  armed_ = wake;
  at(wake, [this] {
    if (over_) return;
    armed_ = kNever;
    master_input([&] { membership_.tick(now_, out_); });
  });
}

JobSim::Worker* JobSim::holder(ProcessId process) const {
  auto number = numbers_.find(process);
  if (number == numbers_.end()) return nullptr;
  for (const auto& worker : workers_)
    if (worker->words.incarnation == number->second) return worker.get();
  return nullptr;
}

void JobSim::carry_out(Membership::Output& output) {
  if (auto* admit = std::get_if<Membership::Admit>(&output)) {
    for (const auto& [peer, process] : master_->names)
      if (process == admit->process) wrong(fmt::format("number {} is given twice", process));
    master_->names[admit->peer] = admit->process;
    auto at = master_->peers.find(admit->peer);
    if (at == master_->peers.end()) return wrong("a number for a peer that is gone");
    numbers_[admit->process] =
        static_cast<Worker*>(at->second.first->side[0].process)->words.incarnation;
  } else if (auto* close = std::get_if<Membership::Close>(&output)) {
    this->close(*master_, close->peer, close->why);
  } else if (auto* send = std::get_if<Membership::Send>(&output)) {
    for (const auto& [peer, process] : master_->names)
      if (process == send->to) return say(*master_, peer, send->message);
  } else if (auto* up = std::get_if<Membership::Up>(&output)) {
    if (started_) wrong("a process comes up after the start");
    if (!up_.insert(up->process).second) wrong("a process comes up twice");
  } else if (auto* lost = std::get_if<Membership::Lost>(&output)) {
    if (!started_ || !started_->ok()) wrong("a loss before the job runs");
    if (!up_.contains(lost->process)) wrong("a process is lost that never was");
    if (!lost_.insert(lost->process).second) wrong("a process is lost twice");
    if (lost->why.ok()) wrong("a loss without a reason");
  } else if (auto* started = std::get_if<Membership::Started>(&output)) {
    if (started_) wrong("the job starts twice");
    started_ = started->status;
    check_running();
  } else if (std::holds_alternative<Membership::Over>(output)) {
    if (over_ || !leaving_) wrong("the job is over");
    over_ = true;
  }
}

void JobSim::check_running() {
  if (!started_->ok()) {
    if (!up_.empty()) wrong("processes came up for a job that did not start");
    return;
  }
  if (up_.size() != plan_.wanted) wrong(fmt::format("{} processes came up", up_.size()));
  // Whoever is alive was connected to every other one, unless their link broke since.
  for (ProcessId a : up_)
    for (ProcessId b : up_) {
      Worker *x = holder(a), *y = holder(b);
      if (a == b || x == nullptr || y == nullptr || !x->alive || !y->alive) continue;
      if (x->mute || x->misfit) wrong("a worker that cannot compute is up");
      bool linked = false;
      for (const auto& c : connections_)
        linked |= c->side[0].up && c->side[1].up &&
                  ((c->side[0].process == x && c->side[1].process == y) ||
                   (c->side[0].process == y && c->side[1].process == x));
      if (!linked) wrong(fmt::format("{} and {} were never connected", x->name, y->name));
    }
}

// ---- the workers -----------------------------------------------------------------------------

JobSim::Worker& JobSim::add_worker() {
  auto& worker = *workers_.emplace_back(std::make_unique<Worker>());
  worker.name = fmt::format("worker{}", workers_.size());
  worker.words.incarnation = 100 + workers_.size();
  worker.words.job = plan_.children ? "job" : "";
  worker.words.listen_host = worker.name;
  worker.words.listen_port = 1;
  worker.master = worker.next_peer++;
  worker.mesh.emplace(worker.words, worker.master);
  connect(worker, "master", worker.words, worker.master);
  return worker;
}

void JobSim::worker_input(Worker& worker, const std::function<void()>& input) {
  if (!worker.alive) return;
  input();
  while (!worker.out.empty()) {
    Mesh::Output output = std::move(worker.out.front());
    worker.out.pop_front();
    carry_out(worker, output);
  }
}

void JobSim::carry_out(Worker& worker, Mesh::Output& output) {
  if (auto* connect = std::get_if<Mesh::Connect>(&output)) {
    Join words = worker.words;
    words.process = worker.mesh->self();
    PeerId peer = worker.next_peer++;
    this->connect(worker, connect->to.host, words, peer);
    worker.mesh->connecting(connect->to.process, peer, worker.out);
  } else if (auto* admit = std::get_if<Mesh::Admit>(&output)) {
    worker.names[admit->peer] = admit->process;
    auto at = worker.peers.find(admit->peer);
    if (at == worker.peers.end()) return;
    auto* other = static_cast<Worker*>(at->second.first->side[0].process);
    if (impostors_.contains(other->words.incarnation)) wrong("an impostor is a member");
  } else if (auto* close = std::get_if<Mesh::Close>(&output)) {
    this->close(worker, close->peer, close->why);
  } else if (auto* host = std::get_if<Mesh::Host>(&output)) {
    if (worker.misfit)
      worker.mesh->hosting(failed_precondition("other kernels"), worker.out);
    else
      worker.mesh->hosting(
          std::vector{fmt::format("/job:worker/task:{}/cpu:0", number(host->welcome.task))},
          worker.out);
  } else if (auto* report = std::get_if<Mesh::Report>(&output)) {
    std::visit([&](const auto& message) { say(worker, worker.master, message); }, report->message);
  } else if (std::holds_alternative<Mesh::End>(output)) {
    die(worker);
  }
}

void JobSim::die(Worker& worker) {
  if (!worker.alive) return;
  worker.alive = false;
  for (const auto& [process, incarnation] : numbers_)
    if (incarnation == worker.words.incarnation && up_.contains(process)) died_[process] = now_;
  for (const auto& [peer, where] : worker.peers)
    end(where.first, 1 - where.second, unavailable("the peer closed the connection"));
  worker.peers.clear();
  if (plan_.children && !started_ && random_.below(2) == 0)
    at(now_ + soon(), [this] {
      master_input([&] { membership_.child_ended(unavailable("killed"), now_, out_); });
    });
}

// ---- faults ----------------------------------------------------------------------------------

void JobSim::break_some_link() {
  std::vector<std::shared_ptr<Connection>> between;
  for (const auto& c : connections_)
    if (c->side[0].up && c->side[1].up && !c->side[0].over && !c->side[1].over &&
        c->side[0].process != master_.get() && c->side[1].process != master_.get() &&
        !impostors_.contains(static_cast<Worker*>(c->side[0].process)->words.incarnation))
      between.push_back(c);
  if (between.empty()) return;
  const auto& c = between[random_.below(between.size())];
  for (int side : {0, 1}) end(c, side, unavailable("the connection was reset"));
  ProcessId ends[2];
  for (int side : {0, 1}) ends[side] = static_cast<Worker*>(c->side[side].process)->mesh->self();
  if (started_ && started_->ok() && up_.contains(ends[0]) && up_.contains(ends[1]) &&
      holder(ends[0]) == c->side[0].process && holder(ends[1]) == c->side[1].process)
    broke_.push_back({{ends[0], ends[1]}, now_});
}

// Holds the secret, and says that it is whoever it likes.
void JobSim::add_impostor() {
  if (workers_.empty()) return;
  Worker& victim = *workers_[random_.below(workers_.size())];
  auto& impostor = *workers_.emplace_back(std::make_unique<Worker>());
  impostor.name = fmt::format("impostor{}", workers_.size());
  impostor.mute = true;
  impostor.words.process = ProcessId(1 + random_.below(plan_.wanted));
  impostor.words.incarnation = 1'000'000 + workers_.size();
  impostor.mesh.emplace(impostor.words, PeerId{0});
  impostors_.insert(impostor.words.incarnation);
  connect(impostor, victim.name, impostor.words, impostor.next_peer++);
}

void JobSim::check_links() {
  for (const auto& [ends, broke] : broke_) {
    const auto when = broke;  // clang 14: no lambda captures a structured binding
    auto alive = [&](ProcessId p) { return !died_.contains(p) || died_[p] > when + kLinkAnswer; };
    if (now_ < when + kLinkAnswer || (leaving_ && now_ < when + kLinkAnswer)) continue;
    if (alive(ends.first) && alive(ends.second) && !lost_.contains(ends.first) &&
        !lost_.contains(ends.second))
      wrong(fmt::format("the broken link of {} and {} is not answered", ends.first, ends.second));
  }
  for (const auto& [process, when] : died_)
    if (now_ >= when + kDeathAnswer && !lost_.contains(process))
      wrong(fmt::format("nobody was told that {} died", process));
}

// Those that the master lets wait.
std::vector<JobSim::Worker*> JobSim::spares() const {
  std::vector<Worker*> all;
  for (const auto& worker : workers_)
    if (worker->alive && !worker->mute && worker->mesh->connected() && worker->mesh->self() == 0)
      all.push_back(worker.get());
  return all;
}

// ---- all of it -------------------------------------------------------------------------------

std::vector<std::string> JobSim::run() {
  const auto span = std::uint64_t(Instant(kFaultsUntil).count()) >> random_.below(6);
  auto some_time = [&] { return Instant(std::int64_t(random_.below(span))); };
  const std::size_t faulty = plan_.mute + plan_.misfits;
  for (std::size_t i = 0; i < plan_.wanted + plan_.extra; ++i)
    at(plan_.children ? soon() : some_time() / 4, [this, i, faulty] {
      Worker& worker = add_worker();
      worker.mute = i < plan_.mute;
      worker.misfit = !worker.mute && i < faulty;
    });
  for (std::size_t i = 0; i < plan_.deaths; ++i)
    at(some_time() / (random_.below(2) ? 1 : 8), [this] {
      if (!workers_.empty()) die(*workers_[random_.below(workers_.size())]);
    });
  for (std::size_t i = 0; i < plan_.broken_links; ++i)
    at(some_time(), [this] { break_some_link(); });
  for (std::size_t i = 0; i < plan_.impostors; ++i) at(some_time(), [this] { add_impostor(); });
  // A service manager starts what ended. A mute one has to be dropped first.
  for (Instant t = 25s; t < kSettled; t += 25s)
    at(t, [this] {
      if (plan_.children || started_) return;
      for (std::size_t i = 0; i < plan_.wanted; ++i) at(now_ + soon(), [this] { add_worker(); });
    });
  at(kSettled, [this] {
    if (!started_) wrong("the job neither starts nor fails");
    const bool may_fail = plan_.children
                              ? plan_.deaths + plan_.broken_links + plan_.mute + plan_.misfits > 0
                              : plan_.broken_links > 0;
    if (started_ && !started_->ok() && !may_fail)
      wrong("the job fails without a reason: " + started_->text());
    check_links();
    if (started_ && started_->ok()) spared_ = spares().size();
    if (spared_ > plan_.spares) wrong(fmt::format("{} workers wait", spared_));
    leaving_ = true;
    master_input([&] { membership_.leave(now_, out_); });
  });
  at(kSettled + 3s, [this] {
    if (!over_) wrong("the job is never over");
    if (!spares().empty()) wrong("a spare is not told that the job is over");
  });
  arm();
  while (!queue_.empty() && events_ < 1'000'000) {
    auto next = queue_.extract(queue_.begin());
    now_ = next.key().first;
    ++events_;
    next.mapped()();
  }
  if (!queue_.empty()) wrong("it goes on for ever");
  return wrong_;
}

}  // namespace troupe::testing
