#include "actors/inline_send.hpp"

#include <atomic>
#include <caf/scheduled_actor.hpp>
#include <caf/scheduler/abstract_coordinator.hpp>
#include <deque>

namespace troupe {
namespace {

std::atomic<std::uint64_t> handled{0};

bool is_short(const caf::scheduled_actor& actor) {
  return actor.getf(int(InlineWork::short_work) | int(InlineWork::passes_on));
}

bool only_passes_on(const caf::scheduled_actor& actor) {
  return actor.getf(int(InlineWork::passes_on));
}

// CAF's view of the calling thread while it lends itself.
class Borrowed final : public caf::execution_unit {
 public:
  explicit Borrowed(caf::actor_system& system) : execution_unit(&system) { current = this; }
  ~Borrowed() override { current = nullptr; }

  void exec_later(caf::resumable* job) override {
    if (job->subtype() == caf::resumable::scheduled_actor) {
      auto* actor = static_cast<caf::scheduled_actor*>(job);
      if (is_short(*actor)) return ready_.push_back(actor);
    }
    system().scheduler().enqueue(job);
  }

  void run() {
    while (!ready_.empty()) {
      caf::scheduled_actor* actor = ready_.front();
      ready_.pop_front();
      if (left_ == 0) {
        system().scheduler().enqueue(actor);
      } else {
        --left_;
        handle_one(*actor);
      }
    }
  }

  // The one that this thread runs, if any.
  static thread_local Borrowed* current;

 private:
  // An actor that becomes ready handles the message that made it so first. What came after that
  // one may be anything, and is left to CAF; a device goes on in its turn.
  void handle_one(caf::scheduled_actor& actor) {
    handled.fetch_add(1, std::memory_order_relaxed);
    switch (actor.resume(this, 1)) {
      case caf::resumable::resume_later:
        actor.context(nullptr);
        if (actor.mailbox().try_block()) break;
        if (only_passes_on(actor)) return ready_.push_back(&actor);
        return system().scheduler().enqueue(&actor);  // takes the reference along
      case caf::resumable::awaiting_message:
      case caf::resumable::done:
      case caf::resumable::shutdown_execution_unit:
        break;
    }
    caf::intrusive_ptr_release(static_cast<caf::resumable*>(&actor));
  }

  std::deque<caf::scheduled_actor*> ready_;
  std::size_t left_ = kInlineMessages;
};

thread_local Borrowed* Borrowed::current = nullptr;

}  // namespace

std::uint64_t inline_messages() { return handled.load(std::memory_order_relaxed); }

void detail::enqueue_inline(caf::actor_system& system, caf::abstract_actor& to,
                            caf::mailbox_element_ptr message) {
  if (Borrowed::current != nullptr) {
    bool same = &Borrowed::current->system() == &system;
    return to.enqueue(std::move(message), same ? Borrowed::current : nullptr);
  }
  Borrowed unit(system);
  to.enqueue(std::move(message), &unit);
  unit.run();
}

}  // namespace troupe
