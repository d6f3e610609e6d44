// Resources that steps use through handles or of their device, and their kinds.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "actors/resources/request.hpp"
#include "core/transaction.hpp"
#include "serialization/resource_state.hpp"

namespace troupe {

class FileSystem;

// The answer to the request of that id.
struct ResourceReply {
  std::uint64_t id = 0;
  Status status;
  std::vector<Tensor> values;  // the outputs of the request's items
  bool own = false;            // some element is the run's own
};
// The attempts that wait at a resource and the runs that hold marks. Sent on each change while any
// attempt waits, and once more, empty, when none does.
struct ResourceBlocked {
  std::vector<AttemptId> waiting;
  std::vector<RunId> marked;
  std::string why = {};  // for reports: "is empty"
  friend bool operator==(const ResourceBlocked&, const ResourceBlocked&) = default;
};

// The state machine of one resource: no clock, no thread. Every input appends its outputs to `out`.
// Owned by an actor (resource_actor.hpp), or by a test. Participant implements the common part of
// `stage` and `live`.
class Resource {
 public:
  using Output = std::variant<ResourceReply, ResourceStaged, ResourceBlocked>;
  using Outputs = std::vector<Output>;

  virtual ~Resource() = default;
  // Answered once, now or later, with a reply with this id. `unimplemented` for a verb that the
  // kind's ops do not have (External::verb).
  virtual void ask(std::uint64_t id, ResourceRequest& request, Outputs& out) = 0;
  virtual void stage(const StageRequest& request, Outputs& out) = 0;
  virtual void live(const LiveList& list, Outputs& out) = 0;
  // Whether no LiveList would change anything until the next request: nothing is logged, staged,
  // marked, waits or is kept for an attempt. Such a resource is told of no lists, so that a commit
  // costs nothing at the resources that nobody uses. false: it is told of all of them.
  virtual bool at_rest() const { return false; }

  // Saving and loading, for checkpoints and for other copies of the resource. A kind has all of
  // these or none; without them they are `unimplemented`, and a job with such a resource cannot be
  // saved. A program's own kind is best a PromptResource, which implements most of them.
  //
  // save(): the committed state, which a new attempt would see. Requests, logs and marks of
  // attempts under way are not saved. A staged record is in record().
  virtual Expected<ResourceState> save() const { return cannot_move(); }
  // Loads the state into a new resource; failed_precondition if it was used. invalid_argument, and
  // no change, for a state that save() of such a resource does not produce.
  virtual Status load(const ResourceState&) { return cannot_move(); }
  // The staged record with its number and attempt; failed_precondition if there is none.
  virtual Expected<ResourceState> record() const { return cannot_move(); }
  // As if it had been staged here; a number that contradicts earlier ones is refused as by stage().
  // invalid_argument for a state that record() does not produce.
  virtual Status stage_record(const ResourceState&, Outputs&) { return cannot_move(); }

 protected:
  static Status cannot_move() {
    return unimplemented("this kind of resource does not say how it is saved");
  }
};

struct ResourceKind {
  std::string name;  // External::resource of its ops
  // Its changes are seen outside the job (ResourceWrites::outside).
  bool outside = false;
  // Makes the resource of a handle's node, or of an op without handles; invalid_argument if the
  // node does not describe one.
  std::function<Expected<std::unique_ptr<Resource>>(const ResourceRef&)> make;
  // Whether two nodes that name the same resource agree: invalid_argument, naming both, if not.
  // Empty: always.
  std::function<Status(const ResourceRef& known, const ResourceRef& other)> agree = {};
  // Instead of `make`, for a kind that uses files: gets the process's file system, and a number
  // that is unique for the kind.
  std::function<std::unique_ptr<Resource>(FileSystem& files, std::uint64_t unique)>
      make_with_files = {};
  // Its calls may wait for a disk: it gets a thread of its own.
  bool own_thread = false;
};

// Queues, mutexes, files and shards, and what add_resource_kind() added.
Expected<const ResourceKind*> find_resource_kind(const std::string& name);
// Adds a kind to this process; call it before the first Session, in every process of a job.
// already_exists for a name in use, invalid_argument without a name or `make`.
Status add_resource_kind(ResourceKind kind);
// The names of all kinds, in order: the processes of a job compare them.
std::vector<std::string> resource_kind_names();

}  // namespace troupe
