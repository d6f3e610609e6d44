#include "actors/queue.hpp"

#include <caf/actor_system.hpp>
#include <caf/typed_event_based_actor.hpp>
#include <optional>

#include "actors/asked.hpp"
#include "actors/spawn.hpp"

namespace troupe {
namespace {

struct QueueActorState {
  std::optional<QueueState> queue;
  ResourceId id;
  WorkerActor worker;
  AskedRequests asked;
};

using Self = QueueActor::stateful_pointer<QueueActorState>;

void carry_out(Self self, QueueState::Outputs& out) {
  auto& s = self->state;
  for (auto& output : out) {
    if (auto* reply = std::get_if<QueueState::Reply>(&output)) {
      auto asked = s.asked.take(reply->id);
      if (!asked) continue;
      self->send(asked->reply_to, QueueAnswer{asked->attempt, asked->id, std::move(reply->status),
                                              std::move(reply->element), reply->own});
    } else if (auto* staged = std::get_if<ResourceStaged>(&output)) {
      self->send(s.worker, StagedAt{s.id, *staged});
    } else if (auto* blocked = std::get_if<QueueState::Blocked>(&output)) {
      self->send(s.worker,
                 BlockedAt{s.id, std::move(blocked->waiting), std::move(blocked->marked)});
    }
  }
}

void call(QueueState& queue, QueueCall& message, QueueState::Outputs& out) {
  switch (message.kind) {
    case QueueCall::Kind::enqueue:
      return queue.enqueue(std::move(message.request), std::move(message.element), out);
    case QueueCall::Kind::dequeue:
      return queue.dequeue(std::move(message.request), out);
    case QueueCall::Kind::close:
      return queue.close(std::move(message.request), message.cancel_pending, out);
    case QueueCall::Kind::size:
      return queue.size(std::move(message.request), out);
  }
}

QueueActor::behavior_type queue_behavior(Self self, QueueSpec spec, ResourceId id,
                                         WorkerActor worker) {
  self->state.queue.emplace(std::move(spec));
  self->state.id = id;
  self->state.worker = std::move(worker);
  return {
      [self](QueueCall& message) {
        auto& s = self->state;
        s.asked.remember(message.request, message.reply_to);
        QueueState::Outputs out;
        call(*s.queue, message, out);
        carry_out(self, out);
      },
      [self](const StageRequest& message) {
        QueueState::Outputs out;
        self->state.queue->stage(message, out);
        carry_out(self, out);
      },
      [self](const LiveList& message) {
        QueueState::Outputs out;
        self->state.queue->live(message, out);
        carry_out(self, out);
      },
  };
}

}  // namespace

QueueActor spawn_queue(caf::actor_system& system, QueueSpec spec, ResourceId id,
                       WorkerActor worker) {
  return spawn_actor<QueueActor>(system, "queue", queue_behavior, std::move(spec), id,
                                 std::move(worker));
}

}  // namespace troupe
