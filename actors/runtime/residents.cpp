#include "actors/runtime/residents.hpp"

#include <algorithm>
#include <caf/actor_cast.hpp>
#include <caf/event_based_actor.hpp>
#include <caf/policy/work_sharing.hpp>
#include <caf/policy/work_stealing.hpp>
#include <caf/scheduler/coordinator.hpp>
#include <utility>

namespace troupe {
namespace {

// Under this name a system's residents are found.
constexpr caf::atom_value kKeeper = caf::atom("Troupe");
// The system's destructor drops what has this name once the program's actors have ended, and before
// it stops its scheduler. CAF reserves the name and gives it to nobody.
constexpr caf::atom_value kDoor = caf::atom("StreamServ");

// Neither ever gets a message. They are not counted among the actors that the system waits for.
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

// None: it has no threads (the policy `testing`), or is one that the program wrote.
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
  // Nobody else ends it, and it has no other reference than its name.
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
  // Whoever spawns keeps a reference to the system's logger (see Runtime::start).
  std::thread([&] {
    constexpr auto kOptions = caf::hidden + caf::lazy_init;
    std::shared_ptr<Residents> made(new Residents(system));
    system.registry().put(kKeeper, system.spawn<Keeper, kOptions>(made));
    // Of two that do this at once the first is kept.
    if (find(system) == made) system.registry().put(kDoor, system.spawn<Door, kOptions>(made));
  }).join();
  return find(system);
}

void Residents::entered() {
  std::lock_guard lock(mutex_);
  ++actors_;
}

void Residents::left() {
  std::lock_guard lock(mutex_);
  if (--actors_ == 0) changed_.notify_all();
}

std::size_t Residents::actors() const {
  std::lock_guard lock(mutex_);
  return actors_;
}

std::uint64_t Residents::at_end(std::function<void()> close) {
  std::lock_guard lock(mutex_);
  open_.emplace(++last_, std::move(close));
  return last_;
}

void Residents::forget(std::uint64_t number) {
  std::lock_guard lock(mutex_);
  open_.erase(number);
}

void Residents::aside(std::function<void()> work) {
  std::lock_guard lock(mutex_);
  aside_ = std::thread([before = std::move(aside_), work = std::move(work)]() mutable {
    if (before.joinable()) before.join();
    work();
  });
}

bool Residents::on_scheduler() const {
  return std::find(scheduler_.begin(), scheduler_.end(), std::this_thread::get_id()) !=
         scheduler_.end();
}

void Residents::end() {
  std::unique_lock lock(mutex_);
  for (auto open = std::move(open_); auto& [number, close] : open) {
    lock.unlock();
    close();
    lock.lock();
  }
  std::thread last = std::move(aside_);
  lock.unlock();
  if (last.joinable()) last.join();
  lock.lock();
  changed_.wait(lock, [&] { return actors_ == 0; });
}

}  // namespace troupe
