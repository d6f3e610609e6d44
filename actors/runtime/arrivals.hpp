// What a process accepts from others, and what arrived before it was needed.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>

#include "actors/hub.hpp"
#include "actors/processes/task_hosts.hpp"
#include "serialization/messages.hpp"

namespace troupe {

// Large feeds and fetches are sent apart from their messages, and elements of channels may arrive
// before the START of their attempt. So some tensors wait here or at an executor, in memory that
// another process causes this one to use. It is bounded as follows:
//
//  fetches         A master accepts requested fetches: of a partition that it started, from the
//                  process that hosts its task, with an index of the step's fetches, each once.
//  feeds           A worker accepts the feeds that its StartPartition leaves out, each once.
//  channels        From the process that hosts the task where the channel begins, with its type and
//                  shape; outside loops one element per attempt.
//  early tensors   Feeds and elements for a partition without START: up to `limit_early` bytes from
//                  one process. Above that its tensors are held: not read until attempts begin or
//                  are over. That is no error, and blocks no valid job: the master sends START to
//                  all partitions at once, on connections that tensors do not use, so the message
//                  that ends the hold is always under way.
//
// Tensors of attempts that are over are not wanted. No I/O and no lock: the owner has both.
class Arrivals {
 public:
  static constexpr std::uint64_t kEarlyBytes = std::uint64_t{64} << 20;
  static constexpr std::uint64_t kTensorCost = 256;  // of an early tensor, besides its bytes

  // `hosts` outlives it, and changes only between calls.
  Arrivals(bool master, const TaskHosts& hosts) : master_(master), hosts_(hosts) {}
  void limit_early(std::uint64_t bytes) { limit_ = bytes; }

  // Master: `start`, with that many fetches, is about to be sent to `task`. False if it was before.
  bool ask(TaskId task, const StartPartition& start, std::uint32_t fetches);

  void expect(CompiledId compiled, std::vector<InboundChannel> channels);
  void forget(CompiledId compiled);
  void live(const LiveList& list);
  // The process's connection ended. What it sent stays, and still counts.
  void disconnected(ProcessId process) { held_.erase(process); }

  // Checks a tensor's header before its bytes are read. Returns whether the tensor is wanted.
  Expected<bool> admit(ProcessId from, const TensorTag& tag, std::uint64_t bytes);
  // Adds an admitted feed or fetch. Returns the message that waited for it, if it was the last one.
  std::optional<WireMessage> add(const TensorTag& tag, Tensor tensor);
  // Adds a message, and returns it once all its tensors are there. invalid_argument if the process
  // was not asked, or not for that run.
  Expected<std::optional<WireMessage>> add(ProcessId from, WireMessage message);

  // The processes whose tensors must be held from now on (true), or no longer (false).
  std::vector<std::pair<ProcessId, bool>> take_holds() { return std::exchange(holds_, {}); }

 private:
  // `compiled` is 0 at the master, since the tags of fetches do not contain it.
  struct Key {
    AttemptId attempt;
    CompiledId compiled = 0;
    std::uint32_t partition = 0;
    friend auto operator<=>(const Key&, const Key&) = default;
  };
  struct Part {
    bool begun = false;         // master: asked for; worker: START or an abort has arrived
    TaskId task{};              // master: the task that was asked
    RunId run;                  // master: of the attempt
    std::uint32_t fetches = 0;  // master: their number
    std::map<ProcessId, std::uint64_t> early;  // bytes sent by each process before it began
    std::set<std::uint32_t> admitted;          // feeds or fetches
    std::map<std::uint32_t, Tensor> tensors;   // those that have arrived
    std::optional<WireMessage> message;        // waits for tensors
  };

  Key key(const TensorTag& tag) const;
  Status check(ProcessId from, const TensorTag& tag) const;
  Status admit_channel(ProcessId from, const TensorTag& tag);
  Status admit_fetch(ProcessId from, const TensorTag& tag);
  Status admit_feed(Part& part, const TensorTag& tag);
  Status charge(ProcessId from, Part& part, std::uint64_t bytes);
  void discharge(Part& part);
  Expected<Part*> asked(ProcessId from, const AttemptId& attempt, const RunId& run,
                        std::uint32_t partition);

  const bool master_;
  const TaskHosts& hosts_;
  std::uint64_t limit_ = kEarlyBytes;
  LiveList live_;
  std::map<CompiledId, std::map<ChannelId, InboundChannel>> expected_;
  std::set<std::pair<AttemptId, ChannelId>> received_;
  std::map<Key, Part> parts_;
  std::unordered_map<ProcessId, std::uint64_t> early_;
  std::set<ProcessId> held_;
  std::vector<std::pair<ProcessId, bool>> holds_;
};

}  // namespace troupe
