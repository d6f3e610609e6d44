// A session as an actor, for programs on CAF: runs are requests, their results messages.
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

// An actor through which others use the session without waiting for it:
//
//   auto session = std::make_shared<Session>(graph, system);
//   auto step = session->compile({answer}, {}, {question});
//   caf::actor runs = value_or_throw(spawn_session_actor(system, session));
//   ...
//   self->request(runs, caf::infinite, AskRun{step, {value}}).then([=](const RunResult& result) {
//     if (result.status.ok()) ... result.fetches[0]
//   });
//
// Any number of runs at once; each is answered when it is over, in any order. Steps that were
// unloaded are compiled again; after a loss that the session goes on from (Session::keep) the run
// is begun again. The actor has a thread of its own, and shares the session.
//
// It ends when the session does: with exit reason none if that was closed, else with
// caf::sec::runtime_error and the cause as its text, so that whoever monitors it, or supervises it,
// learns of the end. When it is told to end (caf::exit_reason::user_shutdown) the session stays
// open, and runs under way go on; whoever waits for one is answered with an error of CAF's.
// invalid_argument without a session.
Expected<caf::actor> spawn_session_actor(caf::actor_system& system,
                                         std::shared_ptr<Session> session);

// ---- what it takes

// Reply: RunResult, for whatever becomes of the run.
struct AskRun {
  CompiledStep step;  // of that session
  std::vector<Tensor> feeds = {};
  RunOptions options = {};
};
struct RunResult {
  Status status;  // of a durable run, it may have committed all the same
  std::vector<Tensor> fetches = {};
  CommitNumber committed = 0;  // 0: it wrote nothing
};
// From now on `watcher` gets a SessionEvent for each thing that happens to the session; of commits
// that follow each other quickly only the last. No reply.
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
