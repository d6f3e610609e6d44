#include "actors/worker/executor_actor.hpp"

#include <caf/actor_system.hpp>
#include <caf/send.hpp>
#include <caf/typed_event_based_actor.hpp>
#include <optional>

#include "actors/inline_send.hpp"
#include "actors/resources/lost_device.hpp"
#include "actors/spawn.hpp"

namespace troupe {
namespace {

// Sends the tensors that leave the partition, from the lane that made them. Shared with bursts,
// which may outlive the executor.
class Outbox final : public StepOutbox {
 public:
  Outbox(std::shared_ptr<const ChannelRoutes> routes, AttemptId attempt)
      : shared_(std::move(routes)), routes_(*shared_), attempt_(attempt) {}

  void send(ChannelId channel, const Tag& tag, Tensor tensor, bool dead) override {
    const auto& route = routes_.routes.at(channel);
    if (route.local) {
      TensorArrived message{
          routes_.compiled, route.partition, attempt_, channel, tag, std::move(tensor), dead};
      if (routes_.handle_inline) return send_inline(route.local, std::move(message));
      return caf::anon_send(route.local, std::move(message));
    }
    TensorTag header;
    header.compiled = routes_.compiled;
    header.partition = route.partition;
    header.attempt = attempt_;
    header.index = channel;
    header.iterations.assign(tag.iterations().begin(), tag.iterations().end());
    header.dtype = tensor.dtype();
    header.shape = tensor.shape();
    header.dead = dead;
    routes_.hub->send_tensor(route.task, header, std::move(tensor));
  }

 private:
  std::shared_ptr<const ChannelRoutes> shared_;
  const ChannelRoutes& routes_;
  AttemptId attempt_;
};

struct ExecutorState {
  static constexpr const char* name = "executor";
  static constexpr InlineWork kInline = InlineWork::short_work;
  ExecutorSetup setup;
  std::optional<PartitionRuns> runs;
  PartitionRuns::Outputs spare;  // empty; its memory is reused
};

using ExecutorSelf = ExecutorActor::stateful_pointer<ExecutorState>;

// Carrying out the outputs of PartitionRuns.

void carry_out(ExecutorSelf self, PartitionRuns::Ask& ask) {
  self->send(self->state.setup.resources[ask.resource],
             ResourceCall{std::move(ask.request), ExecutorActor(self)});
}

void carry_out(ExecutorSelf self, PartitionRuns::Burst& burst) {
  const auto& setup = self->state.setup;
  TraceTrack* line = self->state.runs->line();
  const std::int64_t queued_ns = line ? Trace::now_ns() : 0;
  auto work = [burst, me = ExecutorActor(self), alive = setup.alive, shared = setup.partition.trace,
               line, queued_ns](Lanes& lanes) {
    Trace* trace = active(shared);
    if (trace && line)
      line->record({.kind = Span::Kind::wait, .name = "wait for a lane"}, queued_ns,
                   Trace::now_ns());
    BurstResult result = burst.step->run(lanes, trace ? &trace->here() : nullptr);
    // Handled on the lane: what follows is short, or the next burst, for which the lane is awake.
    send_inline(me, BurstDone{burst.attempt, std::make_shared<BurstResult>(std::move(result))});
  };
  self->send(setup.device, RunOnLanes{std::move(work), burst.run});
}

void carry_out(ExecutorSelf self, PartitionRuns::Await& await) {
  self->state.setup.partition.program->device().on_complete(
      await.wait.ticket,
      [me = ExecutorActor(self), attempt = await.attempt, wait = await.wait.id](Status status) {
        caf::anon_send(me, TicketDone{attempt, wait, std::move(status)});
      });
}

// A step that fails since its device has failed: not the attempt ends, but the process leaves.
bool device_failed(ExecutorSelf self, const Status& status) {
  Device& device = self->state.setup.partition.program->device();
  if (!shows_failure(status, device)) return false;
  self->send(self->state.setup.worker, ExpelProcess{without(device, status)});
  return true;
}

void carry_out(ExecutorSelf self, PartitionDone& done) {
  if (device_failed(self, done.status)) return;
  self->send(self->state.setup.coordinator, std::move(done));
}

void carry_out(ExecutorSelf self, GrantReturned& returned) {
  self->send(self->state.setup.coordinator, returned);
}

void carry_out(ExecutorSelf self, PartitionRuns::Outputs& out) {
  for (PartitionRuns::Output& output : out)
    std::visit([self](auto& what) { carry_out(self, what); }, output);
}

// Passes one input to PartitionRuns and carries out its outputs.
template <class Input>
void feed(ExecutorSelf self, Input input) {
  PartitionRuns::Outputs out = std::exchange(self->state.spare, {});
  input(*self->state.runs, out);
  carry_out(self, out);
  out.clear();
  self->state.spare = std::move(out);
}

ExecutorActor::behavior_type executor_behavior(ExecutorSelf self, ExecutorSetup setup) {
  self->state.runs.emplace(setup.partition, [routes = setup.routes](const AttemptId& attempt) {
    return std::make_shared<Outbox>(routes, attempt);
  });
  self->state.setup = std::move(setup);
  return {
      // tried in this order
      [self](StartPartition& m) {
        feed(self, [&](PartitionRuns& runs, auto& out) {
          runs.start(
              {m.attempt, m.random_index, m.grant, std::move(m.feeds), std::move(m.elements)}, out);
        });
      },
      [self](TensorArrived& m) {
        feed(self, [&](PartitionRuns& runs, auto& out) {
          runs.arrived(m.attempt, {m.channel, m.tag, std::move(m.tensor), m.dead}, out);
        });
      },
      [self](BurstDone& m) {
        feed(self, [&](PartitionRuns& runs, auto& out) {
          runs.burst_done(m.attempt, std::move(*m.result), out);
        });
      },
      [self](const TicketDone& m) {
        feed(self, [&](PartitionRuns& runs, auto& out) {
          runs.waited(m.attempt, std::uint32_t(m.wait), m.status, out);
        });
      },
      [self](ResourceAnswer& m) {
        feed(self, [&](PartitionRuns& runs, auto& out) { runs.answered(std::move(m), out); });
      },
      [self](const AbortPartition& m) {
        feed(self,
             [&](PartitionRuns& runs, auto& out) { runs.abort(m.attempt, m.run, m.cause, out); });
      },
      [self](const RevokeGrant& m) {
        feed(self, [&](PartitionRuns& runs, auto& out) { runs.revoke(m.attempt, m.run, out); });
      },
      [self](const LiveList& m) { self->state.runs->live(m); },
      [self](const TellWaits& m) { self->state.runs->waits(m.to->parts[m.place]); },
  };
}

}  // namespace

ExecutorActor spawn_executor(caf::actor_system& system, ExecutorSetup setup) {
  return spawn_actor<ExecutorActor>(system, ExecutorState::name, executor_behavior,
                                    std::move(setup));
}

}  // namespace troupe
