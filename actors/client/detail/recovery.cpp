#include "actors/client/detail/recovery.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "actors/client/detail/state.hpp"
#include "actors/runtime/platform.hpp"
#include "core/log.hpp"

namespace troupe::detail {
namespace {

// Ends the runtime; unanswered messages are answered with this status.
void end_runtime(SessionCore& core, const Status& status) {
  core.calls->set_unread(status);
  std::unique_ptr<Runtime> old;
  {
    std::lock_guard pointer(core.runtime_mutex);
    std::unique_lock nobody_sends(core.sending);
    old = std::move(core.runtime);
    core.master = nullptr;
    core.tracing = false;
  }
  old.reset();
}

// Replaces a runtime that lost a part with a new, empty one.
Status renew(SessionCore& core, const Status& why) {
  end_runtime(core, why);
  std::lock_guard lock(core.mutex);
  if (core.closed) return session_closed();
  Runtime::Hooks hooks = core.told;
  hooks.join_within = core.cluster.replace_within;
  hooks.again = true;
  Cluster cluster = core.cluster;
  cluster.stop = [&core, first = core.cluster.stop, second = core.stop_waiting] {
    const AsksWhetherToStop here(core);
    return core.closing || (first && first()) || (second && second());
  };
  TROUPE_TRY(auto fresh, Runtime::start(cluster, core.system, std::move(hooks)));
  {
    std::lock_guard pointer(core.runtime_mutex);
    std::unique_lock nobody_sends(core.sending);
    std::lock_guard numbers(core.numbers_mutex);
    core.runtime = std::move(fresh);
    core.master = core.runtime->master();
    core.id = machine_random();
    core.numbers = RunNumbers(1);
  }
  core.calls->set_unread(session_closed());
  core.shipped = {};
  ++core.generation;
  TROUPE_TRY(ask_master(core, OpenSession{core.id, nullptr}).status);
  return ship(core);
}

// Restores the kept state in a new runtime and repeats the logged runs.
Status go_on(const std::shared_ptr<SessionCore>& core, const Status& why) {
  TROUPE_TRY(renew(*core, why));
  TROUPE_TRY(const std::vector<RunLog::Done> done, core->log.done());
  const CommitNumber from = core->kept ? core->kept->committed : 0;
  TROUPE_LOG(warning, "session",
             fmt::format("{}: going on from commit {}; {} runs are done again", why.message(), from,
                         done.size()));
  if (core->kept) {
    TROUPE_TRY(resume(core, *core->kept));
    TROUPE_TRY(ask(*core, AskPlace{core->id, nullptr}).status);  // before writing
  }
  for (const RunLog::Done& each : done) {
    if (core->closing) return cancelled("the session is being closed");
    const RunLog::Outcome outcome = each.again();
    if (outcome == each.outcome) continue;
    if (outcome.code == Code::unavailable) return unavailable("another part was lost meanwhile");
    return internal_error(fmt::format("a run that had {} has {} when it is done again",
                                      each.outcome.text(), outcome.text()));
  }
  return ok_status();
}

}  // namespace

Status recover(const std::shared_ptr<SessionCore>& core, std::uint64_t lost, const Status& why) {
  const Alone alone(*core);
  if (!core->failed.ok()) return core->failed;
  if (core->generation != lost) return ok_status();  // another thread has recovered
  // Cluster::stop is no loss: nothing would be better if the program came back.
  const auto cannot = [&](const Status& status) {
    const std::string text =
        fmt::format("{}; the session could not go on: {}", why.message(), status.text());
    return status.code() == Code::cancelled ? cancelled(text) : unavailable(text);
  };
  if (core->closing) return cannot(cancelled("the session is being closed"));
  if (Status whole = core->log.whole(); !whole.ok()) return cannot(whole);
  if (Status there = graph_there(*core); !there.ok()) return cannot(there);
  if (Status whole = graph_is_whole(*core); !whole.ok()) return cannot(whole);  // a later call can
  if (core->committed > core->furthest) core->recoveries.progressed();
  core->furthest = std::max(core->furthest, core->committed.load());
  Status status = why;
  while (status.code() == Code::unavailable) {
    const auto pause = core->recoveries.died(std::chrono::steady_clock::now().time_since_epoch());
    if (!pause) {
      status = failed_precondition("it lost parts too often");
      break;
    }
    std::this_thread::sleep_for(*pause);
    status = go_on(core, status);
  }
  if (status.ok()) {
    core->watchers->tell({SessionEvent::Kind::recovered, core->committed, why});
    return status;
  }
  // A partly restored state must not be used.
  core->failed = cannot(status);
  end_runtime(*core, core->failed);
  if (!core->closing)  // which is the end that is told
    core->watchers->tell({SessionEvent::Kind::ended, core->committed, core->failed});
  return core->failed;
}

void note_order(SessionCore& core) {
  std::lock_guard lock(core.order_mutex);
  const auto& nodes = core.graph.def().nodes;
  const auto look = [&](const NodeDef& node) {
    const OpInfo* op = core.graph.registry().find(node.op);
    // Their dequeues depend on the commits before.
    if (node.op == "RandomShuffleQueue" || node.op == "PriorityQueue") return true;
    return op && (op->def.random || op->def.external.resource == "dataset");
  };
  for (; core.looked_at < nodes.size(); ++core.looked_at)
    core.order_matters = core.order_matters || look(nodes[core.looked_at]);
  const auto& functions = core.graph.def().functions;
  for (; core.functions_looked_at < functions.size(); ++core.functions_looked_at) {
    const auto& body = functions[core.functions_looked_at].nodes;
    core.order_matters = core.order_matters || std::any_of(body.begin(), body.end(), look);
  }
  core.log.set_order_matters(core.order_matters);  // in the order of the looks
}

}  // namespace troupe::detail
