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
void look(QueueState& queue, QueueState::Request request, Item& item, QueueState::Outputs& out) {
  queue.look(std::move(request), item.node->external->look, out);
}

// External::verb of the ops that change a queue: QueueState knows each, since it stages, commits
// and undoes what they do. One that only looks is no verb but a function (External::look).
struct Verb {
  std::string_view name;
  void (*ask)(QueueState&, QueueState::Request, Item&, QueueState::Outputs&);
};
constexpr Verb kVerbs[] = {{"enqueue", enqueue}, {"dequeue", dequeue}, {"close", close}};

// What the op wants done; null: no queue can do that.
decltype(Verb::ask) asked_for(const External& external) {
  if (external.look) return look;
  auto verb = std::find_if(std::begin(kVerbs), std::end(kVerbs),
                           [&](const Verb& v) { return v.name == external.verb; });
  return verb == std::end(kVerbs) ? nullptr : verb->ask;
}

void call(Self self, ResourceCall& message) {
  auto& s = self->state;
  auto ask = asked_for(message.request.external());
  if (!ask) {
    const std::string& wanted = message.request.external().verb;
    ResourceAnswer answer{message.request.attempt.id, message.request.id,
                          unimplemented("a queue cannot be asked to '" + wanted + "'")};
    return self->send(message.reply_to, std::move(answer));
  }
  Item& item = message.request.items.front();
  QueueState::Request request{s.asked.remember(message), message.request.attempt, item.key};
  QueueState::Outputs out;
  ask(*s.queue, std::move(request), item, out);
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
