// The hub of one process: connects its actors to the control messages and tensors of a Transport.
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

// The callbacks of a hub's owner. Called on the transport's threads, never under the hub's lock;
// must not block. A peer that connects has no process until NetHub::admit().
class HubOwner {
 public:
  virtual ~HubOwner() = default;
  // Whether a peer with these data may connect. Depends on constant state only.
  virtual Status may_connect(const Join& join) const = 0;
  // Each peer that was up, or to which this process connected, ends with one `down`.
  virtual void up(PeerId peer, const Join& join) = 0;
  virtual void down(PeerId peer, Status why) = 0;
  // Messages about membership; those about steps and runs go to the actors directly.
  virtual void message(ProcessId from, WireMessage message) = 0;
};

// Control messages are sent whole, long ones in parts. Others overtake bulk ones (message.hpp): a
// graph on its way does not delay the commits of others. A feed or fetch larger than kInlineTensor,
// or beyond a total of kInlineTensors, is sent as a separate tensor, and the receiving hub puts it
// back into the message.
inline constexpr std::uint64_t kInlineTensor = 64 * 1024;
inline constexpr std::uint64_t kInlineTensors = 512 * 1024;

// Turns messages of peers into messages to actors, and vice versa. Checks what a peer may send:
// message types by the peer's role, tensors by what this process expects (arrivals.hpp). Anything
// else closes the peer with invalid_argument. Graphs are left to the worker, which decodes them on
// its compile thread: that of control() has heartbeats to send meanwhile. Maps tasks to the
// processes that host them (TaskHosts), so actors need not.
//
// Locks are held for look-ups only: callbacks come from I/O threads, sends from lanes and actors.
class NetHub final : public Hub, public TransportHandler {
 public:
  // `self`: this process; 0 is the master. A worker without a number uses any other one.
  NetHub(ProcessId self, HubOwner& owner)
      : is_master_(self == 0), owner_(owner), arrivals_(self == 0, hosts_) {}

  void use(Transport& transport) { transport_ = &transport; }
  // Records sent and received messages in `trace`, while that records. Call before the first peer.
  void record(std::shared_ptr<Trace> trace) { trace_ = std::move(trace); }
  // The thread that brings a run's message also handles it, if it is short work (inline_send.hpp).
  // For transports with their own threads; call before the first peer.
  void handle_inline() { inline_ = true; }
  // Sets the actor that receives this process's messages. Call before the first of them can arrive;
  // may be called again, from any thread, while messages arrive.
  void deliver_to(WorkerActor worker);
  void deliver_to(CoordinatorActor coordinator);

  // Connects to another member; HubOwner::up or down follows. The peer must have that incarnation;
  // 0: any. May block for a name look-up; callbacks go on meanwhile.
  Expected<PeerId> connect(const Endpoint& to, const Join& self, ProcessId process,
                           std::uint64_t incarnation, std::chrono::milliseconds within);
  // The peer, which is up, is that process. Ignored if it is already down.
  void admit(PeerId peer, ProcessId process);
  // The process hosts the task from now on. Call before messages for or from the task.
  void place(TaskId task, ProcessId process);
  std::vector<TaskId> tasks_of(ProcessId process) const;
  // resource_exhausted if the message is too long (serialization/parts.hpp).
  Status send(ProcessId to, const WireMessage& message);
  Status send(TaskId to, const WireMessage& message);
  // Delivers `message` as if the task's process had sent it: a proxy's answer if sending failed.
  void answer(TaskId from, WireMessage message);
  // The master is about to start a partition at a task: Arrivals::ask.
  bool ask(TaskId task, const StartPartition& start, std::uint32_t fetches);
  void limit_early(std::uint64_t bytes);                                 // Arrivals
  void allow_silence(ProcessId process, std::function<bool()> stopped);  // Transport
  // The offset of the process's steady clock from ours; empty if it is down or not known yet.
  std::optional<ClockOffset::Estimate> clock_of(ProcessId process) const;
  // Sends a feed or fetch.
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
  WorkerActor reader_of_graph(ProcessId from, std::span<const std::byte> bytes) const;
  template <class Actor, class Message>
  void deliver(const Actor& to, Message message, bool short_work);
  Status send_parts(PeerId peer, std::span<const std::byte> message, bool bulk);
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

  // Held while the parts of a message are queued, so that they stay together: of a bulk message,
  // which may take long, or of another.
  std::mutex sending_bulk_, sending_parts_;
  // Partly received messages. Used only by the thread of control() and peer_down().
  struct Joiners {
    PartJoiner bulk, others;
  };
  std::unordered_map<PeerId, Joiners> joiners_;
  mutable std::mutex mutex_;
  std::unordered_map<PeerId, ProcessId> processes_;
  std::unordered_map<ProcessId, PeerId> peers_;
  std::unordered_map<PeerId, std::uint64_t> connecting_;  // the required incarnation
  std::unordered_set<PeerId> nobody_;                     // up, without a process
  std::unordered_map<PeerId, ClockOffset> clocks_;        // of processes
  TaskHosts hosts_;
  Arrivals arrivals_;
};

// The master's proxy of the process that hosts a task: encodes and sends its messages.
ProcessActor spawn_task_proxy(caf::actor_system& system, NetHub& hub, TaskId task,
                              std::shared_ptr<void> alive);
// A worker's proxy of the master.
CoordinatorActor spawn_master_proxy(caf::actor_system& system, NetHub& hub,
                                    std::shared_ptr<void> alive);

}  // namespace troupe
