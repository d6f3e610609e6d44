// The hub of one process: control messages and tensors of a Transport, as actors see them.
#pragma once

#include <caf/fwd.hpp>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <unordered_set>

#include "actors/hub.hpp"
#include "actors/interfaces.hpp"
#include "actors/net/pool.hpp"
#include "actors/net/transport.hpp"
#include "actors/processes/task_hosts.hpp"
#include "actors/runtime/arrivals.hpp"
#include "core/trace.hpp"
#include "serialization/parts.hpp"

namespace troupe {

// What the owner of a hub learns. Called on the transport's threads, never under the hub's lock;
// must not block. A peer that connects is nobody until NetHub::admit() says which process it is.
class HubOwner {
 public:
  virtual ~HubOwner() = default;
  // May a peer that says this connect at all? Decided at once, by what does not change.
  virtual Status may_connect(const Join& join) const = 0;
  // Each peer that was up, or that this process connected to, ends with one `down`.
  virtual void up(PeerId peer, const Join& join) = 0;
  virtual void down(PeerId peer, Status why) = 0;
  // Messages about membership; those about steps and runs go to the actors directly.
  virtual void message(ProcessId from, WireMessage message) = 0;
};

// Small messages travel on the control connection whole, long ones in parts. A feed or fetch above
// kInlineTensor, or with others above kInlineTensors, goes as a tensor of its own, and the
// receiving hub puts the two together again.
inline constexpr std::uint64_t kInlineTensor = 64 * 1024;
inline constexpr std::uint64_t kInlineTensors = 512 * 1024;

// Turns messages of peers into messages to actors, and the other way round. What a peer may send is
// checked here: kinds by the peer's part in the job, tensors by what this process waits for
// (arrivals.hpp). Anything else closes the peer with invalid_argument. What is for a task, or comes
// in its name, is a matter of the process that hosts it (TaskHosts); nobody else has to know that.
//
// Locks are held for look-ups only: callbacks come from I/O threads, sends from lanes and actors.
class NetHub final : public Hub, public TransportHandler {
 public:
  // `self`: this process, or any number but 0 while it has none; 0 is the master, to whom only
  // workers speak.
  NetHub(ProcessId self, HubOwner& owner)
      : is_master_(self == 0), owner_(owner), arrivals_(self == 0, hosts_) {}

  void use(Transport& transport) { transport_ = &transport; }
  // Records what is sent and received, while it records. Before the first peer.
  void record(std::shared_ptr<Trace> trace) { trace_ = std::move(trace); }
  // The thread that brings what belongs to a run handles it too, as far as that is short work
  // (inline_send.hpp). For transports with threads of their own; before the first peer.
  void handle_inline() { inline_ = true; }
  // Where messages for this process's actors go. Before the first of them can arrive.
  // Any time, from any thread: frames already come in.
  void deliver_to(WorkerActor worker);
  void deliver_to(CoordinatorActor coordinator);

  // Connects to another member; HubOwner::up or down follows. Who answers must be of that
  // incarnation; 0: any. May wait for a name to be looked up, while which callbacks go on.
  Expected<PeerId> connect(const Endpoint& to, const Join& self, ProcessId process,
                           std::uint64_t incarnation, std::chrono::milliseconds within);
  // The peer, which is up, is that process. Nothing when it is down already.
  void admit(PeerId peer, ProcessId process);
  // The task is there from now on. Before anything for it is sent, or comes from it.
  void place(TaskId task, ProcessId process);
  std::vector<TaskId> tasks_of(ProcessId process) const;
  // resource_exhausted: longer than any message (serialization/parts.hpp).
  Status send(ProcessId to, const WireMessage& message);
  Status send(TaskId to, const WireMessage& message);
  // As if the task's process had sent it: what a proxy answers when a message could not be sent.
  void answer(TaskId from, WireMessage message);
  // The master is about to start a partition at a task: Arrivals::ask.
  bool ask(TaskId task, const StartPartition& start, std::uint32_t fetches);
  void limit_early(std::uint64_t bytes);                                 // Arrivals
  void allow_silence(ProcessId process, std::function<bool()> stopped);  // Transport
  // How far the process's steady clock is from ours; nothing when it is down, or not known yet.
  std::optional<ClockOffset::Estimate> clock_of(ProcessId process) const;
  // A feed or fetch.
  void send_tensor(ProcessId to, const TensorTag& tag, Tensor tensor);
  // Ends the connection to the process that hosts the task.
  void close(TaskId task, Status why);
  // Ends the connection to a peer, whoever it is.
  void close_peer(PeerId peer, Status why);

  // Hub
  void send_tensor(TaskId to, const TensorTag& tag, Tensor tensor) override;
  void expect(CompiledId compiled, std::vector<InboundChannel> channels) override;
  void forget(CompiledId compiled) override;
  void live(const LiveList& list) override;
  void close(ProcessId process, Status why) override;

  // TransportHandler
  Status admit(PeerId peer, const Hello& hello) override;
  void peer_up(PeerId peer, const Hello& hello) override;
  void peer_down(PeerId peer, Status why) override;
  void control(PeerId peer, Buffer message) override;
  Expected<Buffer> accept_tensor(PeerId peer, const TensorHeader& header) override;
  void tensor(PeerId peer, const TensorHeader& header, Buffer bytes) override;
  void clock(PeerId peer, const ClockOffset& offset) override;

 private:
  std::optional<ProcessId> process_of(PeerId peer) const;
  PeerId peer_of(ProcessId process) const;  // 0: none
  std::optional<ProcessId> host_of(TaskId task) const;
  void dispatch(ProcessId from, WireMessage message);
  template <class Actor, class Message>
  void deliver(const Actor& to, Message message, bool short_work);
  Status send_parts(PeerId peer, std::span<const std::byte> message);
  bool may_send(ProcessId from, const WireMessage& message) const;
  bool speaks_for_itself(ProcessId from, const WireMessage& message) const;
  void hold_tensors();
  void refuse(PeerId peer, Status why);
  WorkerActor worker() const;
  CoordinatorActor coordinator() const;

  const bool is_master_;
  bool inline_ = false;
  HubOwner& owner_;
  Transport* transport_ = nullptr;
  std::shared_ptr<Trace> trace_;
  WorkerActor worker_;            // guarded by mutex_
  CoordinatorActor coordinator_;  // guarded by mutex_
  BufferPool pool_{std::uint64_t{256} << 20};

  // Held while the parts of one message are queued, so that none of another come between.
  std::mutex sending_parts_;
  // Messages that have arrived in part. Touched by the thread of control() and peer_down() alone.
  std::unordered_map<PeerId, PartJoiner> joiners_;
  mutable std::mutex mutex_;
  std::unordered_map<PeerId, ProcessId> processes_;
  std::unordered_map<ProcessId, PeerId> peers_;
  std::unordered_map<PeerId, std::uint64_t> connecting_;  // the incarnation each has to be of
  std::unordered_set<PeerId> nobody_;                     // are up, and no process yet
  std::unordered_map<PeerId, ClockOffset> clocks_;        // of processes
  TaskHosts hosts_;
  Arrivals arrivals_;
};

// The process that hosts a task, as the master sees it: encodes and sends what it is told.
ProcessActor spawn_task_proxy(caf::actor_system& system, NetHub& hub, TaskId task,
                              std::shared_ptr<void> alive);
// The master as a worker's executors see it.
CoordinatorActor spawn_master_proxy(caf::actor_system& system, NetHub& hub,
                                    std::shared_ptr<void> alive);

}  // namespace troupe
