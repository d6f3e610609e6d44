#include "actors/resources/variables_actor.hpp"

#include <caf/actor_system.hpp>
#include <caf/send.hpp>
#include <caf/typed_event_based_actor.hpp>
#include <optional>
#include <variant>

#include "actors/inline_send.hpp"
#include "actors/resources/asked.hpp"
#include "actors/resources/lost_device.hpp"
#include "actors/resources/update_rules.hpp"
#include "actors/spawn.hpp"
#include "core/log.hpp"
#include "devices/named_work.hpp"

namespace troupe {
namespace {

// The actor around a VariableStore. Tasks run on the device's lanes.
struct VariablesState {
  static constexpr const char* name = "variables";
  static constexpr InlineWork kInline = InlineWork::short_work;
  std::optional<OpRules> rules;
  std::optional<VariableStore> store;
  ResourceId id;
  Device* device = nullptr;
  DeviceActor lanes;
  WorkerActor worker;
  std::shared_ptr<void> alive;
  std::shared_ptr<Trace> trace;
  AskedRequests asked;
};

using VariablesSelf = VariablesActor::stateful_pointer<VariablesState>;

// The first and the last of the rules whose work it is: after a failure, what may be to blame.
struct RuleRange {
  explicit RuleRange(const std::vector<WriteReduction>& writes)
      : first(writes.empty() ? nullptr : writes.front().rule),
        last(writes.empty() ? nullptr : writes.back().rule) {}
  Status blame(const Status& failure, const Device& device) const {
    if (!first) return failure;
    const std::string nodes =
        first == last ? "node '" + first->node + "'"
                      : "one of the nodes '" + first->node + "' to '" + last->node + "'";
    return failure.in("in " + nodes + " or in other work on " + device.name().text());
  }
  std::shared_ptr<const UpdateRule> first, last;
};

const std::vector<WriteReduction>& writes_of(const VariableStore::Task& task) {
  return task.reductions;
}
const std::vector<WriteReduction>& writes_of(const VariableStore::Join& join) {
  return join.writes;
}

// A commit that cannot be applied loses the process by itself (VariableStore::Failed).
bool loses_process(const VariableStore::Task&) { return false; }
bool loses_process(const VariableStore::Join&) { return true; }

// Runs a Task or a Join by `run`.
template <class Task, class Run>
void run_on_lanes(VariablesSelf self, Task task, Run run) {
  auto& s = self->state;
  auto work = [device = s.device, alive = s.alive, trace = s.trace, me = VariablesActor(self),
               worker = s.worker, run,
               shared = std::make_shared<Task>(std::move(task))](Lanes& lanes) {
    std::uint64_t id = shared->id;
    const RuleRange rules(writes_of(*shared));
    const bool expels = loses_process(*shared);
    const NamedWork recorded("", 0, trace);
    auto values =
        std::make_shared<Expected<std::vector<Tensor>>>(run(std::move(*shared), *device, lanes));
    const Ticket last = device->stream().last();
    if (last.complete()) return send_inline(me, TaskApplied{id, values});
    device->on_complete(last, [me, worker, id, values, rules, device, expels](Status status) {
      if (!status.ok() && values->ok())
        *values = device->locates_failures() ? status : rules.blame(status, *device);
      if (expels && !values->ok() && !device->failure().ok())
        return caf::anon_send(worker, ExpelProcess{without(*device, values->status())});
      caf::anon_send(me, TaskApplied{id, values});
    });
  };
  self->send(s.lanes, RunOnLanes{std::move(work), {}, true});
}

void carry_out(VariablesSelf self, VariableStore::Task& task) {
  run_on_lanes(self, std::move(task), apply_task);
}

void carry_out(VariablesSelf self, VariableStore::Join& join) {
  run_on_lanes(self, std::move(join), join_contributions);
}

void carry_out(VariablesSelf self, VariableStore::ReadReply& read) {
  auto asked = self->state.asked.take(read.id);
  if (!asked) return;
  self->send(asked->reply_to, ResourceAnswer{asked->attempt, asked->id, std::move(read.status),
                                             std::move(read.values), std::move(read.also_read)});
}

void carry_out(VariablesSelf self, VariableStore::LogReply& logged) {
  auto asked = self->state.asked.take(logged.id);
  if (!asked) return;
  ResourceAnswer answer{asked->attempt, asked->id, std::move(logged.status)};
  answer.committed = logged.committed;
  self->send(asked->reply_to, std::move(answer));
}

void carry_out(VariablesSelf self, const ResourceStaged& staged) {
  const Device& device = *self->state.device;
  if (shows_failure(staged.status, device))
    return self->send(self->state.worker, ExpelProcess{without(device, staged.status)});
  self->send(self->state.worker, StagedAt{self->state.id, staged});
}

void carry_out(VariablesSelf self, VariableStore::Failed& failed) {
  self->send(self->state.worker, ExpelProcess{std::move(failed.status)});
}

void carry_out(VariablesSelf self, VariableStore::Outputs& out) {
  for (auto& output : out) std::visit([self](auto& what) { carry_out(self, what); }, output);
}

VariableStore::ReadRequest read_of(std::uint64_t id, ResourceRequest& request) {
  VariableStore::ReadRequest read;
  read.id = id;
  read.attempt = request.attempt;
  read.after = std::move(request.after);
  read.initialised_only = request.external().verb == "is_initialized";
  for (const ResourceRequest::Item& item : request.items) {
    read.names.push_back(item.resource->name);
    read.replica = item.key.replica;
  }
  return read;
}

VariableStore::LogRequest log_of(std::uint64_t id, ResourceRequest& request) {
  VariableStore::LogRequest log;
  log.id = id;
  log.attempt = request.attempt;
  log.commit = request.commit;
  for (ResourceRequest::Item& item : request.items)
    log.writes.push_back({std::move(item.key), std::move(item.rule), std::move(item.operands)});
  return log;
}

VariablesActor::behavior_type variables_behavior(VariablesSelf self, std::string name,
                                                 ResourceId id, Device* device, DeviceActor lanes,
                                                 WorkerActor worker, std::shared_ptr<void> alive,
                                                 std::shared_ptr<Trace> trace) {
  auto& s = self->state;
  s.alive = std::move(alive);
  s.trace = std::move(trace);
  s.rules.emplace(*device);
  s.store.emplace(std::move(name), *s.rules);
  s.id = id;
  s.device = device;
  s.lanes = std::move(lanes);
  s.worker = std::move(worker);
  self->send(s.worker, WishLists{id, true});
  return {
      [self](const DeclareVariables& message) {
        Status status;
        for (const VariableSpec& spec : message.variables)
          if (status.ok()) status = self->state.store->declare(spec);
        message.done(status);
      },
      [self](ResourceCall& message) {
        auto& s = self->state;
        const std::uint64_t id = s.asked.remember(message);
        VariableStore::Outputs out;
        if (message.request.external().order == External::Order::write)
          s.store->log(log_of(id, message.request), out);
        else
          s.store->read(read_of(id, message.request), out);
        carry_out(self, out);
      },
      [self](const TaskApplied& message) {
        VariableStore::Outputs out;
        self->state.store->applied(message.task, std::move(*message.values), out);
        carry_out(self, out);
      },
      [self](const StageRequest& message) {
        VariableStore::Outputs out;
        self->state.store->stage(message, out);
        carry_out(self, out);
      },
      [self](const LiveList& message) {
        VariableStore::Outputs out;
        self->state.store->live(message, out);
        carry_out(self, out);
      },
  };
}

}  // namespace

VariablesActor spawn_variables(caf::actor_system& system, std::string name, ResourceId id,
                               Device& device, DeviceActor lanes, WorkerActor worker,
                               std::shared_ptr<void> alive, std::shared_ptr<Trace> trace) {
  return spawn_actor<VariablesActor>(system, VariablesState::name, variables_behavior,
                                     std::move(name), id, &device, std::move(lanes),
                                     std::move(worker), std::move(alive), std::move(trace));
}

}  // namespace troupe
