#include "actors/resources/resource_actor.hpp"

#include <caf/actor_system.hpp>
#include <caf/typed_event_based_actor.hpp>

#include "actors/resources/asked.hpp"
#include "actors/resources/list_wish.hpp"
#include "actors/spawn.hpp"

namespace troupe {
namespace {

struct ResourceState {
  std::shared_ptr<Resource> resource;
  ResourceId id;
  WorkerActor worker;
  AskedRequests asked;
  ListWish wish;
};

using ResourceSelf = ResourceActor::stateful_pointer<ResourceState>;

void carry_out(ResourceSelf self, ResourceReply& reply) {
  auto asked = self->state.asked.take(reply.id);
  if (!asked) return;
  ResourceAnswer answer{asked->attempt, asked->id, std::move(reply.status),
                        std::move(reply.values)};
  answer.own = reply.own;
  self->send(asked->reply_to, std::move(answer));
}

void carry_out(ResourceSelf self, ResourceStaged& staged) {
  self->send(self->state.worker, StagedAt{self->state.id, std::move(staged)});
}

void carry_out(ResourceSelf self, ResourceBlocked& blocked) {
  self->send(self->state.worker, BlockedAt{self->state.id, std::move(blocked.waiting),
                                           std::move(blocked.marked), std::move(blocked.why)});
}

// Passes one input to the resource and carries out its outputs.
template <class Input>
void feed(ResourceSelf self, Input input) {
  Resource::Outputs out;
  input(*self->state.resource, out);
  for (Resource::Output& output : out)
    std::visit([self](auto& what) { carry_out(self, what); }, output);
}

// The same with an input other than a list.
template <class Input>
void use(ResourceSelf self, Input input) {
  auto& s = self->state;
  feed(self, std::move(input));
  if (s.wish.used(s.resource->at_rest())) self->send(s.worker, WishLists{s.id, true});
}

ResourceActor::behavior_type resource_behavior(ResourceSelf self,
                                               std::shared_ptr<Resource> resource, ResourceId id,
                                               WorkerActor worker) {
  self->state.resource = std::move(resource);
  self->state.id = id;
  self->state.worker = std::move(worker);
  return {
      [self](ResourceCall& message) {
        const std::uint64_t id = self->state.asked.remember(message);
        use(self, [&](Resource& resource, auto& out) { resource.ask(id, message.request, out); });
      },
      [self](const StageRequest& message) {
        use(self, [&](Resource& resource, auto& out) { resource.stage(message, out); });
      },
      [self](const LiveList& message) {
        auto& s = self->state;
        feed(self, [&](Resource& resource, auto& out) { resource.live(message, out); });
        if (s.wish.told(s.resource->at_rest())) self->send(s.worker, WishLists{s.id, false});
      },
  };
}

}  // namespace

ResourceActor spawn_resource(caf::actor_system& system, std::unique_ptr<Resource> resource,
                             ResourceId id, WorkerActor worker, bool own_thread) {
  static constexpr char kName[] = "resource";
  std::shared_ptr<Resource> shared = std::move(resource);
  if (own_thread)
    return spawn_actor<ResourceActor, caf::detached>(system, kName, resource_behavior,
                                                     std::move(shared), id, std::move(worker));
  return spawn_actor<ResourceActor>(system, kName, resource_behavior, std::move(shared), id,
                                    std::move(worker));
}

}  // namespace troupe
