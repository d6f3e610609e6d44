// Mutexes. None of these has a kernel: the master lets a run begin when it holds all mutexes that
// its nodes acquire (actors/master/mutex_turns.hpp), and the mutex's actor sees to it that what the
// nodes do makes sense (actors/resources/mutex_state.hpp).
#include "ops/op.hpp"

using namespace troupe;

namespace {

Status mutex_shape(InferenceContext& c) {
  c.set(0, PartialShape::scalar());
  return ok_status();
}

OpDef mutex_op(std::string name, std::string verb, std::string doc) {
  return {.name = std::move(name),
          .in = {"handle: resource"},
          .shape = no_outputs,
          .no_gradient = "no outputs",
          .stateful = true,
          .role = Role::external,
          .external = {.resource = "mutex", .verb = std::move(verb), .changes = true},
          .doc = std::move(doc)};
}

}  // namespace

TROUPE_OPS(mutex) {
  r.add({.name = "Mutex",
         .out = {"handle: resource"},
         .attrs = {"container: string = ", "shared_name: string = "},
         .shape = mutex_shape,
         .no_gradient = "a handle",
         .stateful = true,
         .role = Role::handle,
         .external = {.resource = "mutex"},
         .doc = "A handle to a mutex, which one run at a time holds. It is named like a Variable. "
                "It has no contents: checkpoints leave it out."});
  r.add(mutex_op(
      "MutexAcquire", "acquire",
      "Acquires the mutex for this run. Before a run begins, it takes all mutexes that its nodes "
      "may acquire, including those in branches. It waits for them in the order in which runs "
      "arrive, until its deadline, and reads variables as they are after the wait. So mutexes "
      "cause no deadlock, and runs that hold the same mutex are not repeated because of each "
      "other. The mutex is released when the run ends, whatever its result. failed_precondition if "
      "the run has already acquired it and not released it."));
  r.add(mutex_op(
      "MutexRelease", "release",
      "Ends MutexAcquire, so that the run may acquire the mutex again. Other runs get the mutex, "
      "and see the writes of this run, only when this run ends. failed_precondition if the run has "
      "not acquired the mutex."));
}
