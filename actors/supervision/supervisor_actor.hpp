// Supervisors of actors and processes, for programs with an actor system of their own.
#pragma once

#include <caf/actor.hpp>
#include <caf/actor_system.hpp>
#include <caf/allowed_unsafe_message_type.hpp>
#include <functional>
#include <string>
#include <vector>

#include "actors/supervision/process_supervisor.hpp"
#include "actors/supervision/supervision.hpp"
#include "core/status.hpp"

namespace troupe {

// A child of a supervisor actor.
struct ActorSpec {
  ChildSpec child;
  // Spawns an incarnation; called by the supervisor, which monitors it. An error, or an exception,
  // is a failed start. The child is asked to end by exit_reason::user_shutdown. Exit reasons none,
  // normal and user_shutdown are normal ends, all others abnormal.
  std::function<Expected<caf::actor>(caf::actor_system&)> start;
  bool process = false;  // set by process_child
};

// A child process: an actor that lives as long as the process. It is asked to end by SIGTERM.
ActorSpec process_child(ProcessSpec spec);

// A child that supervises others.
ActorSpec supervisor_child(ChildSpec child, SupervisorSpec spec, std::vector<ActorSpec> children);

// Spawns a supervisor, which starts its children at once. invalid_argument: from
// SupervisorSpec::check, or for a child without `start`.
//
// exit_reason::user_shutdown makes it stop its children and end; exit_reason::kill kills them. When
// it ends by itself (its intensity is exceeded, a child cannot be started while it starts) its exit
// reason is caf::sec::runtime_error with the text of the cause.
Expected<caf::actor> spawn_supervisor(caf::actor_system& system, SupervisorSpec spec,
                                      std::vector<ActorSpec> children);

// ---- requests to a supervisor, from any actor

// Reply: SupervisedChildren, in start order.
struct WhichChildren {};
struct SupervisedChildren {
  std::vector<Supervision::Child> children;
};
// Reply to each: SupervisorAnswer.
struct AddChild {  // after the others
  ActorSpec spec;
};
struct StopChild {  // it is not started again
  std::string child;
};
struct RestartChild {  // costs no restart
  std::string child;
};
struct SupervisorAnswer {
  Status status;
};
// Restarts before now no longer count. No reply.
struct ChildrenProgressed {};

}  // namespace troupe

CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::WhichChildren)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::SupervisedChildren)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::AddChild)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::StopChild)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::RestartChild)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::SupervisorAnswer)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::ChildrenProgressed)
