#include "actors/runtime/residents.hpp"

#include <algorithm>
#include <caf/actor.hpp>
#include <caf/actor_cast.hpp>
#include <caf/event_based_actor.hpp>
#include <caf/exit_reason.hpp>
#include <caf/policy/work_sharing.hpp>
#include <caf/policy/work_stealing.hpp>
#include <caf/scheduler/coordinator.hpp>
#include <caf/send.hpp>
#include <cstdio>
#include <cstdlib>
#include <system_error>
#include <utility>

#include "actors/spawn.hpp"

namespace troupe {
namespace {

// The registered name of the actor that holds a system's Residents.
constexpr caf::atom_value kKeeper = caf::atom("Troupe");
// The system's destructor drops the actor with this name when the program's actors have ended,
// before it stops the scheduler. CAF reserves the name and does not use it.
constexpr caf::atom_value kDoor = caf::atom("StreamServ");

// Time limit at the system's end for actors that a fault ends.
constexpr std::chrono::seconds kEndWithin{10};

// Keeper and Door never get a message, and the system does not wait for them.
struct Keeper final : caf::event_based_actor {
  Keeper(caf::actor_config& config, std::shared_ptr<Residents> residents)
      : event_based_actor(config), residents(std::move(residents)) {}
  const std::shared_ptr<Residents> residents;
};

template <class Policy>
bool threads_of(caf::scheduler::abstract_coordinator& scheduler,
                std::vector<std::thread::id>& threads) {
  auto* coordinator = dynamic_cast<caf::scheduler::coordinator<Policy>*>(&scheduler);
  if (!coordinator) return false;
  for (std::size_t i = 0; i < coordinator->num_workers(); ++i)
    threads.push_back(coordinator->worker_by_id(i)->get_thread().get_id());
  return true;
}

// Empty for a scheduler without threads (the policy `testing`) or of the program's own.
std::vector<std::thread::id> scheduler_threads(caf::actor_system& system) {
  std::vector<std::thread::id> threads;
  auto& scheduler = system.scheduler();
  if (!threads_of<caf::policy::work_sharing>(scheduler, threads))
    threads_of<caf::policy::work_stealing>(scheduler, threads);
  return threads;
}

}  // namespace

class Door final : public caf::event_based_actor {
 public:
  Door(caf::actor_config& config, std::shared_ptr<Residents> residents)
      : event_based_actor(config), residents_(std::move(residents)) {}
  // Called only at the system's end: the registered name is the only reference.
  void on_exit() override {
    residents_->end();
    system().registry().erase(kKeeper);
  }

 private:
  const std::shared_ptr<Residents> residents_;
};

Residents::Residents(caf::actor_system& system) : scheduler_(scheduler_threads(system)) {}

std::shared_ptr<Residents> Residents::find(caf::actor_system& system) {
  const caf::strong_actor_ptr keeper = system.registry().get(kKeeper);
  if (!keeper) return nullptr;
  auto* actor = dynamic_cast<Keeper*>(caf::actor_cast<caf::abstract_actor*>(keeper));
  return actor ? actor->residents : nullptr;
}

std::shared_ptr<Residents> Residents::in(caf::actor_system& system) {
  if (auto known = find(system)) return known;
  // A thread that spawns keeps a reference to the system's logger (see Runtime::start).
  std::thread([&] {
    constexpr auto kOptions = caf::hidden + caf::lazy_init;
    std::shared_ptr<Residents> made(new Residents(system));
    system.registry().put(kKeeper, system.spawn<Keeper, kOptions>(made));
    // If two threads do this at once, the first one's is kept.
    if (find(system) == made) system.registry().put(kDoor, system.spawn<Door, kOptions>(made));
  }).join();
  return find(system);
}

void Residents::entered() {
  std::lock_guard lock(mutex_);
  ++actors_;
}

void Residents::know(const caf::strong_actor_ptr& actor) {
  {
    std::lock_guard lock(mutex_);
    known_.insert_or_assign(actor->id(), caf::actor_cast<caf::weak_actor_ptr>(actor));
    if (!ending_) return;
  }
  caf::anon_send_exit(actor, caf::exit_reason::user_shutdown);
}

void Residents::left(caf::actor_id actor) {
  std::lock_guard lock(mutex_);
  known_.erase(actor);
  if (--actors_ != 0) return;
  ending_ = false;
  changed_.notify_all();
}

std::size_t Residents::actors() const {
  std::lock_guard lock(mutex_);
  return actors_;
}

std::uint64_t Residents::opens(Told told) {
  std::lock_guard lock(mutex_);
  open_.emplace(++last_, Open{std::move(told), {}});
  return last_;
}

void Residents::at_end(std::uint64_t number, std::function<void()> close) {
  std::lock_guard lock(mutex_);
  open_.at(number).close = std::move(close);
}

void Residents::forget(std::uint64_t number) {
  std::lock_guard lock(mutex_);
  open_.erase(number);
}

bool Residents::aside(std::function<void()> work) {
  std::lock_guard lock(mutex_);
  try {
    aside_ = std::make_shared<std::thread>([before = aside_, work = std::move(work)]() mutable {
      if (before) before->join();
      before = nullptr;
      work();
    });
  } catch (const std::system_error&) {
    return false;
  }
  return true;
}

bool Residents::fault(const std::string& what) {
  std::vector<Told> told;
  std::vector<caf::strong_actor_ptr> there;
  {
    std::lock_guard lock(mutex_);
    if (open_.empty()) return false;
    ending_ = actors_ > 0;
    for (const auto& [number, session] : open_) told.push_back(session.told);
    for (const auto& [id, weak] : known_)
      if (auto actor = caf::actor_cast<caf::strong_actor_ptr>(weak))
        there.push_back(std::move(actor));
  }
  for (const Told& tell : told) tell(what);
  for (const auto& actor : there) caf::anon_send_exit(actor, caf::exit_reason::user_shutdown);
  return true;
}

bool Residents::over_fault(std::chrono::seconds within) {
  std::unique_lock lock(mutex_);
  return changed_.wait_for(lock, within, [&] { return !ending_; });
}

bool Residents::on_scheduler() const {
  return std::find(scheduler_.begin(), scheduler_.end(), std::this_thread::get_id()) !=
         scheduler_.end();
}

void Residents::end() {
  std::unique_lock lock(mutex_);
  for (auto open = std::move(open_); auto& [number, session] : open) {
    if (!session.close) continue;
    lock.unlock();
    session.close();
    lock.lock();
  }
  const std::shared_ptr<std::thread> last = std::move(aside_);
  lock.unlock();
  if (last) last->join();
  lock.lock();
  // After a fault this could take forever, and the system could not end.
  const bool faulty = ending_;
  if (!faulty) return changed_.wait(lock, [&] { return actors_ == 0; });
  if (changed_.wait_for(lock, kEndWithin, [&] { return actors_ == 0; })) return;
  std::fputs("a fault of the runtime: actors of it do not end, and so their system cannot\n",
             stderr);
  std::fflush(stderr);
  std::_Exit(kOurFault);
}

}  // namespace troupe
