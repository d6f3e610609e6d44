#include "apps/bench/message_count.hpp"

#include <atomic>
#include <caf/detail/thread_safe_actor_clock.hpp>
#include <caf/policy/work_sharing.hpp>
#include <caf/scheduler/coordinator.hpp>

#include "actors/inline_send.hpp"
#include "actors/runtime/runtime.hpp"
#include "core/status.hpp"

namespace troupe {
namespace {

// Policy `sharing` and a counter of turns. With a throughput of one, a turn is a message; an
// actor's first turn, which starts it, is one more.
class CountedSharing : public caf::policy::work_sharing {
 public:
  struct coordinator_data : work_sharing::coordinator_data {
    explicit coordinator_data(caf::scheduler::abstract_coordinator* c)
        : work_sharing::coordinator_data(c) {}
    std::atomic<std::uint64_t> turns{0};
  };

  template <class Worker>
  void before_resume(Worker* worker, caf::resumable*) {
    d(worker->parent()).turns.fetch_add(1, std::memory_order_relaxed);
  }
};

// Delayed messages never arrive: how many of them do depends on how long a step takes.
class NoTimers : public caf::detail::thread_safe_actor_clock {
 public:
  using thread_safe_actor_clock::schedule_message;
  void schedule_message(time_point, caf::strong_actor_ptr, caf::mailbox_element_ptr) override {}
};

class Coordinator : public caf::scheduler::coordinator<CountedSharing> {
 public:
  using coordinator::coordinator;
  static caf::actor_system::module* make(caf::actor_system& system, caf::detail::type_list<>) {
    return new Coordinator(system);
  }

  caf::detail::thread_safe_actor_clock& clock() noexcept override { return no_timers_; }

 private:
  NoTimers no_timers_;
};

}  // namespace

CountingSystem::CountingSystem() : config_(actor_config()) {
  config_->set("scheduler.max-throughput", std::size_t{1});
  config_->load<Coordinator>();
  system_ = std::make_unique<caf::actor_system>(*config_);
}

CountingSystem::~CountingSystem() = default;

std::uint64_t CountingSystem::messages() const {
  auto* coordinator = dynamic_cast<Coordinator*>(&system_->scheduler());
  TROUPE_CHECK(coordinator != nullptr, "another scheduler than the one that was loaded");
  return coordinator->data().turns.load() + inline_messages();
}

}  // namespace troupe
