// The process of a worker without its threads: its connections to the master and other workers.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "actors/interfaces.hpp"
#include "actors/processes/event_queue.hpp"
#include "actors/processes/mesh.hpp"
#include "actors/runtime/in_use.hpp"
#include "actors/runtime/net_hub.hpp"
#include "actors/runtime/platform.hpp"
#include "actors/runtime/worker_process.hpp"
#include "core/trace.hpp"
#include "ops/op.hpp"

namespace troupe {

// Owns the worker's actors, the hub, and Mesh, whose outputs it carries out. Has no thread, socket
// or clock: these come from the Platform.
//
// Events of sockets enter one queue from any thread. The pumping thread passes them to handle(),
// until ended():
//
//   begin(), pump until ended(); end(), then wait()
//
// REQUIRES: end() and wait() before it is destroyed, if begin() was called.
class WorkerShell final : public HubOwner {
 public:
  // `ops` is called once the level of the master is known. What it gives and `platform` outlive
  // this.
  WorkerShell(WorkerProcessOptions options, std::function<const OpTable&()> ops,
              Platform& platform);

  // Listens and connects to the master. After an error, only end() and wait() may follow.
  Status begin();

  EventQueue& events() { return events_; }
  void handle(EventQueue::Event event);

  // ok if the master sent Leave, or why the process can no longer work; empty while it works.
  const std::optional<Status>& ended() const { return ended_; }
  // Ends the connections and tells the actors to end.
  void end();
  InUse& in_use() { return in_use_; }
  void wait() { in_use_.wait(); }

  NetHub& hub() { return hub_; }
  // Its number in the job; 0: none yet.
  ProcessId process() const { return mesh_ ? mesh_->self() : 0; }
  bool connected() const { return mesh_ && mesh_->connected(); }  // to its master
  const std::vector<std::unique_ptr<Device>>& devices() const { return devices_; }

 private:
  // HubOwner
  Status may_connect(const Join& join) const override;
  void up(PeerId peer, const Join& join) override;
  void down(PeerId peer, Status why) override;
  void message(ProcessId from, WireMessage message) override;

  void record(bool on);
  void tell_recorded();
  void carry_out(const Mesh::Connect& connect);
  void carry_out(const Mesh::Admit& admit);
  void carry_out(Mesh::Close& close);
  void carry_out(const Mesh::Host& host);
  void carry_out(const Mesh::Place& place);
  void carry_out(const Mesh::Report& report);
  void carry_out(Mesh::End& end);
  Expected<std::vector<std::string>> host(const Welcome& welcome);
  Join words() const;

  const WorkerProcessOptions options_;
  const std::function<const OpTable&()> ops_;
  Platform& platform_;
  Join words_;  // of this process, without its number
  std::vector<std::unique_ptr<Device>> devices_;
  EventQueue events_;
  const std::shared_ptr<Trace> trace_ = std::make_shared<Trace>();
  NetHub hub_;
  std::shared_ptr<Transport> transport_;
  WorkerActor worker_;
  CoordinatorActor master_;
  InUse in_use_;

  // Of the pumping thread.
  std::optional<Mesh> mesh_;
  Mesh::Outputs out_;
  std::optional<Status> ended_;
};

}  // namespace troupe
