#include "actors/client/session_actor.hpp"

#include <atomic>
#include <caf/event_based_actor.hpp>
#include <caf/exit_reason.hpp>
#include <caf/sec.hpp>
#include <caf/send.hpp>
#include <caf/stateful_actor.hpp>
#include <chrono>
#include <map>
#include <optional>
#include <utility>

#include "actors/client/detail/runs.hpp"

namespace troupe::serving {

// ---- from the session's threads to its actor
struct RunOver {
  std::uint64_t run = 0;
};
struct Happened {
  SessionEvent event;
};

}  // namespace troupe::serving

CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::serving::RunOver)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::serving::Happened)

namespace troupe {
namespace {

using namespace serving;

using Clock = std::chrono::steady_clock;

constexpr int kBegins = 3;  // attempts to start a run

// The address of the actor, for threads that must not keep it alive.
struct Mailbox {
  caf::actor_addr actor;
  // The last commit, and whether the actor was sent a commit event that it has not handled.
  std::atomic<CommitNumber> committed{0};
  std::atomic<bool> told{false};

  template <class Message>
  void send(Message message) const {
    if (auto there = caf::actor_cast<caf::actor>(actor)) caf::anon_send(there, std::move(message));
  }
  void happened(const SessionEvent& event) {
    if (event.kind == SessionEvent::Kind::committed) {
      CommitNumber seen = committed;
      while (event.committed > seen && !committed.compare_exchange_weak(seen, event.committed)) {
      }
      if (told.exchange(true)) return;
    }
    send(Happened{event});
  }
};

struct Asked {
  AskRun ask;
  const Clock::time_point since = Clock::now();
  PendingRun run = {};
  int begun = 0;
  std::uint64_t recoveries = 0;  // of the session when the run was started
  caf::typed_response_promise<RunResult> answer;
};

struct SessionActorState {
  static constexpr const char* name = "session";
  std::shared_ptr<Session> session;
  std::shared_ptr<Mailbox> mailbox;
  std::uint64_t watching = 0;
  std::vector<caf::actor> watchers;
  std::uint64_t last_run = 0;
  std::map<std::uint64_t, Asked> runs;

  ~SessionActorState() {
    if (session) session->unwatch(watching);
    // CAF does not report broken promises.
    for (auto& [_, asked] : runs)
      asked.answer.deliver(caf::make_error(caf::sec::request_receiver_down));
  }
};
using Self = caf::stateful_actor<SessionActorState>*;

void answer(Asked& asked, Status status, std::vector<Tensor> fetches = {}) {
  RunResult result{std::move(status), std::move(fetches), 0};
  if (asked.begun > 0) result.committed = asked.run.committed();
  asked.answer.deliver(std::move(result));
}

// Starts the run. An error of start() is its result.
Status begin(Self self, std::uint64_t number, Asked& asked) {
  try {
    asked.recoveries = self->state.session->recoveries();
    // Recoveries and earlier attempts count.
    asked.run = asked.ask.step.start(
        asked.ask.feeds,
        asked.begun == 0 ? asked.ask.options : detail::rest_of(asked.ask.options, asked.since));
    ++asked.begun;
    asked.run.then([mailbox = self->state.mailbox, number](const Expected<std::vector<Tensor>>&) {
      mailbox->send(RunOver{number});
    });
    return ok_status();
  } catch (const Error& error) {
    return error.status();
  }
}

void ask_run(Self self, AskRun& ask, caf::typed_response_promise<RunResult> promise) {
  const std::uint64_t number = ++self->state.last_run;
  Asked asked{.ask = std::move(ask), .answer = std::move(promise)};
  if (Status begun = begin(self, number, asked); !begun.ok()) return answer(asked, begun);
  self->state.runs.emplace(number, std::move(asked));
}

// Whether the run can be started once more. REQUIRES: its try_get() was called, which recovers the
// session.
bool may_begin_again(Self self, Asked& asked, const Status& status) {
  if (asked.begun >= kBegins || asked.run.committed() != 0) return false;
  if (asked.run.unloaded()) return asked.ask.step.try_load().ok();
  return status.code() == Code::unavailable &&
         self->state.session->recoveries() != asked.recoveries;
}

void run_over(Self self, std::uint64_t number) {
  const auto at = self->state.runs.find(number);
  if (at == self->state.runs.end()) return;
  Asked& asked = at->second;
  auto fetched = asked.run.try_get();
  Status status = fetched.status();
  if (!status.ok() && may_begin_again(self, asked, status)) {
    status = begin(self, number, asked);
    if (status.ok()) return;
  }
  if (fetched.ok())
    answer(asked, ok_status(), *std::move(fetched));
  else
    answer(asked, status);
  self->state.runs.erase(at);
}

void happened(Self self, SessionEvent event) {
  auto& s = self->state;
  if (event.kind == SessionEvent::Kind::committed) {
    s.mailbox->told = false;  // before the commit is read
    event.committed = s.mailbox->committed;
  }
  for (const caf::actor& watcher : s.watchers) self->send(watcher, event);
  if (event.kind != SessionEvent::Kind::ended) return;
  if (event.status.ok())
    self->quit();
  else
    self->quit(caf::make_error(caf::sec::runtime_error, event.status.text()));
}

void forget(Self self, const caf::actor_addr& watcher) {
  std::erase_if(self->state.watchers,
                [&](const caf::actor& each) { return each.address() == watcher; });
}

caf::behavior session_actor(Self self, std::shared_ptr<Session> session) {
  auto& s = self->state;
  s.session = std::move(session);
  s.mailbox = std::make_shared<Mailbox>();
  s.mailbox->actor = self->address();
  s.watching = s.session->watch(
      [mailbox = s.mailbox](const SessionEvent& event) { mailbox->happened(event); });
  self->set_down_handler([self](const caf::down_msg& down) { forget(self, down.source); });
  return {
      [self](AskRun& ask) {
        auto promise = self->make_response_promise<RunResult>();
        ask_run(self, ask, promise);
        return promise;
      },
      [self](const WatchSession& watch) {
        if (!watch.watcher) return;
        self->demonitor(watch.watcher);
        forget(self, watch.watcher.address());
        self->state.watchers.push_back(watch.watcher);
        self->monitor(watch.watcher);
      },
      [self](const UnwatchSession& unwatch) {
        if (!unwatch.watcher) return;
        self->demonitor(unwatch.watcher);
        forget(self, unwatch.watcher.address());
      },
      [self](const RunOver& over) { run_over(self, over.run); },
      [self](const Happened& what) { happened(self, what.event); },
  };
}

}  // namespace

Expected<caf::actor> spawn_session_actor(caf::actor_system& system,
                                         std::shared_ptr<Session> session) {
  if (!session) return invalid_argument("an actor of no session");
  return system.spawn<caf::detached>(session_actor, std::move(session));
}

}  // namespace troupe
