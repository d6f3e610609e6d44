#include "graph/control/state/state.hpp"

#include <algorithm>

#include "graph/control/functions/recursion.hpp"
#include "graph/control/state/detail/outside_threading.hpp"

namespace troupe {

Status thread_state(StepGraph& step, const Target& target) {
  using namespace detail;
  if (step.graph.functions.empty()) return ok_status();
  TROUPE_TRY(check_call_depth(step.graph.functions, *target.ops));
  StateThreading threading(step.graph, *target.ops);
  const Keys keys = threading.users.keys_of(step.graph.nodes);
  const bool any =
      std::any_of(step.graph.nodes.begin(), step.graph.nodes.end(), [&](const NodeDef& node) {
        return role_of(node, *target.ops) == Role::call && threading.users.of(node, keys).loops;
      });
  if (!any) return ok_status();
  NodeCopies out(step.graph.nodes);
  out.reserve_names();
  TROUPE_TRY(thread_outside(threading, step.graph.nodes, keys, out));
  for (Port& fetch : step.fetches) fetch = out.port(fetch);
  for (NodeId& id : step.targets) id = out.node(id);
  step.graph.nodes = out.take();
  for (FunctionDef& f : threading.take()) step.graph.functions.push_back(std::move(f));
  return ok_status();
}

}  // namespace troupe
