#include "actors/supervision/supervisor_actor.hpp"

#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include <caf/event_based_actor.hpp>
#include <caf/exit_reason.hpp>
#include <caf/sec.hpp>
#include <caf/send.hpp>
#include <caf/stateful_actor.hpp>
#include <chrono>
#include <csignal>
#include <functional>
#include <future>
#include <map>
#include <memory>
#include <optional>
#include <thread>
#include <utility>

#include "actors/processes/proc.hpp"
#include "actors/supervision/start_process.hpp"
#include "core/hash.hpp"
#include "core/no_signals.hpp"

extern "C" {  // which the header forgets in glibc 2.36
#include <sys/pidfd.h>
}

namespace troupe::supervising {

// ---- to the actor of a process
struct ProcessEnded {
  ChildEnd end;
};
struct KillProcess {};

// ---- of a supervisor to itself
struct LookAgain {};

}  // namespace troupe::supervising

CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::supervising::ProcessEnded)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::supervising::KillProcess)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::supervising::LookAgain)

namespace troupe {
namespace {

using namespace supervising;

bool is_normal(const caf::error& reason) {
  return !reason || reason == caf::exit_reason::normal || reason == caf::exit_reason::user_shutdown;
}

caf::error because(const std::string& how) { return caf::make_error(caf::sec::runtime_error, how); }

// As a sentence goes on.
std::string text_of(caf::actor_system& system, const caf::error& reason) {
  if (reason == caf::sec::runtime_error && reason.context().match_elements<std::string>())
    return reason.context().get_as<std::string>(0);
  if (reason == caf::sec::runtime_error) return "was ended by an exception";  // CAF keeps no more
  return is_normal(reason) ? "ended" : "ended with " + system.render(reason);
}

// ------------------------------------------------------------------ a process as an actor

// Waits for the process, on a thread of its own: PR_SET_PDEATHSIG is about the thread that starts.
class WatchedProcess {
 public:
  WatchedProcess() = default;
  ~WatchedProcess() {
    signal(SIGKILL);
    if (thread_.joinable()) thread_.join();
    if (handle_ >= 0) ::close(handle_);
  }
  WatchedProcess(const WatchedProcess&) = delete;
  WatchedProcess& operator=(const WatchedProcess&) = delete;

  // `ended` is called on that thread, once, if this returns ok.
  Status start(const ProcessSpec& spec, std::function<void(ChildEnd)> ended) {
    std::promise<Status> started;
    auto answer = started.get_future();
    const NoSignals none;
    thread_ = std::thread([this, &spec, &started, ended = std::move(ended)] {
      const auto pid = start_process(spec.command, spec.environment, {spec.input, spec.own_group});
      if (pid.ok()) handle_ = pidfd_open(*pid, 0);
      if (pid.ok() && handle_ < 0) {
        kill(*pid, SIGKILL);
        (void)waitpid(*pid, nullptr, 0);
        return started.set_value(resource_exhausted("no descriptor for a process"));
      }
      started.set_value(pid.status());  // after which `spec` is gone
      if (!pid.ok()) return;
      ended(wait_for_end(P_PIDFD, id_t(handle_)));
    });
    return answer.get();
  }
  void signal(int number) const {
    if (handle_ >= 0) (void)pidfd_send_signal(handle_, number, nullptr, 0);
  }

