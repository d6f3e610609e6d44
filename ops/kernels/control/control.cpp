// Calls, branches and what they are lowered to. None has a kernel: passes and executors know them.
#include "graph/control/control_ops.hpp"

#include "ops/op.hpp"

using namespace troupe;

TROUPE_OPS(control) {
  for (OpDef& op : control_ops()) r.add(std::move(op));
}
