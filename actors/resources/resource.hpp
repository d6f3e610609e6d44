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

namespace troupe {

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
};

// Queues and files, and what add_resource_kind() added.
Expected<const ResourceKind*> find_resource_kind(const std::string& name);
// For the process; call it before the first Session, in every process of a job. already_exists for
// a name that is taken, invalid_argument without a name or `make`.
Status add_resource_kind(ResourceKind kind);
// Their names, in order: part of what the processes of a job compare.
std::vector<std::string> resource_kind_names();

}  // namespace troupe
