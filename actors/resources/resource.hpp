// A kind of resource that steps reach through handles, or ask of their device.
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
  bool own = false;            // the element is one that the run brought in itself
};
// Who waits here and who holds marks; sent on each change while anybody waits, and once more,
// empty, when nobody does any longer.
struct ResourceBlocked {
  std::vector<AttemptId> waiting;
  std::vector<RunId> marked;
  std::string why = {};  // what they find, for people: "is empty"
  friend bool operator==(const ResourceBlocked&, const ResourceBlocked&) = default;
};

// The machine of one resource: no clock, no thread. Every input appends to `out` what has to be
// said. Owned by an actor (resource_actor.hpp), or by a test. Participant does what all have in
// common of `stage` and `live`.
class Resource {
 public:
  using Output = std::variant<ResourceReply, ResourceStaged, ResourceBlocked>;
  using Outputs = std::vector<Output>;

  virtual ~Resource() = default;
  // Answered once, now or later, with a reply of this id. `unimplemented` for another verb than
  // those of the kind's ops (External::verb).
  virtual void ask(std::uint64_t id, ResourceRequest& request, Outputs& out) = 0;
  virtual void stage(const StageRequest& request, Outputs& out) = 0;
  virtual void live(const LiveList& list, Outputs& out) = 0;

  // How it moves: into a checkpoint, and to where another copy of it is kept. All of these or none;
  // a kind without them answers `unimplemented`, and a job that has such a resource cannot be
  // saved. One of a program's own is best a PromptResource, which does most of it.
  //
  // All that is committed: what a new attempt would find. What belongs to attempts that run is not
  // in it: what they have asked, logged and marked goes with them, and those who wait are answered
  // `aborted` where the state goes on. What is staged is in record().
  virtual Expected<ResourceState> save() const { return cannot_move(); }
  // Takes the place of what is here: nothing, or failed_precondition. invalid_argument for what
  // save() of such a resource does not give, and then nothing has changed.
  virtual Status load(const ResourceState&) { return cannot_move(); }
  // What is staged, under its number and attempt; failed_precondition when nothing is.
  virtual Expected<ResourceState> record() const { return cannot_move(); }
  // As if the same had been staged here; a number that contradicts earlier ones is refused as by
  // stage(). invalid_argument for what record() does not give.
  virtual Status stage_record(const ResourceState&, Outputs&) { return cannot_move(); }

 protected:
  static Status cannot_move() {
    return unimplemented("this kind of resource does not say how it is saved");
  }
};

struct ResourceKind {
  std::string name;  // External::resource of its ops
  // What it changes is seen outside of the job (ResourceWrites::outside).
  bool outside = false;
  // Of the handle's node, or of an op without handles; invalid_argument when that does not describe
  // one.
  std::function<Expected<std::unique_ptr<Resource>>(const ResourceRef&)> make;
  // What two nodes that name the same resource have to agree in: invalid_argument, naming both.
  // Empty: nothing.
  std::function<Status(const ResourceRef& known, const ResourceRef& other)> agree = {};
  // Instead of `make`, of a kind that works on files: those of its process, and a number that no
  // other one of the kind is given.
  std::function<std::unique_ptr<Resource>(FileSystem& files, std::uint64_t unique)>
      make_with_files = {};
  // Its calls take as long as a disk does, and nobody else's may wait for them meanwhile.
  bool own_thread = false;
};

// Queues, mutexes and files, and what add_resource_kind() added.
Expected<const ResourceKind*> find_resource_kind(const std::string& name);
// For the process; call it before the first Session, in every process of a job. already_exists for
// a name that is taken, invalid_argument without a name or `make`.
Status add_resource_kind(ResourceKind kind);
// Their names, in order: part of what the processes of a job compare.
std::vector<std::string> resource_kind_names();

}  // namespace troupe
