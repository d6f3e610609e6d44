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
         .doc = "A handle on a mutex, which one run at a time holds. Named like a Variable. It has "
                "no contents: checkpoints leave it out."});
  r.add(mutex_op(
      "MutexAcquire", "acquire",
      "Holds the mutex for this run. A run takes all mutexes that its nodes may acquire, those in "
      "branches included, before it begins: it waits for them in the order in which runs came, up "
      "to its deadline, and reads variables as of after that. So runs do not deadlock over "
      "mutexes, and runs that hold one do not have to be done again for each other. The mutex is "
      "free when the run ends, however it does. failed_precondition when the run has acquired it "
      "before and not released it."));
  r.add(mutex_op(
      "MutexRelease", "release",
      "Ends what MutexAcquire began, so that the run may acquire the mutex again. Other runs get "
      "it when this run ends: not before then do they see what it wrote. failed_precondition when "
      "the run has not acquired the mutex."));
}
