#include "actors/client/detail/session_core.hpp"

#include <fmt/format.h>
#include <pthread.h>

#include "actors/client/detail/recovery.hpp"
#include "core/hash.hpp"
#include "core/log.hpp"
#include "graph/control/functions/body.hpp"
#include "graph/node_hash.hpp"

namespace troupe::detail {

namespace {

std::atomic<std::uint64_t> forks{0};
[[maybe_unused]] const int counts_forks = pthread_atfork(nullptr, nullptr, [] { ++forks; });

}  // namespace

std::uint64_t forks_before_this_process() { return forks.load(std::memory_order_relaxed); }

Status in_its_process(const SessionCore& core, std::string_view method) {
  if (core.forks == forks_before_this_process()) return ok_status();
  return failed_precondition(
      fmt::format("{} was called in process {}, which was forked from that of the session, {}, and "
                  "has none of its threads: make a session after the fork",
                  method, getpid(), core.process));
}

Status AsksWhetherToStop::not_here(const SessionCore& core, std::string_view method) {
  if (asked != &core) return ok_status();
  return failed_precondition(
      fmt::format("{} was called in Cluster::stop, for whose answer the session waits: call it "
                  "from another thread, and do not wait for that there",
                  method));
}

Status may_wait(const SessionCore& core, std::string_view method) {
  TROUPE_TRY(in_its_process(core, method));
  TROUPE_TRY(AsksWhetherToStop::not_here(core, method));
  if (detail::Callbacks::here())
    return failed_precondition(
        fmt::format("{} was called in a callback of PendingRun::then or Session::watch, on a "
                    "thread that the session itself may need: call it from another one",
                    method));
  if (!core.residents || !core.residents->on_scheduler()) return ok_status();
  return failed_precondition(
      fmt::format("{} was called from an event-based actor, on a thread that the session's own "
                  "actors need: call it from a thread of the program's, or from a blocking actor "
                  "or one spawned with caf::detached",
                  method));
}

Status session_closed() { return failed_precondition("the session is closed"); }

Status graph_there(const SessionCore& core) {
  if (!core.graph_life.expired()) return ok_status();
  return failed_precondition("the session's graph is gone; it must live as long as it is used");
}

Status graph_is_whole(const SessionCore& core) {
  if (&core.graph.innermost() == &core.graph && !core.graph.in_attempt()) return ok_status();
  return failed_precondition(
      "the body of a function, a branch or a loop, or what is added as a whole, is being built: "
      "what it has added to the graph may be taken back; run before or after that");
}

Status may_ask_graph(const SessionCore& core, std::string_view method) {
  TROUPE_TRY(graph_there(core));
  TROUPE_TRY(graph_is_whole(core));
  return may_wait(core, method);
}

void refuse(Call& call, Status status) {
  CallResult result;
  result.status = std::move(status);
  call.finish(std::move(result));
}

void note_answer(SessionCore& core, const RunId& run) {
  std::lock_guard lock(core.numbers_mutex);
  if (run.session == core.id) core.numbers.answered(run.n);  // not of an earlier master
}

Status check_graph(const SessionCore& core, const GraphBuilder& graph, std::string_view what) {
  if (&graph == &core.graph) return ok_status();
  if (const BodyState* body = graph.body())
    return invalid_argument(
        fmt::format("a {} is inside the body of function '{}' ({}): return it "
                    "from there, or push it into a queue",
                    what, body->function, body->site.text()));
  return invalid_argument(fmt::format("a {} belongs to another graph than the session's", what));
}

namespace {

Expected<PortName> port_name(const SessionCore& core, const Output& output, std::string_view what) {
  if (output.empty()) return invalid_argument(fmt::format("an empty Output as {}", what));
  TROUPE_TRY(check_graph(core, output.graph(), what));
  const std::vector<NodeDef>& nodes = core.graph.def().nodes;
  if (output.node() >= nodes.size() || output.port().index >= nodes[output.node()].out_types.size())
    return invalid_argument(
        fmt::format("a {} is output {} of a node without it", what, output.port().index));
  return PortName{nodes[output.node()].name, int(output.port().index), false};
}

}  // namespace

Expected<CompileRequest> make_request(const SessionCore& core, const std::vector<Output>& fetches,
                                      const std::vector<Op>& targets,
                                      const std::vector<Output>& feeds) {
  TROUPE_TRY(graph_there(core));
  CompileRequest request;
  request.replicas = core.cluster.replicas;
  for (const Output& fetch : fetches) {
    TROUPE_TRY(PortName name, port_name(core, fetch, "fetch"));
    request.fetches.push_back(std::move(name));
  }
  for (const Output& feed : feeds) {
    TROUPE_TRY(PortName name, port_name(core, feed, "feed"));
    request.feeds.push_back(std::move(name));
  }
  for (const Op& target : targets) {
    if (target.empty()) return invalid_argument("an empty Op as target");
    TROUPE_TRY(check_graph(core, target.graph(), "target"));
    if (target.node() >= core.graph.def().nodes.size())
      return invalid_argument("a target is a node that the graph does not have");
    request.targets.push_back(target.name());
  }
  return request;
}

namespace {

// close_loop() sets an input of an existing Merge.
std::uint64_t hash_of_merges(const std::vector<NodeId>& merges, const GraphDef& def) {
  std::uint64_t hash = 0;
  for (NodeId id : merges)
    for (Port in : def.nodes[id].inputs) hash = hash_combine(hash_combine(hash, in.node), in.index);
  return hash;
}

// What the master will have of the graph once the nodes from `before.nodes` on are shipped.
Shipped shipped_with(Shipped before, const GraphDef& def, const OpRegistry& ops) {
  Shipped after = std::move(before);
  for (; after.functions < def.functions.size(); ++after.functions)
    after.hash = hash_functions(after.hash, def.functions[after.functions]);
  for (; after.nodes < def.nodes.size(); ++after.nodes) {
    const NodeDef& node = def.nodes[after.nodes];
    after.hash = hash_nodes(after.hash, node);
    const OpInfo* op = ops.find(node.op);
    if (op && op->def.role == Role::merge) after.merges.push_back(NodeId(after.nodes));
  }
  after.merges_hash = hash_of_merges(after.merges, def);
  return after;
}

}  // namespace

Status ship(SessionCore& core) {
  const GraphDef& def = core.shipping.whole();
  const bool changed = hash_of_merges(core.shipped.merges, def) != core.shipped.merges_hash;
  if (core.shipped.nodes == def.nodes.size() && !changed) return ok_status();
  const Shipped before = changed ? Shipped{} : core.shipped;
  ExtendSession extend;
  extend.session = core.id;
  extend.from = before.nodes;
  extend.hash = before.hash;
  auto graph = std::make_shared<GraphDef>();
  graph->seed = def.seed;
  graph->nodes.assign(def.nodes.begin() + std::ptrdiff_t(before.nodes), def.nodes.end());
  graph->functions.assign(def.functions.begin() + std::ptrdiff_t(before.functions),
                          def.functions.end());
  extend.graph = std::move(graph);
  Shipped after = shipped_with(before, def, core.graph.registry());
  TROUPE_TRY(ask(core, std::move(extend)).status);
  core.shipped = std::move(after);
  return ok_status();
}

namespace {

// REQUIRES: core.mutex is held, and the master has the nodes of the request.
Expected<Compiled> compile_shipped(SessionCore& core, const CompileRequest& request) {
  CompileStep message;
  message.session = core.id;
  message.request = request;
  CallResult result = ask(core, std::move(message));
  TROUPE_TRY(result.status);
  return Compiled{result.compiled, result.only_reads};
}

}  // namespace

void tell_of_growth(SessionCore& core) {
  constexpr int kOften = 100;
  std::lock_guard lock(core.mutex);
  const bool grows = core.shipped.nodes > 0 && core.shipping.size() > core.shipped.nodes;
  if (core.told_of_growth || core.closed || !grows) return;
  const Site& line = core.graph.def().nodes.back().site;
  if (++core.grown[line.text()] < kOften) return;
  core.told_of_growth = true;
  TROUPE_LOG(warning, "session",
             fmt::format("{}: the graph got new nodes here before each of {} runs or compilations; "
                         "it grows, and each takes longer: make the nodes once, before the loop",
                         line.text(), kOften));
}

namespace {

// Checks nodes that were added since a restore, if the restored graph had more nodes then: they
// must be the same. REQUIRES: core.mutex is held.
Status check_awaited(SessionCore& core) {
  const GraphDef& graph = core.graph.def();
  if (core.awaited.empty() || core.awaited.front().nodes > graph.nodes.size()) return ok_status();
  TROUPE_TRY(check_marks(graph, core.awaited));
  std::erase_if(core.awaited, [&](const GraphMark& mark) {
    return mark.nodes <= graph.nodes.size() && mark.functions <= graph.functions.size();
  });
  return ok_status();
}

}  // namespace

Expected<Compiled> compile_request(SessionCore& core, const CompileRequest& request) {
  std::lock_guard lock(core.mutex);
  if (core.closed) return session_closed();
  TROUPE_TRY(graph_there(core));
  TROUPE_TRY(graph_is_whole(core));
  TROUPE_TRY(check_awaited(core));
  TROUPE_TRY(ship(core));
  if (core.keeps) note_order(core);  // before what is new runs
  return compile_shipped(core, request);
}

Expected<Compiled> compile_again(SessionCore& core, const CompileRequest& request) {
  std::lock_guard lock(core.mutex);
  if (core.closed) return session_closed();
  return compile_shipped(core, request);
}

Status check_note(const std::string& note) {
  if (note.empty()) return invalid_argument("an empty note: a run without one has no `note`");
  if (note.size() <= kMostNote) return ok_status();
  return invalid_argument(
      fmt::format("the note has {} bytes, and may have {}", note.size(), kMostNote));
}

}  // namespace troupe::detail
