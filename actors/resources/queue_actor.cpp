#include "troupe/actors/resources/queue_actor.hpp"

#include <algorithm>
#include <caf/actor_system.hpp>
#include <caf/typed_event_based_actor.hpp>
#include <optional>

#include "troupe/actors/resources/asked.hpp"
#include "troupe/actors/spawn.hpp"

namespace troupe {
namespace {

struct QueueActorState {
  std::optional<QueueState> queue;
  ResourceId id;
  WorkerActor worker;
  AskedRequests asked;
};

using Self = ResourceActor::stateful_pointer<QueueActorState>;

void carry_out(Self self, QueueState::Outputs& out) {
  auto& s = self->state;
  for (auto& output : out) {
    if (auto* reply = std::get_if<QueueState::Reply>(&output)) {
      auto asked = s.asked.take(reply->id);
      if (!asked) continue;
      self->send(asked->reply_to, ResourceAnswer{asked->attempt,
                                                 asked->id,
                                                 std::move(reply->status),
                                                 std::move(reply->element),
                                                 {},
                                                 reply->own});
    } else if (auto* staged = std::get_if<ResourceStaged>(&output)) {
      self->send(s.worker, StagedAt{s.id, *staged});
    } else if (auto* blocked = std::get_if<QueueState::Blocked>(&output)) {
      self->send(s.worker,
                 BlockedAt{s.id, std::move(blocked->waiting), std::move(blocked->marked)});
    }
  }
}

using Item = ResourceRequest::Item;

void enqueue(QueueState& queue, QueueState::Request request, Item& item, QueueState::Outputs& out) {
  queue.enqueue(std::move(request), std::move(item.operands), out);
}
void dequeue(QueueState& queue, QueueState::Request request, Item&, QueueState::Outputs& out) {
  queue.dequeue(std::move(request), out);
}
void close(QueueState& queue, QueueState::Request request, Item& item, QueueState::Outputs& out) {
  const Attr& cancel_pending = item.node->def.attrs.find("cancel_pending")->second;
  queue.close(std::move(request), *cancel_pending.get<bool>(), out);
}
void size(QueueState& queue, QueueState::Request request, Item&, QueueState::Outputs& out) {
  queue.size(std::move(request), out);
}

// External::verb of the ops in ops/kernels/queue.cpp.
struct Verb {
  std::string_view name;
  void (*ask)(QueueState&, QueueState::Request, Item&, QueueState::Outputs&);
};
constexpr Verb kVerbs[] = {
    {"enqueue", enqueue}, {"dequeue", dequeue}, {"close", close}, {"size", size}};

void call(Self self, ResourceCall& message) {
  auto& s = self->state;
  const std::string& wanted = message.request.external().verb;
  auto verb = std::find_if(std::begin(kVerbs), std::end(kVerbs),
                           [&](const Verb& v) { return v.name == wanted; });
  if (verb == std::end(kVerbs)) {
    ResourceAnswer answer{message.request.attempt.id, message.request.id,
                          unimplemented("a queue cannot be asked to '" + wanted + "'")};
    return self->send(message.reply_to, std::move(answer));
  }
  Item& item = message.request.items.front();
  QueueState::Request request{s.asked.remember(message), message.request.attempt, item.key};
  QueueState::Outputs out;
  verb->ask(*s.queue, std::move(request), item, out);
  carry_out(self, out);
}

ResourceActor::behavior_type queue_behavior(Self self, QueueSpec spec, ResourceId id,
                                            WorkerActor worker) {
  self->state.queue.emplace(std::move(spec));
  self->state.id = id;
  self->state.worker = std::move(worker);
  return {
      [self](ResourceCall& message) { call(self, message); },
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

ResourceActor spawn_queue(caf::actor_system& system, QueueSpec spec, ResourceId id,
                          WorkerActor worker) {
  return spawn_actor<ResourceActor>(system, "queue", queue_behavior, std::move(spec), id,
                                    std::move(worker));
}

}  // namespace troupe