 private:
  int handle_ = -1;  // written before start() returns
  std::thread thread_;
};

struct ProcessState {
  static constexpr const char* name = "process";
  std::shared_ptr<WatchedProcess> process;
};

caf::behavior process_actor(caf::stateful_actor<ProcessState>* self,
                            std::shared_ptr<WatchedProcess> process, const ProcessSpec& spec) {
  self->state.process = std::move(process);
  self->set_exit_handler([self](const caf::exit_msg&) {
    self->state.process->signal(SIGTERM);
    self->state.process->signal(SIGCONT);  // one that is stopped would not hear it
  });
  return {
      [self](KillProcess) { self->state.process->signal(SIGKILL); },
      [self, spec](const ProcessEnded& message) {
        const ChildExit meaning = spec.meaning_of(message.end);
        self->quit(meaning.normal ? caf::error(caf::exit_reason::normal) : because(meaning.how));
      },
  };
}

Expected<caf::actor> spawn_process(caf::actor_system& system, const ProcessSpec& spec) {
  auto process = std::make_shared<WatchedProcess>();
  // The actor is there first, so that the end finds it.
  caf::actor actor = system.spawn(process_actor, process, spec);
  const Status started = process->start(
      spec, [actor](const ChildEnd& end) { caf::anon_send(actor, ProcessEnded{end}); });
  if (started.ok()) return actor;
  caf::anon_send_exit(actor, caf::exit_reason::kill);
  return started;
}

// ------------------------------------------------------------------ the supervisor

// What lives of it when it is killed: nothing.
struct Alive {
  std::map<std::string, caf::actor> children;
  ~Alive() {
    for (const auto& [id, child] : children) caf::anon_send_exit(child, caf::exit_reason::kill);
  }
};

struct SupervisorState {
  static constexpr const char* name = "supervisor";
  std::map<std::string, ActorSpec> specs;
  std::optional<Supervision> machine;
  Supervision::Outputs out;
  std::map<caf::actor_addr, std::pair<std::string, std::uint64_t>> incarnations;
  Alive alive;
  Instant tick_at = kNever;
};

using SupervisorSelf = caf::stateful_actor<SupervisorState>*;

Instant now() { return std::chrono::steady_clock::now().time_since_epoch(); }

void begin_child(SupervisorSelf self, const Supervision::Start& order) {
  auto& s = self->state;
  const auto start = [&]() -> Expected<caf::actor> {
    try {
      return s.specs.at(order.child).start(self->system());
    } catch (const std::exception& e) {
      return internal_error(fmt::format("threw {}", e.what()));
    }
  };
  const auto child = start();
  if (!child.ok())
    return s.machine->ended(order.child, order.incarnation,
                            {false, "was not started: " + child.status().text()}, now(), s.out);
  s.incarnations[child->address()] = {order.child, order.incarnation};
  s.alive.children[order.child] = *child;
  self->monitor(*child);
  s.machine->started(order.child, order.incarnation, now(), s.out);
}

void carry_out(SupervisorSelf self, const Supervision::Output& output) {
  auto& s = self->state;
  if (const auto* order = std::get_if<Supervision::Start>(&output))
    return begin_child(self, *order);
  if (const auto* order = std::get_if<Supervision::Stop>(&output))
    return self->send_exit(s.alive.children.at(order->child), caf::exit_reason::user_shutdown);
  if (const auto* order = std::get_if<Supervision::Kill>(&output)) {
    const caf::actor& child = s.alive.children.at(order->child);
    // That of a process ends with its process.
    if (s.specs.at(order->child).process) return self->send(child, KillProcess{});
    return self->send_exit(child, caf::exit_reason::kill);
  }
  const Status& why = std::get<Supervision::Over>(output).why;
  self->quit(why.ok() ? caf::error(caf::exit_reason::user_shutdown) : because(why.message()));
}

// An input of the machine, and what follows from it.
template <class Input>
void feed(SupervisorSelf self, Input input) {
  auto& s = self->state;
  input(*s.machine, s.out);
  while (!s.out.empty()) {
    const Supervision::Output output = std::move(s.out.front());
    s.out.pop_front();
    carry_out(self, output);
  }
  const Instant next = s.machine->next_wakeup();
  if (next >= s.tick_at) return;  // one that is under way is in time
  s.tick_at = next;
  self->delayed_send(self, std::max(Instant(0), next - now()), LookAgain{});
}

caf::behavior supervisor_actor(SupervisorSelf self, const SupervisorSpec& spec,
                               const std::vector<ActorSpec>& children) {
  auto& s = self->state;
  std::vector<ChildSpec> specs;
  for (const ActorSpec& child : children) {
    specs.push_back(child.child);
    s.specs.emplace(child.child.id, child);
  }
  s.machine.emplace(spec, std::move(specs), mix64(self->id()));
  self->set_down_handler([self](const caf::down_msg& down) {
    auto& s = self->state;
    const auto it = s.incarnations.find(down.source);
    if (it == s.incarnations.end()) return;
    const auto [child, incarnation] = it->second;
    s.incarnations.erase(it);
    s.alive.children.erase(child);
    feed(self,
         [&, child = child, incarnation = incarnation](Supervision& m, Supervision::Outputs& out) {
           m.ended(child, incarnation,
                   {is_normal(down.reason), text_of(self->system(), down.reason)}, now(), out);
         });
  });
  self->set_exit_handler([self](const caf::exit_msg&) {
    feed(self, [](Supervision& m, Supervision::Outputs& out) { m.stop(now(), out); });
  });
  self->send(self, LookAgain{});
  // Answers one of the requests.
  const auto change = [self](auto input) {
    SupervisorAnswer answer;
    feed(self, [&](Supervision& m, Supervision::Outputs& out) { answer.status = input(m, out); });
    return answer;
  };
  return {
      [self](LookAgain) {
        self->state.tick_at = kNever;
        feed(self, [](Supervision& m, Supervision::Outputs& out) {
          m.begin(now(), out);  // the first time
          m.tick(now(), out);
        });
      },
      [self](WhichChildren) { return SupervisedChildren{self->state.machine->children()}; },
      [self, change](const AddChild& add) {
        return change([&](Supervision& m, Supervision::Outputs& out) -> Status {
          if (!add.spec.start)
            return invalid_argument(fmt::format("child '{}' has no start", add.spec.child.id));
          // Known before it is started; a second one of its id is refused, and changes nothing.
          const bool known = !self->state.specs.emplace(add.spec.child.id, add.spec).second;
          const Status added = m.add(add.spec.child, now(), out);
          if (!added.ok() && !known) self->state.specs.erase(add.spec.child.id);
          return added;
        });
      },
      [change](const StopChild& stop) {
        return change([&](Supervision& m, Supervision::Outputs& out) {
          return m.stop_child(stop.child, now(), out);
        });
      },
      [change](const RestartChild& restart) {
        return change([&](Supervision& m, Supervision::Outputs& out) {
          return m.restart_child(restart.child, now(), out);
        });
      },
      [self](ChildrenProgressed) { self->state.machine->progressed(); },
  };
}

}  // namespace

ActorSpec process_child(ProcessSpec spec) {
  ActorSpec child{.child = spec.child, .process = true};
  child.start = [spec = std::move(spec)](caf::actor_system& system) -> Expected<caf::actor> {
    if (spec.command.empty()) return invalid_argument("a process has a command");
    return spawn_process(system, spec);
  };
  return child;
}

ActorSpec supervisor_child(ChildSpec child, SupervisorSpec spec, std::vector<ActorSpec> children) {
  return {.child = std::move(child),
          .start = [spec, children = std::move(children)](caf::actor_system& system) {
            return spawn_supervisor(system, spec, children);
          }};
}

Expected<caf::actor> spawn_supervisor(caf::actor_system& system, SupervisorSpec spec,
                                      std::vector<ActorSpec> children) {
  std::vector<ChildSpec> specs;
  for (const ActorSpec& child : children) {
    if (!child.start)
      return invalid_argument(fmt::format("child '{}' has no start", child.child.id));
    specs.push_back(child.child);
  }
  TROUPE_TRY(spec.check(specs));
  return system.spawn(supervisor_actor, spec, std::move(children));
}

}  // namespace troupe
