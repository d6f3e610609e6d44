// A session as an actor, for programs that use CAF: runs are requests, results are messages.
#pragma once

#include <caf/actor.hpp>
#include <caf/actor_system.hpp>
#include <caf/allowed_unsafe_message_type.hpp>
#include <memory>
#include <vector>

#include "actors/client/session.hpp"
#include "core/status.hpp"
#include "core/tensor.hpp"

namespace troupe {

// Spawns an actor through which other actors use the session without blocking:
//
//   auto session = std::make_shared<Session>(graph, system);
//   auto step = session->compile({answer}, {}, {question});
//   caf::actor runs = value_or_throw(spawn_session_actor(system, session));
//   ...
//   self->request(runs, caf::infinite, AskRun{step, {value}}).then([=](const RunResult& result) {
//     if (result.status.ok()) ... result.fetches[0]
//   });
//
// Any number of runs may be under way; each is answered when it is over, in any order. Unloaded
// steps are compiled again. If the session recovers from a loss (Session::keep), the run is started
// again. RunOptions::timeout counts from the moment when the actor takes up the request, over all
// of that; while the session recovers it takes up none. The actor has its own thread, and shares
// ownership of the session.
//
// It ends with the session: with exit reason none if the session was closed, else with
// caf::sec::runtime_error and the cause as its text, for actors that monitor or supervise it. On
// caf::exit_reason::user_shutdown the session stays open, and runs under way go on; their requests
// are answered with a CAF error. invalid_argument without a session.
Expected<caf::actor> spawn_session_actor(caf::actor_system& system,
                                         std::shared_ptr<Session> session);

// ---- its messages

// Reply: RunResult, whatever the result of the run.
struct AskRun {
  CompiledStep step;  // of the same session
  std::vector<Tensor> feeds = {};
  RunOptions options = {};
};
struct RunResult {
  Status status;  // a durable run may have committed even if this is an error
  std::vector<Tensor> fetches = {};
  CommitNumber committed = 0;  // 0: it wrote nothing
};
// From now on `watcher` gets the session's SessionEvents; of commits in quick succession only the
// last. No reply.
struct WatchSession {
  caf::actor watcher;
};
struct UnwatchSession {
  caf::actor watcher;
};

}  // namespace troupe

CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::AskRun)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::RunResult)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::WatchSession)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::UnwatchSession)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::SessionEvent)
